import GateConfig
import GateLock
import GateProxy
import GateRuntime
import Testing

@Suite("Slots: places and the line")
struct SlotQueueTests {
    // The macros cannot take a call that changes what it is called on.
    private func take(_ queue: inout SlotQueue<Int>) -> Bool { queue.take() }
    private func wait(_ number: Int, _ queue: inout SlotQueue<Int>) -> UInt64? {
        queue.wait(number)
    }
    private func leave(_ ticket: UInt64, _ queue: inout SlotQueue<Int>) -> Bool {
        queue.leave(ticket)
    }
    private func giveBack(_ queue: inout SlotQueue<Int>) -> Int? { queue.giveBack() }

    @Test("a place that is given back goes to the first in line, and nobody overtakes")
    func order() {
        var queue = SlotQueue<Int>(slots: 2, waitersMax: 3)
        #expect([take(&queue), take(&queue), take(&queue)] == [true, true, false])
        for number in 1...3 { #expect(wait(number, &queue) != nil) }
        #expect(wait(4, &queue) == nil)
        #expect(giveBack(&queue) == 1)
        #expect(!take(&queue))
        #expect([giveBack(&queue), giveBack(&queue)] == [2, 3])
        #expect(!take(&queue))
        #expect(giveBack(&queue) == nil)
        #expect([take(&queue), take(&queue)] == [true, false])
    }

    @Test("who leaves makes room, is passed over, and leaves once")
    func leaving() throws {
        var queue = SlotQueue<Int>(slots: 1, waitersMax: 2)
        #expect(take(&queue))
        let first = try #require(wait(1, &queue))
        let second = try #require(wait(2, &queue))
        #expect([leave(first, &queue), leave(first, &queue)] == [true, false])
        #expect(wait(3, &queue) != nil)
        #expect(giveBack(&queue) == 2)
        #expect(!leave(second, &queue))
        #expect(giveBack(&queue) == 3)
        #expect(giveBack(&queue) == nil)
    }

    @Test("whoever leaves, the order of the others holds")
    func compaction() throws {
        var queue = SlotQueue<Int>(slots: 1, waitersMax: 10)
        #expect(take(&queue))
        #expect(wait(0, &queue) != nil)
        for number in 1...10_000 {
            let ticket = try #require(wait(number, &queue))
            if number % 2_500 != 0 { #expect(leave(ticket, &queue)) }
        }
        let firsts = (0..<3).map { _ in giveBack(&queue) }
        #expect(firsts == [0, 2_500, 5_000])
        for number in 0..<1_000 {
            #expect(wait(number, &queue) != nil)
            #expect(giveBack(&queue) == (number < 2 ? [7_500, 10_000][number] : number - 2))
        }
    }

    @Test("no queue: what finds no place is refused")
    func none() {
        var queue = SlotQueue<Int>(slots: 1, waitersMax: 0)
        #expect(take(&queue))
        #expect(wait(1, &queue) == nil)
    }
}

@Suite("Slots: requests of several loops")
struct UpstreamSlotTests {
    private let clock = ManualClock()
    private let loops: [EventLoop]
    private let slots = UpstreamSlots(
        Upstream.ActiveLimit(requests: 1, waiting: 2, wait: .seconds(2)))

    init() throws {
        let clock = clock
        loops = try (0..<2).map { try EventLoop(name: "\($0)", clock: clock) }
    }

    /// Asks for a place; the results of all go into `log`.
    private func ask(_ name: String, _ loop: Int, _ log: Lock<[String]>) -> UpstreamSlot {
        let slot = UpstreamSlot(slots, on: loops[loop])
        slot.take { isTaken in log.withLock { $0.append("\(name) \(isTaken)") } }
        return slot
    }

    private func turn() {
        for _ in 0..<3 { for loop in loops { loop.turn() } }
    }

    @Test("a place wakes the next, on whichever loop; the line is one")
    func across() {
        let log = Lock<[String]>([])
        let held = ask("a", 0, log)
        let first = ask("b", 1, log)
        let second = ask("c", 0, log)
        let full = ask("d", 1, log)
        #expect(log.withLock { $0 } == ["a true", "d false"])
        #expect(first.isWaiting && second.isWaiting && !full.isWaiting && !held.isWaiting)
        held.giveBack()
        held.giveBack()
        turn()
        #expect(log.withLock { $0 } == ["a true", "d false", "b true"])
        first.giveBack()
        turn()
        #expect(log.withLock { $0.last } == "c true")
        second.giveBack()
        #expect(ask("e", 0, log).isWaiting == false)
        #expect(log.withLock { $0.last } == "e true")
    }

    @Test("a wait has its end, and the place goes to who is left")
    func wait() {
        let log = Lock<[String]>([])
        let held = ask("a", 0, log)
        let first = ask("b", 1, log)
        clock.advance(.seconds(1))
        turn()
        let second = ask("c", 0, log)
        clock.advance(.seconds(1))
        turn()
        #expect(log.withLock { $0 } == ["a true", "b false"])
        held.giveBack()
        turn()
        #expect(log.withLock { $0.last } == "c true")
        first.giveBack()
        second.giveBack()
    }

    @Test("who leaves while its place is on the way hands it on")
    func handedOn() {
        let log = Lock<[String]>([])
        let held = ask("a", 0, log)
        let first = ask("b", 1, log)
        let second = ask("c", 0, log)
        held.giveBack()
        first.giveBack()
        turn()
        #expect(log.withLock { $0 } == ["a true", "c true"])
        second.giveBack()
    }

    @Test("a place does not go with its holder")
    func holderGone() {
        let log = Lock<[String]>([])
        do {
            let held = ask("a", 0, log)
            #expect(!held.isWaiting)
        }
        let next = ask("b", 1, log)
        #expect(log.withLock { $0 } == ["a true", "b true"])
        next.giveBack()
    }
}
