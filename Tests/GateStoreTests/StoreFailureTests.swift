import GateBytes
import GateLock
import GateSimulation
import GateStore
import Testing

@Suite("Store: failures of the storage") struct StoreFailureTests {
    private let states = Lock<[StoreState]>([])

    private func open(_ storage: FaultStorage, _ log: Notices = Notices()) throws -> Store {
        let states = states
        return try Store.open(
            storage: storage,
            options: options(
                segmentBytes: 4096,
                onStateChange: { state in states.withLock { $0.append(state) } }), log: log.log)
    }

    @Test("a failed write or sync is final until reopened", arguments: [true, false])
    func final(_ isWrite: Bool) throws {
        let storage = FaultStorage(seed: 3)
        let notices = Notices()
        let store = try open(storage, notices)
        #expect(store.enrolNow(newKey(1), challenge(1)) == .enrolled)
        storage.failNext(isWrite ? .write : .sync)
        let waiting = Reply<AdmitOutcome>()
        store.admit(
            challenge: challenge(2), keyID: bytes32(1), counter: 1, now: noon, reply: waiting.call)
        #expect(store.admitNow(challenge(3), 1, 2) == .unavailable)
        #expect(waiting.outcome == .unavailable)
        let failure = StorageFailure(
            operation: isWrite ? .write : .sync, path: segmentName(1), cause: FaultStorage.broken)
        #expect(store.state == .failed(failure))
        #expect(!store.isReady)
        #expect(states.withLock { $0 } == [.failed(failure)])
        #expect(notices.all.last == .stopped(failure))

        let calls = storage.calls
        #expect(store.admitNow(challenge(4), 1, 9) == .unavailable)
        #expect(store.enrolNow(newKey(2), challenge(5)) == .unavailable)
        #expect(store.revokeNow(1) == .unavailable)
        #expect(store.blockNow("alice") == .unavailable)
        #expect(store.key(bytes32(1)) != nil)
        store.step()
        #expect(storage.calls == calls)
        #expect(!storage.hasRetriedSync)
        store.close()

        let again = try open(storage)
        #expect(again.isReady)
        let isKept = again.isSpent(challenge(2))
        #expect(again.key(bytes32(1))?.signCounter == (isKept ? 2 : 0))
        #expect(again.isSpent(challenge(3)) == isKept)
        #expect(!again.isSpent(challenge(4)))
    }

    @Test("out of space for the next segment is not final, and loses no record")
    func outOfSpace() throws {
        let storage = FaultStorage()
        let notices = Notices()
        let store = try open(storage, notices)
        #expect(store.enrolNow(newKey(1), challenge(1)) == .enrolled)
        for number in 1...6 {
            #expect(store.admitNow(challenge(number: number), 1, UInt32(number)) != nil)
        }
        storage.capacity = storage.used
        let enrol = Reply<EnrolOutcome>()
        store.enrol(
            newKey(2), challenge: challenge(2), keysPerAccount: 0, now: noon, reply: enrol.call)
        #expect(store.admitNow(challenge(number: 7), 1, 7) == .unavailable)
        #expect(enrol.outcome == .unavailable)
        let failure = StorageFailure(
            operation: .create, path: "segment.tmp", cause: .outOfSpace)
        #expect(store.state == .outOfSpace(failure))
        #expect(notices.all.last == .spaceExhausted(failure))

        #expect(store.admitNow(challenge(number: 8), 1, 8) == .unavailable)
        #expect(!store.isSpent(challenge(number: 8)))
        #expect(store.admitNow(challenge(number: 7), 1, 8) == .challengeSpent)
        #expect(store.key(bytes32(2)) == nil)
        #expect(store.state == .outOfSpace(failure))

        storage.capacity = .max
        store.step()
        #expect(store.isReady)
        #expect(notices.all.last == .spaceReturned(directory: "/store"))
        #expect(states.withLock { $0 } == [.outOfSpace(failure), .ready])
        #expect(store.key(bytes32(2)) != nil)
        #expect(store.admitNow(challenge(number: 8), 1, 8) == .admitted(previousCounter: 7))
        storage.cutPower(.nothing)
        let again = try open(storage)
        #expect(again.key(bytes32(1))?.signCounter == 8)
        #expect(again.key(bytes32(2)) != nil)
        #expect(again.isSpent(challenge(number: 7)))
    }

    @Test("records that came while the segment was being made are kept with those before")
    func outOfSpaceWithLatecomers() throws {
        let storage = FaultStorage()
        let store = try open(storage)
        #expect(store.enrolNow(newKey(1), challenge(1)) == .enrolled)
        for number in 1...6 {
            #expect(store.admitNow(challenge(number: number), 1, UInt32(number)) != nil)
        }
        // The answer to the first call comes from the turn that failed; what it does then is
        // refused.
        storage.capacity = storage.used
        let late = Reply<AdmitOutcome>()
        store.admit(challenge: challenge(2), keyID: bytes32(1), counter: 7, now: noon) { _ in
            store.admit(
                challenge: challenge(3), keyID: bytes32(1), counter: 8, now: noon, reply: late.call)
        }
        store.step()
        #expect(late.outcome == .unavailable)
        storage.capacity = .max
        store.step()
        #expect(store.admitNow(challenge(3), 1, 8) == .admitted(previousCounter: 7))
    }

    @Test(
        "running out of space anywhere while a segment is made is not final",
        arguments: [StorageFailure.Operation.create, .write, .rename], [0, 1])
    func outOfSpaceAnywhere(_ operation: StorageFailure.Operation, _ skip: Int) throws {
        let storage = FaultStorage()
        let store = try open(storage)
        #expect(store.enrolNow(newKey(1), challenge(1)) == .enrolled)
        for number in 1...6 {
            #expect(store.admitNow(challenge(number: number), 1, UInt32(number)) != nil)
        }
        // delete, create, write, sync, rename, syncDirectory; the same again for the meta file
        let place = [StorageFailure.Operation.create: 1, .write: 2, .rename: 4][operation] ?? 0
        storage.failCall(place + 6 * skip, .outOfSpace)
        #expect(store.admitNow(challenge(number: 7), 1, 7) == .unavailable)
        guard case .outOfSpace(let failure) = store.state else {
            Issue.record("expected out of space, got \(store.state)")
            return
        }
        #expect(failure.operation == operation)
        #expect(storage.names == [segmentName(1), "meta"])
        store.step()
        #expect(store.isReady)
        #expect(store.admitNow(challenge(number: 8), 1, 8) == .admitted(previousCounter: 7))
        storage.cutPower(.nothing)
        #expect(try open(storage).key(bytes32(1))?.signCounter == 8)
    }

    @Test(
        "a failed sync while a segment is made is final, even for want of space",
        arguments: [3, 5, 9, 11])
    func finalWhileMaking(_ place: Int) throws {
        let storage = FaultStorage()
        let store = try open(storage)
        #expect(store.enrolNow(newKey(1), challenge(1)) == .enrolled)
        for number in 1...6 {
            #expect(store.admitNow(challenge(number: number), 1, UInt32(number)) != nil)
        }
        storage.failCall(place, .outOfSpace)
        #expect(store.admitNow(challenge(number: 7), 1, 7) == .unavailable)
        guard case .failed = store.state else {
            Issue.record("expected failed, got \(store.state)")
            return
        }
        store.step()
        #expect(!store.isReady)
        storage.cutPower(.everything)
        #expect(try open(storage).key(bytes32(1))?.signCounter == 6)
    }

    @Test("a batch that finds no space in its segment is final")
    func batchOutOfSpace() throws {
        let storage = FaultStorage()
        let store = try open(storage)
        storage.failNext(.write, .outOfSpace)
        #expect(store.enrolNow(newKey(1), challenge(1)) == .unavailable)
        guard case .failed = store.state else {
            Issue.record("expected failed, got \(store.state)")
            return
        }
    }

    @Test("a start without space for its segment waits for it")
    func startWithoutSpace() throws {
        let storage = FaultStorage()
        storage.capacity = 1024
        let store = try open(storage)
        guard case .outOfSpace = store.state else {
            Issue.record("expected out of space, got \(store.state)")
            return
        }
        #expect(store.enrolNow(newKey(1), challenge(1)) == .unavailable)
        #expect(!store.isSpent(challenge(1)))
        storage.capacity = .max
        store.step()
        #expect(store.enrolNow(newKey(1), challenge(1)) == .enrolled)
    }

    @Test("whichever call fails, what was acknowledged is there after the next start")
    func everyCall() throws {
        for number in 0..<60 {
            let storage = FaultStorage(seed: UInt64(number))
            storage.failCall(number)
            var acknowledged: UInt32 = 0
            if let store = try? open(storage) {
                if store.enrolNow(newKey(1), challenge(1)) == .enrolled { acknowledged = 1 }
                for counter: UInt32 in 2...9 where acknowledged > 0 {
                    let outcome = store.admitNow(challenge(number: Int(counter)), 1, counter)
                    if case .admitted = outcome { acknowledged = counter }
                }
            }
            storage.mend()
            storage.cutPower(.nothing)
            let again = try open(storage)
            let key = again.key(bytes32(1))
            #expect((key == nil) == (acknowledged == 0) || key?.signCounter == 0, "call \(number)")
            #expect(
                key?.signCounter ?? 0 >= (acknowledged > 1 ? acknowledged : 0), "call \(number)")
            #expect(again.isReady)
        }
    }

    @Test("readiness comes back by itself, and every reply is called once", .timeLimit(.minutes(1)))
    func readinessReturns() throws {
        let storage = FaultStorage()
        let changes = Reply<StoreState>()
        let store = try Store.open(
            storage: storage,
            options: options(segmentBytes: 4096, writer: .thread, onStateChange: changes.call))
        let enrolled = Reply<EnrolOutcome>()
        store.enrol(
            newKey(1), challenge: challenge(1), keysPerAccount: 0, now: noon, reply: enrolled.call)
        #expect(enrolled.wait() == .enrolled)
        storage.capacity = storage.used
        var counter: UInt32 = 0
        var outcome: AdmitOutcome?
        repeat {
            counter += 1
            let reply = Reply<AdmitOutcome>()
            store.admit(
                challenge: challenge(number: Int(counter)), keyID: bytes32(1), counter: counter,
                now: noon, reply: reply.call)
            outcome = reply.wait()
        } while outcome != .unavailable && counter < 20
        #expect(outcome == .unavailable)
        storage.capacity = .max
        #expect(changes.waitFor { $0.last == .ready })
        #expect(store.isReady)
        let after = Reply<AdmitOutcome>()
        store.admit(
            challenge: challenge(0x77), keyID: bytes32(1), counter: counter + 1, now: noon,
            reply: after.call)
        #expect(after.wait() == .admitted(previousCounter: counter))
        store.close()
    }
}
