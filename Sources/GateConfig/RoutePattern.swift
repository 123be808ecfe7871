internal import GateBytes

/// A route's path as it is matched.
struct RoutePattern {
    /// The bytes looked up: the wide key, or the raw bytes a narrow route takes.
    let key: [UInt8]
    /// The length that decides between prefixes: of the decoded path, whatever its spelling.
    let length: Int
    /// Whether it matches wide.
    let isWide: Bool

    /// The pattern of `route`.
    init(_ route: Route) {
        let path = Array(route.path.utf8)
        isWide = route.mode.isProtected
        let wideKey = Self.wideKey(path)
        key = isWide ? wideKey : Self.rawKey(path)
        length = isWide ? wideKey.count : path.count
    }

    /// A path, decoded, as wide matching sees it: ASCII case folded, trailing `/` and `.` cut.
    static func wideKey(_ path: [UInt8]) -> [UInt8] {
        path[cutTrailing(path, 0..<path.count)].map(ASCII.lowercased)
    }

    /// A path, decoded, as a client sends it: escapes only where a raw byte cannot stand.
    static func rawKey(_ path: [UInt8]) -> [UInt8] {
        path.flatMap { byte in
            (0x21...0x7e).contains(byte)
                ? [byte] : [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
        }
    }

    /// The received bytes with the digits of their escapes in upper case, as in ``rawKey(_:)``.
    static func rawView(_ bytes: [UInt8], _ range: Range<Int>) -> [UInt8] {
        var view = Array(bytes[range])
        var index = 0
        while index + 2 < view.count {
            guard view[index] == UInt8(ascii: "%"), let high = Hex.value(view[index + 1]),
                let low = Hex.value(view[index + 2])
            else {
                index += 1
                continue
            }
            view[index + 1] = digits[Int(high)]
            view[index + 2] = digits[Int(low)]
            index += 3
        }
        return view
    }

    /// `range` without the slashes and dots at its end.
    static func cutTrailing(_ bytes: [UInt8], _ range: Range<Int>) -> Range<Int> {
        var end = range.upperBound
        while end > range.lowerBound,
            bytes[end - 1] == UInt8(ascii: "/") || bytes[end - 1] == UInt8(ascii: ".")
        {
            end -= 1
        }
        return range.lowerBound..<end
    }

    private static let digits = Array("0123456789ABCDEF".utf8)
}

/// The quick look at a path: most have no escape and nothing that §5 knows.
enum PlainPath {
    /// Whether `bytes[range]` certainly has one reading: it starts with `/`, has no escape, no `;`,
    /// no byte outside 0x21–0x7e, no `\` or `#`, no empty segment, no segment that is or ends with
    /// dots (but the last may end with one), none that ends with `+`.
    static func isPlain(_ bytes: [UInt8], _ range: Range<Int>) -> Bool {
        guard let first = range.first, bytes[first] == UInt8(ascii: "/") else { return false }
        var previous: UInt8 = 0
        for index in range {
            let byte = bytes[index]
            switch byte {
            case UInt8(ascii: "/"):
                switch previous {
                case UInt8(ascii: "/"), UInt8(ascii: "."), UInt8(ascii: "+"): return false
                default: break
                }
            case 0x00...0x20, 0x7f...0xff, UInt8(ascii: "%"), UInt8(ascii: ";"), UInt8(ascii: "\\"),
                UInt8(ascii: "#"):
                return false
            default: break
            }
            previous = byte
        }
        if previous == UInt8(ascii: "+") { return false }
        guard previous == UInt8(ascii: ".") else { return true }
        return !isDotSegment(bytes, endingAt: range.upperBound)
    }

    /// Whether the segment that ends before `end`, a dot, is `.` or `..`.
    private static func isDotSegment(_ bytes: [UInt8], endingAt end: Int) -> Bool {
        bytes[end - 2] == UInt8(ascii: "/")
            || bytes[end - 2] == UInt8(ascii: ".") && bytes[end - 3] == UInt8(ascii: "/")
    }
}
