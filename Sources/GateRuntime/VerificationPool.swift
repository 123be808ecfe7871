internal import Dispatch
internal import GateLock

/// A bounded pool for work that takes milliseconds of a core and must not hold up a loop.
package final class VerificationPool: Sendable {
    private let waiting = Lock(0)
    private let turn = Lock(0)
    private let lanes: [DispatchQueue]
    private let waitingMax: Int

    /// A pool of `width` threads with at most `waitingMax` jobs in line.
    package init(width: Int, waitingMax: Int) {
        precondition(width > 0 && waitingMax > 0)
        lanes = (0..<width).map { DispatchQueue(label: "attestgate.verification.\($0)") }
        self.waitingMax = waitingMax
    }

    /// Runs `work` on a thread of the pool.
    /// - Returns: False when the line is full; `work` is then not run.
    package func submit(_ work: @escaping @Sendable () -> Void) -> Bool {
        let isTaken = waiting.withLock { waiting in
            guard waiting < waitingMax else { return false }
            waiting += 1
            return true
        }
        guard isTaken else { return false }
        let lane = turn.withLock { turn in
            turn = (turn + 1) % lanes.count
            return turn
        }
        lanes[lane].async {
            work()
            self.waiting.withLock { $0 -= 1 }
        }
        return true
    }
}
