internal import GateBytes
package import GateHTTP

/// The request id: in `X-Request-Id` both ways, in problem answers, in logs.
package enum RequestID {
    /// The most characters of an id that a trusted proxy may choose.
    package static let charactersMax = 128

    /// A fresh id: sixteen random bytes as thirty-two hexadecimal digits.
    package static func make(using random: inout some RandomNumberGenerator) -> [UInt8] {
        var id: [UInt8] = []
        id.reserveCapacity(32)
        for word in [random.next() as UInt64, random.next()] {
            for shift in stride(from: UInt64(60), through: 0, by: -4) {
                id.append(digit(UInt8(truncatingIfNeeded: word >> shift) & 15))
            }
        }
        return id
    }

    /// The id of the request `head`: a trusted proxy's, if it sent one that is acceptable, else a
    /// fresh one.
    package static func choose(
        _ head: RequestHead, isPeerTrusted: Bool, using random: inout some RandomNumberGenerator
    ) -> [UInt8] {
        guard isPeerTrusted, let value = head.onlyValue(of: name),
            isAcceptable(head.bytes, value)
        else { return make(using: &random) }
        return Array(head.bytes[value])
    }

    private static let name = FieldName("x-request-id")

    /// Whether `bytes[range]` is an id that a trusted proxy may choose: `[A-Za-z0-9._-]{1,128}`.
    package static func isAcceptable(_ bytes: [UInt8], _ range: Range<Int>) -> Bool {
        guard (1...charactersMax).contains(range.count) else { return false }
        for index in range {
            let byte = bytes[index]
            guard
                ASCII.isLetter(byte) || ASCII.isDigit(byte) || byte == UInt8(ascii: ".")
                    || byte == UInt8(ascii: "_") || byte == UInt8(ascii: "-")
            else { return false }
        }
        return true
    }

    private static func digit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
    }
}
