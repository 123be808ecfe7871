// Whether a service is asked at all. Pure: time is an argument.
//
//              failuresMax failures within `window`, none of them followed by an answer
//   closed ─────────────────────────────────────────────────────────────────────────► open
//      ▲                                                                               │
//      │ the probe is answered                                          `pause` is over│
//      └────────────────────────────── half open ◄─────────────────────────────────────┘
//                                          └── the probe fails, or says nothing ──► open

package import GateRuntime

/// Keeps a service that does not answer from being asked again and again.
package struct CircuitBreaker: Sendable {
    /// What becomes of a call.
    package enum Decision: Equatable, Sendable {
        case ask
        /// Asked, and the others wait for what comes of it.
        case probe
        /// Not asked: in so many seconds again.
        case wait(seconds: Int)
    }

    private enum State {
        case closed(failures: [Moment])
        /// Until a moment; then one call is let through.
        case open(until: Moment)
        /// One call is on its way; another takes its place if it is lost.
        case halfOpen(until: Moment)
    }

    private var state = State.closed(failures: [])

    /// Failures that open it: more than a connection that broke and its retries.
    package static let failuresMax = 5
    package static let window = Duration.seconds(10)
    /// How long nothing is asked: a phone's user waits no longer, and a service may breathe.
    package static let pause = Duration.seconds(10)
    /// The longest pause that the service itself may ask for.
    package static let pauseMax = Duration.seconds(300)

    package init() {}

    /// Whether anything is asked now.
    package var isClosed: Bool {
        if case .closed = state { true } else { false }
    }

    /// Decides on a call at `now`.
    package mutating func decide(at now: Moment) -> Decision {
        switch state {
        case .closed: return .ask
        case .open(let until), .halfOpen(let until):
            guard until <= now else {
                let left = until.duration(since: now).components
                return .wait(seconds: max(1, Int(clamping: left.seconds) + 1))
            }
            state = .halfOpen(until: now + CircuitBreaker.pause)
            return .probe
        }
    }

    /// Notes an answer, whatever it says.
    /// - Returns: Whether it has closed the breaker.
    package mutating func noteAnswer(to decision: Decision) -> Bool {
        switch state {
        case .closed:
            state = .closed(failures: [])
            return false
        case .halfOpen where decision == .probe:
            state = .closed(failures: [])
            return true
        // A call from before.
        case .halfOpen, .open: return false
        }
    }

    /// Notes that there was no answer, or that the service said to come later: `pause` as it asks.
    /// - Returns: Whether that has opened the breaker.
    package mutating func noteFailure(
        of decision: Decision, pause: Duration? = nil, at now: Moment
    ) -> Bool {
        let length = min(
            max(pause ?? .zero, CircuitBreaker.pause), CircuitBreaker.pauseMax)
        switch state {
        case .closed(var failures):
            failures.removeAll { $0 + CircuitBreaker.window <= now }
            failures.append(now)
            guard failures.count >= CircuitBreaker.failuresMax || pause != nil else {
                state = .closed(failures: failures)
                return false
            }
            state = .open(until: now + length)
            return true
        case .halfOpen where decision == .probe:
            state = .open(until: now + length)
            return false
        case .halfOpen, .open: return false
        }
    }
}
