/// The field section of a head or a trailer, octet by octet (RFC 9112 §5).
///
///     section = *( name ":" OWS value OWS CRLF ) CRLF
///
/// Nothing is scanned twice and nothing waits: an octet that no valid section has at its place is
/// an error when it arrives, also inside the values of the fields that frame and route a message.
/// All offsets count from the head's first octet, since the bytes may move in their buffer between
/// two calls.
struct FieldScanner: Sendable {
    /// Where a section stands; decides which fields mean something in it.
    enum Section: UInt8 {
        case request
        case response
        case trailer
    }

    private enum State: UInt8 {
        case lineStart
        case name
        case beforeValue
        case value
        case lineEnd
        case sectionEnd
    }

    private let section: Section
    private let limits: HeadLimits
    private let fieldsMax: Int
    private var state = State.lineStart
    private var lineStart = 0
    private var nameEnd = 0
    private var valueStart = 0
    private var valueEnd = 0
    private var kind = FieldKind.other
    private var framing = FramingScanner()
    private var authority = AuthorityScanner()

    /// The lines so far.
    private(set) var fields: [FieldLine] = []
    /// What the fields so far say about length and connection.
    private(set) var facts = FieldFacts()
    /// Set once the first line of a request is known.
    var version = HTTPVersion.http11
    /// The authority of an absolute-form target, to which `Host` must be equal.
    var requiredAuthority: Range<Int>?

    init(_ section: Section, limits: HeadLimits) {
        self.section = section
        self.limits = limits
        fieldsMax = section == .trailer ? Bounds.trailersMax : limits.headerFields
    }

    /// Scans `bytes` from `index`, which it moves, up to `end`; true once the section is complete.
    /// The head starts at `base`.
    mutating func scan(
        _ bytes: [UInt8], base: Int, index: inout Int, end: Int
    ) throws(MessageError) -> Bool {
        let stop = min(end, base + limits.headerSize)
        if fields.isEmpty, section != .trailer { fields.reserveCapacity(16) }
        while index < stop {
            switch state {
            case .lineStart: try startLine(bytes[index], at: &index, base: base)
            case .name: try scanName(bytes, base: base, index: &index, end: stop)
            case .beforeValue: try skipBlanks(bytes, base: base, index: &index, end: stop)
            case .value: try scanValue(bytes, base: base, index: &index, end: stop)
            case .lineEnd:
                guard bytes[index] == Octet.lineFeed else { throw .lineEndInvalid }
                try endLine(bytes, base: base)
                index += 1
            case .sectionEnd:
                guard bytes[index] == Octet.lineFeed else { throw .lineEndInvalid }
                index += 1
                return true
            }
        }
        if index < end { throw .headTooLarge }
        return false
    }

    private mutating func startLine(
        _ byte: UInt8, at index: inout Int, base: Int
    ) throws(MessageError) {
        if byte == Octet.carriageReturn {
            if section == .request, facts.host == nil { throw .hostMissing }
            state = .sectionEnd
            index += 1
            return
        }
        if byte == Octet.lineFeed { throw .lineEndInvalid }
        guard Octet.isToken(byte) else { throw .fieldNameInvalid }
        guard fields.count < fieldsMax else { throw .fieldsTooMany }
        lineStart = index - base
        state = .name
    }

    private mutating func scanName(
        _ bytes: [UInt8], base: Int, index: inout Int, end: Int
    ) throws(MessageError) {
        let stop = lineStop(base: base, end: end)
        index = Octet.skip(bytes, index, stop, while: Octet.isToken)
        guard index < end else { return }
        let byte = bytes[index]
        guard byte == Octet.colon || Octet.isToken(byte) else { throw .fieldNameInvalid }
        guard index < stop else { throw .fieldTooLong }
        nameEnd = index - base
        // Trailers mean nothing to framing and routing (RFC 9110 §6.5.1).
        kind = section == .trailer ? .other : FieldKind(bytes, (base + lineStart)..<index)
        try beginField()
        index += 1
        state = .beforeValue
    }

    private mutating func skipBlanks(
        _ bytes: [UInt8], base: Int, index: inout Int, end: Int
    ) throws(MessageError) {
        let stop = lineStop(base: base, end: end)
        index = Octet.skip(bytes, index, stop, while: Octet.isBlank)
        guard index < end else { return }
        valueStart = index - base
        valueEnd = valueStart
        state = .value
    }

    private mutating func scanValue(
        _ bytes: [UInt8], base: Int, index: inout Int, end: Int
    ) throws(MessageError) {
        let stop = lineStop(base: base, end: end)
        if isJudgedByOctet {
            while index < stop, Octet.isFieldValue(bytes[index]) {
                try take(bytes[index], bytes, base: base)
                index += 1
            }
        } else {
            index = Octet.skip(bytes, index, stop, while: Octet.isFieldValue)
        }
        guard index < end else { return }
        let byte = bytes[index]
        guard byte == Octet.carriageReturn else {
            if Octet.isFieldValue(byte) { throw .fieldTooLong }
            throw byte == Octet.lineFeed ? .lineEndInvalid : .fieldValueInvalid
        }
        valueEnd = index - base
        while valueEnd > valueStart, Octet.isBlank(bytes[base + valueEnd - 1]) { valueEnd -= 1 }
        try endValue()
        index += 1
        state = .lineEnd
    }

    /// Where the line must have ended, or `end`.
    private func lineStop(base: Int, end: Int) -> Int {
        min(end, base + lineStart + limits.fieldSize)
    }
}

// MARK: - The fields that mean something here

extension FieldScanner {
    /// Whether the value of the current field is judged octet by octet.
    private var isJudgedByOctet: Bool {
        switch kind {
        case .connection, .contentLength, .transferEncoding: return true
        case .host: return section == .request
        default: return false
        }
    }

    /// Judges a field by its name alone, before its value arrives.
    private mutating func beginField() throws(MessageError) {
        switch kind {
        case .host where section == .request:
            if facts.host != nil { throw .hostRepeated }
            authority = AuthorityScanner()
        case .contentLength:
            if facts.contentLength != nil { throw .contentLengthRepeated }
            if facts.isChunked { throw .lengthsConflict }
            framing = FramingScanner()
        case .transferEncoding:
            if facts.isChunked { throw .transferEncodingRepeated }
            if facts.contentLength != nil { throw .lengthsConflict }
            if version == .http10 { throw .transferEncodingInHTTP10 }
            framing = FramingScanner()
        case .connection:
            framing = FramingScanner()
        default: break
        }
    }

    private mutating func take(
        _ byte: UInt8, _ bytes: [UInt8], base: Int
    ) throws(MessageError) {
        switch kind {
        case .host: try takeHost(byte, bytes, base: base)
        case .contentLength: try framing.takeLength(byte)
        case .transferEncoding: try framing.takeCoding(byte)
        case .connection: try framing.takeConnection(byte)
        default: break
        }
    }

    private mutating func takeHost(
        _ byte: UInt8, _ bytes: [UInt8], base: Int
    ) throws(MessageError) {
        if Octet.isBlank(byte) {
            try judgeHost()
            framing.isBlankSeen = true
            return
        }
        guard !framing.isBlankSeen else { throw .hostInvalid }
        if let required = requiredAuthority {
            // Behind the target's authority stands `/`, `?` or a space, which no host has.
            let expected = bytes[base + required.lowerBound + authority.count]
            guard Octet.lowercased(expected) == Octet.lowercased(byte) else {
                throw authority.take(byte) ? .authorityMismatch : .hostInvalid
            }
        }
        guard authority.take(byte) else { throw .hostInvalid }
    }

    /// Judges a host that has ended.
    private func judgeHost() throws(MessageError) {
        guard authority.isComplete else { throw .hostInvalid }
        if let required = requiredAuthority, authority.count != required.count {
            throw .authorityMismatch
        }
    }

    /// Judges a field at the end of its value.
    private mutating func endValue() throws(MessageError) {
        switch kind {
        case .host where section == .request:
            try judgeHost()
            facts.host = valueStart..<valueEnd
            facts.hostNameCount = authority.hostCount
        case .contentLength: facts.contentLength = try framing.length()
        case .transferEncoding:
            try framing.finishCoding()
            facts.isChunked = true
        default: break
        }
    }

    /// Records a complete line.
    private mutating func endLine(_ bytes: [UInt8], base: Int) throws(MessageError) {
        let line = FieldLine(
            bytes, base: base, name: lineStart..<nameEnd, value: valueStart..<valueEnd, kind: kind)
        fields.append(line)
        state = .lineStart
        framing.isBlankSeen = false
        switch kind {
        case .connection:
            let value = (base + valueStart)..<(base + valueEnd)
            try facts.noteOptions(bytes, value)
        case .expect where section == .request:
            let value = (base + valueStart)..<(base + valueEnd)
            let isContinue = Token.equals(bytes, value, "100-continue")
            facts.expectation = isContinue && facts.expectation == .none ? .continue : .unknown
        default: break
        }
    }
}
