internal import CGateLinux

/// A moment of the monotonic clock in nanoseconds; only differences mean anything.
package struct Moment: Comparable, Hashable, Sendable {
    /// Nanoseconds since an arbitrary start.
    package var nanoseconds: Int64

    /// A moment at `nanoseconds`.
    package init(nanoseconds: Int64) {
        self.nanoseconds = nanoseconds
    }

    /// Later than every deadline.
    package static let distantFuture = Moment(nanoseconds: .max)

    /// Which of two moments is earlier.
    package static func < (left: Moment, right: Moment) -> Bool {
        left.nanoseconds < right.nanoseconds
    }

    /// The moment `duration` later; saturates.
    package static func + (moment: Moment, duration: Duration) -> Moment {
        let (sum, overflow) = moment.nanoseconds.addingReportingOverflow(duration.nanoseconds)
        return overflow ? .distantFuture : Moment(nanoseconds: sum)
    }

    /// The time from `earlier` to this moment.
    package func duration(since earlier: Moment) -> Duration {
        .nanoseconds(nanoseconds - earlier.nanoseconds)
    }
}

extension Duration {
    /// The duration in nanoseconds; saturates.
    package var nanoseconds: Int64 {
        let (seconds, attoseconds) = components
        let (whole, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        return overflow ? .max : whole &+ attoseconds / 1_000_000_000
    }

    /// The duration in whole seconds, rounded down.
    package var wholeSeconds: Int64 { components.seconds }
}

/// Where a loop reads the time: the system's clocks, or a test's.
package protocol Clock: Sendable {
    /// The monotonic clock.
    func now() -> Moment
    /// Nanoseconds of UTC since 1970.
    func unixNanoseconds() -> Int64
}

/// The system's clocks.
package struct SystemClock: Clock {
    package init() {}

    /// `CLOCK_MONOTONIC`.
    package func now() -> Moment {
        Moment(nanoseconds: gate_monotonic_nanoseconds())
    }

    /// `CLOCK_REALTIME`.
    package func unixNanoseconds() -> Int64 {
        gate_realtime_nanoseconds()
    }
}
