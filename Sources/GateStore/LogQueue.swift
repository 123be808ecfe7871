internal import GateBytes

/// A call that waits for the log, with what to answer once its record is durable.
enum Waiter: Sendable {
    case admit(previousCounter: UInt32, @Sendable (AdmitOutcome) -> Void)
    case block(@Sendable (BlockOutcome) -> Void)
    case receipt(@Sendable (ReceiptOutcome) -> Void)
    /// `revealed` is the key that may be seen from then on.
    case enrol(EnrolOutcome, revealed: KeyReference?, @Sendable (EnrolOutcome) -> Void)
    case revoke(RevokeOutcome, @Sendable (RevokeOutcome) -> Void)
    case token(@Sendable (TokenOutcome) -> Void)

    /// The key that may be seen once the call's record is durable.
    var revealed: KeyReference? {
        guard case .enrol(_, let key, _) = self else { return nil }
        return key
    }

    /// Answers the call: its record is durable, or it may never be.
    func answer(isDurable: Bool) {
        switch self {
        case .admit(let counter, let reply):
            reply(isDurable ? .admitted(previousCounter: counter) : .unavailable)
        case .block(let reply):
            reply(isDurable ? .done : .unavailable)
        case .enrol(let outcome, _, let reply):
            reply(isDurable ? outcome : .unavailable)
        case .receipt(let reply):
            reply(isDurable ? .done : .unavailable)
        case .revoke(let outcome, let reply):
            reply(isDurable ? outcome : .unavailable)
        case .token(let reply):
            reply(isDurable ? .spent : .unavailable)
        }
    }
}

/// What waits for the writer, and what the writer has done. Behind the last lock of the order.
struct LogQueue {
    /// Whether records are taken.
    var state: StoreState
    /// Records not yet taken, behind room for a batch's header.
    private var bytes = LogFormat.room
    private var waiters: [Waiter] = []
    private var nextSequence: UInt64
    private let waitingBytesMax: Int
    /// The last record on disk.
    var durableSequence: UInt64
    /// Whether the store is being closed: nothing more is taken.
    var isClosing = false
    /// What the writer counts.
    var batches: UInt64 = 0
    var segments: Int
    var logBytes: Int
    /// Bytes of batches since the newest snapshot, padding included; all that a start replayed
    /// counts as well.
    var writtenBytes: Int
    /// The newest snapshot.
    var snapshot: SnapshotWriter.Written?

    init(_ end: LogReader.End, state: StoreState, waitingBytesMax: Int) {
        self.state = state
        self.waitingBytesMax = waitingBytesMax
        nextSequence = end.lastSequence + 1
        durableSequence = end.lastSequence
        segments = end.segments
        logBytes = end.byteCount
        writtenBytes = end.byteCount
    }

    /// The last record that was appended.
    var lastSequence: UInt64 { nextSequence - 1 }

    /// Whether the writer has something to do.
    var hasWork: Bool { !waiters.isEmpty || bytes.count > LogFormat.room.count }

    /// Whether somebody waits, or so much that it should not grow: what is answered already may
    /// lie a little longer.
    var hasUrgentWork: Bool { !waiters.isEmpty || bytes.count > waitingBytesMax / 2 }

    /// Adds a record and who waits for it, if anyone, and gives its sequence number; nil when
    /// nothing is taken.
    mutating func append(_ record: Record, _ waiter: Waiter?) -> UInt64? {
        guard state == .ready, !isClosing, nextSequence < .max, record.isEncodable,
            bytes.count + record.byteCountMax <= waitingBytesMax
        else { return nil }
        record.encode(to: &bytes)
        if let waiter { waiters.append(waiter) }
        nextSequence += 1
        return nextSequence - 1
    }

    /// What became of a call that changes nothing but may say only what is durable.
    enum Barrier {
        case durable, refused, waiting
    }

    /// Lets a call wait until everything appended so far is durable, if that is not so already.
    mutating func barrier(_ waiter: Waiter) -> Barrier {
        guard state == .ready, !isClosing else { return .refused }
        guard durableSequence + 1 < nextSequence else { return .durable }
        waiters.append(waiter)
        return .waiting
    }

    /// A batch to be written, its header still empty.
    struct Batch {
        var bytes: [UInt8]
        var firstSequence: UInt64
        var lastSequence: UInt64

        /// Whether it holds no record.
        var isEmpty: Bool { lastSequence < firstSequence }

        /// Adds the batch that follows.
        mutating func append(_ next: Batch) {
            guard !next.isEmpty else { return }
            bytes += next.bytes[LogFormat.batchHeaderBytes...]
            lastSequence = next.lastSequence
        }
    }

    /// Takes all records, the first of them being `first`.
    mutating func takeBatch(first: UInt64) -> Batch {
        let batch = Batch(bytes: bytes, firstSequence: first, lastSequence: nextSequence - 1)
        bytes = LogFormat.room
        return batch
    }

    /// Takes all waiting calls.
    mutating func takeWaiters() -> [Waiter] {
        defer { waiters = [] }
        return waiters
    }
}
