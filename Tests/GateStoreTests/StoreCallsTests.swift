import GateBytes
import GateSimulation
import GateStore
import Testing

@Suite("Store: admit") struct StoreAdmitTests {
    let storage = FaultStorage()
    let store: Store

    init() throws {
        store = try Store.open(storage: storage, options: options())
        #expect(store.enrolNow(newKey(1), challenge(0xe1)) == .enrolled)
    }

    @Test("an admit tells the counter before it and advances the key")
    func admitAdvances() {
        #expect(store.admitNow(challenge(1), 1, 5) == .admitted(previousCounter: 0))
        #expect(store.admitNow(challenge(2), 1, 9, now: noon + 7) == .admitted(previousCounter: 5))
        #expect(store.key(bytes32(1))?.signCounter == 9)
        #expect(store.key(bytes32(1))?.lastUsedAt == noon + 7)
        #expect(store.key(bytes32(1))?.enrolledAt == noon)
    }

    @Test("a challenge that was spent is refused, and the counter stays")
    func spentChallenge() {
        #expect(!store.isSpent(challenge(1)))
        #expect(store.admitNow(challenge(1), 1, 5) != nil)
        #expect(store.isSpent(challenge(1)))
        #expect(store.admitNow(challenge(1), 1, 6) == .challengeSpent)
        #expect(store.key(bytes32(1))?.signCounter == 5)
    }

    @Test("a challenge spent by an enrolment is refused")
    func enrolmentChallenge() {
        #expect(store.admitNow(challenge(0xe1), 1, 5) == .challengeSpent)
    }

    @Test("a counter that is equal or less is refused, and the challenge stays unspent")
    func counterNotGreater() {
        #expect(store.admitNow(challenge(1), 1, 5) != nil)
        #expect(store.admitNow(challenge(2), 1, 5) == .counterNotGreater)
        #expect(store.admitNow(challenge(2), 1, 4) == .counterNotGreater)
        #expect(store.admitNow(nil, 1, 5) == .counterNotGreater)
        #expect(!store.isSpent(challenge(2)))
        #expect(store.admitNow(challenge(2), 1, 6) == .admitted(previousCounter: 5))
    }

    @Test("a counter of zero is never admitted")
    func counterZero() {
        #expect(store.admitNow(challenge(1), 1, 0) == .counterNotGreater)
    }

    @Test("an unknown key is refused, and the challenge stays unspent")
    func unknownKey() {
        #expect(store.admitNow(challenge(1), 2, 5) == .keyUnknown)
        #expect(!store.isSpent(challenge(1)))
    }

    @Test("a revoked key is refused, and the challenge stays unspent")
    func revokedKey() {
        #expect(store.revokeNow(1) == .revoked)
        #expect(store.admitNow(challenge(1), 1, 5) == .keyRevoked)
        #expect(!store.isSpent(challenge(1)))
    }

    @Test("an admit that revokes is the key's last")
    func revokingAdmit() {
        #expect(store.admitNow(challenge(1), 1, 5, revoking: true) == .admitted(previousCounter: 0))
        #expect(store.key(bytes32(1))?.isRevoked == true)
        #expect(store.admitNow(challenge(2), 1, 6) == .keyRevoked)
    }

    @Test("without a challenge the counter alone decides")
    func withoutChallenge() {
        #expect(store.admitNow(nil, 1, 5) == .admitted(previousCounter: 0))
        #expect(store.admitNow(nil, 1, 6) == .admitted(previousCounter: 5))
        #expect(store.figures.spentChallenges == 1)
    }

    @Test("nothing is answered before the writer has synced, and then once")
    func durableBeforeVisible() {
        let reply = Reply<AdmitOutcome>()
        store.admit(
            challenge: challenge(1), keyID: bytes32(1), counter: 5, now: noon, reply: reply.call)
        #expect(reply.outcomes.isEmpty)
        let syncs = storage.syncs
        store.step()
        #expect(storage.syncs == syncs + 1)
        #expect(reply.outcome == .admitted(previousCounter: 0))
    }

    @Test("a replay of an admit that is not yet durable is refused")
    func replayWhileWaiting() {
        let first = Reply<AdmitOutcome>()
        let second = Reply<AdmitOutcome>()
        for reply in [first, second] {
            store.admit(
                challenge: challenge(1), keyID: bytes32(1), counter: 5, now: noon,
                reply: reply.call)
        }
        #expect(second.outcome == .challengeSpent)
        store.step()
        #expect(first.outcome == .admitted(previousCounter: 0))
    }

    @Test("all that waits is one batch and one sync")
    func groupCommit() {
        let replies = (1...50).map { _ in Reply<AdmitOutcome>() }
        for (index, reply) in replies.enumerated() {
            store.admit(
                challenge: challenge(number: index), keyID: bytes32(1), counter: UInt32(index) + 1,
                now: noon, reply: reply.call)
        }
        let syncs = storage.syncs
        store.step()
        #expect(storage.syncs == syncs + 1)
        #expect(store.figures.batches == 2)
        for (index, reply) in replies.enumerated() {
            #expect(reply.outcome == .admitted(previousCounter: UInt32(index)))
        }
    }

    @Test("what waits has a limit, over which calls are unavailable and change nothing")
    func waitingLimit() {
        var counter: UInt32 = 0
        var last = Reply<AdmitOutcome>()
        repeat {
            counter += 1
            last = Reply()
            store.admit(
                challenge: challenge(number: Int(counter)), keyID: bytes32(1), counter: counter,
                now: noon, reply: last.call)
        } while last.outcomes.isEmpty && counter < 1000
        #expect(last.outcome == .unavailable)
        #expect((40...70).contains(counter))
        #expect(!store.isSpent(challenge(number: Int(counter))))
        store.step()
        #expect(store.key(bytes32(1))?.signCounter == counter - 1)
        #expect(store.isReady)
    }
}

@Suite("Store: enrol") struct StoreEnrolTests {
    let storage = FaultStorage()
    let store: Store

    init() throws {
        store = try Store.open(storage: storage, options: options(keysMax: 6))
    }

    @Test("a key that is known is advanced to the counter that comes with it, or refused")
    func knownWithCounter() {
        var key = newKey(1)
        key.signCounter = 3
        #expect(store.enrolNow(key, challenge(1)) == .enrolled)
        #expect(store.enrolNow(key, challenge(2)) == .counterNotGreater)
        #expect(!store.isSpent(challenge(2)))
        key.signCounter = 5
        #expect(store.enrolNow(key, challenge(2), now: noon + 9) == .alreadyKnown)
        #expect(store.isSpent(challenge(2)))
        #expect(store.key(bytes32(1))?.signCounter == 5)
        #expect(store.key(bytes32(1))?.lastUsedAt == noon + 9)
        #expect(store.admitNow(challenge(3), 1, 5) == .counterNotGreater)
        key.signCounter = 0
        #expect(store.enrolNow(key, challenge(4)) == .alreadyKnown)
        #expect(store.key(bytes32(1))?.signCounter == 5)
        #expect(store.revokeNow(1) == .revoked)
        key.signCounter = 6
        #expect(store.enrolNow(key, challenge(5)) == .revoked)
    }

    @Test("a key is kept as it was enrolled")
    func enrolled() throws {
        var key = newKey(1, receipt: [1, 2, 3])
        key.refreshAt = noon + 60
        key.category = 3
        key.bundleVersion = "412"
        key.signCounter = 2
        key.environment = 1
        #expect(store.enrolNow(key, challenge(1), now: noon + 3) == .enrolled)
        let record = try #require(store.key(bytes32(1)))
        #expect(
            record
                == KeyRecord(
                    keyID: bytes32(1), publicKey: P256Point(x: bytes32(1), y: bytes32(1)),
                    account: Array("alice".utf8), app: "shop", environment: 1, signCounter: 2,
                    isRevoked: false, enrolledAt: noon + 3, lastUsedAt: noon + 3,
                    challengeEpoch: 1, category: 3, bundleVersion: "412",
                    receipt: record.receipt, refreshAt: noon + 60))
        #expect(record.hasReceipt)
        let asked = Reply<KeyRecord?>()
        store.key(bytes32(1), reply: asked.call)
        #expect(asked.outcome == record)
        store.close()
        let again = try Store.open(storage: storage, options: options())
        #expect(again.key(bytes32(1)) == record)
    }

    @Test("a key that is not yet durable cannot be seen or used, but is taken")
    func pendingKey() {
        let first = Reply<EnrolOutcome>()
        let second = Reply<EnrolOutcome>()
        let admit = Reply<AdmitOutcome>()
        store.enrol(
            newKey(1), challenge: challenge(1), keysPerAccount: 0, now: noon, reply: first.call)
        #expect(store.key(bytes32(1)) == nil)
        #expect(store.keys(ofAccount: Array("alice".utf8), app: "shop").isEmpty)
        store.admit(
            challenge: challenge(2), keyID: bytes32(1), counter: 1, now: noon, reply: admit.call)
        #expect(admit.outcome == .keyUnknown)
        store.enrol(
            newKey(1), challenge: challenge(3), keysPerAccount: 0, now: noon, reply: second.call)
        #expect(first.outcomes.isEmpty && second.outcomes.isEmpty)
        store.step()
        #expect(first.outcome == .enrolled)
        #expect(second.outcome == .alreadyKnown)
        #expect(store.key(bytes32(1)) != nil)
    }

    @Test("a key known to the account spends the challenge and changes nothing else")
    func alreadyKnown() {
        #expect(store.enrolNow(newKey(1), challenge(1)) == .enrolled)
        #expect(store.admitNow(challenge(2), 1, 5) != nil)
        let before = store.key(bytes32(1))
        #expect(store.enrolNow(newKey(1), challenge(3), now: noon + 9) == .alreadyKnown)
        #expect(store.key(bytes32(1)) == before)
        #expect(store.isSpent(challenge(3)))
        #expect(store.figures.keys == 1)
        #expect(store.enrolNow(newKey(1), challenge(3)) == .challengeSpent)
    }

    @Test(
        "a key of another account, app, environment or public key is foreign and spends nothing",
        arguments: 0..<5)
    func foreign(_ part: Int) {
        #expect(store.enrolNow(newKey(1), challenge(1)) == .enrolled)
        #expect(store.enrolNow(newKey(9, account: "bob"), challenge(9)) == .enrolled)
        var other = newKey(1)
        switch part {
        case 0: other.account = Array("bob".utf8)
        case 1: other.account = []
        case 2: other.app = "bank"
        case 3: other.environment = 1
        default: other.publicKey.x = bytes32(7)
        }
        #expect(store.enrolNow(other, challenge(2)) == .foreign)
        #expect(!store.isSpent(challenge(2)))
        #expect(store.key(bytes32(1))?.account == Array("alice".utf8))
    }

    @Test("a revoked key stays revoked")
    func revoked() {
        #expect(store.enrolNow(newKey(1), challenge(1)) == .enrolled)
        #expect(store.revokeNow(1) == .revoked)
        #expect(store.enrolNow(newKey(1), challenge(2)) == .revoked)
        #expect(!store.isSpent(challenge(2)))
        #expect(store.key(bytes32(1))?.isRevoked == true)
    }

    @Test("an account has at most so many good keys of an app")
    func limit() {
        for byte: UInt8 in 1...2 {
            #expect(store.enrolNow(newKey(byte), challenge(byte), keysPerAccount: 2) == .enrolled)
        }
        #expect(store.enrolNow(newKey(3), challenge(3), keysPerAccount: 2) == .limit)
        #expect(!store.isSpent(challenge(3)))
        #expect(store.enrolNow(newKey(1), challenge(4), keysPerAccount: 2) == .alreadyKnown)
        #expect(
            store.enrolNow(newKey(5, app: "bank"), challenge(5), keysPerAccount: 2) == .enrolled)
        #expect(
            store.enrolNow(newKey(6, account: "bob"), challenge(6), keysPerAccount: 2) == .enrolled)
        #expect(store.revokeNow(1) == .revoked)
        #expect(store.enrolNow(newKey(3), challenge(3), keysPerAccount: 2) == .enrolled)
    }

    @Test("keys without an account have no limit of theirs")
    func noAccount() {
        for byte: UInt8 in 1...3 {
            let key = newKey(byte, account: "")
            #expect(store.enrolNow(key, challenge(byte), keysPerAccount: 1) == .enrolled)
        }
        #expect(store.key(bytes32(2))?.account == [])
        #expect(store.figures.accounts == 0)
    }

    @Test("over keysMax an enrolment is unavailable, and says so once")
    func keysMax() throws {
        let notices = Notices()
        let store = try Store.open(
            storage: FaultStorage(), options: options(keysMax: 2), log: notices.log)
        #expect(store.enrolNow(newKey(1), challenge(1)) == .enrolled)
        #expect(store.enrolNow(newKey(2), challenge(2)) == .enrolled)
        #expect(store.enrolNow(newKey(3), challenge(3)) == .unavailable)
        #expect(store.enrolNow(newKey(4), challenge(4)) == .unavailable)
        #expect(!store.isSpent(challenge(3)))
        #expect(store.enrolNow(newKey(1), challenge(5)) == .alreadyKnown)
        #expect(notices.all.filter { $0 == .keysMaxReached(2) }.count == 1)
        #expect(store.isReady)
    }

    @Test("an enrolment that is not taken leaves its place under keysMax to others")
    func keysMaxAfterRefusal() throws {
        let store = try Store.open(storage: FaultStorage(), options: options(keysMax: 1))
        let long = [UInt8](repeating: 1, count: 70_000)
        #expect(store.enrolNow(newKey(1, receipt: long), challenge(1)) == .unavailable)
        #expect(store.enrolNow(newKey(2), challenge(2)) == .enrolled)
    }

    @Test("a blocked account enrols nothing until it is let back in")
    func blocked() {
        #expect(store.blockNow("alice") == .done)
        #expect(store.isBlocked(account: Array("alice".utf8)))
        #expect(!store.isBlocked(account: Array("bob".utf8)))
        #expect(store.enrolNow(newKey(1), challenge(1)) == .accountBlocked)
        #expect(!store.isSpent(challenge(1)))
        #expect(store.blockNow("alice", false) == .done)
        #expect(store.enrolNow(newKey(1), challenge(1)) == .enrolled)
    }

    @Test("what the log cannot hold is unavailable and stops nothing")
    func longTexts() throws {
        let store = try Store.open(
            storage: FaultStorage(), options: options(segmentBytes: 1 << 20))
        let long = String(repeating: "a", count: 65_536)
        #expect(store.enrolNow(newKey(1, account: long), challenge(1)) == .unavailable)
        #expect(store.enrolNow(newKey(1, app: long), challenge(1)) == .unavailable)
        var key = newKey(1)
        key.bundleVersion = long
        #expect(store.enrolNow(key, challenge(1)) == .unavailable)
        key = newKey(1)
        key.category = 255
        #expect(store.enrolNow(key, challenge(1)) == .unavailable)
        let receipt = [UInt8](repeating: 1, count: 600_000)
        #expect(store.enrolNow(newKey(1, receipt: receipt), challenge(1)) == .unavailable)
        #expect(store.blockNow(long) == .unavailable)
        #expect(store.blockNow("") == .unavailable)
        #expect(!store.isSpent(challenge(1)))
        let longest = String(repeating: "a", count: 65_535)
        #expect(store.enrolNow(newKey(1, account: longest), challenge(1)) == .enrolled)
        #expect(store.key(bytes32(1))?.account.count == 65_535)
    }

    @Test("many accounts of one shard are told apart")
    func manyAccounts() throws {
        let store = try Store.open(
            storage: FaultStorage(), options: options(shards: 1, segmentBytes: 1 << 20))
        for byte: UInt8 in 1...200 {
            let key = newKey(byte, account: "account \(byte)")
            store.enrol(
                key, challenge: challenge(byte), keysPerAccount: 1, now: noon, reply: { _ in })
        }
        store.step()
        #expect(store.figures.accounts == 200)
        for byte: UInt8 in 1...200 {
            let account = Array("account \(byte)".utf8)
            #expect(store.key(bytes32(byte))?.account == account)
            #expect(store.keys(ofAccount: account, app: "shop").map(\.keyID) == [bytes32(byte)])
        }
        #expect(store.blockNow("account 7") == .done)
        let blocked = (1...200).filter { store.isBlocked(account: Array("account \($0)".utf8)) }
        #expect(blocked == [7])
    }

    @Test("key IDs that share some of their bytes are told apart")
    func similarKeys() throws {
        let store = try Store.open(storage: FaultStorage(), options: options(shards: 1))
        #expect(store.enrolNow(newKey(1), challenge(1)) == .enrolled)
        for word in 0..<4 {
            var key = newKey(1)
            key.keyID[word: word] ^= 1 << 40
            #expect(store.key(key.keyID) == nil)
            #expect(store.enrolNow(key, challenge(UInt8(2 + word))) == .enrolled)
            #expect(store.key(key.keyID)?.keyID == key.keyID)
        }
        #expect(store.key(bytes32(1))?.keyID == bytes32(1))
        #expect(store.figures.keys == 5)
    }

    @Test("an account's keys come with the one used last first")
    func keysOfAccount() {
        for byte: UInt8 in 1...3 {
            #expect(store.enrolNow(newKey(byte), challenge(byte), now: noon) == .enrolled)
        }
        #expect(store.enrolNow(newKey(4, app: "bank"), challenge(4)) == .enrolled)
        #expect(store.admitNow(challenge(5), 1, 1, now: noon + 20) != nil)
        #expect(store.admitNow(challenge(6), 3, 1, now: noon + 10) != nil)
        let keys = store.keys(ofAccount: Array("alice".utf8), app: "shop")
        #expect(keys.map(\.keyID) == [bytes32(1), bytes32(3), bytes32(2)])
        #expect(store.keys(ofAccount: [], app: "shop").isEmpty)
    }
}

@Suite("Store: revoke and block") struct StoreRevokeTests {
    let storage = FaultStorage()
    let store: Store

    init() throws {
        store = try Store.open(storage: storage, options: options())
        #expect(store.enrolNow(newKey(1), challenge(1)) == .enrolled)
    }

    @Test("only the account and app that hold a key revoke it")
    func foreign() {
        #expect(store.revokeNow(1, account: "bob") == .nothing)
        #expect(store.revokeNow(1, account: "") == .nothing)
        #expect(store.revokeNow(1, account: "alice", app: "bank") == .nothing)
        #expect(store.revokeNow(2) == .nothing)
        #expect(store.key(bytes32(1))?.isRevoked == false)
        #expect(store.revokeNow(1, account: "alice", app: "shop") == .revoked)
        #expect(store.revokeNow(1, account: "alice", app: "shop") == .nothing)
    }

    @Test("that a key was revoked already is said once it is durable")
    func barrier() {
        let first = Reply<RevokeOutcome>()
        let second = Reply<RevokeOutcome>()
        for reply in [first, second] {
            store.revoke(
                keyID: bytes32(1), account: nil, app: nil, now: noon, reply: reply.call)
        }
        #expect(first.outcomes.isEmpty && second.outcomes.isEmpty)
        store.step()
        #expect(first.outcome == .revoked)
        #expect(second.outcome == .nothing)
    }

    @Test("a block and its end survive a restart, the last one holding")
    func blockSurvives() throws {
        for account in ["alice", "bob"] { #expect(store.blockNow(account) == .done) }
        #expect(store.blockNow("bob") == .done)
        #expect(store.blockNow("bob", false) == .done)
        let waiting = Reply<BlockOutcome>()
        store.block(account: Array("carol".utf8), now: noon, reply: waiting.call)
        let again = Reply<BlockOutcome>()
        store.block(account: Array("carol".utf8), now: noon, reply: again.call)
        #expect(waiting.outcomes.isEmpty && again.outcomes.isEmpty)
        store.close()
        #expect(waiting.outcome == .done && again.outcome == .done)
        let later = try Store.open(storage: storage, options: options())
        #expect(later.isBlocked(account: Array("alice".utf8)))
        #expect(!later.isBlocked(account: Array("bob".utf8)))
        #expect(later.isBlocked(account: Array("carol".utf8)))
    }

    @Test("a closed store answers every call at once")
    func closed() {
        store.close()
        store.close()
        #expect(store.state == .closed)
        #expect(store.admitNow(challenge(9), 1, 5) == .unavailable)
        #expect(store.enrolNow(newKey(2), challenge(9)) == .unavailable)
        #expect(store.revokeNow(1) == .unavailable)
        #expect(store.blockNow("alice") == .unavailable)
        #expect(store.blockNow("alice", false) == .unavailable)
        #expect(store.key(bytes32(1))?.isRevoked == false)
    }
}

@Suite("Store: spent challenges expire") struct StoreExpiryTests {
    @Test("a challenge is remembered for an hour after its expiry, to the second")
    func lifetime() throws {
        let store = try Store.open(storage: FaultStorage(), options: options())
        #expect(store.enrolNow(newKey(1), challenge(1, expiry: noon)) == .enrolled)
        #expect(
            store.admitNow(challenge(1, expiry: noon), 1, 1, now: noon + 3600) == .challengeSpent)
        #expect(
            store.admitNow(challenge(1, expiry: noon), 1, 1, now: noon + 3601) == .challengeExpired)
        #expect(
            store.admitNow(challenge(2, expiry: noon), 1, 1, now: noon + 3600)
                == .admitted(previousCounter: 0))
        #expect(
            store.enrolNow(newKey(2), challenge(3, expiry: noon), now: noon + 3601)
                == .challengeExpired)
    }

    @Test("what is over is forgotten, by calls and without them, and stays refused")
    func forgotten() throws {
        let store = try Store.open(storage: FaultStorage(), options: options(shards: 1))
        #expect(store.enrolNow(newKey(1), challenge(1)) == .enrolled)
        for number in 0..<100 {
            let spent = challenge(number: number, expiry: noon + UInt32(number) * 60)
            #expect(store.admitNow(spent, 1, UInt32(number) + 1) != nil)
        }
        #expect(store.figures.spentChallenges == 101)
        store.forgetExpired(now: noon + 3600)
        #expect(store.figures.spentChallenges == 101)
        #expect(store.admitNow(challenge(2, expiry: noon + 7000), 1, 200, now: noon + 6600) != nil)
        #expect((52...57).contains(store.figures.spentChallenges))
        let over = challenge(number: 0, expiry: noon)
        #expect(store.admitNow(over, 1, 201, now: noon) == .challengeExpired)
        store.forgetExpired(now: noon + 100_000)
        #expect(store.figures.spentChallenges == 0)
    }

    @Test("a start keeps only what is not over")
    func restart() throws {
        let storage = FaultStorage()
        let store = try Store.open(storage: storage, options: options())
        #expect(store.enrolNow(newKey(1), challenge(1, expiry: noon)) == .enrolled)
        #expect(store.admitNow(challenge(2, expiry: noon + 5000), 1, 1) != nil)
        store.close()
        let later = try Store.open(storage: storage, options: options(now: noon + 8000))
        #expect(later.figures.spentChallenges == 1)
        #expect(later.isSpent(challenge(2, expiry: noon + 5000)))
        #expect(
            later.admitNow(challenge(1, expiry: noon), 1, 9, now: noon) == .challengeExpired)
    }

    @Test("challenges that share half of their nonce are two")
    func halfNonce() throws {
        let store = try Store.open(storage: FaultStorage(), options: options(shards: 1))
        #expect(store.enrolNow(newKey(1), challenge(1)) == .enrolled)
        let spent = SpentChallenge(nonceHigh: 5, nonceLow: 6, expiry: noon + 300)
        #expect(store.admitNow(spent, 1, 1) == .admitted(previousCounter: 0))
        #expect(!store.isSpent(SpentChallenge(nonceHigh: 7, nonceLow: 6, expiry: noon + 300)))
        #expect(!store.isSpent(SpentChallenge(nonceHigh: 5, nonceLow: 7, expiry: noon + 300)))
        #expect(store.isSpent(spent))
    }

    @Test("many challenges of one moment, and one of zeros, are all remembered")
    func many() throws {
        let store = try Store.open(
            storage: FaultStorage(), options: options(shards: 1, segmentBytes: 1 << 20))
        #expect(store.enrolNow(newKey(1), challenge(0, expiry: noon)) == .enrolled)
        for number in 0..<3000 {
            store.admit(
                challenge: challenge(number: number, expiry: noon), keyID: bytes32(1),
                counter: UInt32(number) + 1, now: noon, reply: { _ in })
            if number % 1000 == 0 { store.step() }
        }
        #expect((0..<3000).allSatisfy { store.isSpent(challenge(number: $0, expiry: noon)) })
        #expect((3000..<6000).allSatisfy { !store.isSpent(challenge(number: $0, expiry: noon)) })
        #expect(store.isSpent(challenge(0, expiry: noon)))
        #expect(!store.isSpent(challenge(0, expiry: noon + 600)))
        #expect(store.figures.spentChallenges == 3001)
    }
}
