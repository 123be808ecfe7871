package import GateBytes
package import GateConfig
internal import GateLock

/// The limits of one host (`rate` lines), shared by all loops behind one lock; each call holds it
/// for a few table look-ups.
///
/// Every limit is per account and per client address. Under `account none` there is no account, and
/// the limits per account do not apply.
package final class HostLimits: Sendable {
    private struct Tables: Sendable {
        var challenges: Pair
        var attestations: Pair
        var failedSignatures: Pair
    }

    private let tables: Lock<Tables>

    /// The limits of `rates`; `seed` is random and of this process.
    package init(_ rates: Rates, seed: (UInt64, UInt64)) {
        tables = Lock(
            Tables(
                challenges: Pair(
                    .challenges, rates.challengesPerAccount, rates.challengesPerAddress, seed),
                attestations: Pair(
                    .attestations, rates.attestationsPerAccount,
                    rates.attestationsPerAddress, seed),
                failedSignatures: Pair(
                    .failedSignatures, rates.failedSignaturesPerAccount,
                    rates.failedSignaturesPerAddress, seed)))
    }

    /// Counts `count` challenges about to be issued; the refusal when they are too many.
    package func takeChallenges(
        _ count: Int, account: [UInt8], address: IPAddress, at now: UInt64
    ) -> Refusal? {
        tables.withLock { $0.challenges.take(count, account, address, now) }
    }

    /// Counts an attestation about to be verified, whether or not it will hold; the refusal when it
    /// is one too many.
    package func takeAttestation(
        account: [UInt8], address: IPAddress, at now: UInt64
    ) -> Refusal? {
        tables.withLock { $0.attestations.take(1, account, address, now) }
    }

    /// The refusal when too many signatures have failed; to be asked before one is verified.
    package func checkSignature(
        account: [UInt8], address: IPAddress, at now: UInt64
    ) -> Refusal? {
        tables.withLock { $0.failedSignatures.check(1, account, address, now) }
    }

    /// Counts a signature that failed.
    package func countFailedSignature(account: [UInt8], address: IPAddress, at now: UInt64) {
        tables.withLock { $0.failedSignatures.count(1, account, address, now) }
    }

    /// How somebody stands with the limit of challenges, or of attestations; nil where there is
    /// none.
    package func standing(
        _ name: RateStatus.Name, account: [UInt8], address: IPAddress, at now: UInt64
    ) -> RateStatus? {
        tables.withLock { tables in
            switch name {
            case .attestations: tables.attestations.standing(account, address, now)
            case .challenges: tables.challenges.standing(account, address, now)
            case .fallback: nil
            case .failedSignatures: tables.failedSignatures.standing(account, address, now)
            }
        }
    }

    /// One limit per account and one per address.
    private struct Pair: Sendable {
        private let name: RateStatus.Name
        private var accounts: Limit?
        private var addresses: Limit?

        init(
            _ name: RateStatus.Name, _ perAccount: Rate?, _ perAddress: Rate?,
            _ seed: (UInt64, UInt64)
        ) {
            self.name = name
            accounts = perAccount.map { Limit($0, seed) }
            addresses = perAddress.map { Limit($0, seed) }
        }

        /// Counts in both tables or, when either refuses, in neither.
        mutating func take(
            _ events: Int, _ account: [UInt8], _ address: IPAddress, _ now: UInt64
        ) -> Refusal? {
            if let refusal = check(events, account, address, now) { return refusal }
            count(events, account, address, now)
            return nil
        }

        mutating func check(
            _ events: Int, _ account: [UInt8], _ address: IPAddress, _ now: UInt64
        ) -> Refusal? {
            let waits = [
                accountKey(account).flatMap { accounts?.check($0, events, name, now) },
                addressKey(address).flatMap { addresses?.check($0, events, name, now) },
            ]
            guard let longest = waits.compactMap({ $0 }).max(by: { $0.seconds < $1.seconds })
            else { return nil }
            var refusal = Refusal(.rateLimited, at: .checks, retryAfter: longest.seconds)
            refusal.rateLimit = longest
            return refusal
        }

        mutating func count(
            _ events: Int, _ account: [UInt8], _ address: IPAddress, _ now: UInt64
        ) {
            if let key = accountKey(account) { accounts?.count(key, events, now) }
            if let key = addressKey(address) { addresses?.count(key, events, now) }
        }

        private func accountKey(_ account: [UInt8]) -> RateKey? {
            account.isEmpty ? nil : accounts?.key(account)
        }

        private func addressKey(_ address: IPAddress) -> RateKey? { addresses?.key(address) }

        mutating func standing(
            _ account: [UInt8], _ address: IPAddress, _ now: UInt64
        ) -> RateStatus? {
            let found = [
                accountKey(account).flatMap { accounts?.standing($0, name, now) },
                addressKey(address).flatMap { addresses?.standing($0, name, now) },
            ]
            return found.compactMap { $0 }.min { $0.remaining < $1.remaining }
        }
    }

    /// One limit and its table.
    private struct Limit: Sendable {
        private let rate: Rate
        private var limiter: RateLimiter

        init(_ rate: Rate, _ seed: (UInt64, UInt64)) {
            self.rate = rate
            limiter = RateLimiter(count: rate.count, per: rate.per, seed: seed)
        }

        func key(_ account: [UInt8]) -> RateKey { limiter.key(account: account) }

        func key(_ address: IPAddress) -> RateKey { limiter.key(address: address) }

        mutating func count(_ key: RateKey, _ events: Int, _ now: UInt64) {
            limiter.count(key, events: events, at: now)
        }

        /// The standing of `key` where so many more events are over the limit; then its seconds
        /// are those until they would pass.
        mutating func check(
            _ key: RateKey, _ events: Int, _ name: RateStatus.Name, _ now: UInt64
        ) -> RateStatus? {
            guard let seconds = limiter.check(key, events: events, at: now) else { return nil }
            var status = standing(key, name, now)
            status.seconds = seconds
            return status
        }

        mutating func standing(
            _ key: RateKey, _ name: RateStatus.Name, _ now: UInt64
        ) -> RateStatus {
            let found = limiter.standing(key, at: now)
            return RateStatus(
                name: name, rate, remaining: found.remaining, seconds: found.seconds)
        }
    }
}
