internal import GateBytes
internal import GateLock

// What a snapshot reads of the shards, in pieces, and what a start puts back.
extension Shards {
    /// The number of shards of each kind.
    var count: Int { keyTables.count }

    /// At most `most` keys of a shard from a place on, those not durable yet included.
    func keys(shard: Int, from index: Int, most: Int) -> [KeyRecord] {
        let found = keyTables[shard].withLock { keys in
            (index..<min(index + most, keys.count)).map { keys.state($0) }
        }
        return found.map(resolve)
    }

    /// The blocked accounts among `most` of a shard from a place on, and the next place.
    func blocked(shard: Int, from index: Int, most: Int) -> (accounts: [[UInt8]], next: Int?) {
        accountTables[shard].withLock { $0.blocked(from: index, most: most) }
    }

    /// The spent challenges in `most` slots of a shard; nil behind the last one.
    func spent(
        shard: Int, at cursor: inout SpentTable.Cursor, most: Int
    ) -> (generation: UInt32, nonces: [SpentTable.Nonce])? {
        spentTables[shard].withLock { $0.nonces(at: &cursor, most: most) }
    }

    /// The spent tokens of a shard by day. The sets are shared, not copied: a token spent meanwhile
    /// pays for the copy of its day.
    func tokens(shard: Int) -> [(day: UInt32, hashes: Set<Bytes32>)] {
        tokenTables[shard].withLock { $0.all }
    }

    /// The oldest generation of spent challenges that some shard has not forgotten; those below the
    /// newest such are over for all.
    var oldestGeneration: UInt32 {
        spentTables.reduce(0) { max($0, $1.withLock { $0.forgottenBefore }) }
    }

    /// Forgets the generations before `oldest` in every shard.
    func forget(before oldest: UInt32) {
        for table in spentTables { table.withLock { $0.forget(before: oldest) } }
    }

    /// Puts back what a snapshot holds.
    func restore(_ item: SnapshotFormat.Item) {
        switch item {
        case .key(let key): restore(key)
        case .spent(let generation, let nonces):
            for nonce in nonces {
                let challenge = SpentChallenge(
                    nonceHigh: nonce.high, nonceLow: nonce.low, expiry: generation << 8 | 255)
                withSpent(challenge) { $0.replay(challenge) }
            }
        case .blocked(let account):
            withAccounts(account) { accounts, _, hash in
                let index =
                    accounts.find(account, hash: hash) ?? accounts.insert(account, hash: hash)
                accounts.setBlocked(index, true)
            }
        case .tokens(let day, let hashes):
            let time = day.multipliedReportingOverflow(by: DeviceTokenTable.daySeconds)
            guard !time.overflow else { return }
            for hash in hashes {
                withTokens(hash) { $0.insert(hash, time: time.partialValue) }
            }
        case .end: break
        }
    }

    private func restore(_ key: KeyRecord) {
        guard !key.account.isEmpty else {
            _ = insert(key, account: .none)
            return
        }
        withAccounts(key.account) { accounts, shard, hash in
            let index =
                accounts.find(key.account, hash: hash)
                ?? accounts.insert(key.account, hash: hash)
            let account = AccountReference(index: UInt32(index), shard: shard)
            if let reference = insert(key, account: account) { accounts.add(reference, to: index) }
        }
    }

    private func insert(_ key: KeyRecord, account: AccountReference) -> KeyReference? {
        withKeys(key.keyID) { keys, shard in
            guard keys.find(key.keyID) == nil else { return nil }
            let index = keys.insert(key, account: account)
            return KeyReference(index: UInt32(index), shard: shard)
        }
    }
}

extension KeyTable {
    /// The key at a place, durable or not.
    func state(_ index: Int) -> Visible {
        let entry = self[index]
        let record = KeyRecord(
            keyID: entry.keyID, publicKey: entry.publicKey, account: [],
            app: apps[entry.app] ?? "", environment: entry.environment,
            signCounter: entry.signCounter, isRevoked: entry.isRevoked,
            enrolledAt: entry.enrolledAt, lastUsedAt: entry.lastUsedAt,
            challengeEpoch: entry.challengeEpoch,
            category: entry.category == 255 ? nil : entry.category,
            bundleVersion: bundleVersions[entry.bundleVersion],
            receipt: ReceiptLocation(packed: entry.receipt),
            metric: entry.metric == .max
                ? nil : RiskMetric(UInt32(entry.metric), time: entry.metricTime),
            refreshAt: entry.refreshAt == 0 ? nil : entry.refreshAt)
        return Visible(record: record, account: entry.account)
    }

    /// Adds a key as a snapshot has it.
    mutating func insert(_ key: KeyRecord, account: AccountReference) -> Int {
        var entry = KeyEntry(
            NewKey(
                keyID: key.keyID, publicKey: key.publicKey, account: [], app: "",
                environment: key.environment, signCounter: key.signCounter,
                category: key.category),
            account: account, app: apps.intern(key.app),
            bundleVersion: key.bundleVersion.map { bundleVersions.intern($0) } ?? InternTable.none)
        entry.enrolledAt = key.enrolledAt
        entry.lastUsedAt = key.lastUsedAt
        entry.challengeEpoch = key.challengeEpoch
        entry.receipt = key.receipt?.packed ?? 0
        entry.metric = key.metric?.value ?? .max
        entry.metricTime = key.metric?.time ?? 0
        entry.refreshAt = key.refreshAt ?? 0
        entry.isRevoked = key.isRevoked
        return insert(entry)
    }
}
