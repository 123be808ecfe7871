package import GateBytes
internal import GateLock
internal import GateRuntime

/// Accounts that a service has named, by a hash of all it was asked, each for a while. Behind a
/// lock.
package final class AccountMemory: Sendable {
    private let life: Int64
    private let generations = Lock(Generations())

    /// The most accounts remembered, under a hundred bytes each but for long names.
    package static let accountsMax = 20_000

    private struct Entry {
        let account: [UInt8]
        /// In nanoseconds, as the caller's clock counts them.
        let expiry: Int64
    }

    /// The older one goes as a whole when the younger is full: forgetting costs nothing, and
    /// whoever comes often is remembered again.
    private struct Generations {
        var young: [Bytes32: Entry] = [:]
        var old: [Bytes32: Entry] = [:]
    }

    /// A memory that forgets an account after `life`.
    package init(life: Duration) {
        self.life = Int64(clamping: life.nanoseconds)
    }

    /// The account under `key` at `now`; nil without.
    package func account(_ key: Bytes32, now: Int64) -> [UInt8]? {
        generations.withLock { generations in
            guard let entry = generations.young[key] ?? generations.old[key], now < entry.expiry
            else { return nil }
            return entry.account
        }
    }

    /// Remembers `account` under `key`, from `now` on.
    package func remember(_ account: [UInt8], _ key: Bytes32, now: Int64) {
        let (expiry, isOver) = now.addingReportingOverflow(life)
        guard !isOver else { return }
        generations.withLock { generations in
            if generations.young.count >= AccountMemory.accountsMax / 2 {
                generations.old = generations.young
                generations.young = [:]
            }
            generations.young[key] = Entry(account: account, expiry: expiry)
        }
    }
}
