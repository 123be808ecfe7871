// `max_active`: places for requests at one time, over all servers and loops of an upstream.
//
//   free ── take ─► held ──────────── giveBack ─► over
//     └── none ──► waiting ── granted ─► held
//                     └── time over, or giveBack ─► over
//
// The line is one for all loops, behind a lock; a place that is given back wakes the loop of the
// first in line through its inbox. If that one has left meanwhile, it hands the place on itself.

package import GateConfig
internal import GateLock
package import GateRuntime

/// The places of one upstream, shared by all loops.
package final class UpstreamSlots: Sendable {
    fileprivate let limit: Upstream.ActiveLimit
    private let queue: Lock<SlotQueue<@Sendable () -> Void>>

    package init(_ limit: Upstream.ActiveLimit) {
        self.limit = limit
        queue = Lock(SlotQueue(slots: limit.requests, waitersMax: limit.waiting))
    }

    fileprivate enum Outcome {
        case full
        case taken
        case waiting(ticket: UInt64)
    }

    /// Takes a place or gets in line; `granted` runs on whatever thread gives one back.
    fileprivate func take(granted: @escaping @Sendable () -> Void) -> Outcome {
        queue.withLock { queue in
            if queue.take() { return .taken }
            return queue.wait(granted).map { .waiting(ticket: $0) } ?? .full
        }
    }

    fileprivate func leave(_ ticket: UInt64) -> Bool {
        queue.withLock { $0.leave(ticket) }
    }

    fileprivate func giveBack() {
        let next = queue.withLock { $0.giveBack() }
        next?()
    }
}

/// One request's place, on one loop for life.
package final class UpstreamSlot {
    private enum Phase {
        case free
        case held
        case over
        case waiting(ticket: UInt64)
    }

    private let slots: UpstreamSlots
    private let loop: EventLoop
    private var phase = Phase.free
    private var then: ((Bool) -> Void)?
    private let deadline = Deadline()

    package init(_ slots: UpstreamSlots, on loop: EventLoop) {
        self.slots = slots
        self.loop = loop
        deadline.onPassed = { [weak self] in self?.timeOver() }
    }

    /// Asks for a place. `then` hears once, perhaps before this returns, whether there is one; not
    /// at all after ``giveBack()``.
    package func take(then: @escaping (Bool) -> Void) {
        switch phase {
        case .held: return then(true)
        case .over, .waiting: return then(false)
        case .free: break
        }
        let bound = LoopBound(self, on: loop)
        let handle = loop.handle
        switch slots.take(granted: { handle.submit { bound.open().granted() } }) {
        case .full:
            phase = .over
            then(false)
        case .taken:
            phase = .held
            then(true)
        case .waiting(let ticket):
            phase = .waiting(ticket: ticket)
            self.then = then
            loop.set(deadline, after: slots.limit.wait)
        }
    }

    /// Gives the place back, or leaves the line. Safe to call twice.
    package func giveBack() {
        let phase = phase
        self.phase = .over
        then = nil
        switch phase {
        case .free, .over:
            return
        case .held:
            slots.giveBack()
        case .waiting(let ticket):
            loop.remove(deadline)
            // A place granted a moment ago is on its way here and is handed on when it comes.
            _ = slots.leave(ticket)
        }
    }

    /// Whether it stands in line.
    package var isWaiting: Bool {
        if case .waiting = phase { return true }
        return false
    }

    private func granted() {
        guard case .waiting = phase else { return slots.giveBack() }
        loop.remove(deadline)
        phase = .held
        let then = then
        self.then = nil
        then?(true)
    }

    /// The time to wait is over.
    private func timeOver() {
        guard case .waiting(let ticket) = phase else { return }
        // A place is on its way: take it, late as it is by less than a turn.
        guard slots.leave(ticket) else { return }
        phase = .over
        loop.remove(deadline)
        let then = then
        self.then = nil
        then?(false)
    }

    deinit {
        // Whoever held it has gone without a word; the place must not go with it.
        if case .held = phase { slots.giveBack() }
    }
}
