import GateLock
import GateRuntime

/// A clock that only moves when told to.
final class ManualClock: Clock {
    private let moment = Lock(Moment(nanoseconds: 1_000_000_000))

    func now() -> Moment { moment.withLock { $0 } }
    func unixNanoseconds() -> Int64 { now().nanoseconds }
    func advance(_ duration: Duration) { moment.withLock { $0 = $0 + duration } }
}
