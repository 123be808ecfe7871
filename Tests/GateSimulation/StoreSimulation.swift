import GateBytes
import GateLock
import GateStore

/// A broken promise, with the seed that shows it.
package struct SimulationFailure: Error, CustomStringConvertible {
    package let seed: UInt64
    package let event: Int
    package let text: String

    package var description: String { "seed \(seed), event \(event): \(text)" }
}

/// One seeded life of a store: load, faults, crashes, restarts, against ``StoreModel``.
///
/// The writer is turned by hand, so the seed fixes everything. Checked at each answer: it is the
/// model's, no challenge is admitted twice, an admitted counter is greater than all before it,
/// nothing positive is said of a record that is not durable. Checked after each restart: the store
/// is exactly the model after the records that the log kept, and these include every one that was
/// acknowledged.
package final class StoreSimulation {
    private let seed: UInt64
    private var random: SeededGenerator
    private let storage: FaultStorage
    private let faultPercent: Int
    private let crashPercent: Int
    private let stepPercent: Int
    private var event = 0
    private var now: UInt32 = 1_000_000
    private var store: Store?
    private var memory = StoreModel()
    private var changes: [StoreModel.Change] = []
    private var acknowledged: UInt64 = 0
    private var waiting: [Waiting] = []
    private var challenges: [SpentChallenge] = []
    private var admittedChallenges: Set<SpentChallenge> = []
    private var admittedCounters: [Bytes32: UInt32] = [:]
    /// Restarts that found the log shorter than what had been appended.
    package private(set) var losses = 0
    package private(set) var restarts = 0
    package private(set) var admits = 0
    /// Enrolments that retired a key.
    package private(set) var retirements = 0
    /// What the store told the operator, by kind.
    package var notices: [String: Int] { told.withLock { $0 } }
    private let told = Lock<[String: Int]>([:])

    private struct Waiting {
        var sequence: UInt64
        /// Says whether the answer is positive, throws when it is wrong; nil before the answer.
        var answer: () throws -> Bool?
    }

    package init(seed: UInt64) {
        self.seed = seed
        random = SeededGenerator(seed: seed)
        storage = FaultStorage(seed: random.next())
        faultPercent = [0, 0, 2, 10].randomElement(using: &random) ?? 0
        crashPercent = [1, 3, 10].randomElement(using: &random) ?? 1
        stepPercent = [10, 30, 80].randomElement(using: &random) ?? 30
    }

    /// Lives through `events` events.
    package func run(events: Int) throws {
        try restart()
        for number in 1...events {
            event = number
            now += UInt32.random(in: 0...20, using: &random)
            if random.chance(1) { now += UInt32.random(in: 1000...6000, using: &random) }
            // So long that keys have been idle long enough to be retired.
            if random.chance(2) { now += 2_600_000 }
            if random.chance(faultPercent) { breakSomething() }
            try load()
            if random.chance(stepPercent) { try step() }
            if random.chance(crashPercent) { try crash() }
        }
        storage.mend()
        try step()
        try crash()
        try check(!storage.hasRetriedSync, "a failed sync was tried again")
    }

    private func check(_ isMet: Bool, _ text: @autoclosure () -> String) throws {
        guard !isMet else { return }
        throw SimulationFailure(seed: seed, event: event, text: text())
    }

    private var open: Store {
        guard let store else { fatalError("the store is not open") }
        return store
    }
}

extension StoreSimulation {
    private func load() throws {
        switch Int.random(in: 0..<22, using: &random) {
        case 0..<11: try admit()
        case 11..<16: try enrol()
        case 16: try revoke()
        case 17: try block()
        case 18: try spendToken()
        case 19, 20: try refresh()
        default: open.forgetExpired(now: now)
        }
    }

    private func pickKey() -> Bytes32 {
        var keyID = Bytes32()
        keyID[word: 0] = UInt64.random(in: 0..<16, using: &random) &* 0x1_0001_0001_0001
        return keyID
    }

    private func pickAccount() -> [UInt8] {
        Array(["", "alice", "bob"].randomElement(using: &random)?.utf8 ?? "".utf8)
    }

    private func pickChallenge() -> SpentChallenge {
        if random.chance(30), let old = challenges.randomElement(using: &random) { return old }
        let challenge = SpentChallenge(
            nonceHigh: random.next(), nonceLow: random.next(),
            expiry: now + UInt32.random(in: 0...600, using: &random))
        challenges.append(challenge)
        return challenge
    }

    private func admit() throws {
        let keyID = pickKey()
        let challenge = random.chance(90) ? pickChallenge() : nil
        let counter =
            (memory.keys[keyID]?.record.signCounter ?? 0)
            &+ UInt32.random(in: 0...3, using: &random)
        let isRevoking = random.chance(1)
        let refusal = memory.admit(
            challenge, keyID, counter, now: now, durable: open.figures.lastSequence)
        let previous = memory.keys[keyID]?.record.signCounter ?? 0
        let reply = Reply<AdmitOutcome>()
        open.admit(
            challenge: challenge, keyID: keyID, counter: counter, revoking: isRevoking, now: now,
            reply: reply.call)
        let change = StoreModel.Change.admit(
            challenge, keyID: keyID, counter: counter, isRevoking: isRevoking, now: now)
        try expect(
            reply, refusal == nil ? change : nil, refusal ?? .admitted(previousCounter: previous)
        ) { [self] in
            admits += 1
            if let challenge {
                try check(
                    admittedChallenges.insert(challenge).inserted, "\(challenge) admitted twice")
            }
            try check(
                counter > admittedCounters[keyID] ?? 0,
                "counter \(counter) admitted after \(previous)")
            admittedCounters[keyID] = counter
        }
    }

    private func enrol() throws {
        let challenge = pickChallenge()
        let keyID = pickKey()
        let key = NewKey(
            keyID: keyID, publicKey: P256Point(x: keyID, y: keyID), account: pickAccount(),
            app: random.chance(90) ? "shop" : "bank", environment: random.chance(90) ? 0 : 1,
            signCounter: random.chance(70) ? 0 : UInt32.random(in: 1...6, using: &random),
            receipt: random.chance(50) ? [] : pickReceipt(),
            refreshAt: random.chance(50) ? nil : now, category: 3,
            bundleVersion: random.chance(50) ? nil : "412")
        let (change, outcome) = memory.enrol(key, challenge, keysPerAccount: 3, now: now)
        let reply = Reply<EnrolOutcome>()
        open.enrol(key, challenge: challenge, keysPerAccount: 3, now: now, reply: reply.call)
        guard try !isReceiptLost(reply, key.receipt.isEmpty) else { return }
        try expect(reply, change, outcome) { [self] in
            if case .enrolledRetiring = outcome { retirements += 1 }
            guard key.signCounter > 0 else { return }
            // What an inline enrolment's assertion came with is used as by an admit.
            try check(
                admittedChallenges.insert(challenge).inserted, "\(challenge) admitted twice")
            try check(
                key.signCounter > admittedCounters[keyID] ?? 0,
                "counter \(key.signCounter) enrolled after \(admittedCounters[keyID] ?? 0)")
            admittedCounters[keyID] = key.signCounter
        }
    }

    private func pickReceipt() -> [UInt8] {
        (0..<Int.random(in: 1...700, using: &random)).map { _ in
            UInt8.random(in: 0...3, using: &random)
        }
    }

    /// Lets receipts be written at once, so that the model's order is the log's. Whether one could
    /// not be: then the call changed nothing, and the store goes on.
    private func isReceiptLost<Outcome: Sendable>(
        _ reply: Reply<Outcome>, _ isWithout: Bool
    ) throws -> Bool {
        let before = notices["receipts"] ?? 0
        open.stepReceipts()
        guard !isWithout, open.isReady, let answer = reply.outcomes.first,
            "\(answer)" == "unavailable"
        else { return false }
        try check(before < notices["receipts"] ?? 0, "a receipt refused, and nothing was wrong")
        return true
    }

    private func refresh() throws {
        let keyID = pickKey()
        let receipt = random.chance(50) ? pickReceipt() : nil
        let update = ReceiptUpdate(
            metric: random.chance(50) ? nil : RiskMetric(UInt32(event), time: now),
            refreshAt: random.chance(30) ? nil : now + UInt32.random(in: 0...9, using: &random))
        let known = memory.keys[keyID]
        let durable = open.figures.lastSequence
        let isGood = known.map { $0.sequence <= durable && !$0.record.isRevoked } ?? false
        let reply = Reply<ReceiptOutcome>()
        if let receipt {
            open.keep(receipt: receipt, of: keyID, update, reply: reply.call)
        } else {
            open.update(receiptOf: keyID, update, reply: reply.call)
        }
        guard try !isReceiptLost(reply, receipt == nil) else { return }
        guard isGood || receipt == nil || open.isReady else { return }
        try expect(
            reply, isGood ? .receipt(keyID, receipt, update) : nil,
            isGood ? .done : .keyUnknown
        ) {}
    }

    private func revoke() throws {
        let keyID = pickKey()
        let account = random.chance(50) ? nil : pickAccount()
        let known = memory.keys[keyID]?.record
        let isTheirs = known != nil && (account == nil || known?.account == account)
        let reply = Reply<RevokeOutcome>()
        open.revoke(keyID: keyID, account: account, app: nil, now: now, reply: reply.call)
        if isTheirs, known?.isRevoked == false {
            try expect(reply, .revoke(keyID), .revoked) {}
        } else {
            try expectBarrier(reply, .nothing, mayWait: isTheirs)
        }
    }

    private func spendToken() throws {
        if random.chance(3) { now += UInt32.random(in: 1...20 * 86_400, using: &random) }
        var hash = Bytes32()
        hash[word: 0] = UInt64.random(in: 0..<12, using: &random) &* 0x1_0001_0001_0001
        let isSpent = memory.isTokenSpent(hash, now: now)
        let reply = Reply<TokenOutcome>()
        open.spendToken(hash, now: now, reply: reply.call)
        try expect(
            reply, isSpent ? nil : .token(hash, now: now), isSpent ? .alreadySpent : .spent
        ) {}
    }

    private func block() throws {
        let account = Array(
            ["alice", "bob", "carol"].randomElement(using: &random)?.utf8 ?? "".utf8)
        let isBlocked = random.chance(40)
        let reply = Reply<BlockOutcome>()
        open.block(account: account, isBlocked: isBlocked, now: now, reply: reply.call)
        if memory.blocked.contains(account) != isBlocked {
            try expect(reply, .block(account, isBlocked), .done) {}
        } else {
            try expectBarrier(reply, .done, mayWait: true)
        }
    }

    /// Holds a call against the model: refused at once, or its change is appended and answered once
    /// it is durable.
    private func expect<Outcome: Equatable & Sendable>(
        _ reply: Reply<Outcome>, _ change: StoreModel.Change?, _ outcome: Outcome,
        then accept: @escaping () throws -> Void
    ) throws {
        guard let change else {
            try check(
                reply.outcomes.first == outcome,
                "expected \(outcome), got \(String(describing: reply.outcomes.first))")
            return
        }
        guard open.isReady else {
            try check(
                "\(String(describing: reply.outcomes.first))".contains("unavailable"),
                "answered while not ready")
            return
        }
        try check(
            reply.outcomes.first == nil,
            "answered before a sync: \(String(describing: reply.outcomes.first))")
        changes.append(change)
        let sequence = UInt64(changes.count)
        memory.apply(change, sequence: sequence)
        waiting.append(
            Waiting(sequence: sequence) { [self] in
                guard let answer = reply.outcomes.first else { return nil }
                try check(reply.outcomes.count == 1, "answered \(reply.outcomes.count) times")
                if "\(answer)" == "unavailable" { return false }
                try check(answer == outcome, "expected \(outcome), got \(answer)")
                try accept()
                return true
            })
    }

    /// A call that changes nothing, but whose answer may have to wait for what came before.
    private func expectBarrier<Outcome: Equatable & Sendable>(
        _ reply: Reply<Outcome>, _ outcome: Outcome, mayWait: Bool
    ) throws {
        let isDurable = open.figures.lastSequence == UInt64(changes.count)
        if mayWait, !open.isReady {
            try check(
                "\(String(describing: reply.outcomes.first))".contains("unavailable"),
                "answered while not ready")
        } else if mayWait, !isDurable {
            try check(reply.outcomes.first == nil, "said what is not durable")
            let sequence = UInt64(changes.count)
            waiting.append(
                Waiting(sequence: sequence) { [self] in
                    guard let answer = reply.outcomes.first else { return nil }
                    if "\(answer)" == "unavailable" { return false }
                    try check(answer == outcome, "expected \(outcome), got \(answer)")
                    return true
                })
        } else {
            try check(
                reply.outcomes.first == outcome,
                "expected \(outcome), got \(String(describing: reply.outcomes.first))")
        }
    }
}

extension StoreSimulation {
    private func step() throws {
        open.step()
        let durable = open.figures.lastSequence
        for call in waiting {
            guard let isPositive = try call.answer() else {
                throw SimulationFailure(seed: seed, event: event, text: "never answered")
            }
            if isPositive {
                try check(call.sequence <= durable, "acknowledged before it was durable")
                acknowledged = max(acknowledged, call.sequence)
            } else {
                try check(!open.isReady, "unavailable while ready")
            }
        }
        waiting = []
    }

    private func breakSomething() {
        switch Int.random(in: 0..<8, using: &random) {
        case 0: storage.failNext(.write)
        case 1: storage.failNext(.sync)
        case 2: storage.failNext(.create, .outOfSpace)
        case 3: storage.failNext(.syncDirectory)
        case 4: storage.failNext(.rename, random.chance(50) ? .outOfSpace : FaultStorage.broken)
        case 5: storage.failNext(.write, .outOfSpace)
        case 6: storage.capacity = storage.used
        default: storage.mend()
        }
    }

    private func crash() throws {
        switch Int.random(in: 0..<6, using: &random) {
        case 0:
            open.close()
            storage.kill()
        case 1: storage.kill()
        default:
            storage.cutPower(FaultStorage.Survival.allCases.randomElement(using: &random) ?? .torn)
        }
        if random.chance(60) { storage.mend() }
        waiting = []
        try restart()
    }

    private func restart() throws {
        restarts += 1
        store = nil
        var options = StoreOptions(
            shards: 4, now: now, segmentBytes: 8192, receiptSegmentBytes: 4096, writer: .stepped)
        options.keysMax = 100
        for attempt in 0... {
            if attempt == 3 { storage.mend() }
            if attempt < 2, random.chance(faultPercent) {
                storage.failCall(Int.random(in: 0..<20, using: &random))
            }
            do {
                let told = told
                store = try Store.open(storage: storage, options: options) { notice in
                    let kind = notice.kind
                    told.withLock { $0[kind, default: 0] += 1 }
                }
                break
            } catch {
                guard case .storage = error, attempt < 4 else {
                    throw SimulationFailure(
                        seed: seed, event: event, text: "start refused: \(error)")
                }
                storage.kill()
                if random.chance(30) { storage.cutPower(.torn) }
            }
        }
        try checkRecovery()
    }

    private func checkRecovery() throws {
        let kept = open.figures.lastSequence
        try check(
            acknowledged <= kept && kept <= changes.count,
            "kept \(kept) of \(changes.count) records, \(acknowledged) acknowledged")
        if kept < changes.count { losses += 1 }
        changes.removeSubrange(Int(kept)...)
        acknowledged = kept
        memory = StoreModel()
        for (index, change) in changes.enumerated() {
            memory.apply(change, sequence: UInt64(index) + 1)
        }
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
        for challenge in challenges where now <= challenge.expiry + 3600 {
            try check(
                open.isSpent(challenge) == memory.spent.contains(challenge),
                "\(challenge) spent or not")
        }
        let bound = memory.spent.count { now <= $0.expiry + 3600 + 256 }
        let count = open.figures.spentChallenges
        try check(
            (alive.count...bound).contains(count), "\(count) spent challenges kept, not \(bound)")
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
        case .keysMaxReached: "keysMaxReached"
        case .receipts: "receipts"
        case .spaceExhausted: "spaceExhausted"
        case .spaceReturned: "spaceReturned"
        case .stopped: "stopped"
        case .tornTail: "tornTail"
        }
    }
}
