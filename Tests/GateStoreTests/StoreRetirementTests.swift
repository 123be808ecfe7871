import GateBytes
import GateSimulation
import GateStore
import Testing

private let month: UInt32 = 30 * 86_400

@Suite("Store: one key retires for another") struct StoreRetirementTests {
    private func open(
        _ storage: FaultStorage = FaultStorage(), shards: Int = 4
    ) throws -> Store {
        try Store.open(storage: storage, options: options(shards: shards))
    }

    private func enrol(
        _ store: Store, _ byte: UInt8, most: Int = 2, account: String = "alice",
        app: String = "shop", now: UInt32
    ) -> EnrolOutcome? {
        store.enrolNow(
            newKey(byte, account: account, app: app), challenge(byte, expiry: now + 300),
            keysPerAccount: most, now: now)
    }

    private func isRevoked(_ store: Store, _ byte: UInt8) -> Bool? {
        store.key(bytes32(byte))?.isRevoked
    }

    @Test("over the limit the key unused for longest makes room", arguments: [1, 2, 64])
    func retires(shards: Int) throws {
        let storage = FaultStorage()
        let store = try open(storage, shards: shards)
        for byte: UInt8 in 1...9 {
            #expect(enrol(store, byte, most: 9, now: noon + UInt32(byte)) == .enrolled)
        }
        // 1 is in use; of the others 2 has been idle for longest.
        #expect(store.admitNow(nil, 1, 1, now: noon + 100) == .admitted(previousCounter: 0))
        #expect(
            enrol(store, 10, most: 9, now: noon + month + 2) == .enrolledRetiring(bytes32(2)))
        #expect(isRevoked(store, 2) == true)
        for byte: UInt8 in [1, 3, 9, 10] { #expect(isRevoked(store, byte) == false) }
        #expect(
            enrol(store, 11, most: 9, now: noon + month + 3) == .enrolledRetiring(bytes32(3)))

        #expect(store.admitNow(nil, 2, 50, now: noon + month + 3) == .keyRevoked)
        let again = challenge(0x77, expiry: noon + month + 300)
        #expect(store.enrolNow(newKey(2), again, now: noon + month + 4) == .revoked)
        storage.kill()
        let reopened = try open(storage, shards: shards)
        #expect(isRevoked(reopened, 2) == true)
        #expect(isRevoked(reopened, 3) == true)
        for byte: UInt8 in [1, 4, 9, 10, 11] { #expect(isRevoked(reopened, byte) == false) }
        #expect(reopened.admitNow(nil, 2, 51, now: noon + month + 5) == .keyRevoked)
    }

    @Test("a key that was used within thirty days does not")
    func notIdle() throws {
        let store = try open()
        #expect(enrol(store, 1, now: noon) == .enrolled)
        #expect(enrol(store, 2, now: noon) == .enrolled)
        #expect(enrol(store, 3, now: noon + month - 1) == .limit)
        #expect(!store.isSpent(challenge(3, expiry: noon + month + 299)))
        #expect(store.admitNow(nil, 1, 1, now: noon + month - 1) != nil)
        #expect(store.admitNow(nil, 2, 1, now: noon + month - 1) != nil)
        #expect(enrol(store, 4, now: noon + month) == .limit)
        #expect(isRevoked(store, 1) == false)
        // A clock that was set back makes nothing idle.
        #expect(store.admitNow(nil, 1, 2, now: noon + 3 * month) != nil)
        #expect(store.admitNow(nil, 2, 2, now: noon + 3 * month) != nil)
        #expect(enrol(store, 5, now: noon + month) == .limit)
    }

    @Test("of keys unused for as long, the one enrolled first")
    func tie() throws {
        let store = try open()
        #expect(enrol(store, 7, now: noon) == .enrolled)
        #expect(enrol(store, 3, now: noon + 1) == .enrolled)
        #expect(store.admitNow(nil, 7, 1, now: noon + 1) != nil)
        #expect(enrol(store, 4, now: noon + 1 + month) == .enrolledRetiring(bytes32(7)))
    }

    @Test("of keys enrolled in one second and unused since, the lesser key ID")
    func tieInOneSecond() throws {
        let store = try open()
        #expect(enrol(store, 7, now: noon) == .enrolled)
        #expect(enrol(store, 3, now: noon) == .enrolled)
        #expect(enrol(store, 4, now: noon + month) == .enrolledRetiring(bytes32(3)))
    }

    @Test("keys of other accounts and apps, and revoked ones, have no part in it")
    func others() throws {
        let store = try open()
        #expect(enrol(store, 1, account: "bob", now: noon) == .enrolled)
        #expect(enrol(store, 2, app: "bank", now: noon) == .enrolled)
        #expect(enrol(store, 3, now: noon) == .enrolled)
        #expect(store.revokeNow(3, now: noon) == .revoked)
        #expect(enrol(store, 4, now: noon + 1) == .enrolled)
        #expect(enrol(store, 5, now: noon + month) == .enrolled)
        #expect(enrol(store, 6, now: noon + month + 1) == .enrolledRetiring(bytes32(4)))
        #expect(isRevoked(store, 1) == false)
        #expect(isRevoked(store, 2) == false)
    }

    @Test("a key that is known already retires none")
    func known() throws {
        let store = try open()
        for byte: UInt8 in 1...2 { #expect(enrol(store, byte, now: noon) == .enrolled) }
        let spare = challenge(9, expiry: noon + month + 300)
        let outcome = store.enrolNow(newKey(1), spare, keysPerAccount: 2, now: noon + month)
        #expect(outcome == .alreadyKnown)
        #expect(isRevoked(store, 1) == false)
        #expect(isRevoked(store, 2) == false)
    }

    @Test("an enrolment that is not written retires none")
    func unavailable() throws {
        let storage = FaultStorage()
        let store = try open(storage)
        for byte: UInt8 in 1...2 { #expect(enrol(store, byte, now: noon) == .enrolled) }
        var key = newKey(3)
        key.bundleVersion = String(repeating: "1", count: 1 << 16)
        let outcome = store.enrolNow(
            key, challenge(3, expiry: noon + month + 300), keysPerAccount: 2, now: noon + month)
        #expect(outcome == .unavailable)
        #expect(isRevoked(store, 1) == false)
    }

    @Test("the new key and the retired one are one record: cut anywhere, both or neither")
    func oneStep() throws {
        let whole = FaultStorage()
        let store = try open(whole)
        #expect(enrol(store, 1, most: 1, now: noon) == .enrolled)
        #expect(enrol(store, 2, most: 1, now: noon + month) == .enrolledRetiring(bytes32(1)))
        whole.kill()
        let name = segmentName(1)
        let bytes = try #require(whole[name])
        // 8, the retired key, and then what an enrolment's record holds.
        let record = [8] + bytes32(1).array + bytes32(2).array + bytes32(2).array
        #expect(bytes.indices.contains { bytes[$0...].starts(with: record) })
        var outcomes: Set<Bool> = []
        for count in 1024...1536 {
            let storage = whole.copy()
            storage[name] = Array(bytes[..<count])
            let reopened = try open(storage)
            let isEnrolled = reopened.key(bytes32(2)) != nil
            #expect(isRevoked(reopened, 1) == isEnrolled, "cut at \(count)")
            outcomes.insert(isEnrolled)
        }
        #expect(outcomes == [false, true])
    }
}
