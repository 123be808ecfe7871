/// The values of `Content-Length`, `Transfer-Encoding` and `Connection`, octet by octet.
struct FramingScanner: Sendable {
    private var number = 0
    private var count = 0
    /// Whether space or tab has followed a complete value or, in a list, a token.
    var isBlankSeen = false
    private var isInToken = false

    /// One octet of `Content-Length`: `1*18DIGIT` (threat T03; RFC 9112 §6.2).
    mutating func takeLength(_ byte: UInt8) throws(MessageError) {
        if Octet.isBlank(byte) {
            isBlankSeen = true
            return
        }
        guard Octet.isDigit(byte), !isBlankSeen, count < Bounds.contentLengthDigitsMax else {
            throw .contentLengthInvalid
        }
        count += 1
        number = number * 10 + Int(byte &- 0x30)
    }

    /// The length, once the value has ended.
    func length() throws(MessageError) -> Int {
        guard count > 0 else { throw .contentLengthInvalid }
        return number
    }

    /// One octet of `Transfer-Encoding`: exactly `chunked`, case ignored (threat T03).
    mutating func takeCoding(_ byte: UInt8) throws(MessageError) {
        if Octet.isBlank(byte) {
            guard count == FramingScanner.chunkedCount else { throw .transferEncodingInvalid }
            return
        }
        // Nothing follows `chunked`, blanks between or not.
        guard FramingScanner.chunked(count) == Octet.lowercased(byte) else {
            throw .transferEncodingInvalid
        }
        count += 1
    }

    /// Judges the coding, once the value has ended.
    func finishCoding() throws(MessageError) {
        guard count == FramingScanner.chunkedCount else { throw .transferEncodingInvalid }
    }

    /// One octet of `Connection`: tokens parted by commas, elements may be empty (RFC 9110 §5.6.1).
    mutating func takeConnection(_ byte: UInt8) throws(MessageError) {
        if Octet.isBlank(byte) {
            if isInToken { isBlankSeen = true }
        } else if byte == Octet.comma {
            isInToken = false
            isBlankSeen = false
        } else {
            guard Octet.isToken(byte), !isBlankSeen else { throw .connectionInvalid }
            isInToken = true
        }
    }

    private static let chunkedCount = 7

    /// The octet at `index` of `chunked`; nil past its end.
    private static func chunked(_ index: Int) -> UInt8? {
        switch index {
        case 0: return UInt8(ascii: "c")
        case 1: return UInt8(ascii: "h")
        case 2: return UInt8(ascii: "u")
        case 3: return UInt8(ascii: "n")
        case 4: return UInt8(ascii: "k")
        case 5: return UInt8(ascii: "e")
        case 6: return UInt8(ascii: "d")
        default: return nil
        }
    }
}

/// What the fields of a head say about its length, its connection and its routing.
struct FieldFacts: Sendable {
    /// What `Expect` asks for.
    enum Expectation: UInt8 {
        case none
        case `continue`
        case unknown
    }

    /// The value of `Host`.
    var host: Range<Int>?
    /// Octets of the host in it, without trailing dot and port.
    var hostNameCount = 0
    var contentLength: Int?
    var isChunked = false
    var expectation = Expectation.none
    /// Whether `Connection` has `close`.
    var hasClose = false
    /// Whether `Connection` has `keep-alive`.
    var hasKeepAlive = false
    /// Whether `Connection` has `upgrade`.
    var hasUpgrade = false
    private var optionCount = 0

    /// Takes in the options of one `Connection` line, `bytes[value]`.
    mutating func noteOptions(_ bytes: [UInt8], _ value: Range<Int>) throws(MessageError) {
        var list = TokenList(value)
        while let option = list.next(bytes) {
            optionCount += 1
            guard optionCount <= Bounds.connectionOptionsMax else {
                throw .connectionOptionsTooMany
            }
            if Token.equals(bytes, option, "close") { hasClose = true }
            if Token.equals(bytes, option, "keep-alive") { hasKeepAlive = true }
            if Token.equals(bytes, option, "upgrade") { hasUpgrade = true }
        }
    }

    /// Whether the connection outlives a message of `version` (RFC 9112 §9.3), its length
    /// permitting.
    func isPersistent(_ version: HTTPVersion) -> Bool {
        if hasClose { return false }
        return version != .http10 || hasKeepAlive
    }
}

/// The elements of a comma-separated list, empty ones skipped.
struct TokenList {
    private var index: Int
    private let end: Int

    init(_ range: Range<Int>) {
        index = range.lowerBound
        end = range.upperBound
    }

    /// The next element, without the space around it.
    mutating func next(_ bytes: [UInt8]) -> Range<Int>? {
        while index < end, Octet.isBlank(bytes[index]) || bytes[index] == Octet.comma { index += 1 }
        guard index < end else { return nil }
        let start = index
        while index < end, bytes[index] != Octet.comma { index += 1 }
        var last = index
        while last > start, Octet.isBlank(bytes[last - 1]) { last -= 1 }
        return start..<last
    }
}
