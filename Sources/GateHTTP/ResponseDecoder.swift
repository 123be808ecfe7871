package import GateBytes

/// What a decoder found next in a response stream.
package enum ResponseEvent: Sendable {
    /// A part of the body: a range of the buffer's storage, already consumed, valid until the
    /// buffer is next written to.
    case body(Range<Int>)
    /// The response is complete. Bytes behind it stay in the buffer; on a connection to be kept
    /// there must be none (threat T16).
    case end
    /// The final response's head.
    case head(ResponseHead)
    /// An interim (1xx) response; more follows.
    case interim(ResponseHead)
    /// Nothing more without further bytes.
    case needMore
}

/// One response, with its interim ones, out of a stream of bytes; as strict as ``RequestDecoder``.
///
/// States: *head* (again after each interim one) → *body* by length, by chunks or until the
/// connection closes → *end* → *done*. After an error every call gives that error. A decoder serves
/// one exchange.
package struct ResponseDecoder: Sendable {
    private enum State: Sendable {
        case head
        case length(Int)
        case chunked
        case untilClose
        case end
        case done
        case failed(MessageError)
    }

    private let isHead: Bool
    private let expectsUpgrade: Bool
    private let limits: HeadLimits
    private var state = State.head
    private var interimResponses = 0
    private var scanned = 0
    private var line = StatusLineScanner()
    private var section: FieldScanner
    private var chunks: ChunkedBody

    /// Whether any octet of a response has been seen.
    package private(set) var hasStarted = false
    /// The trailer section, once ``ResponseEvent/end`` of a chunked response has been given.
    package private(set) var trailers: ResponseTrailers?

    /// A decoder for the answer to one request. `expectsUpgrade`: the request asked for a protocol
    /// to switch to; without, a 101 is an error.
    package init(requestMethodIsHead: Bool, limits: HeadLimits, expectsUpgrade: Bool = false) {
        isHead = requestMethodIsHead
        self.expectsUpgrade = expectsUpgrade
        self.limits = limits
        section = FieldScanner(.response, limits: limits)
        chunks = ChunkedBody(limits: limits)
    }

    /// Whether the response is complete.
    package var isDone: Bool {
        if case .done = state { return true }
        return false
    }

    /// Takes what comes next out of `buffer`.
    package mutating func next(_ buffer: inout ByteBuffer) throws(MessageError) -> ResponseEvent {
        do throws(MessageError) {
            return try advance(&buffer)
        } catch {
            state = .failed(error)
            throw error
        }
    }

    /// Notes that the connection has ended, after all of its bytes have been taken: true where that
    /// ends the response rightly, false where it was complete before; an error inside a message.
    package mutating func close() throws(MessageError) -> Bool {
        switch state {
        case .untilClose:
            state = .done
            return true
        case .end, .done: return false
        case .failed(let error): throw error
        case .head, .length, .chunked:
            state = .failed(.bodyTruncated)
            throw .bodyTruncated
        }
    }

    private mutating func advance(_ buffer: inout ByteBuffer) throws(MessageError) -> ResponseEvent
    {
        if !buffer.isEmpty { hasStarted = true }
        switch state {
        case .head: return try nextHead(&buffer)
        case .length(let left):
            guard !buffer.isEmpty else { return .needMore }
            let part = buffer.takeFirst(left)
            state = part.count == left ? .end : .length(left - part.count)
            return .body(part)
        case .chunked: return try nextChunk(&buffer)
        case .untilClose:
            guard !buffer.isEmpty else { return .needMore }
            return .body(buffer.takeFirst(buffer.count))
        case .end:
            state = .done
            return .end
        case .done: return .needMore
        case .failed(let error): throw error
        }
    }

    // MARK: Head

    private mutating func nextHead(_ buffer: inout ByteBuffer) throws(MessageError) -> ResponseEvent
    {
        let bytes = buffer.storage
        let base = buffer.readable.lowerBound
        let end = buffer.readable.upperBound
        var index = base + scanned
        if !line.isDone {
            let stop = min(end, base + limits.headerSize)
            try line.scan(bytes, base: base, index: &index, end: stop)
            if !line.isDone, index == stop, stop < end { throw .headTooLarge }
            if line.isDone { section.version = line.version }
        }
        var isComplete = false
        if line.isDone {
            isComplete = try section.scan(bytes, base: base, index: &index, end: end)
        }
        scanned = index - base
        guard isComplete else { return .needMore }
        let head = try makeHead(bytes, base..<index)
        buffer.consume(scanned)
        return try begin(head)
    }

    private mutating func begin(_ head: ResponseHead) throws(MessageError) -> ResponseEvent {
        scanned = 0
        line = StatusLineScanner()
        section = FieldScanner(.response, limits: limits)
        if head.isInterim {
            interimResponses += 1
            guard interimResponses <= Bounds.interimResponsesMax else {
                throw .interimResponsesTooMany
            }
            return .interim(head)
        }
        switch head.framing {
        case .length(let count) where count > 0: state = .length(count)
        case .chunked: state = .chunked
        case .untilClose: state = .untilClose
        case .length, .none: state = .end
        }
        return .head(head)
    }

    private func makeHead(_ bytes: [UInt8], _ range: Range<Int>) throws(MessageError)
        -> ResponseHead
    {
        let facts = section.facts
        let framing = try framing(facts)
        return ResponseHead(
            bytes: Array(bytes[range]), fields: section.fields, version: line.version,
            status: line.status, reason: line.reason, framing: framing,
            contentLength: facts.contentLength,
            isPersistent: facts.isPersistent(line.version) && framing != .untilClose
                && line.status != 101)
    }

    /// How the body ends (RFC 9112 §6.3). A body announced where none can be is refused rather than
    /// ignored: its bytes would be read as the next response.
    private func framing(_ facts: FieldFacts) throws(MessageError) -> Framing {
        switch line.status {
        case 101 where !expectsUpgrade: throw .upgradeUnexpected
        case 100..<200, 204:
            guard !facts.isChunked, (facts.contentLength ?? 0) == 0 else {
                throw .contentUnexpected
            }
            return .none
        case 304: return .none
        default:
            if isHead { return .none }
            if facts.isChunked { return .chunked }
            return facts.contentLength.map { .length($0) } ?? .untilClose
        }
    }

    // MARK: Chunks

    private mutating func nextChunk(_ buffer: inout ByteBuffer) throws(MessageError)
        -> ResponseEvent
    {
        switch try chunks.next(&buffer) {
        case .data(let part): return .body(part)
        case .needMore: return .needMore
        case .end(let range):
            trailers = ResponseTrailers(
                bytes: Array(buffer.storage[range]), fields: chunks.trailers)
            state = .done
            return .end
        }
    }
}
