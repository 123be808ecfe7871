internal import GateLock

// Snapshots: one at a time, by a thread of their own or, in a stepped store, by who turns it.

/// The snapshot in work and who waits for it.
struct SnapshotState {
    var writer: SnapshotWriter?
    /// Answered when the next snapshot has been written or given up.
    var waiters: [@Sendable (Result<Void, StorageFailure>) -> Void] = []
    var isRequested = false
    /// Turns since the disk last rested.
    var isClosing = false
}

extension Store {
    /// Writes a snapshot and lets the log before it go, and answers when that is done: `compact`.
    /// One that is in work already counts.
    package func compact(reply: @escaping @Sendable (Result<Void, StorageFailure>) -> Void) {
        snapshots.withLock {
            $0.waiters.append(reply)
            $0.isRequested = true
        }
        snapshots.wake()
    }

    /// Turns the snapshot's writer once, beginning one where there is none in work. For stores
    /// whose writer is `.stepped`.
    /// - Returns: Whether the snapshot goes on.
    @discardableResult
    package func stepSnapshot(now: UInt32) -> Bool {
        turnSnapshot(now: now) == .working
    }

    /// What a turn of the snapshot's writer has led to.
    enum SnapshotTurn {
        case working, waiting, over
    }

    /// Does the next piece of a snapshot, beginning one where there is none in work.
    func turnSnapshot(now: UInt32) -> SnapshotTurn {
        let turn = snapshots.withLock { state -> SnapshotWriter.Turn in
            guard isReady else {
                state.writer?.abandon()
                state.writer = nil
                return .failed(
                    StorageFailure(
                        operation: .write, path: storage.location + "/snapshot",
                        cause: .other(code: 0, text: "the store is not ready")))
            }
            do throws(StorageFailure) {
                if state.writer == nil { state.writer = try beginSnapshot(now: now) }
            } catch {
                return .failed(error)
            }
            return state.writer?.turn(queue) ?? .waiting
        }
        switch turn {
        case .working: return .working
        case .waiting: return .waiting
        case .done(let written):
            finishSnapshot(written)
            answerSnapshot(.success(()))
        case .failed(let failure):
            log(.snapshotFailed(failure))
            answerSnapshot(.failure(failure))
        }
        return .over
    }

    private func beginSnapshot(now: UInt32) throws(StorageFailure) -> SnapshotWriter {
        let first = queue.withLock { $0.durableSequence } + 1
        return try SnapshotWriter(
            storage: storage, shards: shards,
            header: SnapshotFormat.Header(
                storeID: storeID, epoch: epoch, begunAt: now, firstSequence: first),
            stepBytes: segmentBytes)
    }

    private func answerSnapshot(_ result: Result<Void, StorageFailure>) {
        let waiters = snapshots.withLock { state in
            defer {
                state.waiters = []
                state.isRequested = false
                state.writer = nil
            }
            return state.waiters
        }
        for waiter in waiters { waiter(result) }
    }

    private func finishSnapshot(_ written: SnapshotWriter.Written) {
        queue.withLock {
            $0.writtenBytes = 0
            $0.snapshot = written
        }
        log(
            .snapshotWritten(
                file: storage.location + "/" + written.name, keys: written.keys,
                bytes: written.byteCount))
        do {
            let names = try storage.list()
            try delete(StoreLoader.leftovers(names, behind: written.firstSequence))
        } catch {
            log(.leftoversStay(error))
        }
    }

    /// Deletes what a newer snapshot has made needless.
    func delete(_ leftovers: [String]) throws(StorageFailure) {
        for name in leftovers {
            try storage.delete(name)
            guard LogFormat.firstSequence(segmentName: name) != nil else { continue }
            queue.withLock {
                $0.segments -= 1
                $0.logBytes -= segmentBytes
            }
        }
    }

    /// What the snapshots' thread does until the store is closed.
    func runSnapshots(_ schedule: SnapshotSchedule) {
        var last = schedule.clock()
        while true {
            let (isClosing, isRequested) = snapshots.wait(seconds: 1) { state in
                state.isClosing || state.isRequested
            } then: { state in
                (state.isClosing, state.isRequested)
            }
            if isClosing { return }
            let now = schedule.clock()
            guard isRequested || isDue(schedule, last: last, now: now) else { continue }
            writeSnapshot(schedule, now: now)
            last = now
        }
    }

    private func isDue(_ schedule: SnapshotSchedule, last: UInt32, now: UInt32) -> Bool {
        guard isReady else { return false }
        let written = queue.withLock { $0.writtenBytes }
        guard written > 0 else { return false }
        return written >= schedule.afterBytes
            || Int(now) - Int(last) >= schedule.everySeconds
    }

    private func writeSnapshot(_ schedule: SnapshotSchedule, now: UInt32) {
        var turns = 0
        while true {
            turns += 1
            switch turnSnapshot(now: now) {
            case .over: return
            case .waiting: rest(schedule.restMilliseconds)
            case .working: if turns % 16 == 0 { rest(schedule.restMilliseconds) }
            }
            if snapshots.withLock({ $0.isClosing }) {
                snapshots.withLock { state in
                    state.writer?.abandon()
                    state.writer = nil
                }
                return
            }
        }
    }

    private func rest(_ milliseconds: Int) {
        snapshots.wait(milliseconds: milliseconds, until: \.isClosing, then: { _ in })
    }
}
