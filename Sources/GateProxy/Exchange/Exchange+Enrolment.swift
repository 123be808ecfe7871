// The enrolment endpoints (`protocol.md` §2): answered by the gate alone. A call's body is held in
// memory up to 64 KiB and read once it is complete; an attestation is then verified on the pool,
// not on the loop.

internal import AppAttest
internal import GateBytes
internal import GateConfig
internal import GateHTTP
internal import GateRuntime
internal import GateStore

extension Exchange {
    /// A call of the enrolment endpoints on its way.
    struct PendingCall {
        let call: EnrolmentCall
        /// The purpose of a challenge that goes with `challenge_required`.
        var purpose: String {
            call == .keysRevoke ? ReservedPurpose.revoke : ReservedPurpose.attestation
        }
    }

    /// Takes a request at or below the enrolment prefix.
    func beginEnrolment(_ subpath: String, _ head: RequestHead, _ host: HostRuntime) {
        guard let call = EnrolmentCall(subpath: subpath), host.app != nil else {
            return refuse(Refusal(.noRoute, at: .enrolment))
        }
        enrolment = PendingCall(call: call)
        guard head.text(head.method) == call.method else {
            return refuse(Refusal(.methodNotAllowed, at: .enrolment), allow: [call.method])
        }
        takeAccount(head, host) { exchange in exchange.takeCall(call, head, host) }
    }

    private func takeCall(_ call: EnrolmentCall, _ head: RequestHead, _ host: HostRuntime) {
        if case .length(let count) = head.framing, count > EnrolmentCall.bodyBytesMax {
            return refuse(Refusal(.tooLarge, at: .enrolment))
        }
        if call == .challenge { return answerChallengeValue(head, host) }
        sink = .held(
            HeldBody(
                memoryBytesMax: EnrolmentCall.bodyBytesMax, bytesMax: EnrolmentCall.bodyBytesMax,
                spool: context.spool))
        askForBody()
    }

    /// The body of a call is complete.
    func enrolmentBodyComplete(_ held: HeldBody) {
        guard let host, let enrolment else { return }
        do throws(Refusal) {
            switch enrolment.call {
            case .challenge:
                return
            case .challenges:
                try answerChallenges(held.bytes, host)
            case .keys:
                try enrol(try EnrolmentRequest.keys(held.bytes), host, isByValue: false)
            case .keysRevoke:
                try revoke(try EnrolmentRequest.key(held.bytes), host, held)
            case .keysStatus:
                let keyID = try EnrolmentRequest.key(held.bytes)
                answer(EnrolmentAnswer.registered(isRegistered(keyID, host), status: 200))
            case .verify:
                try enrol(try EnrolmentRequest.verify(held.bytes), host, isByValue: true)
            }
        } catch {
            refuse(error)
        }
    }

    var limitAddress: IPAddress { clientAddress ?? IPAddress(high: 0, low: 0) }
    var limitTime: UInt64 { UInt64(worker.loop.now.nanoseconds) }

    // MARK: Challenges

    private func answerChallengeValue(_ head: RequestHead, _ host: HostRuntime) {
        do throws(Refusal) {
            let query = head.query.map { Array(head.bytes[$0]) }
            let purpose = try EnrolmentRequest.challengePurpose(query: query, host.purposes)
            try takeChallenges(1, host)
            answer(
                EnrolmentAnswer.challengeValue(
                    worker.issue(purpose: purpose, host: host, account: account)),
                limit: .challenges, host)
        } catch {
            refuse(error)
        }
    }

    private func answerChallenges(_ body: [UInt8], _ host: HostRuntime) throws(Refusal) {
        let request = try EnrolmentRequest.challenges(body, host.purposes)
        try takeChallenges(request.count ?? 1, host)
        let seconds = host.host.challengeSeconds(request.purpose)
        let issued = (0..<(request.count ?? 1)).map { _ in
            worker.issue(purpose: request.purpose, host: host, account: account)
        }
        if request.count != nil {
            answer(
                EnrolmentAnswer.challenges(issued, expiresIn: seconds), limit: .challenges, host)
        } else {
            answer(
                EnrolmentAnswer.challenge(issued[0], expiresIn: seconds), limit: .challenges, host)
        }
    }

    /// Answers a call that counted for a limit, and says how the client stands with it.
    private func answer(_ answer: GateAnswer, limit: RateStatus.Name, _ host: HostRuntime) {
        var answer = answer
        answer.rateLimit = host.limits.standing(
            limit, account: account, address: limitAddress, at: limitTime)
        self.answer(answer)
    }

    private func takeChallenges(_ count: Int, _ host: HostRuntime) throws(Refusal) {
        if let refusal = host.limits.takeChallenges(
            count, account: account, address: limitAddress, at: limitTime)
        {
            throw refusal
        }
    }

    // MARK: Keys

    func isRegistered(_ keyID: Bytes32, _ host: HostRuntime) -> Bool {
        guard let app = host.app, let key = context.store.key(keyID) else { return false }
        return app.takes(key, of: account) && !key.isRevoked
    }

    private func enrol(
        _ request: EnrolmentRequest.Enrolment, _ host: HostRuntime, isByValue: Bool
    ) throws(Refusal) {
        guard let app = host.app else { return }
        if let refusal = host.limits.takeAttestation(
            account: account, address: limitAddress, at: limitTime)
        {
            throw refusal
        }
        log.keyID = request.keyID
        let store = context.store
        guard store.isReady else { throw Refusal(.storeUnavailable, at: .enrolment) }
        let challenge = try openChallenge(request.challenge, host, isByValue: isByValue)
        let hash = challenge.attestationHash(isTextHashed: app.app.challengeHash == .text)
        let now = context.unixSeconds()
        let bound = LoopBound(self, on: worker.loop)
        let handle = worker.loop.handle
        let account = account
        let log = context.errorLog
        let isQueued = context.verification.submit {
            let result = AttestationCheck.run(
                request, clientDataHash: hash, app: app, account: account, now: now, log: log)
            handle.submit { bound.open().attestationChecked(result, challenge) }
        }
        guard isQueued else { throw Refusal(.storeUnavailable, at: .enrolment) }
    }

    private func openChallenge(
        _ text: [UInt8], _ host: HostRuntime, isByValue: Bool
    ) throws(Refusal) -> OpenedChallenge {
        let scope = host.scope(ReservedPurpose.attestation)
        let opened: OpenedChallenge
        do throws(ChallengeError) {
            opened =
                isByValue
                ? try context.challenges.open(
                    value: text, scope, account: account, epoch: context.store.epoch,
                    now: context.unixMilliseconds())
                : try context.challenges.open(
                    id: text, scope, account: account, epoch: context.store.epoch,
                    now: context.unixMilliseconds())
        } catch {
            throw Refusal(error.reason, at: .enrolment)
        }
        guard !context.store.isSpent(opened.spent) else {
            throw Refusal(.challengeSpent, at: .enrolment)
        }
        return opened
    }

    private func attestationChecked(
        _ result: Result<NewKey, Reason>, _ challenge: OpenedChallenge
    ) {
        guard !isOver, !isAnswered else { return }
        switch result {
        case .failure(let reason):
            log.enrolment = reason.rawValue
            refuse(Refusal(reason, at: .enrolment))
        case .success(let key):
            awaitStore()
            let bound = LoopBound(self, on: worker.loop)
            let handle = worker.loop.handle
            context.store.enrol(
                key, challenge: challenge.spent,
                keysPerAccount: keysPerAccount,
                now: UInt32(clamping: context.unixSeconds())
            ) { outcome in
                handle.submit { bound.open().enrolled(outcome) }
            }
        }
    }

    private func enrolled(_ outcome: EnrolOutcome) {
        storeAnswered()
        if case .enrolledRetiring(let keyID) = outcome { context.tunnels.revoke(keyID) }
        guard let enrolment, let host else { return }
        if let refusal = Refusal(outcome) {
            log.enrolment = refusal.reason.rawValue
            return refuse(refusal)
        }
        let isNew = outcome != .alreadyKnown
        log.enrolment = isNew ? "enrolled" : "known"
        // 201 says that something new was stored; `verify` knows 200 alone.
        let status = isNew && enrolment.call != .verify ? 201 : 200
        answer(EnrolmentAnswer.registered(true, status: status), limit: .attestations, host)
    }
}
