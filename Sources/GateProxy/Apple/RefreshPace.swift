package import GateRuntime

/// How fast receipts are asked for: so many at a time, so many a second, and pauses in which none
/// is.
package struct RefreshPace {
    /// Ten million keys once a day are 116 a second.
    package static let perSecond = 200
    /// What may be caught up with at once.
    package static let burst = 50
    /// An answer takes a tenth of a second; over it Apple is slow, and more would not help.
    package static let inFlightMax = 32

    /// Keys that are being asked for.
    package private(set) var inFlight = 0
    private var allowance = Double(RefreshPace.burst)
    private var countedAt: Moment
    private var pausedUntil: Moment?

    /// A pace from `now` on.
    package init(at now: Moment) {
        countedAt = now
    }

    /// Whether nothing is asked at `now`.
    package func isPaused(at now: Moment) -> Bool {
        pausedUntil.map { now < $0 } ?? false
    }

    /// Counts a key in; false where it has to wait.
    package mutating func begin(at now: Moment) -> Bool {
        let seconds = Double(now.duration(since: countedAt).nanoseconds) / 1e9
        allowance = min(
            Double(RefreshPace.burst), allowance + seconds * Double(RefreshPace.perSecond))
        countedAt = now
        guard !isPaused(at: now), inFlight < RefreshPace.inFlightMax, allowance >= 1 else {
            return false
        }
        allowance -= 1
        inFlight += 1
        return true
    }

    /// Counts a key out.
    package mutating func end() {
        inFlight -= 1
    }

    /// Lets nothing be asked for `duration`; a longer pause stays.
    package mutating func pause(_ duration: Duration, at now: Moment) {
        pausedUntil = max(pausedUntil ?? now, now + duration)
    }

    /// Ends a pause.
    package mutating func resume() {
        pausedUntil = nil
    }
}
