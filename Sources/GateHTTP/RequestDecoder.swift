package import GateBytes

/// What a decoder found next in a request stream.
package enum RequestEvent: Sendable {
    /// A part of the body: a range of the buffer's storage, already consumed, valid until the
    /// buffer is next written to.
    case body(Range<Int>)
    /// The request is complete.
    case end
    /// A request's head.
    case head(RequestHead)
    /// Nothing more without further bytes.
    case needMore
}

/// Requests out of a stream of bytes: HTTP/1.0 and HTTP/1.1, strictly (RFC 9112).
///
/// States: *head* (one empty line before it is let pass) → *body* by length or by chunks → *end* →
/// the next *head*, or *finished* where the request said that none follows: what comes then is not
/// read. After an error every call gives that error. One request at a time: the caller decides when
/// to ask for the next.
package struct RequestDecoder: Sendable {
    private enum State: Sendable {
        case leadingLineFeed
        case head
        case length(Int)
        case chunked
        case end
        case finished
        case failed(MessageError)
    }

    private let limits: HeadLimits
    private var state = State.head
    private var sawEmptyLine = false
    /// Octets of the head scanned so far and still in the buffer.
    private var scanned = 0
    private var line: RequestLineScanner
    private var section: FieldScanner
    private var chunks: ChunkedBody
    private var isPersistent = true

    /// A decoder at the start of a connection.
    package init(limits: HeadLimits) {
        self.limits = limits
        line = RequestLineScanner(limits: limits)
        section = FieldScanner(.request, limits: limits)
        chunks = ChunkedBody(limits: limits)
    }

    /// Whether the decoder stands between two requests and nothing of the next has been seen.
    package var isIdle: Bool {
        switch state {
        case .head: return scanned == 0
        case .leadingLineFeed: return true
        default: return false
        }
    }

    /// Whether a head has begun and is not complete.
    package var isHeadStarted: Bool {
        if case .head = state { return scanned > 0 }
        return false
    }

    /// Whether the last request said that none follows it.
    package var isFinished: Bool {
        if case .finished = state { return true }
        return false
    }

    /// Takes what comes next out of `buffer`.
    package mutating func next(_ buffer: inout ByteBuffer) throws(MessageError) -> RequestEvent {
        do throws(MessageError) {
            return try advance(&buffer)
        } catch {
            state = .failed(error)
            throw error
        }
    }

    private mutating func advance(_ buffer: inout ByteBuffer) throws(MessageError) -> RequestEvent {
        switch state {
        case .leadingLineFeed, .head: return try nextHead(&buffer)
        case .length(let left):
            guard !buffer.isEmpty else { return .needMore }
            let part = buffer.takeFirst(left)
            state = part.count == left ? .end : .length(left - part.count)
            return .body(part)
        case .chunked: return try nextChunk(&buffer)
        case .end:
            state = isPersistent ? .head : .finished
            return .end
        case .finished: return .needMore
        case .failed(let error): throw error
        }
    }

    // MARK: Head

    private mutating func nextHead(_ buffer: inout ByteBuffer) throws(MessageError) -> RequestEvent
    {
        guard try skipEmptyLine(&buffer) else { return .needMore }
        let bytes = buffer.storage
        let base = buffer.readable.lowerBound
        let end = buffer.readable.upperBound
        var index = base + scanned
        if !line.isDone {
            let stop = min(end, base + limits.headerSize)
            try line.scan(bytes, base: base, index: &index, end: stop)
            if !line.isDone, index == stop, stop < end { throw .headTooLarge }
            if line.isDone {
                section.version = line.version
                section.requiredAuthority = line.authority
            }
        }
        var isComplete = false
        if line.isDone {
            isComplete = try section.scan(bytes, base: base, index: &index, end: end)
        }
        scanned = index - base
        guard isComplete else { return .needMore }
        let facts = section.facts
        let framing: Framing =
            facts.isChunked ? .chunked : facts.contentLength.map { .length($0) } ?? .none
        let head = try RequestHead(
            line, section, Array(bytes[base..<index]), version: line.version, framing: framing)
        buffer.consume(scanned)
        begin(head)
        return .head(head)
    }

    /// Lets one empty line before the request line pass; false when more is needed to tell.
    private mutating func skipEmptyLine(_ buffer: inout ByteBuffer) throws(MessageError) -> Bool {
        if case .head = state {
            guard scanned == 0, !sawEmptyLine else { return true }
            guard let first = buffer.first else { return false }
            guard first == Octet.carriageReturn else { return true }
            buffer.consume(1)
            sawEmptyLine = true
            state = .leadingLineFeed
        }
        guard let first = buffer.first else { return false }
        guard first == Octet.lineFeed else { throw .lineEndInvalid }
        buffer.consume(1)
        state = .head
        return true
    }

    private mutating func begin(_ head: RequestHead) {
        isPersistent = head.isPersistent
        scanned = 0
        sawEmptyLine = false
        line = RequestLineScanner(limits: limits)
        section = FieldScanner(.request, limits: limits)
        switch head.framing {
        case .length(let count) where count > 0: state = .length(count)
        case .chunked:
            chunks = ChunkedBody(limits: limits)
            state = .chunked
        default: state = .end
        }
    }

    // MARK: Chunks

    private mutating func nextChunk(_ buffer: inout ByteBuffer) throws(MessageError) -> RequestEvent
    {
        switch try chunks.next(&buffer) {
        case .data(let part): return .body(part)
        case .needMore: return .needMore
        case .end:
            state = isPersistent ? .head : .finished
            return .end
        }
    }
}

extension RequestHead {
    /// The head that stands at the start of `bytes`; nil when it is not complete.
    package static func parse(
        _ bytes: [UInt8], limits: HeadLimits = HeadLimits()
    ) throws(MessageError) -> RequestHead? {
        var buffer = ByteBuffer()
        buffer.append(bytes)
        var decoder = RequestDecoder(limits: limits)
        guard case .head(let head) = try decoder.next(&buffer) else { return nil }
        return head
    }
}
