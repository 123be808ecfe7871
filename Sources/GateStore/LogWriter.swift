internal import GateBytes
internal import GateLock

/// Writes what waits in the queue: one batch with all of it, one write, one sync. Owned by whoever
/// turns it, one at a time.
///
/// - *ready*: takes the queue, writes, syncs.
/// - *out of space*: the segment for `held` could not be made. The queue is empty and takes
///   nothing; each turn tries again. Who waited for the records held was answered `unavailable`,
///   and memory has them done; written later, they spend for good what was in doubt, which is safe.
/// - *failed*: any other failure. Whether the bytes are on disk only the next start can tell.
struct LogWriter {
    /// What a turn has led to, to be told once no lock is held.
    struct Turn {
        var waiters: [Waiter] = []
        /// Whether the records of the waiters are on disk.
        var isDurable = false
        /// Keys whose records are on disk, but for those of the waiters.
        var revealed: [KeyReference] = []
        var newState: StoreState?
        /// Why the meta file could not be replaced, where that is not final.
        var refusal: StorageFailure?
    }

    /// Records that wait for space, and the keys they enrol.
    private struct Held {
        var batch: LogQueue.Batch
        var keys: [KeyReference]
    }

    private let storage: any Storage
    private let segmentBytes: Int
    private(set) var meta: LogFormat.Meta
    private var segment: LogReader.Segment?
    private var held: Held?
    private var durableSequence: UInt64
    private var state: StoreState

    init(
        storage: any Storage, meta: LogFormat.Meta, end: LogReader.End, segmentBytes: Int
    ) {
        self.storage = storage
        self.segmentBytes = segmentBytes
        self.meta = meta
        state = .ready
        segment = end.segment
        durableSequence = end.lastSequence
    }

    /// Makes the segment that a start goes on in, when the log has none with room.
    mutating func prepare(_ queue: Lock<LogQueue>) -> Turn {
        guard segment == nil else { return Turn() }
        do {
            try makeSegment(queue)
            return Turn()
        } catch {
            return isAwaitable(error) ? hold(nil, [], error, queue) : fail([], error, queue)
        }
    }

    /// Writes everything that waits.
    mutating func turn(_ queue: Lock<LogQueue>) -> Turn {
        switch state {
        case .closed, .failed: return Turn()
        case .outOfSpace: return retry(queue)
        case .ready: break
        }
        let first = durableSequence + 1
        let (batch, waiters) = queue.withLock { ($0.takeBatch(first: first), $0.takeWaiters()) }
        guard !batch.isEmpty else { return Turn(waiters: waiters, isDurable: true) }
        do {
            try makeRoom(for: batch, queue)
        } catch {
            return isAwaitable(error)
                ? hold(batch, waiters, error, queue) : fail(waiters, error, queue)
        }
        do {
            try write(batch, queue)
        } catch {
            return fail(waiters, error, queue)
        }
        return Turn(waiters: waiters, isDurable: true)
    }

    private mutating func retry(_ queue: Lock<LogQueue>) -> Turn {
        do {
            try makeSegment(queue)
        } catch {
            return isAwaitable(error) ? Turn() : fail([], error, queue)
        }
        do {
            if let held { try write(held.batch, queue) }
        } catch {
            return fail([], error, queue)
        }
        let revealed = held?.keys ?? []
        held = nil
        state = .ready
        queue.withLock { $0.state = .ready }
        return Turn(revealed: revealed, newState: .ready)
    }

    private mutating func makeRoom(
        for batch: LogQueue.Batch, _ queue: Lock<LogQueue>
    ) throws(StorageFailure) {
        let byteCount = LogFormat.padded(batch.bytes.count)
        if let open = segment, open.byteCount - open.position < byteCount {
            storage.close(open.file)
            segment = nil
        }
        if segment == nil { try makeSegment(queue) }
    }

    private mutating func write(
        _ batch: LogQueue.Batch, _ queue: Lock<LogQueue>
    ) throws(StorageFailure) {
        guard let open = segment else { preconditionFailure("no segment to write to") }
        var bytes = batch.bytes
        LogFormat.seal(
            &bytes, epoch: meta.epoch, first: batch.firstSequence, last: batch.lastSequence,
            synced: durableSequence)
        precondition(open.position + bytes.count <= open.byteCount)
        try storage.write(open.file, bytes, at: open.position)
        try storage.sync(open.file)
        segment?.position = open.position + bytes.count
        durableSequence = batch.lastSequence
        queue.withLock {
            $0.durableSequence = batch.lastSequence
            $0.batches += 1
            $0.writtenBytes += bytes.count
        }
    }

    /// Only making a file may run out of space and be tried again; a sync never is.
    private func isAwaitable(_ failure: StorageFailure) -> Bool {
        guard failure.cause == .outOfSpace else { return false }
        switch failure.operation {
        case .create, .extend, .rename, .write: return true
        case .delete, .list, .lock, .open, .read, .sync, .syncDirectory: return false
        }
    }

    /// Keeps `batch` and what the queue has gathered since until there is space.
    private mutating func hold(
        _ batch: LogQueue.Batch?, _ waiters: [Waiter], _ failure: StorageFailure,
        _ queue: Lock<LogQueue>
    ) -> Turn {
        state = .outOfSpace(failure)
        let next = (batch?.lastSequence ?? durableSequence) + 1
        let (rest, later) = queue.withLock { queue in
            queue.state = .outOfSpace(failure)
            return (queue.takeBatch(first: next), queue.takeWaiters())
        }
        let waiters = waiters + later
        if var batch = batch {
            batch.append(rest)
            held = Held(batch: batch, keys: waiters.compactMap(\.revealed))
        }
        return Turn(waiters: waiters, newState: state)
    }

    private mutating func fail(
        _ waiters: [Waiter], _ failure: StorageFailure, _ queue: Lock<LogQueue>
    ) -> Turn {
        state = .failed(failure)
        let later = queue.withLock { queue in
            queue.state = .failed(failure)
            return queue.takeWaiters()
        }
        return Turn(waiters: waiters + later, newState: state)
    }

    /// Makes the next segment whole, then lets the meta file name it.
    private mutating func makeSegment(_ queue: Lock<LogQueue>) throws(StorageFailure) {
        let first = durableSequence + 1
        let header = LogFormat.encode(
            LogFormat.SegmentHeader(
                storeID: meta.storeID, epoch: meta.epoch, byteCount: UInt32(segmentBytes),
                firstSequence: first))
        let file = try storage.publish(
            header, byteCount: segmentBytes, as: LogFormat.segmentName(first),
            through: LogFormat.segmentTemporaryName)
        var next = meta
        next.newestSegment = first
        do {
            try storage.publish(next)
        } catch {
            storage.close(file)
            // Empty and not named: given back, so that the next try finds its space. One that stays
            // is replaced then.
            if isAwaitable(error) { try? storage.delete(LogFormat.segmentName(first)) }
            throw error
        }
        let isReplacement = meta.newestSegment == first
        meta = next
        segment = LogReader.Segment(
            file: file, byteCount: segmentBytes, position: LogFormat.blockBytes)
        guard !isReplacement else { return }
        queue.withLock {
            $0.segments += 1
            $0.logBytes += segmentBytes
        }
    }

    /// Replaces the meta file by what `change` makes of it. A failure is final: which of the two is
    /// there only the next start can tell.
    mutating func publish(
        _ queue: Lock<LogQueue>, _ change: (inout LogFormat.Meta) -> Void
    ) -> Turn {
        guard state == .ready else { return Turn() }
        var next = meta
        change(&next)
        do throws(StorageFailure) {
            try storage.publish(next)
        } catch {
            guard isAwaitable(error) else { return fail([], error, queue) }
            return Turn(refusal: error)
        }
        meta = next
        return Turn(isDurable: true)
    }

    /// Closes the segment; nothing is written after. Where everything is on disk, says so in the
    /// meta file.
    mutating func close(isSettled: Bool) {
        if isSettled, state == .ready, meta.isUncertain {
            var last = meta
            last.isUncertain = false
            // The next start moves the epoch on, should this not be there.
            try? storage.publish(last)
        }
        if let segment { storage.close(segment.file) }
        segment = nil
        state = .closed
    }
}

extension Storage {
    /// Makes a file that begins with `bytes` and is there under its name whole or not at all, and
    /// leaves it open.
    func publish(
        _ bytes: [UInt8], byteCount: Int, as name: String, through temporaryName: String
    ) throws(StorageFailure) -> StorageFile {
        try deleteIfPresent(temporaryName)
        let file = try create(temporaryName, byteCount: byteCount)
        do {
            try write(file, bytes, at: 0)
            try sync(file)
            try rename(temporaryName, to: name)
            try syncDirectory()
            return StorageFile(number: file.number, name: name)
        } catch {
            close(file)
            // Only to give its space back; the next start or try removes what stays.
            try? delete(temporaryName)
            throw error
        }
    }

    /// Replaces the meta file.
    func publish(_ meta: LogFormat.Meta) throws(StorageFailure) {
        let file = try publish(
            LogFormat.encode(meta), byteCount: LogFormat.blockBytes, as: LogFormat.metaName,
            through: LogFormat.metaTemporaryName)
        close(file)
    }
}
