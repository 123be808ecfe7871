// `keys/revoke` (`protocol.md` §2). Where the host knows accounts, the account may revoke its keys;
// under `account none` only the key itself can, by a proof with the binding `request` and the
// purpose `revoke`.

internal import GateBytes
internal import GateConfig
internal import GateRuntime
internal import GateStore

extension Exchange {
    /// Revokes `keyID`; 204 also where there was nothing to revoke.
    func revoke(_ keyID: Bytes32, _ host: HostRuntime, _ held: HeldBody) throws(Refusal) {
        log.keyID = keyID
        guard host.fields.hasAccounts else { return try revokeByProof(keyID, host, held) }
        guard let app = host.app, let key = context.store.key(keyID), app.takes(key, of: account)
        else { return answer(EnrolmentAnswer.revoked) }
        awaitStore()
        let bound = LoopBound(self, on: worker.loop)
        let handle = worker.loop.handle
        context.store.revoke(
            keyID: keyID, account: account, app: key.app,
            now: UInt32(clamping: context.unixSeconds())
        ) { outcome in
            handle.submit { bound.open().revoked(keyID, isAvailable: outcome != .unavailable) }
        }
    }

    private func revokeByProof(
        _ keyID: Bytes32, _ host: HostRuntime, _ held: HeldBody
    ) throws(Refusal) {
        guard let head, let app = host.app else { return }
        let proof: Proof
        switch ProofReader.read(head, host.fields, .request).outcome {
        // The binding `request` has nothing in the body.
        case .absent, .inBody: throw Refusal(.proofAbsent, at: .checks)
        case .malformed(let reason): throw Refusal(reason, at: .fields)
        case .proof(let read): proof = read
        }
        let terms = Admission.Terms(
            scopes: [host.scope(ReservedPurpose.revoke)], app: app, account: account,
            challenges: context.challenges, store: context.store,
            now: context.unixMilliseconds())
        do throws(Refusal) {
            admission = try Admission.begin(proof, head: head, terms: terms)
        } catch {
            switch error.reason {
            case .keyForeign, .keyRevoked, .keyUnknown:
                guard proof.keyID == keyID else { throw Refusal(.keyForeign, at: .enrolment) }
                return answer(EnrolmentAnswer.revoked)
            default:
                throw error
            }
        }
        guard proof.keyID == keyID else { throw Refusal(.keyForeign, at: .enrolment) }
        guard verifySignature(bodyHash: held.finish()) else { return }
        spend(revoking: true) { exchange, outcome in exchange.revokedByProof(keyID, outcome) }
    }

    private func revokedByProof(_ keyID: Bytes32, _ outcome: CommitOutcome) {
        if outcome.refusal == nil { context.tunnels.revoke(keyID) }
        guard !isOver, !isAnswered else { return }
        do throws(Refusal) {
            try Admission.require(outcome)
            answer(EnrolmentAnswer.revoked)
        } catch {
            // Someone was faster: the key is revoked all the same.
            if error.reason == .keyRevoked { return answer(EnrolmentAnswer.revoked) }
            refuse(error)
        }
    }

    private func revoked(_ keyID: Bytes32, isAvailable: Bool) {
        storeAnswered()
        if isAvailable { context.tunnels.revoke(keyID) }
        guard !isOver, !isAnswered else { return }
        guard isAvailable else { return refuse(Refusal(.storeUnavailable, at: .enrolment)) }
        answer(EnrolmentAnswer.revoked)
    }
}
