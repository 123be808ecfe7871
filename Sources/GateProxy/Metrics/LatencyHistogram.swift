/// How often something took how long: the buckets of a Prometheus histogram.
package struct LatencyHistogram: Sendable, Equatable {
    /// The upper bounds, in nanoseconds: from a signature's microseconds to a time-out's half
    /// minute, some two and a half apart.
    package static let bounds: [UInt64] = [
        50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000, 5_000_000, 10_000_000, 25_000_000,
        50_000_000, 100_000_000, 250_000_000, 500_000_000, 1_000_000_000, 2_500_000_000,
        5_000_000_000, 10_000_000_000, 30_000_000_000,
    ]

    /// Observations by bucket, not cumulated; the last is of those above every bound.
    package private(set) var counts = [UInt64](repeating: 0, count: bounds.count + 1)
    /// The sum of all observations, in nanoseconds.
    package private(set) var sum: UInt64 = 0

    /// A histogram of nothing.
    package init() {}

    /// Notes one observation; one below zero is a clock's fault and counts as zero.
    package mutating func note(_ duration: Duration) {
        note(nanoseconds: UInt64(clamping: duration.nanoseconds))
    }

    /// Notes one observation.
    package mutating func note(nanoseconds: UInt64) {
        var bucket = 0
        while bucket < LatencyHistogram.bounds.count,
            nanoseconds > LatencyHistogram.bounds[bucket]
        {
            bucket += 1
        }
        counts[bucket] += 1
        sum &+= nanoseconds
    }

    /// Adds what another one has seen.
    package mutating func add(_ other: LatencyHistogram) {
        for bucket in counts.indices { counts[bucket] += other.counts[bucket] }
        sum &+= other.sum
    }
}
