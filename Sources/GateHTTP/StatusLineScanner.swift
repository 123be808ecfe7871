/// The first line of a response, octet by octet (RFC 9112 §4).
///
///     "HTTP/1." ( "0" / "1" ) SP status SP *( HTAB / SP / VCHAR / obs-text ) CRLF
///
/// The second space is required, the reason may be empty. Offsets count from the `H`.
struct StatusLineScanner: Sendable {
    private enum State: UInt8 {
        case version
        case status
        case reason
        case lineEnd
        case done
    }

    private var state = State.version
    private var count = 0
    private var major: UInt8 = 0
    private var reasonStart = 0

    private(set) var version = HTTPVersion.http11
    private(set) var status = 0
    private(set) var reason = 0..<0

    /// Whether the line is complete.
    var isDone: Bool { state == .done }

    /// Scans `bytes` from `index`, which it moves, up to `end` or the end of the line. The line
    /// starts at `base`.
    mutating func scan(
        _ bytes: [UInt8], base: Int, index: inout Int, end: Int
    ) throws(MessageError) {
        while index < end {
            let byte = bytes[index]
            switch state {
            case .version: try takeVersion(byte)
            case .status: try takeStatus(byte, at: index - base)
            case .reason:
                if byte == Octet.carriageReturn {
                    reason = reasonStart..<(index - base)
                    state = .lineEnd
                } else if !Octet.isFieldValue(byte) {
                    throw byte == Octet.lineFeed ? .lineEndInvalid : .statusLineInvalid
                }
            case .lineEnd:
                guard byte == Octet.lineFeed else { throw .lineEndInvalid }
                state = .done
                index += 1
                return
            case .done: return
            }
            index += 1
        }
    }

    private mutating func takeVersion(_ byte: UInt8) throws(MessageError) {
        switch count {
        case 5:
            guard Octet.isDigit(byte) else { throw .versionInvalid }
            major = byte &- 0x30
        case 7:
            guard Octet.isDigit(byte) else { throw .versionInvalid }
            guard major == 1, byte &- 0x30 < 2 else { throw .versionUnsupported }
            version = byte == UInt8(ascii: "0") ? .http10 : .http11
        case 8:
            guard byte == Octet.space else { throw .statusLineInvalid }
            state = .status
            count = 0
            return
        default:
            guard byte == VersionText.octet(count) else { throw .versionInvalid }
        }
        count += 1
    }

    private mutating func takeStatus(_ byte: UInt8, at offset: Int) throws(MessageError) {
        if count == 3 {
            guard byte == Octet.space else { throw .statusLineInvalid }
            state = .reason
            reasonStart = offset + 1
            return
        }
        guard Octet.isDigit(byte) else { throw .statusLineInvalid }
        status = status * 10 + Int(byte &- 0x30)
        count += 1
        if count == 1, !(1...5).contains(status) { throw .statusLineInvalid }
    }
}

/// The text around the two digits of a version.
enum VersionText {
    /// The octet at `index` of `HTTP/n.`; nil where a digit stands or past the end.
    static func octet(_ index: Int) -> UInt8? {
        switch index {
        case 0: return UInt8(ascii: "H")
        case 1, 2: return UInt8(ascii: "T")
        case 3: return UInt8(ascii: "P")
        case 4: return Octet.slash
        case 6: return Octet.dot
        default: return nil
        }
    }
}
