import GateBytes
import GateProxy
import Testing

@Suite("Accounts: what a service said is remembered for a while")
struct AccountMemoryTests {
    private func key(_ number: Int) -> Bytes32 {
        var key = Bytes32()
        key[word: 0] = UInt64(number)
        return key
    }

    private let second: Int64 = 1_000_000_000

    @Test("an account is found under its key, until its time is over")
    func life() {
        let memory = AccountMemory(life: .seconds(2))
        #expect(memory.account(key(1), now: 0) == nil)
        memory.remember([1], key(1), now: 0)
        #expect(memory.account(key(1), now: 2 * second - 1) == [1])
        #expect(memory.account(key(1), now: 2 * second) == nil)
        #expect(memory.account(key(2), now: 0) == nil)
        memory.remember([2], key(1), now: second)
        #expect(memory.account(key(1), now: 2 * second) == [2])
        memory.remember([3], key(3), now: .max)
        #expect(memory.account(key(3), now: .max) == nil)
    }

    @Test("it never holds more than its bound and forgets the oldest first")
    func bound() {
        let memory = AccountMemory(life: .seconds(1000))
        let count = AccountMemory.accountsMax * 2
        for number in 0..<count { memory.remember([1], key(number), now: 0) }
        let kept = (0..<count).filter { memory.account(key($0), now: 1) != nil }
        #expect(kept.count <= AccountMemory.accountsMax)
        #expect(kept.count >= AccountMemory.accountsMax / 2)
        #expect(kept.first == count - kept.count && kept.last == count - 1)
    }
}
