package import GateBytes
package import GateConfig
internal import GateLock

/// The `rate=` of a route's fallback: per account, per client address under `account none`. Shared
/// by all loops, behind a lock.
package final class FallbackLimit: Sendable {
    package let rate: Rate
    private let limiter: Lock<RateLimiter>

    /// A limit; `seed` is random and of this process.
    package init(_ rate: Rate, seed: (UInt64, UInt64)) {
        self.rate = rate
        limiter = Lock(RateLimiter(count: rate.count, per: rate.per, seed: seed))
    }

    /// Counts a request; the seconds until it would pass where it is one too many.
    package func take(account: [UInt8], address: IPAddress, at now: UInt64) -> Int? {
        limiter.withLock { limiter in
            let key =
                account.isEmpty
                ? limiter.key(address: address) : limiter.key(account: account)
            return limiter.take(key, at: now)
        }
    }
}
