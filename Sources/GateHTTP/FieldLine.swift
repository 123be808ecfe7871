/// A range of a head's bytes in eight bytes: a head is a few dozen KiB at most, and it is copied
/// often.
struct HeadRange: Equatable, Sendable {
    private let start: UInt32
    private let end: UInt32

    init(_ range: Range<Int>) {
        start = UInt32(truncatingIfNeeded: range.lowerBound)
        end = UInt32(truncatingIfNeeded: range.upperBound)
    }

    /// The range as an array takes it.
    var range: Range<Int> { Int(start)..<Int(end) }
}

/// One field line of a head: where its name and its value stand in the head's bytes.
package struct FieldLine: Equatable, Sendable {
    private let nameRange: HeadRange
    private let valueRange: HeadRange
    /// What all spellings of the folded name share; a cheap first comparison.
    let signature: UInt32
    /// What the codec itself makes of the field.
    package let kind: FieldKind
    /// Whether ``HopByHop`` found that the field ends at this hop.
    package var isHopByHop = false

    /// A line of `bytes`, where the head starts at `base`; ranges as ``name`` and ``value``.
    init(_ bytes: [UInt8], base: Int, name: Range<Int>, value: Range<Int>, kind: FieldKind) {
        nameRange = HeadRange(name)
        valueRange = HeadRange(value)
        let absolute = (base + name.lowerBound)..<(base + name.upperBound)
        signature = FieldName.signature(bytes, absolute)
        self.kind = kind
    }

    /// The name as received.
    package var name: Range<Int> { nameRange.range }

    /// The value without leading and trailing space and tab; may be empty.
    package var value: Range<Int> { valueRange.range }
}

/// The fields that HTTP/1 itself gives a meaning; all else is ``other``.
package enum FieldKind: UInt8, Sendable {
    case connection
    case contentLength
    case expect
    case host
    case http2Settings
    case keepAlive
    case other
    case proxyAuthorization
    case proxyConnection
    case te
    case trailer
    case transferEncoding
    case upgrade

    /// The kind of the field name `bytes[range]`, case ignored.
    init(_ bytes: [UInt8], _ range: Range<Int>) {
        func names(_ text: StaticString) -> Bool { Token.equals(bytes, range, text) }
        switch range.count {
        case 2 where names("te"): self = .te
        case 4 where names("host"): self = .host
        case 6 where names("expect"): self = .expect
        case 7 where names("upgrade"): self = .upgrade
        case 7 where names("trailer"): self = .trailer
        case 10 where names("connection"): self = .connection
        case 10 where names("keep-alive"): self = .keepAlive
        case 14 where names("content-length"): self = .contentLength
        case 14 where names("http2-settings"): self = .http2Settings
        case 16 where names("proxy-connection"): self = .proxyConnection
        case 17 where names("transfer-encoding"): self = .transferEncoding
        case 19 where names("proxy-authorization"): self = .proxyAuthorization
        default: self = .other
        }
    }

    /// Whether a field of this kind never passes a hop (RFC 9110 §7.6.1, threat T07).
    var isHopByHop: Bool {
        switch self {
        case .connection, .http2Settings, .keepAlive, .proxyAuthorization, .proxyConnection, .te,
            .trailer, .transferEncoding, .upgrade:
            return true
        case .contentLength, .expect, .host, .other:
            return false
        }
    }
}

/// Comparing tokens.
enum Token {
    /// Whether `bytes[range]` is `text`, which must be in lower case, when ASCII case is ignored.
    static func equals(_ bytes: [UInt8], _ range: Range<Int>, _ text: StaticString) -> Bool {
        guard range.count == text.utf8CodeUnitCount else { return false }
        return text.withUTF8Buffer { expected in
            for index in 0..<range.count
            where unsafe Octet.lowercased(bytes[range.lowerBound + index]) != expected[index] {
                return false
            }
            return true
        }
    }

    /// Whether `bytes[range]` is `text`, case and all.
    static func isExactly(_ bytes: [UInt8], _ range: Range<Int>, _ text: StaticString) -> Bool {
        guard range.count == text.utf8CodeUnitCount else { return false }
        return text.withUTF8Buffer { expected in
            for index in 0..<range.count
            where unsafe bytes[range.lowerBound + index] != expected[index] {
                return false
            }
            return true
        }
    }
}
