import GateLock
import GateStore

/// Keeps what a store answered, in order.
package final class Reply<Outcome: Sendable>: Sendable {
    private let kept = Lock<[Outcome]>([])

    package init() {}

    /// The closure to pass as `reply`.
    package var call: @Sendable (Outcome) -> Void {
        { outcome in
            self.kept.withLock { $0.append(outcome) }
            self.kept.wake()
        }
    }

    /// All answers so far; of a correct store there is at most one.
    package var outcomes: [Outcome] { kept.withLock { $0 } }

    /// The only answer; nil when there is none or more than one.
    package var outcome: Outcome? {
        let outcomes = outcomes
        return outcomes.count == 1 ? outcomes[0] : nil
    }

    /// Waits for the first answer, at most `seconds`; nil when none has come by then.
    package func wait(seconds: Int = 30) -> Outcome? {
        kept.wait(seconds: seconds, until: { !$0.isEmpty }, then: { $0.first })
    }

    /// Waits until the answers meet `condition`, at most `seconds`.
    package func waitFor(seconds: Int = 30, _ condition: ([Outcome]) -> Bool) -> Bool {
        kept.wait(seconds: seconds, until: { condition($0) }, then: { condition($0) })
    }
}
