// Inline enrolment (`protocol.md` §3): a protected request that brings the attestation of its key.
//
//   challenge (purpose attestation) ─► limit ─► attestation, on the pool ─► assertion by its key
//      ─► body complete ─► key, counter and challenge stored in one step ─► forward
//
// A key that the account has enrolled already makes it an ordinary request, whose attestation is
// not read. Nothing is spent or stored before all has passed.

internal import AppAttest
internal import GateBytes
internal import GateConfig
internal import GateHTTP
internal import GateRuntime
internal import GateStore

/// A request whose attestation is being verified.
struct InlineEnrolment {
    let proof: Proof
    let challenge: OpenedChallenge
}

extension Exchange {
    /// Good keys that the account may have of the host's app; 0 for no limit.
    var keysPerAccount: Int { account.isEmpty ? 0 : host?.app?.app.keysPerAccount ?? 0 }

    /// Whether the account has enrolled the key that a proof names.
    func isRegistered(_ keyID: Bytes32?, _ host: HostRuntime) -> Bool {
        keyID.map { isRegistered($0, host) } ?? false
    }

    /// Hands the attestation to the pool, once all that is cheaper has passed.
    func beginInlineEnrolment(
        _ proof: Proof, _ head: RequestHead, _ host: HostRuntime, _ route: Route,
        _ app: AppRuntime
    ) throws(Refusal) {
        guard context.store.isReady else { throw Refusal(.storeUnavailable, at: .enrolment) }
        let challenge = try Admission.openForEnrolment(
            proof, terms(proof, host, route, app),
            scope: host.scope(ReservedPurpose.attestation))
        if let refusal = host.limits.takeAttestation(
            account: account, address: limitAddress, at: limitTime)
        {
            throw refusal
        }
        guard let keyID = proof.keyID, let object = proof.attestation else {
            throw Refusal(.attestationMalformed, at: .enrolment)
        }
        let request = EnrolmentRequest.Enrolment(
            keyID: keyID, challenge: challenge.id, object: object)
        let hash = challenge.attestationHash(isTextHashed: app.app.challengeHash == .text)
        let now = context.unixSeconds()
        let bound = LoopBound(self, on: worker.loop)
        let handle = worker.loop.handle
        let account = account
        let log = context.errorLog
        let isQueued = context.verification.submit {
            let result = AttestationCheck.run(
                request, clientDataHash: hash, app: app, account: account, now: now, log: log)
            handle.submit { bound.open().inlineAttestationChecked(result) }
        }
        guard isQueued else { throw Refusal(.storeUnavailable, at: .enrolment) }
        inlineEnrolment = InlineEnrolment(proof: proof, challenge: challenge)
    }

    private func inlineAttestationChecked(_ result: Result<NewKey, Reason>) {
        // A monitored request may have gone on without.
        guard !isOver, !isAnswered, let pending = inlineEnrolment, let head, let host, let route,
            let app = host.app
        else { return }
        inlineEnrolment = nil
        do throws(Refusal) {
            let key: NewKey
            switch result {
            case .failure(let reason): throw Refusal(reason, at: .enrolment)
            case .success(let verified): key = verified
            }
            admission = try Admission.begin(
                pending.proof, enrolling: key, challenge: pending.challenge, head: head,
                terms: terms(pending.proof, host, route, app))
        } catch {
            return fail(error)
        }
        guard case .held(let held) = sink else { return }
        if isBodyComplete { judgeBody(held) } else { askForBody() }
    }
}
