package import GateBytes

/// Counts events of many keys against one limit, in memory that never grows.
///
/// A limit of `count` in `per` holds in every window of that length: a slot keeps the events of the
/// running eighth of `per` and of the eight before it, and all nine together stay within `count`.
/// The price is that a key at its limit gets through eight ninths of it on average.
///
/// Slots are found by a hash under a seed of this process, four to a set, so nobody can aim a
/// collision. When a set is full of live slots, a new key takes over the one with the fewest events
/// **and its events** (the Space-Saving sketch): a key is never counted too low, however many
/// others there are, and a flood of keys costs strangers at most their share of it. A refused event
/// is not counted, so that waiting helps.
///
/// Time is a monotonic count of nanoseconds, given by the caller. Owned by one thread at a time.
package struct RateLimiter: Sendable {
    /// Slots of one limiter unless told otherwise: under a megabyte, and room for 983,000 events of
    /// a `60/1h` limit before strangers feel each other.
    package static let slotsDefault = 16_384

    private static let ways = 4
    private static let partsOfWindow: UInt64 = 8
    /// The running part and the eight before it.
    private static let parts = 9

    private let limit: UInt64
    private let partNanoseconds: UInt64
    private let sets: Int
    private let seed: (UInt64, UInt64)
    /// Who holds a slot, as a hash that is never zero; zero is nobody.
    private var holders: [UInt64]
    /// The number of the newest part that a slot has counted in.
    private var newest: [UInt64]
    /// Nine counts a slot, by part number modulo nine.
    private var counts: [UInt32]

    /// A limit of `count` events in any window of `per`. `slots` is rounded up to a power of two.
    package init(
        count: Int, per: Duration, slots: Int = RateLimiter.slotsDefault, seed: (UInt64, UInt64)
    ) {
        limit = UInt64(clamping: count)
        partNanoseconds = max(1, per.nanoseconds / RateLimiter.partsOfWindow)
        var sets = 1
        while sets * RateLimiter.ways < slots { sets *= 2 }
        self.sets = sets
        self.seed = seed
        let slots = sets * RateLimiter.ways
        holders = [UInt64](repeating: 0, count: slots)
        newest = [UInt64](repeating: 0, count: slots)
        counts = [UInt32](repeating: 0, count: slots * RateLimiter.parts)
    }

    /// The key of an account.
    package func key(account: [UInt8]) -> RateKey {
        var hasher = seededHasher()
        hasher.combine(account)
        return RateKey(hasher)
    }

    /// The key of a client address: an IPv6 one counts with its whole /64.
    package func key(address: IPAddress) -> RateKey {
        var hasher = seededHasher()
        hasher.combine(address.limitKey)
        return RateKey(hasher)
    }

    /// Whether `events` more events of `key` are over the limit: nil when they are not, else the
    /// seconds until they would pass. Counts nothing.
    package mutating func check(_ key: RateKey, events: Int = 1, at now: UInt64) -> Int? {
        let part = now / partNanoseconds
        let slot = slot(of: key, part)
        let room = limit - min(limit, slot.total)
        guard UInt64(clamping: events) > room else { return nil }
        // More events at once than the limit allows never pass; say when the slot will be empty.
        let allowed = limit - min(limit, UInt64(clamping: events))
        return wait(slot, downTo: allowed, part, now)
    }

    /// Events of `key` that would pass now, and the seconds until more would. Counts nothing.
    package mutating func standing(
        _ key: RateKey, at now: UInt64
    ) -> (remaining: Int, seconds: Int) {
        let part = now / partNanoseconds
        let slot = slot(of: key, part)
        let remaining = Int(clamping: limit - min(limit, slot.total))
        return (remaining, slot.total == 0 ? 0 : wait(slot, downTo: slot.total - 1, part, now))
    }

    /// Counts `events` events of `key`.
    package mutating func count(_ key: RateKey, events: Int = 1, at now: UInt64) {
        let part = now / partNanoseconds
        let index = slot(of: key, part).index
        holders[index] = key.hash
        let place = index * RateLimiter.parts + Int(part % UInt64(RateLimiter.parts))
        let (sum, overflow) = counts[place].addingReportingOverflow(UInt32(clamping: events))
        counts[place] = overflow ? .max : sum
    }

    /// Counts `events` events of `key` unless they are over the limit; then the seconds until they
    /// would pass.
    package mutating func take(_ key: RateKey, events: Int = 1, at now: UInt64) -> Int? {
        if let seconds = check(key, events: events, at: now) { return seconds }
        count(key, events: events, at: now)
        return nil
    }

    private func seededHasher() -> Hasher {
        var hasher = Hasher()
        hasher.combine(seed.0)
        hasher.combine(seed.1)
        return hasher
    }

    /// The slot that is, or would become, the key's, brought up to `part`, and its events.
    private mutating func slot(of key: RateKey, _ part: UInt64) -> (index: Int, total: UInt64) {
        let first = Int(key.hash % UInt64(sets)) * RateLimiter.ways
        var least = (index: first, total: UInt64.max)
        for index in first..<(first + RateLimiter.ways) {
            forget(index, before: part)
            let total = total(index)
            if holders[index] == key.hash { return (index, total) }
            if total < least.total { least = (index, total) }
        }
        return least
    }

    /// Clears what the slot counted in parts that are out of the window.
    private mutating func forget(_ index: Int, before part: UInt64) {
        guard part > newest[index] else { return }
        let parts = UInt64(RateLimiter.parts)
        let stale = min(part - newest[index], parts)
        for number in (part - stale + 1)...part {
            counts[index * RateLimiter.parts + Int(number % parts)] = 0
        }
        newest[index] = part
    }

    private func total(_ index: Int) -> UInt64 {
        var total: UInt64 = 0
        for place in (index * RateLimiter.parts)..<((index + 1) * RateLimiter.parts) {
            total += UInt64(counts[place])
        }
        return total
    }

    /// Seconds, rounded up, until so many parts have left the window that no more than `allowed`
    /// events are in it.
    private func wait(
        _ slot: (index: Int, total: UInt64), downTo allowed: UInt64, _ part: UInt64, _ now: UInt64
    ) -> Int {
        let parts = UInt64(RateLimiter.parts)
        let index = slot.index
        var left = slot.total
        var steps: UInt64 = 0
        repeat {
            steps += 1
            // The oldest of the nine parts stands where the one after the running part will.
            left -= UInt64(counts[index * RateLimiter.parts + Int((part % parts + steps) % parts)])
        } while steps < parts && left > allowed
        let elapsed = now % partNanoseconds
        let (wait, overflow) = steps.multipliedReportingOverflow(by: partNanoseconds)
        guard !overflow else { return .max }
        let nanoseconds = wait - min(wait, elapsed)
        return max(1, Int(clamping: (nanoseconds - min(nanoseconds, 1)) / 1_000_000_000 + 1))
    }
}

/// A key of a limiter, hashed: what one limiter made means nothing to another.
package struct RateKey: Sendable, Equatable {
    /// Never zero.
    let hash: UInt64

    fileprivate init(_ hasher: Hasher) {
        let value = UInt64(truncatingIfNeeded: hasher.finalize())
        hash = value == 0 ? 1 : value
    }
}

extension Duration {
    /// The whole nanoseconds of a length of time; 0 below zero, the largest number above what fits.
    package var nanoseconds: UInt64 {
        let (seconds, attoseconds) = components
        guard seconds >= 0, attoseconds >= 0 else { return 0 }
        let (whole, overflow) = UInt64(seconds).multipliedReportingOverflow(by: 1_000_000_000)
        guard !overflow else { return .max }
        let (sum, carry) = whole.addingReportingOverflow(UInt64(attoseconds) / 1_000_000_000)
        return carry ? .max : sum
    }
}
