package import GateBytes

extension Store {
    /// Spends `challenge` and advances the counter of `keyID` to `counter` in one durable step
    /// (under relaxed durability one that soon will be);
    /// with `revoking`, revokes the key in the same one. Without a challenge only the counter
    /// decides, and only for a key that has passed with one in this epoch: its counter may be one
    /// that was lost otherwise.
    ///
    /// Refused in this order: challenge over an hour past its expiry, spent, key unknown, key
    /// revoked, without a challenge an older epoch, counter not greater than every one admitted
    /// before.
    package func admit(
        challenge: SpentChallenge?, keyID: Bytes32, counter: UInt32, revoking: Bool = false,
        now: UInt32, reply: @escaping @Sendable (AdmitOutcome) -> Void
    ) {
        let admit = Record.Admit(
            keyID: keyID, counter: counter, time: now, isRevoking: revoking, challenge: challenge)
        guard let challenge else {
            if let refusal = advance(admit, { .admit(previousCounter: $0, reply) }) {
                reply(refusal)
            }
            return
        }
        var admitted: AdmitOutcome?
        let refusal = spend(
            challenge, now: now, expired: .challengeExpired, spent: .challengeSpent
        ) {
            advance(admit) { previous in
                guard isRelaxed, !revoking else { return .admit(previousCounter: previous, reply) }
                admitted = .admitted(previousCounter: previous)
                return nil
            }
        }
        if let answer = refusal ?? admitted { reply(answer) }
    }

    /// Runs `body` with the shard of `challenge` locked, and spends it when `body` refuses nothing.
    private func spend<Outcome>(
        _ challenge: SpentChallenge, now: UInt32, expired: Outcome, spent: Outcome,
        _ body: () -> Outcome?
    ) -> Outcome? {
        shards.withSpent(challenge) { table in
            table.forget(now: now)
            guard !table.isForgotten(challenge, now: now) else { return expired }
            guard !table.contains(challenge) else { return spent }
            let refusal = body()
            if refusal == nil { table.insert(challenge) }
            return refusal
        }
    }

    /// Advances the counter, or says why not. `waiter` is who waits for that, if anyone.
    private func advance(
        _ admit: Record.Admit, _ waiter: (_ previousCounter: UInt32) -> Waiter?
    ) -> AdmitOutcome? {
        shards.withKeys(admit.keyID) { keys, _ in
            guard let index = keys.find(admit.keyID), !keys[index].isPending else {
                return .keyUnknown
            }
            guard !keys[index].isRevoked else { return .keyRevoked }
            guard admit.challenge != nil || keys[index].challengeEpoch >= epoch else {
                return .epochBehind
            }
            let previous = keys[index].signCounter
            guard admit.counter > previous else { return .counterNotGreater }
            guard append(.admit(admit), waiter(previous)) != nil else { return .unavailable }
            keys[index].apply(admit, epoch: epoch)
            return nil
        }
    }
}

extension Store {
    /// Stores `key` and spends `challenge` in one durable step. The account may have at most
    /// `keysPerAccount` good keys of the app, 0 for no limit; over it the one that was not used for
    /// longest is revoked in the same step, where that is a month.
    ///
    /// A receipt is written first, to a file of its own: the record that names its place follows
    /// once it is on disk. One that cannot be written lets the client come again.
    ///
    /// A key that is known already keeps what it has; where `key` comes with a counter, that of an
    /// inline enrolment's assertion, it is advanced to it as by an admit, or refused.
    package func enrol(
        _ key: NewKey, challenge: SpentChallenge, keysPerAccount: Int, now: UInt32,
        reply: @escaping @Sendable (EnrolOutcome) -> Void
    ) {
        let enrolment = Enrolment(
            key: key, receipt: nil, challenge: challenge, now: now, reply: reply)
        // Nothing is written for what is refused, or stored already.
        let isNew = shards.withKeys(key.keyID) { keys, _ in keys.find(key.keyID) == nil }
        guard !key.receipt.isEmpty, isNew, isReady, !isSpent(challenge) else {
            return enrol(enrolment, keysPerAccount: keysPerAccount)
        }
        write(key.receipt, of: key.keyID) { [self] place in
            guard let place else { return reply(.unavailable) }
            var enrolment = enrolment
            enrolment.receipt = place
            enrol(enrolment, keysPerAccount: keysPerAccount)
        }
    }

    private func enrol(_ enrolment: Enrolment, keysPerAccount: Int) {
        let (key, challenge, now) = (enrolment.key, enrolment.challenge, enrolment.now)
        let refusal = spend(
            challenge, now: now, expired: .challengeExpired, spent: .challengeSpent
        ) { () -> EnrolOutcome? in
            guard !key.account.isEmpty else {
                return store(enrolment, account: .none, room: .free).refusal
            }
            return storeForAccount(enrolment, keysPerAccount: keysPerAccount)
        }
        if let refusal { enrolment.reply(refusal) }
    }

    private struct Enrolment {
        var key: NewKey
        var receipt: ReceiptLocation?
        var challenge: SpentChallenge
        var now: UInt32
        var reply: @Sendable (EnrolOutcome) -> Void
    }

    /// What became of a key: refused, or stored; new where it has a reference.
    private struct Stored {
        var refusal: EnrolOutcome?
        var reference: KeyReference?
    }

    private func storeForAccount(_ enrolment: Enrolment, keysPerAccount: Int) -> EnrolOutcome? {
        let key = enrolment.key
        return shards.withAccounts(key.account) { accounts, shard, hash in
            let found = accounts.find(key.account, hash: hash)
            if let found, accounts.isBlocked(found) { return .accountBlocked }
            let others = found.map { accounts.keys($0) } ?? []
            let room =
                keysPerAccount > 0 && others.count >= keysPerAccount
                ? shards.room(
                    among: others, app: key.app, countMax: keysPerAccount, now: enrolment.now)
                : .free
            let account = AccountReference(index: UInt32(found ?? accounts.count), shard: shard)
            let stored = store(enrolment, account: account, room: room)
            if let reference = stored.reference {
                let index = found ?? accounts.insert(key.account, hash: hash)
                accounts.add(reference, to: index)
            }
            return stored.refusal
        }
    }

    private func store(
        _ enrolment: Enrolment, account: AccountReference, room: Shards.Room
    ) -> Stored {
        let keyID = enrolment.key.keyID
        func known(_ keys: inout KeyTable) -> Stored? {
            guard let index = keys.find(keyID) else { return nil }
            return Stored(refusal: storeKnown(enrolment, &keys, index, account: account))
        }
        guard case .retiring(let reference) = room else {
            return shards.withKeys(keyID) { keys, shard in
                if let known = known(&keys) { return known }
                if case .full = room { return Stored(refusal: .limit) }
                return storeNew(enrolment, &keys, shard, account: account, retired: nil)
            }
        }
        return shards.withKeys(keyID, revoking: reference) { keys, shard, other in
            if let known = known(&keys) { return known }
            // Used or revoked since it was chosen, by a request beside this one.
            guard KeyEntry.isIdle(since: other.lastUsedAt, at: enrolment.now) else {
                return Stored(refusal: .limit)
            }
            let retired = other.isRevoked ? nil : other.keyID
            let stored = storeNew(enrolment, &keys, shard, account: account, retired: retired)
            if stored.reference != nil { other.isRevoked = true }
            return stored
        }
    }

    private func storeNew(
        _ enrolment: Enrolment, _ keys: inout KeyTable, _ shard: UInt16, account: AccountReference,
        retired: Bytes32?
    ) -> Stored {
        let key = enrolment.key
        guard keys.apps.intern(key.app) != InternTable.none, reserveKey() else {
            return Stored(refusal: .unavailable)
        }
        let reference = KeyReference(index: UInt32(keys.count), shard: shard)
        let record = Record.enrol(
            Record.Enrolment(
                key: key, receipt: enrolment.receipt, challenge: enrolment.challenge,
                time: enrolment.now, retired: retired))
        let outcome = retired.map(EnrolOutcome.enrolledRetiring) ?? .enrolled
        let waiter = Waiter.enrol(outcome, revealed: reference, enrolment.reply)
        guard append(record, waiter) != nil else {
            releaseKey()
            return Stored(refusal: .unavailable)
        }
        _ = keys.insert(
            key, receipt: enrolment.receipt, account: account, time: enrolment.now,
            epoch: epoch, isPending: true)
        return Stored(reference: reference)
    }

    /// A key that is here already: spends the challenge where it is the same account's, and
    /// advances its counter where there is one to advance to.
    private func storeKnown(
        _ enrolment: Enrolment, _ keys: inout KeyTable, _ index: Int, account: AccountReference
    ) -> EnrolOutcome? {
        let entry = keys[index]
        guard entry.account == account, keys.apps[entry.app] == enrolment.key.app,
            entry.environment == enrolment.key.environment,
            entry.publicKey == enrolment.key.publicKey
        else { return .foreign }
        guard !entry.isRevoked else { return .revoked }
        let waiter = Waiter.enrol(.alreadyKnown, revealed: nil, enrolment.reply)
        guard enrolment.key.signCounter > 0 else {
            return append(.spend(enrolment.challenge), waiter) == nil ? .unavailable : nil
        }
        guard enrolment.key.signCounter > entry.signCounter else { return .counterNotGreater }
        let admit = Record.Admit(
            keyID: entry.keyID, counter: enrolment.key.signCounter, time: enrolment.now,
            isRevoking: false, challenge: enrolment.challenge)
        guard append(.admit(admit), waiter) != nil else { return .unavailable }
        keys[index].apply(admit, epoch: epoch)
        return nil
    }
}

extension Store {
    /// Revokes a key for good, if it is one of `account` and `app`; nil for any.
    package func revoke(
        keyID: Bytes32, account: [UInt8]?, app: String?, now: UInt32,
        reply: @escaping @Sendable (RevokeOutcome) -> Void
    ) {
        let reference = account.map { shards.reference(account: $0) }
        let outcome = shards.withKeys(keyID) { keys, _ -> RevokeOutcome? in
            guard let index = keys.find(keyID) else { return .nothing }
            if let reference, keys[index].account != reference { return .nothing }
            if let app, keys.apps[keys[index].app] != app { return .nothing }
            if keys[index].isRevoked {
                switch barrier(.revoke(.nothing, reply)) {
                case .durable: return .nothing
                case .refused: return .unavailable
                case .waiting: return nil
                }
            }
            let record = Record.revoke(keyID: keyID, time: now)
            guard append(record, .revoke(.revoked, reply)) != nil else { return .unavailable }
            keys[index].isRevoked = true
            return nil
        }
        if let outcome { reply(outcome) }
    }

    /// Blocks `account`, or lets it back in.
    package func block(
        account: [UInt8], isBlocked: Bool = true, now: UInt32,
        reply: @escaping @Sendable (BlockOutcome) -> Void
    ) {
        guard !account.isEmpty else { return reply(.unavailable) }
        let outcome = shards.withAccounts(account) { accounts, _, hash -> BlockOutcome? in
            let found = accounts.find(account, hash: hash)
            if found.map({ accounts.isBlocked($0) }) ?? false == isBlocked {
                switch barrier(.block(reply)) {
                case .durable: return .done
                case .refused: return .unavailable
                case .waiting: return nil
                }
            }
            let record = Record.block(account: account, isBlocked: isBlocked, time: now)
            guard append(record, .block(reply)) != nil else { return .unavailable }
            accounts.setBlocked(found ?? accounts.insert(account, hash: hash), isBlocked)
            return nil
        }
        if let outcome { reply(outcome) }
    }
}
