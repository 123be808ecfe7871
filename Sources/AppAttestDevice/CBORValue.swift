/// A CBOR value to write, in the strict form that App Attest's objects have; a map keeps its order.
package indirect enum CBORValue: Sendable {
    case array([CBORValue])
    case bytes([UInt8])
    case integer(Int64)
    case map([(key: CBORValue, value: CBORValue)])
    case text(String)

    /// The value's bytes.
    package var encoded: [UInt8] {
        var bytes: [UInt8] = []
        append(to: &bytes)
        return bytes
    }

    private func append(to bytes: inout [UInt8]) {
        switch self {
        case .array(let items):
            CBORValue.appendHead(4, UInt64(items.count), to: &bytes)
            for item in items { item.append(to: &bytes) }
        case .bytes(let contents):
            CBORValue.appendHead(2, UInt64(contents.count), to: &bytes)
            bytes += contents
        case .integer(let number):
            // A negative number n is written as -1 - n, which is n with its bits turned.
            let argument = UInt64(bitPattern: number < 0 ? ~number : number)
            CBORValue.appendHead(number < 0 ? 1 : 0, argument, to: &bytes)
        case .map(let members):
            CBORValue.appendHead(5, UInt64(members.count), to: &bytes)
            for member in members {
                member.key.append(to: &bytes)
                member.value.append(to: &bytes)
            }
        case .text(let text):
            CBORValue.appendHead(3, UInt64(text.utf8.count), to: &bytes)
            bytes += text.utf8
        }
    }

    private static func appendHead(_ major: UInt8, _ argument: UInt64, to bytes: inout [UInt8]) {
        let (short, width): (UInt8, Int) =
            switch argument {
            case 0..<24: (UInt8(argument), 0)
            case 24..<0x100: (24, 1)
            case 0x100..<0x1_0000: (25, 2)
            case 0x1_0000..<0x1_0000_0000: (26, 4)
            default: (27, 8)
            }
        bytes.append(major << 5 | short)
        for index in (0..<width).reversed() {
            bytes.append(UInt8(truncatingIfNeeded: argument >> UInt64(8 * index)))
        }
    }
}
