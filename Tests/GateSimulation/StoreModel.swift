import GateBytes
import GateStore

/// What a store must hold, in the plainest form: the oracle of the simulation.
package struct StoreModel {
    /// A change that makes one record of the log.
    package enum Change {
        case admit(SpentChallenge?, keyID: Bytes32, counter: UInt32, isRevoking: Bool, now: UInt32)
        case block([UInt8], Bool)
        case enrol(NewKey, SpentChallenge, now: UInt32, retired: Bytes32?)
        case receipt(Bytes32, [UInt8]?, ReceiptUpdate)
        case revoke(Bytes32)
        case spend(SpentChallenge)
        case token(Bytes32, now: UInt32)
    }

    /// A key and the sequence number of its enrolment.
    ///
    /// The record has no place of a receipt: where one is, is the store's affair.
    package struct Key {
        package var record: KeyRecord
        /// Empty for none.
        package var receipt: [UInt8]
        package var sequence: UInt64
    }

    package var keys: [Bytes32: Key] = [:]
    package var spent: Set<SpentChallenge> = []
    package var blocked: Set<[UInt8]> = []
    /// When each token was spent.
    package var tokens: [Bytes32: UInt32] = [:]

    package init() {}

    /// Does what a change does that was made in `epoch`.
    package mutating func apply(_ change: Change, sequence: UInt64, epoch: UInt32) {
        switch change {
        case .admit(let challenge, let keyID, let counter, let isRevoking, let now):
            if let challenge {
                spent.insert(challenge)
                keys[keyID]?.record.challengeEpoch = epoch
            }
            keys[keyID]?.record.signCounter = counter
            keys[keyID]?.record.lastUsedAt = now
            if isRevoking { keys[keyID]?.record.isRevoked = true }
        case .block(let account, let isBlocked):
            if isBlocked { blocked.insert(account) } else { blocked.remove(account) }
        case .enrol(let key, let challenge, let now, let retired):
            spent.insert(challenge)
            if let retired { keys[retired]?.record.isRevoked = true }
            keys[key.keyID] = Key(
                record: StoreModel.record(key, now: now, epoch: epoch), receipt: key.receipt,
                sequence: sequence)
        case .receipt(let keyID, let receipt, let update):
            if let receipt { keys[keyID]?.receipt = receipt }
            if let metric = update.metric { keys[keyID]?.record.metric = metric }
            keys[keyID]?.record.refreshAt = update.refreshAt
        case .revoke(let keyID):
            keys[keyID]?.record.isRevoked = true
        case .spend(let challenge):
            spent.insert(challenge)
        case .token(let hash, let now):
            tokens[hash] = now
        }
    }

    /// Whether the token with this hash is spent: within 30 days, counted in whole days of UTC.
    package func isTokenSpent(_ hash: Bytes32, now: UInt32) -> Bool {
        guard let time = tokens[hash] else { return false }
        return time / 86_400 >= (now - min(now, 30 * 86_400)) / 86_400
    }

    private static func record(_ key: NewKey, now: UInt32, epoch: UInt32) -> KeyRecord {
        KeyRecord(
            keyID: key.keyID, publicKey: key.publicKey, account: key.account, app: key.app,
            environment: key.environment, signCounter: key.signCounter, isRevoked: false,
            enrolledAt: now, lastUsedAt: now, challengeEpoch: epoch,
            category: key.category, bundleVersion: key.bundleVersion,
            refreshAt: key.refreshAt)
    }
}

extension StoreModel {
    /// Whether it is forgotten by `now` if `challenge` was spent.
    private func isOver(_ challenge: SpentChallenge, _ now: UInt32) -> Bool {
        now > challenge.expiry + 3600
    }

    /// The refusal of an admit, `durable` being the last record on disk; nil when it is to be done.
    package func admit(
        _ challenge: SpentChallenge?, _ keyID: Bytes32, _ counter: UInt32, now: UInt32,
        durable: UInt64, epoch: UInt32
    ) -> AdmitOutcome? {
        if let challenge {
            if isOver(challenge, now) { return .challengeExpired }
            if spent.contains(challenge) { return .challengeSpent }
        }
        guard let key = keys[keyID], key.sequence <= durable else { return .keyUnknown }
        if key.record.isRevoked { return .keyRevoked }
        guard challenge != nil || key.record.challengeEpoch >= epoch else { return .epochBehind }
        return counter > key.record.signCounter ? nil : .counterNotGreater
    }

    /// What an enrolment must lead to: a refusal, or the change and its answer.
    package func enrol(
        _ key: NewKey, _ challenge: SpentChallenge, keysPerAccount: Int, now: UInt32
    ) -> (change: Change?, outcome: EnrolOutcome) {
        if isOver(challenge, now) { return (nil, .challengeExpired) }
        if spent.contains(challenge) { return (nil, .challengeSpent) }
        if blocked.contains(key.account) { return (nil, .accountBlocked) }
        if let known = keys[key.keyID]?.record {
            guard known.account == key.account, known.app == key.app,
                known.environment == key.environment
            else { return (nil, .foreign) }
            if known.isRevoked { return (nil, .revoked) }
            guard key.signCounter > 0 else { return (.spend(challenge), .alreadyKnown) }
            guard key.signCounter > known.signCounter else { return (nil, .counterNotGreater) }
            let admit = Change.admit(
                challenge, keyID: key.keyID, counter: key.signCounter, isRevoking: false, now: now)
            return (admit, .alreadyKnown)
        }
        let others = keys.values.filter {
            $0.record.account == key.account && $0.record.app == key.app && !$0.record.isRevoked
        }
        guard keysPerAccount > 0, !key.account.isEmpty, others.count >= keysPerAccount,
            let idlest = others.map(\.record).min(by: { left, right in
                (left.lastUsedAt, left.enrolledAt, left.keyID[word: 0], left.keyID[word: 1])
                    < (
                        right.lastUsedAt, right.enrolledAt, right.keyID[word: 0],
                        right.keyID[word: 1]
                    )
            })
        else { return (.enrol(key, challenge, now: now, retired: nil), .enrolled) }
        guard now >= idlest.lastUsedAt, now - idlest.lastUsedAt >= 2_592_000 else {
            return (nil, .limit)
        }
        return (
            .enrol(key, challenge, now: now, retired: idlest.keyID),
            .enrolledRetiring(idlest.keyID)
        )
    }
}
