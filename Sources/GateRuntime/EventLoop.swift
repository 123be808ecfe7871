// A loop owns an epoll set and everything registered with it. One turn drains the set: events, the
// inbox among them, then deadlines that have passed. Between turns Dispatch waits on the set itself
// (an epoll descriptor is readable while one of its members is), so a loop costs nothing while
// idle.
//
// A turn lingers: while work keeps coming it waits in `epoll_wait` for up to `lingerMilliseconds`
// rather than returning to Dispatch, because the way back costs a thread hop and a re-arm for every
// event.
//
// Sockets are registered once, edge-triggered, for both directions; their owners remember what is
// ready.
//
// Confinement: everything here runs on the loop's own serial queue. `LoopHandle` is the part that
// other threads may hold.

internal import CGateLinux
internal import Dispatch
internal import GateLock
internal import Glibc
internal import Synchronization

/// What became possible on a descriptor.
package struct Readiness: OptionSet, Sendable {
    package let rawValue: UInt8
    package init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Bytes, a connection or an end of stream can be read.
    package static let readable = Readiness(rawValue: 1)
    /// Bytes can be written.
    package static let writable = Readiness(rawValue: 2)
    /// The peer has gone or the descriptor failed; the next call says how.
    package static let failed = Readiness(rawValue: 4)
    /// The peer sends no more: what is readable ends in an end of stream.
    package static let ended = Readiness(rawValue: 8)
}

/// The owner of a descriptor on a loop.
package protocol EventHandler: AnyObject {
    /// Called on the loop when something became possible.
    func ready(_ readiness: Readiness)
}

/// The part of a loop that other threads hold: its inbox.
package final class LoopHandle: Sendable {
    private let inbox: Lock<[@Sendable () -> Void]>
    private let wake: Int32
    /// The thread that is inside a turn, 0 between turns. Read only to check confinement.
    fileprivate let owner = Atomic<UInt>(0)

    fileprivate init() throws(SystemError) {
        wake = gate_eventfd()
        guard wake >= 0 else { throw SystemError("eventfd") }
        inbox = Lock([])
    }

    deinit { close(wake) }

    /// Runs `work` on the loop, in the order of submission. Callable from any thread.
    package func submit(_ work: @escaping @Sendable () -> Void) {
        let isFirst = inbox.withLock { inbox in
            inbox.append(work)
            return inbox.count == 1
        }
        guard isFirst else { return }
        var one: UInt64 = 1
        // A full counter (EAGAIN) means that the loop is already awake.
        _ = unsafe write(wake, &one, 8)
    }

    fileprivate var wakeDescriptor: Int32 { wake }

    fileprivate func takeAll() -> [@Sendable () -> Void] {
        var count: UInt64 = 0
        _ = unsafe read(wake, &count, 8)
        return inbox.withLock { inbox in
            defer { inbox = [] }
            return inbox
        }
    }
}

/// A value that belongs to one loop, in a box that may cross threads; opening it elsewhere traps.
package struct LoopBound<Value>: @unchecked Sendable {
    private let value: Value
    private let loop: LoopHandle

    /// A box for `value`, to be opened on `loop` only.
    package init(_ value: Value, on loop: EventLoop) {
        self.value = value
        self.loop = loop.handle
    }

    /// The value; traps when called off its loop.
    package func open() -> Value {
        precondition(
            loop.owner.load(ordering: .relaxed) == UInt(pthread_self()), "opened off its loop")
        return value
    }
}

/// One event loop.
@safe package final class EventLoop {
    private struct Slot {
        var handler: (any EventHandler)?
        var generation: UInt32 = 0
    }

    /// What other threads may hold of this loop.
    package let handle: LoopHandle
    /// Where the loop reads the time.
    package let clock: any Clock
    /// The monotonic time at the start of the current batch of events: good enough for deadlines.
    package private(set) var now: Moment
    /// Runs at the end of each turn, for what is done once a batch (handing over log lines).
    package var onTurnEnd: (() -> Void)?

    private let epoll: Int32
    private var slots: [Slot] = []
    private var freeSlots: [Int] = []
    private var deadlines = DeadlineQueue()
    private var events: [epoll_event]
    private var source: (any DispatchSourceRead)?
    /// Wakes the set for the next deadline. In the set rather than a Dispatch timer: Dispatch makes
    /// its descriptor when the first timer is armed, which may be just when descriptors have run
    /// out.
    private let timer: Int32
    private var timerMoment: Moment?
    private let queue: DispatchQueue

    private static let wakeToken = UInt64.max
    private static let timerToken = UInt64.max - 1
    private static let eventsMax = 256
    private static let lingerMilliseconds: Int32 = 1
    /// A turn returns to Dispatch after this long even under load, so that sources on its queue
    /// run.
    private static let turnMax = Duration.milliseconds(50)

    /// A loop that nothing drives yet: call ``start()`` for Dispatch to, or ``turn(waiting:)`` by
    /// hand.
    package init(name: String, clock: any Clock) throws(SystemError) {
        self.clock = clock
        now = clock.now()
        handle = try LoopHandle()
        epoll = gate_epoll_create()
        guard epoll >= 0 else { throw SystemError("epoll_create1") }
        unsafe events = [epoll_event](repeating: epoll_event(), count: EventLoop.eventsMax)
        queue = DispatchQueue(label: "attestgate.loop.\(name)")
        timer = gate_timerfd()
        guard timer >= 0 else { throw SystemError("timerfd_create") }
        for (descriptor, token) in [
            (handle.wakeDescriptor, EventLoop.wakeToken), (timer, EventLoop.timerToken),
        ] {
            let result = gate_epoll_control(
                epoll, Int32(EPOLL_CTL_ADD), descriptor, EPOLLIN.rawValue, token)
            guard result == 0 else { throw SystemError("epoll_ctl") }
        }
    }

    deinit {
        close(timer)
        close(epoll)
    }

    /// Hands the loop to Dispatch; from here on it is touched on its own queue only.
    package func start() {
        let bound = LoopBound(self, on: self)
        let source = DispatchSource.makeReadSource(fileDescriptor: epoll, queue: queue)
        source.setEventHandler { @Sendable in EventLoop.runTurn(bound) }
        self.source = source
        scheduleTimer()
        source.resume()
    }

    /// Stops Dispatch driving the loop; descriptors stay registered until their owners go.
    package func stop() {
        source?.cancel()
        source = nil
    }

    private static func runTurn(_ bound: LoopBound<EventLoop>) {
        bound.enter { loop in
            loop.turnUntilIdle()
            loop.scheduleTimer()
        }
    }

    /// Runs `body` as if on the loop; for setting up and for tests, while nothing else drives it.
    package func run<Result>(_ body: () -> Result) -> Result {
        let previous = handle.owner.exchange(UInt(pthread_self()), ordering: .relaxed)
        defer { handle.owner.store(previous, ordering: .relaxed) }
        return body()
    }

    private func turnUntilIdle() {
        let end = clock.now() + EventLoop.turnMax
        while drain(waitingMilliseconds: EventLoop.lingerMilliseconds), now < end {}
    }

    /// One turn by hand: waits at most `waiting` for something to do. For tests.
    /// - Returns: Whether anything was done.
    @discardableResult
    package func turn(waiting: Duration = .zero) -> Bool {
        run { drain(waitingMilliseconds: Int32(clamping: waiting.nanoseconds / 1_000_000)) }
    }

    private func drain(waitingMilliseconds: Int32) -> Bool {
        let count = unsafe epoll_wait(
            epoll, &events, Int32(EventLoop.eventsMax), waitingMilliseconds)
        now = clock.now()
        var isBusy = count > 0
        if count > 0 {
            for index in 0..<Int(count) {
                let token = unsafe gate_event_token(&events[index])
                if token == EventLoop.wakeToken {
                    for work in handle.takeAll() { work() }
                } else if token == EventLoop.timerToken {
                    var expirations: UInt64 = 0
                    _ = unsafe read(timer, &expirations, 8)
                    timerMoment = nil
                } else {
                    dispatch(token, unsafe gate_event_flags(&events[index]))
                }
            }
        }
        while let deadline = deadlines.popPassed(at: now) {
            isBusy = true
            deadline.onPassed?()
        }
        onTurnEnd?()
        return isBusy
    }

    private func dispatch(_ token: UInt64, _ flags: UInt32) {
        let index = Int(token & 0xffff_ffff)
        // A descriptor closed earlier in this batch leaves an event behind; its slot has moved on.
        guard index < slots.count, slots[index].generation == UInt32(token >> 32) else { return }
        var readiness: Readiness = []
        if flags & (EPOLLIN.rawValue | EPOLLRDHUP.rawValue | EPOLLHUP.rawValue) != 0 {
            readiness.insert(.readable)
        }
        if flags & EPOLLOUT.rawValue != 0 { readiness.insert(.writable) }
        if flags & EPOLLRDHUP.rawValue != 0 { readiness.insert(.ended) }
        if flags & (EPOLLERR.rawValue | EPOLLHUP.rawValue) != 0 {
            readiness.formUnion([.ended, .failed, .readable, .writable])
        }
        slots[index].handler?.ready(readiness)
    }

    private func scheduleTimer() {
        guard let next = deadlines.next else { return }
        // An earlier alarm is kept: it finds nothing to do, and the next one is set then.
        if let timerMoment, timerMoment <= next { return }
        timerMoment = next
        // Zero would disarm it; a moment that is over fires at once.
        let result = gate_timerfd_set(timer, max(1, next.nanoseconds))
        precondition(result == 0, "a timer descriptor takes every moment")
    }

    /// Sets `deadline` to pass at `moment`.
    package func set(_ deadline: Deadline, at moment: Moment) {
        deadlines.set(deadline, at: moment)
    }

    /// Sets `deadline` to pass `duration` from now.
    package func set(_ deadline: Deadline, after duration: Duration) {
        deadlines.set(deadline, at: now + duration)
    }

    /// Takes `deadline` out for good: its owner is going.
    package func remove(_ deadline: Deadline) {
        deadlines.remove(deadline)
    }

    /// How a descriptor's readiness is reported.
    enum Interest {
        /// New connections, level-triggered; `shared` wakes one of several loops.
        case accepting(shared: Bool)
        /// Both directions, edge-triggered.
        case stream
    }

    /// Registers `descriptor`; its events go to `handler` until ``remove(_:_:)``.
    func add(
        _ descriptor: Int32, _ interest: Interest, _ handler: any EventHandler
    ) throws(SystemError) -> Registration {
        let index = freeSlots.popLast() ?? slots.count
        if index == slots.count { slots.append(Slot()) }
        slots[index].handler = handler
        let token = UInt64(slots[index].generation) << 32 | UInt64(index)
        let flags: UInt32
        switch interest {
        case .accepting(let shared):
            flags = EPOLLIN.rawValue | (shared ? EPOLLEXCLUSIVE.rawValue : 0)
        case .stream:
            flags = EPOLLIN.rawValue | EPOLLOUT.rawValue | EPOLLRDHUP.rawValue | EPOLLET.rawValue
        }
        guard gate_epoll_control(epoll, Int32(EPOLL_CTL_ADD), descriptor, flags, token) == 0 else {
            let error = SystemError("epoll_ctl")
            release(index)
            throw error
        }
        return Registration(index: index)
    }

    /// Sends the events of a registration to another handler.
    func change(_ registration: Registration, to handler: any EventHandler) {
        slots[registration.index].handler = handler
    }

    /// Ends a registration. The caller closes the descriptor, or keeps it for later.
    func remove(_ descriptor: Int32, _ registration: Registration) {
        _ = gate_epoll_control(epoll, Int32(EPOLL_CTL_DEL), descriptor, 0, 0)
        release(registration.index)
    }

    private func release(_ index: Int) {
        slots[index].handler = nil
        slots[index].generation &+= 1
        freeSlots.append(index)
    }

    /// A descriptor's place in a loop.
    struct Registration {
        fileprivate let index: Int
    }
}

extension LoopBound where Value == EventLoop {
    /// Marks this thread as the loop's while `body` runs.
    fileprivate func enter(_ body: (EventLoop) -> Void) {
        loop.owner.store(UInt(pthread_self()), ordering: .relaxed)
        body(value)
        loop.owner.store(0, ordering: .relaxed)
    }
}
