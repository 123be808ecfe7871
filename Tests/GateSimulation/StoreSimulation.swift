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

/// One seeded life of a store: load, snapshots, faults, crashes, restarts, against ``StoreModel``.
///
/// The writer is turned by hand, so the seed fixes everything. The simulation is the gate as well:
/// a challenge made in an older epoch does not reach the store. Checked of the promises
/// (`store.md`):
/// - 1, at each answer: it is the model's, no challenge is ever admitted twice, and an admitted
///   counter is greater than all before it;
/// - 2 and 9, after each restart: the store is exactly the model after the records it kept;
/// - 3: nothing positive is said of a record that is not durable (under relaxed durability of
///   anything but an admit with a challenge);
/// - 4, after each restart: the records kept include every one that was acknowledged; after bits
///   flipped or a file was lost, that is so, or the start is refused, or the last batch is dropped
///   as a torn tail;
/// - 5: after a failure nothing positive is said until the restart, and no sync is tried again;
/// - 6: a second owner is refused;
/// - 7: the epoch has moved on wherever something acknowledged is gone or may be, and never back.
package final class StoreSimulation {
    let seed: UInt64
    var random: SeededGenerator
    let storage: FaultStorage
    let faultPercent: Int
    private let crashPercent: Int
    private let stepPercent: Int
    private let snapshotPercent: Int
    let isRelaxed: Bool
    var event = 0
    var now: UInt32 = 1_000_000
    var store: Store?
    var memory = StoreModel()
    /// What was appended, in order, each with its epoch.
    var changes: [(change: StoreModel.Change, epoch: UInt32)] = []
    /// The last record of which something positive was said.
    var acknowledged: UInt64 = 0
    /// The same, of answers that do not wait for the disk.
    var acknowledgedEarly: UInt64 = 0
    /// The last record that was durable before the last batch.
    var settled: UInt64 = 0
    var epoch: UInt32 = 0
    /// Whether the store is open and, under relaxed durability, was not closed cleanly.
    var isUncertain = false
    var waiting: [Waiting] = []
    /// Challenges and the epoch in which each was made.
    var challenges: [(challenge: SpentChallenge, epoch: UInt32)] = []
    private var admittedChallenges: Set<SpentChallenge> = []
    var admittedCounters: [Bytes32: UInt32] = [:]
    /// Restarts that found the log shorter than what had been appended.
    package internal(set) var losses = 0
    package internal(set) var restarts = 0
    package internal(set) var admits = 0
    /// Enrolments that retired a key.
    package private(set) var retirements = 0
    /// Starts that were refused, or had to do without the last batch, after damage.
    package internal(set) var refusals = 0
    package internal(set) var drops = 0
    /// What the store told the operator, by kind.
    package var notices: [String: Int] { told.withLock { $0 } }
    let told = Lock<[String: Int]>([:])

    struct Waiting {
        var sequence: UInt64
        /// Says whether the answer is positive, throws when it is wrong; nil before the answer.
        var answer: () throws -> Bool?
    }

    /// Told of what happens, for who looks closer at one seed.
    package var trace: ((String) -> Void)?

    package init(seed: UInt64) {
        self.seed = seed
        random = SeededGenerator(seed: seed)
        storage = FaultStorage(seed: random.next())
        faultPercent = [0, 0, 2, 10].randomElement(using: &random) ?? 0
        crashPercent = [1, 3, 10].randomElement(using: &random) ?? 1
        stepPercent = [10, 30, 80].randomElement(using: &random) ?? 30
        snapshotPercent = [0, 10, 50, 90].randomElement(using: &random) ?? 0
        isRelaxed = random.chance(25)
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
            if random.chance(snapshotPercent), open.isReady {
                for _ in 0..<Int.random(in: 1...6, using: &random) where open.isReady {
                    open.stepSnapshot(now: now)
                }
            }
            if random.chance(1) { try openTwice() }
            if random.chance(stepPercent) { try step() }
            if random.chance(open.isReady ? crashPercent : 30) { try crash() }
        }
        storage.mend()
        try step()
        try crash()
        try check(!storage.hasRetriedSync, "a failed sync was tried again")
    }

    func check(_ isMet: Bool, _ text: @autoclosure () -> String) throws {
        guard !isMet else { return }
        throw SimulationFailure(seed: seed, event: event, text: text())
    }

    var open: Store {
        guard let store else { fatalError("the store is not open") }
        return store
    }
}

extension StoreSimulation {
    func load() throws {
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

    /// A new challenge, or an old one, which the gate lets through in its own epoch only.
    private func pickChallenge() -> SpentChallenge {
        if random.chance(30), let old = challenges.randomElement(using: &random),
            old.epoch == open.epoch
        {
            return old.challenge
        }
        let challenge = SpentChallenge(
            nonceHigh: random.next(), nonceLow: random.next(),
            expiry: now + UInt32.random(in: 0...600, using: &random))
        challenges.append((challenge, open.epoch))
        return challenge
    }

    private func admit() throws {
        let keyID = pickKey()
        let challenge = random.chance(90) || isRelaxed ? pickChallenge() : nil
        let counter =
            (memory.keys[keyID]?.record.signCounter ?? 0)
            &+ UInt32.random(in: 0...3, using: &random)
        let isRevoking = random.chance(1)
        let refusal = memory.admit(
            challenge, keyID, counter, now: now, durable: open.figures.lastSequence,
            epoch: open.epoch)
        let previous = memory.keys[keyID]?.record.signCounter ?? 0
        let reply = Reply<AdmitOutcome>()
        open.admit(
            challenge: challenge, keyID: keyID, counter: counter, revoking: isRevoking, now: now,
            reply: reply.call)
        let change = StoreModel.Change.admit(
            challenge, keyID: keyID, counter: counter, isRevoking: isRevoking, now: now)
        try expect(
            reply, refusal == nil ? change : nil, refusal ?? .admitted(previousCounter: previous),
            isEarly: isRelaxed && challenge != nil && !isRevoking
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
            // Under relaxed durability later admits are answered before it.
            let before = admittedCounters[keyID] ?? 0
            try check(
                isRelaxed || key.signCounter > before,
                "counter \(key.signCounter) enrolled after \(before)")
            admittedCounters[keyID] = max(before, key.signCounter)
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
        isEarly: Bool = false, then accept: @escaping () throws -> Void
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
        if "\(reply.outcomes)".contains("unavailable"),
            UInt64(changes.count) - open.figures.lastSequence >= 7
        {
            // So many records wait that there is no room for another.
            return
        }
        try check(
            (reply.outcomes.first == nil) != isEarly,
            "answered before a sync: \(String(describing: reply.outcomes.first))")
        changes.append((change, open.epoch))
        let sequence = UInt64(changes.count)
        memory.apply(change, sequence: sequence, epoch: open.epoch)
        guard !isEarly else {
            try check(
                reply.outcomes == [outcome], "expected \(outcome), got \(reply.outcomes)")
            acknowledgedEarly = sequence
            try accept()
            return
        }
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
    func step() throws {
        let before = open.figures.lastSequence
        open.step()
        let durable = open.figures.lastSequence
        if durable > before { settled = before }
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

    func breakSomething() {
        switch Int.random(in: 0..<8, using: &random) {
        case 0: storage.failNext(.write)
        case 1: storage.failNext(.sync)
        case 2: storage.failNext(.create, .outOfSpace)
        case 3: storage.failNext(random.chance(50) ? .syncDirectory : .extend)
        case 4: storage.failNext(.rename, random.chance(50) ? .outOfSpace : FaultStorage.broken)
        case 5: storage.failNext(.write, .outOfSpace)
        case 6: storage.capacity = storage.used
        default: storage.mend()
        }
    }
}
