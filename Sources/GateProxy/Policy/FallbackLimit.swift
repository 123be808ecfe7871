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

    /// Counts a request; the refusal when it is one too many.
    package func take(account: [UInt8], address: IPAddress, at now: UInt64) -> Refusal? {
        limiter.withLock { limiter in
            let key =
                account.isEmpty
                ? limiter.key(address: address) : limiter.key(account: account)
            guard let seconds = limiter.take(key, at: now) else { return nil }
            var refusal = Refusal(.rateLimited, at: .checks, retryAfter: seconds)
            refusal.rateLimit = RateStatus(
                name: .fallback, rate, remaining: limiter.standing(key, at: now).remaining,
                seconds: seconds)
            return refusal
        }
    }
}
