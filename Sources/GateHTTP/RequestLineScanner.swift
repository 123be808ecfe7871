/// The first line of a request, octet by octet (RFC 9112 §3).
///
///     method SP target SP "HTTP/" DIGIT "." DIGIT CRLF
///
/// The target is in origin-form (`/…`), in absolute-form with `http` or `https` and an authority,
/// `*` for `OPTIONS` alone, or `host:port` for `CONNECT`, which is read only to be refused by name.
/// Offsets count from the method's first octet.
struct RequestLineScanner: Sendable {
    private enum State: UInt8 {
        case method
        case targetStart
        case scheme
        case authority
        case connect
        case path
        case query
        case targetEnd
        case version
        case lineEnd
        case done
    }

    private let limits: HeadLimits
    private var state = State.method
    private var authorityScanner = AuthorityScanner()
    private var schemeCount = 0
    private var isSecureScheme = false
    private var versionCount = 0
    private var major: UInt8 = 0
    private var minor: UInt8 = 0

    /// The method as received.
    private(set) var method = 0..<0
    /// The target as received.
    private(set) var target = 0..<0
    /// The authority of an absolute-form target.
    private(set) var authority: Range<Int>?
    /// Where the path starts: the target itself, or what follows the authority.
    private(set) var pathStart = 0
    /// Where the first `?` stands.
    private(set) var questionMark: Int?
    private(set) var form = TargetForm.origin
    private(set) var version = HTTPVersion.http11

    init(limits: HeadLimits) {
        self.limits = limits
    }

    /// Whether the line is complete.
    var isDone: Bool { state == .done }

    /// Scans `bytes` from `index`, which it moves, up to `end` or the end of the line. The line
    /// starts at `base`.
    mutating func scan(
        _ bytes: [UInt8], base: Int, index: inout Int, end: Int
    ) throws(MessageError) {
        while index < end {
            switch state {
            case .method: try scanMethod(bytes, base: base, index: &index, end: end)
            case .path, .query: try scanPath(bytes, base: base, index: &index, end: end)
            case .targetStart, .scheme, .authority, .connect, .targetEnd:
                try takeTarget(bytes[index], bytes, base: base, at: index)
                index += 1
            case .version:
                try takeVersion(bytes[index])
                index += 1
            case .lineEnd:
                guard bytes[index] == Octet.lineFeed else { throw .lineEndInvalid }
                try judgeVersion()
                state = .done
                index += 1
                return
            case .done: return
            }
        }
    }

    private mutating func scanMethod(
        _ bytes: [UInt8], base: Int, index: inout Int, end: Int
    ) throws(MessageError) {
        let stop = min(end, base + Bounds.methodBytesMax)
        index = Octet.skip(bytes, index, stop, while: Octet.isToken)
        guard index < end else { return }
        let byte = bytes[index]
        guard byte == Octet.space else {
            throw Octet.isToken(byte) ? .methodUnknown : .methodInvalid
        }
        guard index > base else { throw .methodInvalid }
        method = 0..<(index - base)
        index += 1
        target = (index - base)..<(index - base)
        state = .targetStart
    }

    // MARK: Target

    private mutating func takeTarget(
        _ byte: UInt8, _ bytes: [UInt8], base: Int, at index: Int
    ) throws(MessageError) {
        let offset = index - base
        switch state {
        case .targetStart: try startTarget(byte, bytes, base: base, at: offset)
        case .scheme: try takeScheme(byte, at: offset)
        case .authority:
            switch byte {
            case Octet.slash, Octet.question, Octet.space:
                guard authorityScanner.isComplete, let start = authority?.lowerBound else {
                    throw .targetInvalid
                }
                authority = start..<offset
                pathStart = offset
                if byte == Octet.space { return endTarget(at: offset) }
                if byte == Octet.question { questionMark = offset }
                state = byte == Octet.slash ? .path : .query
            default:
                guard authorityScanner.take(byte) else { throw .targetInvalid }
            }
        case .connect:
            if byte == Octet.space, authorityScanner.isComplete { return endTarget(at: offset) }
            guard authorityScanner.take(byte) else { throw .targetInvalid }
        case .targetEnd:
            guard byte == Octet.space else { throw .targetInvalid }
            endTarget(at: offset)
        default: break
        }
        if state != .version { try judgeTargetLength(at: offset) }
    }

    private mutating func startTarget(
        _ byte: UInt8, _ bytes: [UInt8], base: Int, at offset: Int
    ) throws(MessageError) {
        pathStart = offset
        let name = base..<(base + method.upperBound)
        if Token.isExactly(bytes, name, "CONNECT") {
            form = .authority
            state = .connect
            guard authorityScanner.take(byte) else { throw .targetInvalid }
            return
        }
        switch byte {
        case Octet.slash: state = .path
        case Octet.asterisk where Token.isExactly(bytes, name, "OPTIONS"):
            form = .asterisk
            state = .targetEnd
        case UInt8(ascii: "h"), UInt8(ascii: "H"):
            form = .absolute
            state = .scheme
            schemeCount = 1
        default: throw .targetInvalid
        }
    }

    private mutating func takeScheme(_ byte: UInt8, at offset: Int) throws(MessageError) {
        if schemeCount == 4, !isSecureScheme, byte | 0x20 == UInt8(ascii: "s") {
            isSecureScheme = true
            return
        }
        guard Octet.lowercased(byte) == RequestLineScanner.scheme(schemeCount) else {
            throw .targetInvalid
        }
        schemeCount += 1
        guard schemeCount == RequestLineScanner.schemeCountMax else { return }
        authority = (offset + 1)..<(offset + 1)
        state = .authority
    }

    private mutating func scanPath(
        _ bytes: [UInt8], base: Int, index: inout Int, end: Int
    ) throws(MessageError) {
        let stop = min(end, base + target.lowerBound + limits.targetSize)
        if state == .path {
            index = Octet.skip(bytes, index, stop) { Octet.isTarget($0) && $0 != Octet.question }
            if index < stop, bytes[index] == Octet.question {
                questionMark = index - base
                state = .query
            }
        }
        if state == .query {
            index = Octet.skip(bytes, index, stop, while: Octet.isTarget)
        }
        guard index < end else { return }
        let byte = bytes[index]
        guard byte == Octet.space else {
            throw Octet.isTarget(byte) ? .targetTooLong : .targetInvalid
        }
        endTarget(at: index - base)
        index += 1
    }

    private mutating func endTarget(at offset: Int) {
        target = target.lowerBound..<offset
        state = .version
    }

    private func judgeTargetLength(at offset: Int) throws(MessageError) {
        if offset - target.lowerBound >= limits.targetSize { throw .targetTooLong }
    }

    private static let schemeCountMax = 7

    /// The octet at `index` of `http://`, an `s` apart; nil past its end.
    private static func scheme(_ index: Int) -> UInt8? {
        switch index {
        case 0: return UInt8(ascii: "h")
        case 1, 2: return UInt8(ascii: "t")
        case 3: return UInt8(ascii: "p")
        case 4: return Octet.colon
        case 5, 6: return Octet.slash
        default: return nil
        }
    }

    // MARK: Version

    private mutating func takeVersion(_ byte: UInt8) throws(MessageError) {
        switch versionCount {
        case 0, 1, 2, 3, 4, 6:
            guard byte == VersionText.octet(versionCount) else { throw .versionInvalid }
        case 5:
            guard Octet.isDigit(byte) else { throw .versionInvalid }
            major = byte &- 0x30
        case 7:
            guard Octet.isDigit(byte) else { throw .versionInvalid }
            minor = byte &- 0x30
        default:
            guard byte == Octet.carriageReturn else {
                throw byte == Octet.lineFeed ? .lineEndInvalid : .versionInvalid
            }
            state = .lineEnd
        }
        versionCount += 1
    }

    private mutating func judgeVersion() throws(MessageError) {
        switch (major, minor) {
        case (1, 0): version = .http10
        case (1, 1): version = .http11
        default: throw .versionUnsupported
        }
    }
}

/// The forms of a request target (RFC 9112 §3.2).
package enum TargetForm: UInt8, Sendable {
    /// A whole URI; forwarded in origin-form.
    case absolute
    /// `*`, asking about the gate itself.
    case asterisk
    /// `host:port`, of `CONNECT`; no request with it comes out of the decoder.
    case authority
    /// A path, perhaps with a query.
    case origin
}
