internal import AppAttestWire
internal import GateBytes
package import GateConfig

/// What DeviceCheck is asked and what it answers (Apple's "Accessing and modifying per-device
/// data").
package enum DeviceCheckMessage {
    /// Both bits of a device.
    package struct Bits: Sendable, Equatable {
        package var bit0: Bool
        package var bit1: Bool

        /// Both bits, unset where nothing is said.
        package init(bit0: Bool = false, bit1: Bool = false) {
            self.bit0 = bit0
            self.bit1 = bit1
        }

        /// Whether they are what `fallback devicecheck` asks for.
        package func meet(_ terms: Fallback.DeviceCheck) -> Bool {
            bit0 == terms.bit0 ?? bit0 && bit1 == terms.bit1 ?? bit1
        }

        /// These bits with those of `set_bits` in their place.
        package func setting(_ wanted: DeviceBits) -> Bits {
            Bits(bit0: wanted.bit0 ?? bit0, bit1: wanted.bit1 ?? bit1)
        }
    }

    /// The body of a call.
    /// - Parameters:
    ///   - transaction: A text that never comes again.
    ///   - time: Milliseconds of UTC since 1970.
    ///   - bits: What `update_two_bits` writes: both, since what an omitted one does is not
    ///     documented.
    package static func body(
        token: [UInt8], transaction: String, time: Int64, bits: Bits? = nil
    ) -> [UInt8] {
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("device_token", Base64.encode(token))
        writer.member("transaction_id", transaction)
        writer.member("timestamp", Int(time))
        if let bits {
            writer.member("bit0", bits.bit0)
            writer.member("bit1", bits.bit1)
        }
        writer.endObject()
        return writer.bytes
    }

    /// The bits of a good answer to `query_two_bits`; nil where none were ever set, which Apple
    /// says in plain text: whatever is not the JSON object is taken for that.
    package static func bits(_ body: [UInt8]) -> Bits? {
        let elements: [JSONElement?]
        do throws(JSONError) {
            elements = try JSONMembers.scanElements(
                body, named: [Array("bit0".utf8), Array("bit1".utf8)])
        } catch {
            return nil
        }
        guard let bit0 = boolean(elements[0], body), let bit1 = boolean(elements[1], body) else {
            return nil
        }
        return Bits(bit0: bit0, bit1: bit1)
    }

    private static func boolean(_ element: JSONElement?, _ text: [UInt8]) -> Bool? {
        guard let element else { return nil }
        if text[element.range].elementsEqual("true".utf8) { return true }
        return text[element.range].elementsEqual("false".utf8) ? false : nil
    }

    /// Whether a good answer to `query_two_bits` is an object, of which ``bits(_:)`` has to know
    /// the bits: one that it does not know says nothing, not that they were never set.
    package static func isObject(_ body: [UInt8]) -> Bool {
        body.first { !($0 == 0x20 || (0x09...0x0d).contains($0)) } == UInt8(ascii: "{")
    }

    /// Whether a text is one of those that say "no state"; another is worth a line in the log.
    package static func isKnownNoState(_ body: [UInt8]) -> Bool {
        let text = String(decoding: body, as: UTF8.self)
        return text == "Failed to find bit state" || text == "Bit State Not Found"
    }
}

/// Texts of Apple's servers.
package enum AppleText {
    private static let bytesMax = 160
    /// A run as long as this is no word: it may be a token that was said back.
    private static let wordBytesMax = 32

    /// A 400 that is about the gate's own part of a call, whatever the client sent.
    package static func isOwnFault(_ body: [UInt8]) -> Bool {
        let text = String(decoding: body.prefix(bytesMax), as: UTF8.self).lowercased()
        return ["authorization", "time stamp", "timestamp"].contains { text.contains($0) }
    }

    /// A body for the log: capped, visible ASCII, and no run in it that could be a token.
    package static func excerpt(_ body: [UInt8]) -> String {
        let shown = body.prefix(bytesMax).map { (0x20...0x7e).contains($0) ? $0 : 0x20 }
        let words = shown.split(separator: 0x20).map { word in
            word.count > wordBytesMax ? "…" : String(decoding: word, as: UTF8.self)
        }
        return words.joined(separator: " ") + (body.count > bytesMax ? " …" : "")
    }
}
