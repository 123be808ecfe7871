internal import GateBytes
package import GateHTTP

/// `traceparent` of W3C Trace Context: passed on where it is one, made where it is none. It decides
/// nothing here.
package enum TraceParent {
    /// The value to send upstream in place of what the client sent; nil where the client's own
    /// passes. With the client's goes its `tracestate`, which means nothing beside another.
    package static func replacement(
        _ head: RequestHead, using random: inout some RandomNumberGenerator
    ) -> [UInt8]? {
        if let value = head.onlyValue(of: name), isWellFormed(head.bytes, value) { return nil }
        return make(using: &random)
    }

    /// A fresh one, version 00. The gate records nothing, so it does not say "sampled".
    package static func make(using random: inout some RandomNumberGenerator) -> [UInt8] {
        var text = Array("00-".utf8)
        // An identifier of zeros alone is none.
        text.appendHexadecimal(random.next())
        text.appendHexadecimal(random.next() | 1)
        text.append(dash)
        text.appendHexadecimal(random.next() | 1)
        return text + Array("-00".utf8)
    }

    /// Whether `bytes[range]` is one: version, 16-byte trace ID, 8-byte parent ID and flags in
    /// lower-case hexadecimal, neither ID zero. A version after 00 may have more behind a dash.
    package static func isWellFormed(_ bytes: [UInt8], _ range: Range<Int>) -> Bool {
        guard (length...lengthMax).contains(range.count) else { return false }
        let text = Array(bytes[range])
        for (index, byte) in text.prefix(length).enumerated() {
            let isDash = index == 2 || index == 35 || index == 52
            guard isDash ? byte == dash : isHexadecimal(byte) else { return false }
        }
        let version = text[0..<2]
        guard version != [UInt8(ascii: "f"), UInt8(ascii: "f")],
            text[3..<35].contains(where: { $0 != zero }),
            text[36..<52].contains(where: { $0 != zero })
        else { return false }
        guard version != [zero, zero] else { return text.count == length }
        return text.count == length || text[length] == dash
    }

    private static let name = FieldName("traceparent")
    private static let length = 55
    /// What a later version may need is unknown; this much nobody has sent.
    private static let lengthMax = 256
    private static let dash = UInt8(ascii: "-")
    private static let zero = UInt8(ascii: "0")

    private static func isHexadecimal(_ byte: UInt8) -> Bool {
        ASCII.isDigit(byte) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
    }
}

extension [UInt8] {
    /// Appends the sixteen digits of `value` in lower-case hexadecimal.
    fileprivate mutating func appendHexadecimal(_ value: UInt64) {
        for shift in stride(from: UInt64(60), through: 0, by: -4) {
            let digit = UInt8(truncatingIfNeeded: value >> shift & 15)
            append(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10)
        }
    }
}
