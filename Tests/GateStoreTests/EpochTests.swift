import GateBytes
import GateSimulation
import GateStore
import Testing

@Suite("Epoch: a counter that may have been lost is no replay")
struct EpochTests {
    /// The store in `storage`, opened after its epoch has moved on.
    private func fenced(_ storage: FaultStorage) throws -> Store {
        var meta = try #require(storage["meta"])
        meta[35] += 1
        let checksum = CRC32C.checksum(meta, 12..<meta.count)
        for index in 0..<4 {
            meta[8 + index] = UInt8(truncatingIfNeeded: checksum >> (24 - 8 * index))
        }
        storage["meta"] = meta
        return try Store.open(storage: storage, options: options())
    }

    @Test("without a challenge a key passes again once it has passed with one in the new epoch")
    func behind() throws {
        let storage = FaultStorage()
        let first = try Store.open(storage: storage, options: options())
        #expect(first.enrolNow(newKey(1), challenge(0xe1)) == .enrolled)
        #expect(first.admitNow(nil, 1, 1) == .admitted(previousCounter: 0))
        first.close()
        let store = try fenced(storage)
        #expect(store.epoch == 2)
        #expect(store.admitNow(nil, 1, 9) == .epochBehind)
        #expect(store.admitNow(nil, 1, 1) == .epochBehind)
        #expect(store.key(bytes32(1))?.signCounter == 1)
        #expect(store.admitNow(challenge(1), 1, 5) == .admitted(previousCounter: 1))
        #expect(store.admitNow(nil, 1, 5) == .counterNotGreater)
        #expect(store.admitNow(nil, 1, 6) == .admitted(previousCounter: 5))
        #expect(store.admitNow(nil, 2, 6) == .keyUnknown)
        #expect(store.enrolNow(newKey(2), challenge(0xe2)) == .enrolled)
        #expect(store.admitNow(nil, 2, 6) == .admitted(previousCounter: 0))
        store.close()
        let again = try Store.open(storage: storage, options: options())
        #expect(again.admitNow(nil, 1, 7) == .admitted(previousCounter: 6))
    }

    @Test("a counter that came with a known key's enrolment counts as passed in the epoch")
    func enrolled() throws {
        let storage = FaultStorage()
        let first = try Store.open(storage: storage, options: options())
        #expect(first.enrolNow(newKey(1), challenge(0xe1)) == .enrolled)
        first.close()
        let store = try fenced(storage)
        var key = newKey(1)
        key.signCounter = 4
        #expect(store.enrolNow(key, challenge(2)) == .alreadyKnown)
        #expect(store.admitNow(nil, 1, 5) == .admitted(previousCounter: 4))
    }
}
