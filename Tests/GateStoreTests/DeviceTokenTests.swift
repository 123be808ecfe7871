import GateBytes
import GateSimulation
import GateStore
import Testing

@Suite("DeviceCheck tokens in the store")
struct DeviceTokenTests {
    private let day: UInt32 = 86_400

    @Test("a token is spent once, and the answer comes when that is durable")
    func once() throws {
        let storage = FaultStorage()
        let store = try Store.open(storage: storage, options: options())
        let reply = Reply<TokenOutcome>()
        store.spendToken(bytes32(1), now: noon, reply: reply.call)
        #expect(reply.outcomes.isEmpty)
        #expect(store.isTokenSpent(bytes32(1)))
        #expect(store.spendTokenNow(bytes32(1)) == .alreadySpent)
        #expect(reply.outcome == .spent)
        #expect(store.spendTokenNow(bytes32(2)) == .spent)
        #expect(store.figures.spentTokens == 2)
        storage.kill()
        let again = try Store.open(storage: storage, options: options())
        #expect(again.spendTokenNow(bytes32(1)) == .alreadySpent)
        #expect(again.spendTokenNow(bytes32(2)) == .alreadySpent)
        #expect(again.spendTokenNow(bytes32(3)) == .spent)
    }

    @Test("a token is forgotten after thirty days, and not before")
    func forgotten() throws {
        let storage = FaultStorage()
        let store = try Store.open(storage: storage, options: options())
        #expect(store.spendTokenNow(bytes32(1), now: noon) == .spent)
        #expect(store.spendTokenNow(bytes32(2), now: noon + 10 * day) == .spent)
        #expect(store.spendTokenNow(bytes32(1), now: noon + 30 * day) == .alreadySpent)
        store.forgetExpired(now: noon + 31 * day)
        #expect(store.figures.spentTokens == 1)
        #expect(store.spendTokenNow(bytes32(2), now: noon + 31 * day) == .alreadySpent)
        #expect(store.spendTokenNow(bytes32(1), now: noon + 31 * day) == .spent)
        storage.kill()
        let later = options(now: noon + 60 * day)
        #expect(try Store.open(storage: storage, options: later).figures.spentTokens == 1)
    }

    @Test("a token is not spent where its record cannot be written, and nothing passes by it")
    func failed() throws {
        let storage = FaultStorage()
        let store = try Store.open(storage: storage, options: options())
        storage.failCall(0)
        #expect(store.spendTokenNow(bytes32(1)) == .unavailable)
        #expect(store.spendTokenNow(bytes32(2)) == .unavailable)
    }

    @Test("its record is the bytes that the format says")
    func record() throws {
        let storage = FaultStorage()
        let store = try Store.open(storage: storage, options: options())
        #expect(store.spendTokenNow(bytes32(0x77), now: 0x0102_0304) == .spent)
        let log = try #require(storage[segmentName(1)])
        let record = [6] + [UInt8](repeating: 0x77, count: 32) + [1, 2, 3, 4]
        #expect(Array(log[552..<(552 + record.count + 1)]) == record + [0])
    }
}
