internal import GateBytes
internal import GateLock

/// Everything the store holds in memory, in shards of four kinds, each shard behind its own lock.
///
/// Locks are taken in one order: spent challenges, account, key, and last the queue of the log;
/// tokens, with nothing but the queue. Nobody holds two of one kind but an enrolment that retires a
/// key: it holds the shards of both keys, the lower number first.
struct Shards: Sendable {
    let spentTables: [Lock<SpentTable>]
    let accountTables: [Lock<AccountTable>]
    let keyTables: [Lock<KeyTable>]
    let tokenTables: [Lock<DeviceTokenTable>]

    /// Empty shards, `count` of each kind, a power of two.
    init(count: Int, now: UInt32) {
        precondition(count > 0 && count <= 4096 && count & (count - 1) == 0)
        spentTables = (0..<count).map { _ in Lock(SpentTable(now: now)) }
        accountTables = (0..<count).map { _ in Lock(AccountTable()) }
        keyTables = (0..<count).map { _ in Lock(KeyTable()) }
        tokenTables = (0..<count).map { _ in Lock(DeviceTokenTable(now: now)) }
    }

    private func number(_ hash: UInt64) -> Int {
        Int(truncatingIfNeeded: hash >> 32) & (keyTables.count - 1)
    }

    /// Runs `body` on the shard of `challenge`.
    func withSpent<Result>(
        _ challenge: SpentChallenge, _ body: (inout SpentTable) -> Result
    ) -> Result {
        spentTables[number(challenge.nonceHigh)].withLock(body)
    }

    /// Runs `body` on the shard of `keyID`, with its number.
    func withKeys<Result>(
        _ keyID: Bytes32, _ body: (inout KeyTable, UInt16) -> Result
    ) -> Result {
        let shard = number(keyID[word: 0])
        return keyTables[shard].withLock { body(&$0, UInt16(shard)) }
    }

    /// Runs `body` on the shard of a token's hash.
    func withTokens<Result>(
        _ hash: Bytes32, _ body: (inout DeviceTokenTable) -> Result
    ) -> Result {
        tokenTables[number(hash[word: 0])].withLock(body)
    }

    /// Runs `body` on the shard of `account`, with its number and the account's hash.
    func withAccounts<Result>(
        _ account: [UInt8], _ body: (inout AccountTable, UInt16, UInt64) -> Result
    ) -> Result {
        let hash = AccountTable.hash(account)
        let shard = number(hash)
        return accountTables[shard].withLock { body(&$0, UInt16(shard), hash) }
    }

    /// Where `account` is; nil when it has no key and was never blocked, `none` for the empty one.
    func reference(account: [UInt8]) -> AccountReference? {
        guard !account.isEmpty else { return AccountReference.none }
        return withAccounts(account) { accounts, shard, hash in
            accounts.find(account, hash: hash).map {
                AccountReference(index: UInt32($0), shard: shard)
            }
        }
    }

    /// What is known of a key; nil for one that is unknown or not durable yet.
    func record(_ keyID: Bytes32) -> KeyRecord? {
        let found = withKeys(keyID) { keys, _ in keys.find(keyID).flatMap { keys.visible($0) } }
        return found.map(resolve)
    }

    /// What is known of the keys of `account` in `app`, the one used last first.
    func records(account: [UInt8], app: String) -> [KeyRecord] {
        let references = withAccounts(account) { accounts, _, hash in
            accounts.find(account, hash: hash).map { accounts.keys($0) } ?? []
        }
        let records = references.compactMap { reference in
            keyTables[Int(reference.shard)].withLock { $0.visible(Int(reference.index)) }
                .map(resolve)
        }
        return records.filter { $0.app == app }.sorted {
            ($0.lastUsedAt, $0.enrolledAt) > ($1.lastUsedAt, $1.enrolledAt)
        }
    }

    /// Whether an account with `keys` has room for another of `app`. Of keys that were used last in
    /// the same second the one enrolled first is retired, and then the lesser key ID: the order of
    /// `keys` is no matter, since a snapshot does not keep it.
    func room(among keys: [KeyReference], app: String, countMax: Int, now: UInt32) -> Room {
        var count = 0
        var idlest: (key: KeyReference, entry: KeyEntry)?
        for reference in keys {
            let (entry, isGood) = keyTables[Int(reference.shard)].withLock { table in
                let entry = table[Int(reference.index)]
                return (entry, !entry.isRevoked && table.apps[entry.app] == app)
            }
            guard isGood else { continue }
            count += 1
            if idlest.map({ entry.isRetired(before: $0.entry) }) ?? true {
                idlest = (reference, entry)
            }
        }
        guard count >= countMax, let idlest else { return .free }
        return KeyEntry.isIdle(since: idlest.entry.lastUsedAt, at: now)
            ? .retiring(idlest.key) : .full
    }

    /// Runs `body` on the shard of `keyID`, with its number and the entry of `other`, which it may
    /// have revoked.
    func withKeys<Result>(
        _ keyID: Bytes32, revoking other: KeyReference,
        _ body: (inout KeyTable, UInt16, inout KeyEntry) -> Result
    ) -> Result {
        let shard = number(keyID[word: 0])
        let otherShard = Int(other.shard)
        func run(_ keys: inout KeyTable, _ others: inout KeyTable) -> Result {
            body(&keys, UInt16(shard), &others[Int(other.index)])
        }
        if shard == otherShard {
            return keyTables[shard].withLock { keys in
                var entry = keys[Int(other.index)]
                let result = body(&keys, UInt16(shard), &entry)
                // The copy may be outdated: the key may be the one that `body` was about.
                if entry.isRevoked { keys[Int(other.index)].isRevoked = true }
                return result
            }
        }
        if shard < otherShard {
            return keyTables[shard].withLock { keys in
                keyTables[otherShard].withLock { others in run(&keys, &others) }
            }
        }
        return keyTables[otherShard].withLock { others in
            keyTables[shard].withLock { keys in run(&keys, &others) }
        }
    }

    /// Lets everyone see a key whose record has become durable.
    func reveal(_ reference: KeyReference) {
        keyTables[Int(reference.shard)].withLock { $0[Int(reference.index)].isPending = false }
    }

    /// Forgets the spent challenges whose life was over by `now`, one shard after the other.
    func forget(now: UInt32) {
        for table in spentTables { table.withLock { $0.forget(now: now) } }
        for table in tokenTables { table.withLock { $0.forget(now: now) } }
    }

    /// Runs `body` over all keys, one shard after the other.
    func reduceKeys<Result>(
        _ initial: Result, _ body: (Result, borrowing KeyEntry) -> Result
    ) -> Result {
        keyTables.reduce(initial) { result, table in
            table.withLock { keys in
                (0..<keys.count).reduce(result) { body($0, keys[$1]) }
            }
        }
    }

    /// Keys that are due, as ``Store/dueReceipts(from:looking:limit:now:isWanted:)`` has it.
    func dueReceipts(
        from cursor: inout ReceiptCursor, looking count: Int, limit: Int, now: UInt32,
        isWanted: (_ app: String, _ environment: UInt8) -> Bool
    ) -> (keys: [Bytes32], isAtEnd: Bool) {
        var due: [Bytes32] = []
        var left = count
        while cursor.shard < keyTables.count {
            guard left > 0, due.count < limit else { return (due, false) }
            let (index, isDone) = keyTables[cursor.shard].withLock { keys -> (Int, Bool) in
                var index = cursor.index
                while index < keys.count, left > 0, due.count < limit {
                    let entry = keys[index]
                    if entry.isDue(now), isWanted(keys.apps[entry.app] ?? "", entry.environment) {
                        due.append(entry.keyID)
                    }
                    index += 1
                    left -= 1
                }
                return (index, index >= keys.count)
            }
            cursor.index = isDone ? 0 : index
            cursor.shard += isDone ? 1 : 0
        }
        cursor = ReceiptCursor()
        return (due, true)
    }

    /// Keys, spent challenges, spent tokens and accounts.
    var counts: (keys: Int, spent: Int, tokens: Int, accounts: Int) {
        (
            keyTables.reduce(0) { $0 + $1.withLock { $0.count } },
            spentTables.reduce(0) { $0 + $1.withLock { $0.count } },
            tokenTables.reduce(0) { $0 + $1.withLock { $0.count } },
            accountTables.reduce(0) { $0 + $1.withLock { $0.count } }
        )
    }

    /// Keys by their app.
    var keysByApp: [String: Int] {
        var counts: [String: Int] = [:]
        for table in keyTables {
            table.withLock { table in
                for (app, count) in table.countsByApp {
                    counts[table.apps[app] ?? "", default: 0] += count
                }
            }
        }
        return counts
    }

    /// Whether an account may have another key.
    enum Room {
        case free
        case full
        /// Once this key is revoked.
        case retiring(KeyReference)
    }

    func resolve(_ found: KeyTable.Visible) -> KeyRecord {
        var record = found.record
        if found.account != .none {
            record.account = accountTables[Int(found.account.shard)].withLock {
                $0.text(Int(found.account.index))
            }
        }
        return record
    }
}

extension KeyTable {
    /// A key's record, but for the account, which is in another shard.
    struct Visible {
        var record: KeyRecord
        var account: AccountReference
    }

    /// The key at a place; nil while its record is not durable.
    func visible(_ index: Int) -> Visible? {
        self[index].isPending ? nil : state(index)
    }

    /// Adds a new key with what its enrolment set.
    mutating func insert(
        _ key: NewKey, receipt: ReceiptLocation?, account: AccountReference, time: UInt32,
        epoch: UInt32, isPending: Bool
    ) -> Int {
        var entry = KeyEntry(
            key, account: account, app: apps.intern(key.app),
            bundleVersion: key.bundleVersion.map { bundleVersions.intern($0) } ?? InternTable.none)
        entry.enrolledAt = time
        entry.lastUsedAt = time
        entry.challengeEpoch = epoch
        entry.receipt = receipt?.packed ?? 0
        entry.refreshAt = key.refreshAt ?? 0
        entry.isPending = isPending
        return insert(entry)
    }
}

extension KeyEntry {
    /// Whether this key goes before `other` where one of them has to.
    func isRetired(before other: KeyEntry) -> Bool {
        (lastUsedAt, enrolledAt, keyID[word: 0], keyID[word: 1])
            < (other.lastUsedAt, other.enrolledAt, other.keyID[word: 0], other.keyID[word: 1])
    }

    /// Whether a key that was used last at that time has been idle long enough to be retired.
    static func isIdle(since lastUsedAt: UInt32, at now: UInt32) -> Bool {
        Int64(now) - Int64(lastUsedAt) >= Int64(StoreLimits.retirementIdleSeconds)
    }

    /// Whether its receipt is to be refreshed by `now`.
    func isDue(_ now: UInt32) -> Bool {
        refreshAt != 0 && refreshAt <= now && receipt != 0 && !isRevoked && !isPending
    }

    /// Does what an admit does to its key: the counter takes the maximum, a revocation sticks.
    mutating func apply(_ admit: Record.Admit, epoch: UInt32) {
        signCounter = max(signCounter, admit.counter)
        lastUsedAt = max(lastUsedAt, admit.time)
        if admit.challenge != nil { challengeEpoch = max(challengeEpoch, epoch) }
        if admit.isRevoking { isRevoked = true }
    }
}

extension Shards {
    /// Applies a record of the log; false when it follows from none before it.
    func apply(_ entry: LogReader.Entry) -> Bool {
        switch entry.record {
        case .admit(let admit):
            if let challenge = admit.challenge { spend(challenge) }
            return change(admit.keyID) { $0.apply(admit, epoch: entry.epoch) }
        case .block(let account, let isBlocked, _):
            withAccounts(account) { accounts, _, hash in
                let index =
                    accounts.find(account, hash: hash) ?? accounts.insert(account, hash: hash)
                accounts.setBlocked(index, isBlocked)
            }
            return true
        case .enrol(let enrolment):
            spend(enrolment.challenge)
            enrol(enrolment, entry)
            return enrolment.retired.map { change($0) { $0.isRevoked = true } } ?? true
        case .receipt(let receipt):
            return change(receipt.keyID) { $0.apply(receipt) }
        case .revoke(let keyID, _):
            return change(keyID) { $0.isRevoked = true }
        case .spend(let challenge):
            spend(challenge)
            return true
        case .token(let hash, let time):
            withTokens(hash) { $0.insert(hash, time: time) }
            return true
        }
    }

    private func spend(_ challenge: SpentChallenge) {
        withSpent(challenge) { $0.replay(challenge) }
    }

    private func change(_ keyID: Bytes32, _ body: (inout KeyEntry) -> Void) -> Bool {
        withKeys(keyID) { keys, _ in
            guard let index = keys.find(keyID) else { return false }
            body(&keys[index])
            return true
        }
    }

    private func enrol(_ enrolment: Record.Enrolment, _ entry: LogReader.Entry) {
        let key = enrolment.key
        func insert(_ account: AccountReference) -> KeyReference? {
            withKeys(key.keyID) { keys, shard in
                guard keys.find(key.keyID) == nil else { return nil }
                let index = keys.insert(
                    key, receipt: enrolment.receipt, account: account, time: enrolment.time,
                    epoch: entry.epoch, isPending: false)
                return KeyReference(index: UInt32(index), shard: shard)
            }
        }
        guard !key.account.isEmpty else {
            _ = insert(.none)
            return
        }
        withAccounts(key.account) { accounts, shard, hash in
            let index =
                accounts.find(key.account, hash: hash)
                ?? accounts.insert(key.account, hash: hash)
            let account = AccountReference(index: UInt32(index), shard: shard)
            if let reference = insert(account) { accounts.add(reference, to: index) }
        }
    }
}
