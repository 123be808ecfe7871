// A head of HTTP/2 becomes the head of HTTP/1 that says the same, and is judged by the grammar that
// judges those: one reading for both (RFC 9113 §8.3, threat T20).
//
//   method SP path SP HTTP/1.1 CRLF            HTTP/1.1 SP status SP CRLF
//   Host: authority CRLF                       Name: value CRLF …
//   Name: value CRLF … CRLF                    CRLF
//
// Before a line is written, everything is refused that could stand for something else there: an
// octet outside its class, an upper-case name, a field that speaks of a connection, `te` other than
// `trailers`, a blank around a value, a pseudo-field that is empty, unknown, missing, repeated or
// late, and a Host unlike `:authority`. Names are written in Train-Case, as services that read the
// case of names know them; cookie crumbs are joined with "; " (§8.2.3).

/// Assembles the head of HTTP/1 that a decoded section says.
struct DecodedHead {
    /// The head so far.
    private(set) var bytes: [UInt8] = []
    private var crumbs: [Range<Int>] = []
    private let block: FieldBlock

    /// The head of a request.
    init(request block: FieldBlock) throws(MessageError) {
        self.block = block
        let pseudo = try DecodedHead.pseudoFields(
            block, [":method", ":scheme", ":authority", ":path"])
        bytes.reserveCapacity(block.bytes.count + 4 * block.lines.count + 32)
        guard let method = pseudo[0] else { throw .pseudoFieldInvalid }
        guard block.bytes[method].allSatisfy(Octet.isToken) else { throw .methodInvalid }
        // A CONNECT has neither scheme nor path; it is refused for what it is.
        if Token.isExactly(block.bytes, method, "CONNECT") { throw .methodUnknown }
        guard let scheme = pseudo[1], let path = pseudo[3] else { throw .pseudoFieldInvalid }
        guard
            Token.equals(block.bytes, scheme, "http") || Token.equals(block.bytes, scheme, "https")
        else { throw .pseudoFieldInvalid }
        let first = block.bytes[path.lowerBound]
        guard first == Octet.slash || (first == Octet.asterisk && path.count == 1),
            block.bytes[path].allSatisfy(Octet.isTarget)
        else { throw .targetInvalid }
        append(method)
        bytes.append(Octet.space)
        append(path)
        append(" HTTP/1.1\r\nHost: ")
        let fields = try DecodedHead.fields(block)
        try appendHost(authority: pseudo[2], fields)
        append("\r\n")
        for line in fields { try appendField(line, in: .request) }
        appendCookie()
        append("\r\n")
    }

    /// The head of a response.
    init(response block: FieldBlock) throws(MessageError) {
        self.block = block
        let pseudo = try DecodedHead.pseudoFields(block, [":status"])
        guard let status = pseudo[0], status.count == 3 else { throw .statusLineInvalid }
        guard block.bytes[status].allSatisfy(Octet.isDigit) else { throw .statusLineInvalid }
        bytes.reserveCapacity(block.bytes.count + 4 * block.lines.count + 32)
        append("HTTP/1.1 ")
        append(status)
        append(" \r\n")
        for line in try DecodedHead.fields(block) { try appendField(line, in: .response) }
        append("\r\n")
    }

    /// A trailer section.
    init(trailers block: FieldBlock) throws(MessageError) {
        self.block = block
        for line in block.lines { try appendField(line, in: .trailer) }
        append("\r\n")
    }

    // MARK: Pseudo-fields

    /// The values of the pseudo-fields called `names`; nil for one that is not there. Any other is
    /// an error, and so are an empty one and a second one.
    private static func pseudoFields(
        _ block: FieldBlock, _ names: [StaticString]
    ) throws(MessageError) -> [Range<Int>?] {
        var values = [Range<Int>?](repeating: nil, count: names.count)
        for line in block.lines {
            guard isPseudo(block, line) else { break }
            let index = names.firstIndex { Token.isExactly(block.bytes, line.name, $0) }
            guard let index, values[index] == nil, !line.value.isEmpty else {
                throw .pseudoFieldInvalid
            }
            values[index] = line.value
        }
        return values
    }

    /// The fields behind the pseudo-fields.
    private static func fields(
        _ block: FieldBlock
    ) throws(MessageError) -> ArraySlice<FieldBlock.Line> {
        let start = block.lines.firstIndex { !isPseudo(block, $0) } ?? block.lines.count
        let rest = block.lines[start...]
        if rest.contains(where: { isPseudo(block, $0) }) { throw .pseudoFieldInvalid }
        return rest
    }

    private static func isPseudo(_ block: FieldBlock, _ line: FieldBlock.Line) -> Bool {
        !line.name.isEmpty && block.bytes[line.name.lowerBound] == Octet.colon
    }

    // MARK: Fields

    /// Writes the authority, or the only `host` where there is none.
    private mutating func appendHost(
        authority: Range<Int>?, _ fields: ArraySlice<FieldBlock.Line>
    ) throws(MessageError) {
        var value = authority
        var isHostSeen = false
        for line in fields where Token.equals(block.bytes, line.name, "host") {
            if isHostSeen { throw .hostRepeated }
            isHostSeen = true
            guard let other = value else {
                value = line.value
                continue
            }
            guard
                block.bytes[other].elementsEqual(
                    block.bytes[line.value], by: { Octet.lowercased($0) == Octet.lowercased($1) })
            else { throw .authorityMismatch }
        }
        guard let value else { throw .hostMissing }
        guard !value.isEmpty, block.bytes[value].allSatisfy(Octet.isTarget) else {
            throw .hostInvalid
        }
        append(value)
    }

    private mutating func appendField(
        _ line: FieldBlock.Line, in section: FieldScanner.Section
    ) throws(MessageError) {
        let name = line.name
        guard !name.isEmpty,
            block.bytes[name].allSatisfy({ Octet.isToken($0) && Octet.lowercased($0) == $0 })
        else { throw .fieldNameInvalid }
        let value = line.value
        guard block.bytes[value].allSatisfy(Octet.isFieldValue), !hasBlankEnds(value) else {
            throw .fieldValueInvalid
        }
        switch FieldKind(block.bytes, name) {
        case .connection, .http2Settings, .keepAlive, .proxyConnection, .transferEncoding,
            .upgrade:
            throw .connectionFieldForbidden
        case .te where section != .request || !Token.equals(block.bytes, value, "trailers"):
            throw .connectionFieldForbidden
        case .host where section == .request: return
        default: break
        }
        if section == .request, Token.isExactly(block.bytes, name, "cookie") {
            crumbs.append(value)
            return
        }
        appendTrainCase(name)
        append(": ")
        append(value)
        append("\r\n")
    }

    private func hasBlankEnds(_ value: Range<Int>) -> Bool {
        guard !value.isEmpty else { return false }
        return Octet.isBlank(block.bytes[value.lowerBound])
            || Octet.isBlank(block.bytes[value.upperBound - 1])
    }

    private mutating func appendCookie() {
        guard !crumbs.isEmpty else { return }
        append("Cookie: ")
        for (index, crumb) in crumbs.enumerated() {
            if index > 0 { append("; ") }
            append(crumb)
        }
        append("\r\n")
    }

    private mutating func appendTrainCase(_ name: Range<Int>) {
        var isFirst = true
        for byte in block.bytes[name] {
            bytes.append(isFirst ? Octet.uppercased(byte) : byte)
            isFirst = byte == UInt8(ascii: "-")
        }
    }

    private mutating func append(_ range: Range<Int>) {
        bytes.append(contentsOf: block.bytes[range])
    }

    private mutating func append(_ text: StaticString) {
        text.withUTF8Buffer { unsafe bytes.append(contentsOf: $0) }
    }
}

extension RequestHead {
    /// The head that an HTTP/2 request's section is. `isEnd`: no body follows. Throws what an
    /// HTTP/1 head of the same parts would throw, and ``MessageError/pseudoFieldInvalid`` or
    /// ``MessageError/connectionFieldForbidden``.
    package init(
        _ block: FieldBlock, isEnd: Bool, limits: HeadLimits
    ) throws(MessageError) {
        if let fault = block.fault { throw fault }
        let bytes = try DecodedHead(request: block).bytes
        var line = RequestLineScanner(limits: limits)
        var section = FieldScanner(.request, limits: limits)
        var index = 0
        try line.scan(bytes, base: 0, index: &index, end: bytes.count)
        let isComplete = try section.scan(bytes, base: 0, index: &index, end: bytes.count)
        // Nothing that was written can end a head early.
        guard isComplete, index == bytes.count else { throw .lineEndInvalid }
        let framing: Framing
        switch section.facts.contentLength {
        case let length? where isEnd && length > 0: throw .bodyTruncated
        case let length?: framing = .length(length)
        case nil: framing = isEnd ? .none : .chunked
        }
        try self.init(line, section, bytes, version: .http2, framing: framing)
    }
}

extension ResponseHead {
    /// The head that an HTTP/2 response's section is; `isEnd`: no body follows. A body of unknown
    /// length has the framing ``Framing/chunked``; one that is not there has a length of zero
    /// unless none can be.
    package init(
        _ block: FieldBlock, isEnd: Bool, requestMethodIsHead: Bool, limits: HeadLimits
    ) throws(MessageError) {
        if let fault = block.fault { throw fault }
        let bytes = try DecodedHead(response: block).bytes
        var line = StatusLineScanner()
        var section = FieldScanner(.response, limits: limits)
        var index = 0
        try line.scan(bytes, base: 0, index: &index, end: bytes.count)
        let isComplete = try section.scan(bytes, base: 0, index: &index, end: bytes.count)
        guard isComplete, index == bytes.count else { throw .lineEndInvalid }
        let length = section.facts.contentLength
        let framing: Framing
        switch line.status {
        // RFC 9113 §8.6: there is no switching of protocols.
        case 101: throw .upgradeUnexpected
        case 100..<200, 204:
            guard (length ?? 0) == 0 else { throw .contentUnexpected }
            framing = .none
        case 304: framing = .none
        default:
            if requestMethodIsHead {
                framing = .none
            } else if isEnd {
                guard (length ?? 0) == 0 else { throw .bodyTruncated }
                framing = .length(0)
            } else {
                framing = length.map { .length($0) } ?? .chunked
            }
        }
        self.init(
            bytes: bytes, fields: section.fields, version: .http2, status: line.status,
            reason: line.reason, framing: framing, contentLength: length, isPersistent: true)
    }
}

extension ResponseTrailers {
    /// The trailer section that an HTTP/2 section is.
    package init(_ block: FieldBlock, limits: HeadLimits) throws(MessageError) {
        if let fault = block.fault { throw fault }
        let bytes = try DecodedHead(trailers: block).bytes
        var section = FieldScanner(.trailer, limits: limits)
        var index = 0
        let isComplete = try section.scan(bytes, base: 0, index: &index, end: bytes.count)
        guard isComplete, index == bytes.count else { throw .lineEndInvalid }
        self.init(bytes: bytes, fields: section.fields)
    }
}
