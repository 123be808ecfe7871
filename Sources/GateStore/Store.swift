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
    private let storage: any Storage
    private let queue: Lock<LogQueue>
    private let writer: Lock<LogWriter>
    private let threads = Lock<[WorkerThread]>([])
    let receipts: Receipts
    private let meta: LogFormat.Meta
    private let log: @Sendable (StoreNotice) -> Void
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
        let shards = Shards(count: options.shards, now: options.now)
        self.shards = shards
        var (meta, names) = try Store.readMeta(storage, log)
        var reader = LogReader(storage: storage, meta: meta)
        let end = try reader.replay(names) { shards.apply($0) }
        if let notice = end.tornTail { log(notice) }
        if end.newestSegment > meta.newestSegment {
            meta.newestSegment = end.newestSegment
            do {
                try storage.publish(meta)
            } catch {
                throw .storage(error)
            }
        }
        self.meta = meta
        receipts = Receipts(
            try ReceiptFile(
                storage: storage, names: names, storeID: meta.storeID,
                segmentBytes: options.receiptSegmentBytes, last: shards.lastReceipt)
        ) { log(.receipts($0)) }
        keyCount = Atomic(shards.counts.keys)
        // Half a segment, so that what is held for want of space and what came after fit in one
        // batch.
        let waitingBytesMax = min(StoreLimits.waitingBytesMax, (options.segmentBytes - 512) / 2)
        queue = Lock(LogQueue(end, state: .ready, waitingBytesMax: waitingBytesMax))
        writer = Lock(
            LogWriter(
                storage: storage, meta: meta, end: end, segmentBytes: options.segmentBytes))
    }

    /// The meta file and the names beside it; makes the meta file in an empty directory.
    private static func readMeta(
        _ storage: some Storage, _ log: (StoreNotice) -> Void
    ) throws(StoreError) -> (LogFormat.Meta, [String]) {
        let path = storage.location + "/" + LogFormat.metaName
        let (names, bytes) = try readFiles(storage)
        if let bytes {
            do throws(LogFormat.HeaderFault) {
                return (try LogFormat.parseMeta(bytes), names)
            } catch {
                throw StoreError(error, file: path)
            }
        }
        guard names.allSatisfy({ LogFormat.firstSequence(segmentName: $0) == nil }) else {
            throw .metaMissing(file: path)
        }
        let meta = newMeta()
        do throws(StorageFailure) {
            try storage.publish(meta)
        } catch {
            throw .storage(error)
        }
        log(.created(directory: storage.location))
        return (meta, names)
    }

    /// The directory's names, half-made files removed, and the bytes of the meta file where it is
    /// there.
    private static func readFiles(
        _ storage: some Storage
    ) throws(StoreError) -> (names: [String], meta: [UInt8]?) {
        do throws(StorageFailure) {
            let names = try storage.list()
            for name in [
                LogFormat.segmentTemporaryName, LogFormat.metaTemporaryName,
                ReceiptFormat.temporaryName,
            ] where names.contains(name) {
                try storage.delete(name)
            }
            guard names.contains(LogFormat.metaName) else { return (names, nil) }
            let file = try storage.open(LogFormat.metaName)
            defer { storage.close(file) }
            return (names, try storage.read(file))
        } catch {
            throw .storage(error)
        }
    }

    private static func newMeta() -> LogFormat.Meta {
        var random = SystemRandomNumberGenerator()
        var secret = Bytes32()
        for word in 0..<4 { secret[word: word] = random.next() }
        return LogFormat.Meta(
            storeID: LogFormat.StoreID(high: random.next(), low: random.next()), epoch: 1,
            newestSegment: 0, secrets: StoreSecrets(current: secret))
    }

    private func start(_ mode: StoreOptions.Writer) throws(StoreError) {
        deliver(writer.withLock { $0.prepare(queue) })
        guard mode == .thread else { return }
        do {
            let writer = try WorkerThread { self.run() }
            threads.withLock { $0 = [writer] }
            let receipts = try WorkerThread { self.receipts.run() }
            threads.withLock { $0.append(receipts) }
        } catch {
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
        if running.count > 1 { running[1].join() }
        receipts.step()
        queue.withLock { $0.isClosing = true }
        queue.wake()
        running.first?.join()
        step()
        receipts.closeFile()
        writer.withLock { $0.close() }
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
    func append(_ record: Record, _ waiter: Waiter) -> UInt64? {
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

    /// The secrets under which challenges are made, kept since the first start.
    package var secrets: StoreSecrets { meta.secrets }

    /// The part of every challenge id that moves on when acknowledged writes may be gone.
    package var epoch: UInt32 { meta.epoch }

    /// Sizes; takes every shard's lock once.
    package var figures: StoreFigures {
        let counts = shards.counts
        let keysByApp = shards.keysByApp
        return queue.withLock { queue in
            StoreFigures(
                keys: counts.keys, keysByApp: keysByApp, spentChallenges: counts.spent,
                spentTokens: counts.tokens, accounts: counts.accounts,
                logBytes: queue.logBytes, segments: queue.segments,
                lastSequence: queue.durableSequence, batches: queue.batches)
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
