// A protected request: account (Exchange+Account), proof, challenge, key, assertion, signature,
// commit, body — in the order of `protocol.md` §4, cheap before dear and nothing upstream before
// all of it has passed.
//
// With the binding `client_data` the signature is verified from the head and the commit runs while
// the body arrives; with `request` and `body` both wait for the body's hash, and a proof that is in
// the body is judged once that is complete. A monitored route goes the same way and forwards
// whatever comes of it.

internal import AppAttest
internal import GateBytes
internal import GateConfig
internal import GateCrypto
internal import GateHTTP
internal import GateRuntime
internal import GateStore

extension Exchange {
    /// Judges a request to an enforced or monitored route by its head.
    func judge(_ head: RequestHead, _ host: HostRuntime, _ route: Route) {
        if route.share?.basis == .address { place(head, host) }
        let isPlaced = route.share == nil || placement != nil
        guard !isPlaced || goesOn(head, route) else { return }
        takeAccount(head, host) { exchange in
            guard isPlaced || exchange.goesOn(head, route) else { return }
            exchange.judgeProof(head, host, route)
        }
    }

    private func judgeProof(_ head: RequestHead, _ host: HostRuntime, _ route: Route) {
        guard let app = host.app else { return fail(Refusal(.noRoute, at: .checks)) }
        guard let proof = readProof(head, host, route) else { return }
        guard takeLength(head, route) else { return }
        isAttestationBrought = proof.bringsAttestation
        switch proof {
        case .whole(let proof): admit(proof, head, host, route, app)
        case .partial(let reading):
            guard context.store.isReady else {
                return fail(Refusal(.storeUnavailable, at: .checks))
            }
            partialProof = reading
        }
        guard !isAnswered, case .none = sink else { return }
        // What needs no body has not all passed while an attestation is verified.
        hold(head, route, isAsking: inlineEnrolment == nil)
    }

    /// What is decided before anything of the proof is read.
    /// - Returns: False when the request has been refused, or has gone on without judgement.
    private func goesOn(_ head: RequestHead, _ route: Route) -> Bool {
        if mode == .off {
            guard let permit = Permit.unguarded(route, placement) else { return false }
            forwardStreaming(permit)
            return false
        }
        guard !RequestKind.isEarlyData(head) else {
            fail(Refusal(.unverifiable, as: .tooEarly))
            return false
        }
        return true
    }

    /// Judges the declared length of the body.
    /// - Returns: False when the request has been refused for it.
    func takeLength(_ head: RequestHead, _ route: Route) -> Bool {
        guard case .length(let count) = head.framing else { return true }
        if mode == .monitor, count > route.bodyMemoryBytes {
            fail(Refusal(.unverifiable, at: .checks))
            return false
        }
        if mode == .enforce, count > route.bodyBytesMax {
            fail(Refusal(.tooLarge, at: .checks))
            return false
        }
        return true
    }

    /// What a head says of a proof.
    private enum FoundProof {
        case whole(Proof)
        /// The rest is in the body.
        case partial(ProofReading)

        var bringsAttestation: Bool {
            switch self {
            case .whole(let proof): return proof.attestation != nil
            case .partial(let reading): return reading.bringsAttestation
            }
        }
    }

    private func readProof(
        _ head: RequestHead, _ host: HostRuntime, _ route: Route
    ) -> FoundProof? {
        let reading = ProofReader.read(
            head, host.fields, route.binding, isInline: route.isInlineEnrolment)
        if route.setBits != nil { bitsToken = reading.deviceToken }
        switch reading.outcome {
        case .absent where reading.isUnsupported:
            log.isUnsupported = true
            fallBack(reading, head, route)
        case .absent:
            fail(Refusal(.proofAbsent, at: .checks))
        case .inBody:
            return .partial(reading)
        case .malformed(let reason):
            fail(Refusal(reason, at: .fields))
        case .proof(let proof):
            return .whole(proof)
        }
        return nil
    }

    /// What a proof on `route` is judged against.
    func terms(
        _ proof: Proof, _ host: HostRuntime, _ route: Route, _ app: AppRuntime
    ) -> Admission.Terms {
        var scopes = [host.scope(route.purpose)]
        if proof.attestation != nil { scopes.append(host.scope(ReservedPurpose.attestation)) }
        return Admission.Terms(
            scopes: scopes, app: app, account: account, challenges: context.challenges,
            requirements: route.requirements, store: context.store,
            now: context.unixMilliseconds())
    }

    private func admit(
        _ proof: Proof, _ head: RequestHead, _ host: HostRuntime, _ route: Route,
        _ app: AppRuntime
    ) {
        log.keyID = proof.keyID
        do throws(Refusal) {
            if proof.attestation != nil, !isRegistered(proof.keyID, host) {
                return try beginInlineEnrolment(proof, head, host, route, app)
            }
            let admission = try Admission.begin(
                proof, head: head, terms: terms(proof, host, route, app))
            let isBodyIndependent = admission.isBodyIndependent
            self.admission = consume admission
            guard context.store.isReady else { throw Refusal(.storeUnavailable, at: .checks) }
            guard isBodyIndependent else { return }
        } catch {
            return fail(error)
        }
        if verifySignature(bodyHash: nil) { startCommit() }
    }

    /// Holds the body and, where the client waits for it, asks for it.
    /// - Parameter isAsking: False where the client is to be asked later.
    func hold(_ head: RequestHead, _ route: Route, isAsking: Bool = true) {
        if case .held = sink { return }
        sink = .held(
            HeldBody(
                memoryBytesMax: route.bodyMemoryBytes,
                bytesMax: isBodyBounded(route) ? route.bodyBytesMax : .max,
                isFileAllowed: route.binding != .envelope, spool: context.spool))
        if isAsking { askForBody() }
    }

    /// Whether `body max` binds: a monitored body is bounded where its length must be sent.
    private func isBodyBounded(_ route: Route) -> Bool {
        mode == .enforce || pool?.upstream.isLengthRequired == true
    }

    /// Verifies the admission's signature.
    /// - Returns: Whether it holds; otherwise the request has been refused.
    func verifySignature(bodyHash: Bytes32?) -> Bool {
        guard let head, let host, admission != nil else { return false }
        let now = UInt64(worker.loop.now.nanoseconds)
        let address = clientAddress ?? IPAddress(high: 0, low: 0)
        if let refusal = host.limits.checkSignature(account: account, address: address, at: now) {
            fail(refusal)
            return false
        }
        let started = worker.loop.clock.now()
        do throws(Refusal) {
            try admission?.verifySignature(head: head, bodyHash: bodyHash) { record in
                worker.keys.key(record.keyID, record.publicKey)
            }
            log.verifyTime = worker.loop.clock.now().duration(since: started)
            log.keyID = admission?.key.keyID
            return true
        } catch {
            log.verifyTime = worker.loop.clock.now().duration(since: started)
            if Admission.isSignatureFailure(error.reason) {
                host.limits.countFailedSignature(account: account, address: address, at: now)
            }
            fail(error)
            return false
        }
    }

    /// Hands spending and advancing to the store; the outcome comes back through the loop's inbox.
    private func startCommit() {
        commit = .pending(since: worker.loop.clock.now())
        spend(revoking: false) { exchange, outcome in exchange.committed(outcome) }
    }

    /// The one durable step: spends the challenge and advances the counter, revokes the key where
    /// that is what was signed, enrols it where it came with its attestation. `then` runs on the
    /// loop.
    func spend(revoking: Bool, then: @escaping @Sendable (Exchange, CommitOutcome) -> Void) {
        guard let commitment = admission?.commitment else { return }
        awaitStore()
        let bound = LoopBound(self, on: worker.loop)
        let handle = worker.loop.handle
        let reply: @Sendable (CommitOutcome) -> Void = { outcome in
            handle.submit {
                bound.open().storeAnswered()
                then(bound.open(), outcome)
            }
        }
        let now = UInt32(clamping: context.unixSeconds())
        if let newKey = commitment.enrolment, let challenge = commitment.challenge {
            context.store.enrol(
                newKey, challenge: challenge, keysPerAccount: keysPerAccount, now: now
            ) { outcome in reply(.enrol(outcome)) }
        } else {
            context.store.admit(
                challenge: commitment.challenge, keyID: commitment.keyID,
                counter: commitment.counter, revoking: revoking, now: now
            ) { outcome in reply(.admit(outcome)) }
        }
    }

    private func committed(_ outcome: CommitOutcome) {
        if case .pending(let since) = commit {
            log.commitTime = worker.loop.clock.now().duration(since: since)
        }
        commit = .done(outcome)
        if case .enrol(.enrolledRetiring(let keyID)) = outcome { context.tunnels.revoke(keyID) }
        guard !isOver, !isAnswered, admission != nil else { return }
        do throws(Refusal) {
            try Admission.require(outcome)
        } catch {
            return fail(error)
        }
        if isBodyComplete, case .held(let held) = sink { proceed(outcome, held) }
    }

    /// The body is complete: read what it has of the proof, compare its hash, or use it.
    func bodyComplete(_ held: HeldBody) {
        if let fallback { return fallbackBodyComplete(held, fallback) }
        if let reading = partialProof.take() {
            guard let head, completeProof(reading, head, held) else { return }
        }
        guard inlineEnrolment == nil, case .held(let held) = sink else { return }
        judgeBody(held)
    }

    /// Judges a request whose body is complete, and all else before it.
    func judgeBody(_ held: HeldBody) {
        let hash = (innerBody ?? held).finish()
        if admission?.isBodyIndependent == false {
            guard verifySignature(bodyHash: hash) else { return }
        }
        do throws(Refusal) {
            try admission?.checkBody(hash)
        } catch {
            return fail(error)
        }
        switch commit {
        case .done(let outcome): proceed(outcome, held)
        case .none: reserveSlot { exchange in exchange.startCommit() }
        case .pending: return
        }
    }

    /// Reads the part of the proof that is in the body, and judges the whole of it.
    /// - Returns: Whether the request goes on.
    private func completeProof(
        _ reading: ProofReading, _ head: RequestHead, _ held: HeldBody
    ) -> Bool {
        guard case .inBody(let proof) = reading.outcome, let host, let route, let app = host.app
        else { return false }
        let body: [UInt8]
        do throws(SystemError) {
            body = try held.whole()
        } catch {
            context.errorLog.write(.error, "spool dir \(context.spool.directory): \(error)")
            fail(Refusal(.spoolFull, at: .checks))
            return false
        }
        switch proof.read(body) {
        case .absent,
            .unreadable where reading.isUnsupported:
            completeWithoutProof(reading, head, held, route)
            return false
        case .malformed(let reason):
            fail(Refusal(reason, at: .fields))
            return false
        case .unreadable:
            fail(Refusal(.proofMalformed, at: .fields))
            return false
        case .proof(let proof):
            admit(proof, head, host, route, app)
        case .sealed(let proof, let inner):
            admit(proof, head, host, route, app)
            guard admission != nil else { return false }
            innerBody = HeldBody(inner, inside: held)
        }
        return !isAnswered && (admission != nil || inlineEnrolment != nil)
    }

    /// The body holds no proof either.
    private func completeWithoutProof(
        _ reading: ProofReading, _ head: RequestHead, _ held: HeldBody, _ route: Route
    ) {
        guard reading.isUnsupported else { return fail(Refusal(.proofAbsent, at: .checks)) }
        log.isUnsupported = true
        let absent = ProofReading(
            outcome: .absent, isUnsupported: true, deviceToken: reading.deviceToken)
        fallBack(absent, head, route)
        if let fallback { fallbackBodyComplete(held, fallback) }
    }

    /// Takes a place within `max_active` before a commit that follows the complete body: where
    /// there is none, the proof is not spent.
    func reserveSlot(then: @escaping (Exchange) -> Void) {
        guard let slot = pool?.makeSlot() else { return then(self) }
        self.slot = slot
        slot.take { [weak self] isTaken in
            guard let self, !self.isOver, !self.isAnswered else { return }
            guard isTaken else { return self.noSlot() }
            then(self)
        }
    }

    private func proceed(_ outcome: CommitOutcome, _ wire: HeldBody) {
        guard var admission = admission.take() else { return }
        let held = innerBody ?? wire
        do throws(Refusal) {
            log.counter = admission.commitment?.counter
            let permit = try admission.permit(
                outcome: outcome, bodyHash: held.finish(), store: context.store)
            // Enforced, such a path would have been refused: spent all the same, but not verified.
            guard !isPathAmbiguous else {
                return fail(Refusal(.pathAmbiguous, at: .checks))
            }
            forward(permit, held: held)
        } catch {
            fail(error)
        }
    }

    /// Refuses on an enforced route; on a monitored one counts the reason and forwards.
    func fail(_ refusal: Refusal) {
        guard let route, let permit = Permit.monitored(route, placement) else {
            return refuse(refusal)
        }
        guard !isOver, !isAnswered else { return }
        log.reason = refusal.reason
        admission = nil
        fallback = nil
        leaveDeviceCheck()
        inlineEnrolment = nil
        partialProof = nil
        innerBody = nil
        var held: HeldBody?
        if case .held(let body) = sink { held = body }
        forwardRest(permit, after: held)
    }
}
