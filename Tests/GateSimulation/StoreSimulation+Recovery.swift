import GateBytes
import GateLock
import GateStore

extension StoreSimulation {
    func crash() throws {
        switch Int.random(in: 0..<6, using: &random) {
        case 0:
            open.close()
            if open.figures.lastSequence == UInt64(changes.count) { isUncertain = false }
            storage.kill()
        case 1: storage.kill()
        default:
            storage.cutPower(FaultStorage.Survival.allCases.randomElement(using: &random) ?? .torn)
        }
        trace?(
            "event \(event): crash; \(changes.count) records, \(acknowledged) acknowledged, "
                + "\(settled) settled; left are \(storage.names.joined(separator: " "))")
        if random.chance(60) { storage.mend() }
        waiting = []
        store = nil
        if random.chance(20) { try startDamaged() } else { try restart() }
    }

    /// Another process wants the directory.
    func openTwice() throws {
        do {
            _ = try Store.open(storage: storage, options: options)
            try check(false, "a second owner was let in")
        } catch StoreError.locked {
        } catch StoreError.storage {
            // The lock itself was made to fail.
        }
    }

    private var options: StoreOptions {
        var options = StoreOptions(
            shards: 4, now: now, segmentBytes: 8192, receiptSegmentBytes: 4096, writer: .stepped)
        options.keysMax = 100
        if isRelaxed { options.durability = .relaxed(milliseconds: 20) }
        return options
    }

    /// Opens the store as often as the storage's failures make it.
    func restart() throws {
        restarts += 1
        for attempt in 0... {
            if attempt == 3 { storage.mend() }
            if attempt < 2, random.chance(faultPercent) {
                storage.failCall(Int.random(in: 0..<20, using: &random))
            }
            do {
                try open(mayDrop: false)
                return
            } catch {
                guard case StoreError.storage = error, attempt < 4 else {
                    guard error is StoreError else { throw error }
                    throw SimulationFailure(
                        seed: seed, event: event, text: "start refused: \(error)")
                }
                storage.kill()
                if random.chance(30) { storage.cutPower(.torn) }
            }
        }
    }

    /// Flips a bit of a file or loses one: the start is refused, or nothing is missing, or the last
    /// batch is and the epoch moves on.
    private func startDamaged() throws {
        storage.mend()
        let names = storage.names.filter { !$0.hasSuffix(".tmp") && !$0.hasPrefix("receipts") }
        guard names.count > 1, let name = names.randomElement(using: &random),
            let bytes = storage[name]
        else {
            return try restart()
        }
        if random.chance(20) {
            storage[name] = nil
            trace?("event \(event): \(name) lost")
        } else {
            // Most of a segment is zeros behind its end.
            let used = bytes.lastIndex { $0 != 0 }.map { $0 + 1 } ?? bytes.count
            guard used > 0 else { return try restart() }
            let index = Int.random(in: 0..<min(bytes.count, used + 40), using: &random)
            storage[name]?[index] ^= 1 << UInt8.random(in: 0..<8, using: &random)
            trace?("event \(event): bit flipped at \(index) of \(name)")
        }
        do {
            try open(mayDrop: true)
            restarts += 1
        } catch let error as StoreError {
            guard !isStorage(error) else { throw error }
            refusals += 1
            storage.kill()
            storage[name] = bytes
            try restart()
        }
    }

    private func isStorage(_ error: StoreError) -> Bool {
        if case .storage = error { true } else { false }
    }

    private func open(mayDrop: Bool) throws {
        let told = told
        let heard = Lock<[StoreNotice]>([])
        let before = notices["tornTail"] ?? 0
        store = try Store.open(storage: storage, options: options) { notice in
            let kind = notice.kind
            told.withLock { $0[kind, default: 0] += 1 }
            heard.withLock { $0.append(notice) }
        }
        for notice in heard.withLock({ $0 }) { trace?("event \(event): \(notice)") }
        let hasTornTail = (notices["tornTail"] ?? 0) > before
        try checkRecovery(mayDrop: mayDrop, hasTornTail: hasTornTail)
        isUncertain = isRelaxed
    }

    private func checkRecovery(mayDrop: Bool, hasTornTail: Bool) throws {
        let kept = open.figures.lastSequence
        try check(kept <= changes.count, "kept \(kept) of \(changes.count) records")
        let isDropped = kept < acknowledged
        if isDropped {
            try check(
                mayDrop && hasTornTail && kept >= min(settled, acknowledged),
                "kept \(kept) records, \(acknowledged) acknowledged, \(settled) settled")
            drops += 1
        }
        try check(open.epoch >= epoch, "the epoch went back")
        let mustMove = hasTornTail || isUncertain || kept < max(acknowledged, acknowledgedEarly)
        try check(open.epoch > epoch || !mustMove || epoch == 0, "the epoch stayed")
        if open.epoch > epoch, kept < max(acknowledged, acknowledgedEarly) {
            admittedCounters = [:]
        }
        epoch = open.epoch
        if kept < changes.count { losses += 1 }
        changes.removeSubrange(Int(kept)...)
        acknowledged = kept
        acknowledgedEarly = kept
        settled = min(settled, kept)
        memory = StoreModel()
        for (index, entry) in changes.enumerated() {
            memory.apply(entry.change, sequence: UInt64(index) + 1, epoch: entry.epoch)
        }
        try checkContents()
    }

    private func checkContents() throws {
        try check(open.figures.keys == memory.keys.count, "number of keys")
        for key in memory.keys.values {
            let known = open.key(key.record.keyID)
            var found = known
            found?.receipt = nil
            try check(
                found == key.record, "expected \(key.record), got \(String(describing: found))")
            try checkReceipt(known, key.receipt)
        }
        let alive = memory.spent.filter { now <= $0.expiry + 3600 }
        for (challenge, _) in challenges where now <= challenge.expiry + 3600 {
            try check(
                open.isSpent(challenge) == memory.spent.contains(challenge),
                "\(challenge) spent or not")
        }
        let bound = memory.spent.count { now <= $0.expiry + 3600 + 256 }
        let count = open.figures.spentChallenges
        try check(
            (alive.count...max(bound, alive.count)).contains(count),
            "\(count) spent challenges kept, not \(bound)")
        for number in UInt64(0)..<12 {
            var hash = Bytes32()
            hash[word: 0] = number &* 0x1_0001_0001_0001
            try check(
                open.isTokenSpent(hash) == memory.isTokenSpent(hash, now: now),
                "token \(number) spent or not")
        }
        for account in ["alice", "bob", "carol"].map({ Array($0.utf8) }) {
            try check(
                open.isBlocked(account: account) == memory.blocked.contains(account),
                "blocked or not")
        }
    }
}

extension StoreSimulation {
    /// A receipt that a record of the log names is there, whatever happened.
    private func checkReceipt(_ key: KeyRecord?, _ expected: [UInt8]) throws {
        guard let key else { return }
        for _ in 0..<2 {
            let failures = notices["receipts"] ?? 0
            let reply = Reply<[UInt8]?>()
            open.receipt(of: key, reply: reply.call)
            open.stepReceipts()
            let found = (reply.outcomes.first ?? nil) ?? []
            if found == expected { return }
            try check(
                failures < notices["receipts"] ?? 0, "the receipt of \(key.keyID) is not there")
            storage.mend()
        }
        try check(false, "the receipt of \(key.keyID) cannot be read")
    }
}

extension StoreNotice {
    /// The notice without its values.
    fileprivate var kind: String {
        switch self {
        case .created: "created"
        case .epochMoved: "epochMoved"
        case .keysMaxReached: "keysMaxReached"
        case .receipts: "receipts"
        case .leftoversStay: "leftoversStay"
        case .snapshotFailed: "snapshotFailed"
        case .snapshotPassedOver: "snapshotPassedOver"
        case .snapshotWritten: "snapshotWritten"
        case .spaceExhausted: "spaceExhausted"
        case .spaceReturned: "spaceReturned"
        case .stopped: "stopped"
        case .tornTail: "tornTail"
        }
    }
}
