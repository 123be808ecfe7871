/// Base64 as `protocol.md` reads and writes it (RFC 4648 §4 and §5).
///
/// Decoding takes the standard or the URL alphabet, never both in one text; padding whole or
/// absent; unused bits zero; no white space. Encoding writes padded base64 or unpadded base64url.
package enum Base64 {
    /// The bytes of the text in `bytes[range]`, or nil when it is not base64 as above. An empty
    /// text is no bytes.
    package static func decode(_ text: [UInt8], _ range: Range<Int>) -> [UInt8]? {
        var end = range.upperBound
        while end > range.lowerBound, range.upperBound - end < 2, text[end - 1] == UInt8(ascii: "=")
        {
            end -= 1
        }
        let significant = end - range.lowerBound
        guard significant % 4 != 1 else { return nil }
        guard end == range.upperBound || range.count % 4 == 0 else { return nil }

        var bytes: [UInt8] = []
        bytes.reserveCapacity(significant / 4 * 3 + 2)
        var sawStandard = false
        var sawURL = false
        var accumulator: UInt32 = 0
        var bits = 0
        for index in range.lowerBound..<end {
            let byte = text[index]
            let value = values[Int(byte)]
            guard value != invalid else { return nil }
            switch byte {
            case UInt8(ascii: "+"), UInt8(ascii: "/"): sawStandard = true
            case UInt8(ascii: "-"), UInt8(ascii: "_"): sawURL = true
            default: break
            }
            accumulator = accumulator << 6 | UInt32(value)
            bits += 6
            if bits >= 8 {
                bits -= 8
                bytes.append(UInt8(truncatingIfNeeded: accumulator >> UInt32(bits)))
                accumulator &= (1 << UInt32(bits)) - 1
            }
        }
        guard accumulator == 0, !(sawStandard && sawURL) else { return nil }
        return bytes
    }

    /// The bytes of the text `text`; nil as above.
    package static func decode(_ text: [UInt8]) -> [UInt8]? {
        decode(text, 0..<text.count)
    }

    /// The bytes of the text `text`; nil as above.
    package static func decode(_ text: String) -> [UInt8]? {
        decode(Array(text.utf8))
    }

    /// The bytes of `text[range]`, which must be base64url without padding, as tokens have it
    /// (RFC 7515 §2); nil as above.
    package static func decode(unpaddedURL text: [UInt8], _ range: Range<Int>) -> [UInt8]? {
        for index in range {
            switch text[index] {
            case UInt8(ascii: "+"), UInt8(ascii: "/"), UInt8(ascii: "="): return nil
            default: continue
            }
        }
        return decode(text, range)
    }

    /// `bytes` as padded base64.
    package static func encode(_ bytes: [UInt8]) -> String {
        var text = encode(bytes, alphabet: standard)
        while text.count % 4 != 0 { text.append(UInt8(ascii: "=")) }
        return String(decoding: text, as: UTF8.self)
    }

    /// `bytes` as base64url without padding.
    package static func encodeURL(_ bytes: [UInt8]) -> String {
        String(decoding: encode(bytes, alphabet: url), as: UTF8.self)
    }

    private static func encode(_ bytes: [UInt8], alphabet: [UInt8]) -> [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity((bytes.count + 2) / 3 * 4)
        var accumulator: UInt32 = 0
        var bits = 0
        for byte in bytes {
            accumulator = accumulator << 8 | UInt32(byte)
            bits += 8
            while bits >= 6 {
                bits -= 6
                text.append(alphabet[Int(accumulator >> UInt32(bits) & 63)])
            }
            accumulator &= (1 << UInt32(bits)) - 1
        }
        if bits > 0 { text.append(alphabet[Int(accumulator << UInt32(6 - bits) & 63)]) }
        return text
    }

    private static let letters = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789".utf8)
    private static let standard = letters + Array("+/".utf8)
    private static let url = letters + Array("-_".utf8)
    private static let invalid: UInt8 = 0xff

    /// The value of each byte, of both alphabets.
    private static let values: [UInt8] = {
        var table = [UInt8](repeating: invalid, count: 256)
        for alphabet in [standard, url] {
            for (value, letter) in alphabet.enumerated() { table[Int(letter)] = UInt8(value) }
        }
        return table
    }()
}
