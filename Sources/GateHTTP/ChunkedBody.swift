internal import GateBytes

/// A chunked body with its trailer section, out of a stream of bytes (RFC 9112 §7.1).
///
/// States: *framing* ↔ *data* → *trailers* → the end, after which nothing more is asked of it.
struct ChunkedBody: Sendable {
    /// What comes next in the stream.
    enum Event: Sendable {
        /// A part of the data: a range of the buffer's storage, already consumed.
        case data(Range<Int>)
        /// The body is complete. The trailer section stood in this range of the buffer's storage,
        /// already consumed; its lines are ``trailers``.
        case end(Range<Int>)
        /// Nothing more without further bytes.
        case needMore
    }

    private var chunks = ChunkScanner()
    private var section: FieldScanner
    /// Octets of the trailer section scanned so far and still in the buffer.
    private var scanned = 0

    init(limits: HeadLimits) {
        section = FieldScanner(.trailer, limits: limits)
    }

    /// The lines of the trailer section so far; offsets count from its first octet.
    var trailers: [FieldLine] { section.fields }

    /// Takes what comes next out of `buffer`.
    mutating func next(_ buffer: inout ByteBuffer) throws(MessageError) -> Event {
        while true {
            switch chunks.step {
            case .data(let left):
                guard !buffer.isEmpty else { return .needMore }
                let part = buffer.takeFirst(left)
                chunks.tookData(part.count)
                return .data(part)
            case .framing:
                guard try chunks.takeFraming(&buffer) else { return .needMore }
            case .trailers:
                let base = buffer.readable.lowerBound
                var index = base + scanned
                let isComplete = try section.scan(
                    buffer.storage, base: base, index: &index, end: buffer.readable.upperBound)
                scanned = index - base
                guard isComplete else { return .needMore }
                buffer.consume(scanned)
                return .end(base..<index)
            }
        }
    }
}
