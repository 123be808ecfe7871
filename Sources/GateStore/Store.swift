package import GateBytes
internal import GateLock
internal import Synchronization

/// Enrolled keys, blocked accounts and spent challenges: in memory to be asked, in a log to
/// survive. Shared by all loops.
///
/// A call checks and changes memory under the locks of the shards it concerns, appends one record
/// to the log's queue while it holds them, and is answered when the batch with that record is
/// synced: from the writer's thread, or at once when there is nothing to write. Each reply is
/// called once. A reply must not block, and may call the store.
///
/// Memory is at any time what the log and its queue say, or ahead of what can be said: a counter is
/// never lower and a spent challenge never unspent, whatever becomes of the write.
package final class Store: Sendable {
    let shards: Shards
    let keysMax: Int
    private let keyCount: Atomic<Int>
    private let hasToldKeysMax = Atomic<Bool>(false)
    let storage: any Storage
    let queue: Lock<LogQueue>
    let snapshots = Lock(SnapshotState())
    let storeID: LogFormat.StoreID
    let segmentBytes: Int
    let log: @Sendable (StoreNotice) -> Void
    /// Whether admits are answered before they are on disk.
    let isRelaxed: Bool
    /// The part of every challenge id that moves on when acknowledged writes may be gone.
    package let epoch: UInt32
    private let relaxedMilliseconds: Int
    private let schedule: SnapshotSchedule?
    private let writer: Lock<LogWriter>
    private let threads = Lock<[WorkerThread]>([])
    let receipts: Receipts
    private let kept: Lock<StoreSecrets>
    private let onStateChange: @Sendable (StoreState) -> Void

    /// Opens the store in `storage`, making it where there is none, and replays its log. Blocks;
    /// throws before anything is served when the log is not what was written. `log` may be called
    /// from any thread.
    package static func open(
        storage: some Storage, options: StoreOptions,
        log: @escaping @Sendable (StoreNotice) -> Void = { _ in }
    ) throws(StoreError) -> Store {
        do {
            try storage.lock()
        } catch {
            if case .locked(let pid) = error.cause {
                throw .locked(directory: storage.location, pid: pid)
            }
            throw .storage(error)
        }
        do {
            let store = try Store(locked: storage, options, log)
            try store.start(options.writer)
            return store
        } catch {
            storage.unlock()
            throw error
        }
    }

    private init(
        locked storage: some Storage, _ options: StoreOptions,
        _ log: @escaping @Sendable (StoreNotice) -> Void
    ) throws(StoreError) {
        precondition(
            (4096...1 << 30).contains(options.segmentBytes) && options.segmentBytes % 512 == 0)
        self.storage = storage
        self.log = log
        onStateChange = options.onStateChange
        keysMax = options.keysMax
        segmentBytes = options.segmentBytes
        schedule = options.snapshots
        switch options.durability {
        case .strict: (isRelaxed, relaxedMilliseconds) = (false, 0)
        case .relaxed(let milliseconds): (isRelaxed, relaxedMilliseconds) = (true, milliseconds)
        }
        let (found, names) = try StoreLoader.readMeta(storage, isOwner: true)
        var meta = found ?? Store.newMeta()
        let loader = StoreLoader(storage: storage, meta: meta, names: names, isOwner: true)
        let loaded = try loader.load(log: log) {
            Shards(count: options.shards, now: options.now)
        }
        shards = loaded.shards
        let end = loaded.end
        if let notice = end.tornTail { log(notice) }
        let before = meta
        meta.newestSegment = max(meta.newestSegment, end.newestSegment)
        if let reason = meta.reasonToMove(tornTail: end.tornTail != nil) {
            meta.moveEpoch(now: options.now)
            log(.epochMoved(reason, from: before.epoch, to: meta.epoch))
        }
        meta.isUncertain = isRelaxed
        if found == nil || meta != before {
            do {
                try storage.publish(meta)
            } catch {
                throw .storage(error)
            }
        }
        if found == nil { log(.created(directory: storage.location)) }
        storeID = meta.storeID
        epoch = meta.epoch
        kept = Lock(meta.secrets)
        receipts = Receipts(
            try ReceiptFile(
                storage: storage, names: names, storeID: meta.storeID,
                segmentBytes: options.receiptSegmentBytes, last: shards.lastReceipt)
        ) { log(.receipts($0)) }
        keyCount = Atomic(shards.counts.keys)
        // Half a segment, so that what is held for want of space and what came after fit in one
        // batch.
        let waitingBytesMax = min(StoreLimits.waitingBytesMax, (options.segmentBytes - 512) / 2)
        var queue = LogQueue(end, state: .ready, waitingBytesMax: waitingBytesMax)
        queue.snapshot = loaded.snapshot.map(SnapshotWriter.Written.init)
        for name in loaded.leftovers where LogFormat.firstSequence(segmentName: name) != nil {
            queue.segments += 1
            queue.logBytes += options.segmentBytes
        }
        self.queue = Lock(queue)
        writer = Lock(
            LogWriter(
                storage: storage, meta: meta, end: end, segmentBytes: options.segmentBytes))
        do {
            // A process that was killed may have left the snapshot's name not yet durable.
            if !loaded.leftovers.isEmpty { try storage.syncDirectory() }
            try delete(loaded.leftovers)
        } catch {
            log(.leftoversStay(error))
        }
    }

    private static func newMeta() -> LogFormat.Meta {
        var random = SystemRandomNumberGenerator()
        return LogFormat.Meta(
            storeID: LogFormat.StoreID(high: random.next(), low: random.next()), epoch: 1,
            newestSegment: 0, secrets: StoreSecrets(current: .random(using: &random)))
    }

    private func start(_ mode: StoreOptions.Writer) throws(StoreError) {
        deliver(writer.withLock { $0.prepare(queue) })
        guard mode == .thread else { return }
        do {
            let writer = try WorkerThread { self.run() }
            threads.withLock { $0 = [writer] }
            let receipts = try WorkerThread { self.receipts.run() }
            threads.withLock { $0.append(receipts) }
            guard let schedule else { return }
            let snapshots = try WorkerThread { self.runSnapshots(schedule) }
            threads.withLock { $0.append(snapshots) }
        } catch {
            close()
            throw .storage(error)
        }
    }

    /// Writes what waits, answers, and gives the directory back. Calls that come later are
    /// `unavailable`. Not to be called from a reply.
    package func close() {
        let running = threads.withLock { threads in
            defer { threads = [] }
            return threads
        }
        // Receipts first: what waits for one goes on to the log.
        receipts.close()
        snapshots.withLock { $0.isClosing = true }
        snapshots.wake()
        for thread in running.dropFirst() { thread.join() }
        snapshots.withLock { state in
            state.writer?.abandon()
            state.writer = nil
        }
        receipts.step()
        queue.withLock { $0.isClosing = true }
        queue.wake()
        running.first?.join()
        step()
        receipts.closeFile()
        let isSettled = queue.withLock { $0.durableSequence == $0.lastSequence }
        writer.withLock { $0.close(isSettled: isSettled) }
        let wasOpen = queue.withLock { queue in
            defer { queue.state = .closed }
            return queue.state != .closed
        }
        if wasOpen {
            storage.unlock()
            onStateChange(.closed)
        }
    }
}

extension Store {
    /// Turns the writers once: what waits is written, or an allocation is tried again. For stores
    /// whose writer is `.stepped`.
    package func step() {
        stepReceipts()
        turnWriter()
    }

    /// Turns the writer of receipts alone.
    package func stepReceipts() {
        receipts.step()
    }

    private func turnWriter() {
        deliver(writer.withLock { $0.turn(queue) })
    }

    private func run() {
        while true {
            let isWaitingForSpace =
                if case .outOfSpace = state { true } else { false }
            let isDone = queue.wait(seconds: isWaitingForSpace ? 1 : nil) { queue in
                queue.isClosing || queue.hasWork
            } then: { queue in
                queue.isClosing && (!queue.hasWork || queue.state != .ready)
            }
            if isDone { return }
            if isRelaxed {
                queue.wait(milliseconds: relaxedMilliseconds) { queue in
                    queue.isClosing || queue.hasUrgentWork
                } then: { _ in
                }
            }
            turnWriter()
        }
    }

    private func deliver(_ turn: LogWriter.Turn) {
        for key in turn.revealed { shards.reveal(key) }
        if turn.isDurable {
            for waiter in turn.waiters {
                if let key = waiter.revealed { shards.reveal(key) }
            }
        }
        for waiter in turn.waiters { waiter.answer(isDurable: turn.isDurable) }
        guard let newState = turn.newState else { return }
        switch newState {
        case .closed: break
        case .failed(let failure): log(.stopped(failure))
        case .outOfSpace(let failure): log(.spaceExhausted(failure))
        case .ready: log(.spaceReturned(directory: storage.location))
        }
        onStateChange(newState)
    }

    /// Appends a record whose shards are locked; nil when the store is not available.
    func append(_ record: Record, _ waiter: Waiter?) -> UInt64? {
        let sequence = queue.withLock { $0.append(record, waiter) }
        if sequence != nil { queue.wake() }
        return sequence
    }

    /// Lets a call that changes nothing wait for what came before it.
    func barrier(_ waiter: Waiter) -> LogQueue.Barrier {
        let barrier = queue.withLock { $0.barrier(waiter) }
        if barrier == .waiting { queue.wake() }
        return barrier
    }

    /// Counts a key in, false when there are `keysMax` already.
    func reserveKey() -> Bool {
        let count = keyCount.wrappingAdd(1, ordering: .relaxed).newValue
        guard count > keysMax else { return true }
        releaseKey()
        if !hasToldKeysMax.exchange(true, ordering: .relaxed) { log(.keysMaxReached(keysMax)) }
        return false
    }

    /// Takes back ``reserveKey()``.
    func releaseKey() {
        keyCount.wrappingSubtract(1, ordering: .relaxed)
    }
}

extension Store {
    /// What the store can do now.
    package var state: StoreState {
        queue.withLock { $0.state }
    }

    /// Whether calls can be answered.
    package var isReady: Bool {
        state == .ready
    }

    /// The secrets under which challenges are made, kept since the first start or the last
    /// ``rotateSecret(lifetime:now:)``.
    package var secrets: StoreSecrets { kept.withLock { $0 } }

    /// Makes a new secret, durably; the one in force until now is honoured for `lifetime` seconds
    /// more. Blocks for a sync.
    /// - Throws: Why the secrets stay as they are, or, where the store failed, may not.
    package func rotateSecret(lifetime: UInt32, now: UInt32) throws(StorageFailure) {
        let (turn, secrets) = writer.withLock { writer in
            let turn = writer.publish(queue) { $0.rotateSecret(lifetime: lifetime, now: now) }
            return (turn, writer.meta.secrets)
        }
        kept.withLock { $0 = secrets }
        deliver(turn)
        guard !turn.isDurable else { return }
        if let refusal = turn.refusal { throw refusal }
        throw StorageFailure(
            operation: .write, path: storage.location + "/" + LogFormat.metaName,
            cause: .other(code: 0, text: "the store is not ready"))
    }

    /// Sizes; takes every shard's lock once.
    package var figures: StoreFigures {
        let counts = shards.counts
        let keysByApp = shards.keysByApp
        return queue.withLock { queue in
            StoreFigures(
                keys: counts.keys, keysByApp: keysByApp, spentChallenges: counts.spent,
                spentTokens: counts.tokens, accounts: counts.accounts,
                logBytes: queue.logBytes, segments: queue.segments,
                lastSequence: queue.durableSequence, batches: queue.batches,
                snapshotBytes: queue.snapshot?.byteCount ?? 0,
                snapshotAt: queue.snapshot?.begunAt)
        }
    }

    /// What is known of a key; nil for one that is unknown or not durable yet.
    package func key(_ keyID: Bytes32) -> KeyRecord? {
        shards.record(keyID)
    }

    /// The same, for a store that has to ask elsewhere.
    package func key(_ keyID: Bytes32, reply: @escaping @Sendable (KeyRecord?) -> Void) {
        reply(key(keyID))
    }

    /// The keys of `account` in `app`, revoked ones included, the one used last first. Empty for
    /// the empty account.
    package func keys(ofAccount account: [UInt8], app: String) -> [KeyRecord] {
        shards.records(account: account, app: app)
    }

    /// An early look: whether an admit with `challenge` would be refused as spent.
    package func isSpent(_ challenge: SpentChallenge) -> Bool {
        shards.withSpent(challenge) { $0.contains(challenge) }
    }

    /// Whether `account` is blocked.
    package func isBlocked(account: [UInt8]) -> Bool {
        shards.withAccounts(account) { accounts, _, hash in
            accounts.find(account, hash: hash).map { accounts.isBlocked($0) } ?? false
        }
    }

    /// Forgets the spent challenges whose life was over by `now`. Calls that spend one do it for
    /// their own shard; this is for a store that rests.
    package func forgetExpired(now: UInt32) {
        shards.forget(now: now)
    }
}

extension Store: CustomReflectable {
    /// Nothing: neither secrets nor ten million keys belong in a message.
    package var customMirror: Mirror { Mirror(self, children: []) }
}
