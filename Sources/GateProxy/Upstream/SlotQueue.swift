/// Places for requests at one time, and who waits for one: first come, first served.
///
/// While someone waits, every place is taken: one that is given back goes to the first in line and
/// is never free in between, so that nobody overtakes.
package struct SlotQueue<Waiter> {
    private let slots: Int
    private let waitersMax: Int
    private var active = 0
    private var waiters: [UInt64: Waiter] = [:]
    /// Tickets in order; of those that have left, some are still here.
    private var line: [UInt64] = []
    private var lineStart = 0
    private var lastTicket: UInt64 = 0

    package init(slots: Int, waitersMax: Int) {
        self.slots = slots
        self.waitersMax = waitersMax
    }

    /// Takes a place, if one is free.
    package mutating func take() -> Bool {
        guard active < slots else { return false }
        active += 1
        return true
    }

    /// Gets in line.
    /// - Returns: A ticket to leave the line with; nil when it is full.
    package mutating func wait(_ waiter: Waiter) -> UInt64? {
        guard waiters.count < waitersMax else { return nil }
        lastTicket += 1
        waiters[lastTicket] = waiter
        line.append(lastTicket)
        return lastTicket
    }

    /// Leaves the line.
    /// - Returns: False when a place has been given meanwhile: it must be given back.
    package mutating func leave(_ ticket: UInt64) -> Bool {
        guard waiters.removeValue(forKey: ticket) != nil else { return false }
        if line.count > 2 * waiters.count + 64 {
            line = line[lineStart...].filter { waiters[$0] != nil }
            lineStart = 0
        }
        return true
    }

    /// Gives a place back.
    /// - Returns: Whose it is now; nil when nobody waited.
    package mutating func giveBack() -> Waiter? {
        while lineStart < line.count {
            let ticket = line[lineStart]
            lineStart += 1
            guard let waiter = waiters.removeValue(forKey: ticket) else { continue }
            if lineStart > waiters.count + 64 {
                line.removeFirst(lineStart)
                lineStart = 0
            }
            return waiter
        }
        line.removeAll(keepingCapacity: true)
        lineStart = 0
        active -= 1
        return nil
    }
}
