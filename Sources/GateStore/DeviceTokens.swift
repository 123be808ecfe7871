package import GateBytes

// DeviceCheck tokens that have passed: their hashes, for 30 days. Apple takes a token for a while
// longer than it should; here it passes once.

/// The answer to a token that is to be spent.
package enum TokenOutcome: Sendable, Equatable {
    /// It was spent before, within the last 30 days.
    case alreadySpent
    /// It is spent now, durably.
    case spent
    /// The store cannot say: the token may be spent or not, and nothing may be forwarded.
    case unavailable
}

/// The spent tokens of one shard, by the day they were spent on, so that a day goes whole.
struct DeviceTokenTable {
    private struct Day {
        let number: UInt32
        var hashes: Set<Bytes32> = []
    }

    /// In order of their numbers, some 31 of them.
    private var days: [Day] = []
    private var forgottenBefore: UInt32 = 0

    /// The number of tokens that are remembered.
    private(set) var count = 0

    static let daySeconds: UInt32 = 86_400

    /// A table that has forgotten what was over by `now`.
    init(now: UInt32) {
        forget(now: now)
    }

    /// Whether a token with this hash was spent.
    func contains(_ hash: Bytes32) -> Bool {
        days.contains { $0.hashes.contains(hash) }
    }

    /// All of them, by day.
    var all: [(day: UInt32, hashes: Set<Bytes32>)] {
        days.map { ($0.number, $0.hashes) }
    }

    /// Spends a token at `time`; one that is spent already, or that would be forgotten, changes
    /// nothing.
    mutating func insert(_ hash: Bytes32, time: UInt32) {
        let number = time / DeviceTokenTable.daySeconds
        guard number >= forgottenBefore, !contains(hash) else { return }
        let place = days.firstIndex { $0.number >= number } ?? days.count
        if place == days.count || days[place].number != number {
            days.insert(Day(number: number), at: place)
        }
        days[place].hashes.insert(hash)
        count += 1
    }

    /// Forgets every day whose last second is over 30 days before `now`.
    mutating func forget(now: UInt32) {
        guard now >= StoreLimits.tokenLifeSeconds else { return }
        let firstKept = (now - StoreLimits.tokenLifeSeconds) / DeviceTokenTable.daySeconds
        guard firstKept > forgottenBefore else { return }
        forgottenBefore = firstKept
        while let first = days.first, first.number < firstKept {
            count -= first.hashes.count
            days.removeFirst()
        }
    }
}

extension Store {
    /// Spends the DeviceCheck token with this hash, once for all requests.
    package func spendToken(
        _ hash: Bytes32, now: UInt32, reply: @escaping @Sendable (TokenOutcome) -> Void
    ) {
        let outcome = shards.withTokens(hash) { tokens -> TokenOutcome? in
            tokens.forget(now: now)
            guard !tokens.contains(hash) else { return .alreadySpent }
            guard tokens.count < StoreLimits.tokensOfShardMax,
                append(.token(hash, time: now), .token(reply)) != nil
            else { return .unavailable }
            tokens.insert(hash, time: now)
            return nil
        }
        if let outcome { reply(outcome) }
    }

    /// An early look: whether the token with this hash has been spent.
    package func isTokenSpent(_ hash: Bytes32) -> Bool {
        shards.withTokens(hash) { $0.contains(hash) }
    }
}
