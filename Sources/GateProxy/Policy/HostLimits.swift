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
                challenges: Pair(rates.challengesPerAccount, rates.challengesPerAddress, seed),
                attestations: Pair(
                    rates.attestationsPerAccount, rates.attestationsPerAddress, seed),
                failedSignatures: Pair(
                    rates.failedSignaturesPerAccount, rates.failedSignaturesPerAddress, seed)))
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

    /// One limit per account and one per address.
    private struct Pair: Sendable {
        private var accounts: RateLimiter?
        private var addresses: RateLimiter?

        init(_ perAccount: Rate?, _ perAddress: Rate?, _ seed: (UInt64, UInt64)) {
            accounts = perAccount.map {
                RateLimiter(count: $0.count, per: $0.per, seed: seed)
            }
            addresses = perAddress.map {
                RateLimiter(count: $0.count, per: $0.per, seed: seed)
            }
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
            var seconds = 0
            if !account.isEmpty, let key = accounts?.key(account: account) {
                seconds = accounts?.check(key, events: events, at: now) ?? 0
            }
            if let key = addresses?.key(address: address) {
                seconds = max(seconds, addresses?.check(key, events: events, at: now) ?? 0)
            }
            return seconds > 0
                ? Refusal(.rateLimited, at: .checks, retryAfter: seconds) : nil
        }

        mutating func count(
            _ events: Int, _ account: [UInt8], _ address: IPAddress, _ now: UInt64
        ) {
            if !account.isEmpty, let key = accounts?.key(account: account) {
                accounts?.count(key, events: events, at: now)
            }
            if let key = addresses?.key(address: address) {
                addresses?.count(key, events: events, at: now)
            }
        }
    }
}
