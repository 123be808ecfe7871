// A protected request: account (Exchange+Account), proof, challenge, key, assertion, signature,
// commit, body — in the order of `protocol.md` §4, cheap before dear and nothing upstream before
// all of it has passed.
//
// With the binding `client_data` the signature is verified from the head and the commit runs while
// the body arrives; with `request` both wait for the body's hash. A monitored route goes the same
// way and forwards whatever comes of it.

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
        admit(
            proof, head,
            Admission.Terms(
                scope: host.scope(route.purpose), app: app,
                account: account, challenges: context.challenges,
                requirements: route.requirements, store: context.store,
                now: context.unixMilliseconds()))
        guard !isAnswered, case .none = sink else { return }
        hold(head, route)
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

    private func readProof(_ head: RequestHead, _ host: HostRuntime, _ route: Route) -> Proof? {
        let reading = ProofReader.read(head, host.fields, route.binding)
        if route.setBits != nil { bitsToken = reading.deviceToken }
        switch reading.outcome {
        case .absent where reading.isUnsupported:
            log.isUnsupported = true
            fallBack(reading, head, route)
        case .absent:
            fail(Refusal(.proofAbsent, at: .checks))
        case .malformed(let reason):
            fail(Refusal(reason, at: .fields))
        case .proof(let proof):
            return proof
        }
        return nil
    }

    private func admit(_ proof: Proof, _ head: RequestHead, _ terms: borrowing Admission.Terms) {
        log.keyID = proof.keyID
        do throws(Reason) {
            let admission = try Admission.begin(proof, head: head, terms: terms)
            let isBodyIndependent = admission.isBodyIndependent
            self.admission = consume admission
            guard context.store.isReady else { throw .storeUnavailable }
            guard isBodyIndependent else { return }
        } catch {
            return fail(Refusal(error, at: .checks))
        }
        if verifySignature(bodyHash: nil) { startCommit() }
    }

    /// Holds the body and, where the client waits for it, asks for it.
    /// - Parameter isAsking: False where the client is to be asked later.
    func hold(_ head: RequestHead, _ route: Route, isAsking: Bool = true) {
        sink = .held(
            HeldBody(
                memoryBytesMax: route.bodyMemoryBytes,
                bytesMax: isBodyBounded(route) ? route.bodyBytesMax : .max,
                spool: context.spool))
        if isAsking { askForBody() }
    }

    /// Whether `body max` binds: a monitored body is bounded where its length must be sent.
    private func isBodyBounded(_ route: Route) -> Bool {
        mode == .enforce || pool?.upstream.isLengthRequired == true
    }

    /// Verifies the admission's signature.
    /// - Returns: Whether it holds; otherwise the request has been refused.
    func verifySignature(bodyHash: Bytes32?) -> Bool {
        guard let head, let host, let record = admission?.key else { return false }
        let now = UInt64(worker.loop.now.nanoseconds)
        let address = clientAddress ?? IPAddress(high: 0, low: 0)
        if let refusal = host.limits.checkSignature(account: account, address: address, at: now) {
            fail(refusal)
            return false
        }
        guard let key = worker.keys.key(record.keyID, record.publicKey) else {
            fail(Refusal(.signatureInvalid, at: .checks))
            return false
        }
        let started = worker.loop.clock.now()
        do throws(Refusal) {
            try admission?.verifySignature(head: head, bodyHash: bodyHash, key: key)
            log.verifyTime = worker.loop.clock.now().duration(since: started)
            return true
        } catch {
            log.verifyTime = worker.loop.clock.now().duration(since: started)
            if error.reason == .signatureInvalid {
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

    /// The one durable step: spends the challenge and advances the counter, and revokes the key
    /// where that is what was signed. `then` runs on the loop.
    func spend(revoking: Bool, then: @escaping @Sendable (Exchange, AdmitOutcome) -> Void) {
        guard let commitment = admission?.commitment else { return }
        awaitStore()
        let bound = LoopBound(self, on: worker.loop)
        let handle = worker.loop.handle
        context.store.admit(
            challenge: commitment.challenge, keyID: commitment.keyID, counter: commitment.counter,
            revoking: revoking, now: UInt32(clamping: context.unixSeconds())
        ) { outcome in
            handle.submit {
                bound.open().storeAnswered()
                then(bound.open(), outcome)
            }
        }
    }

    private func committed(_ outcome: AdmitOutcome) {
        if case .pending(let since) = commit {
            log.commitTime = worker.loop.clock.now().duration(since: since)
        }
        commit = .done(outcome)
        guard !isOver, !isAnswered, admission != nil else { return }
        do throws(Reason) {
            try Admission.require(outcome)
        } catch {
            return fail(Refusal(error, at: .checks))
        }
        if isBodyComplete, case .held(let held) = sink { proceed(outcome, held) }
    }

    /// The body is complete: compare its hash, or use it.
    func bodyComplete(_ held: HeldBody) {
        if let fallback { return fallbackBodyComplete(held, fallback) }
        let hash = held.finish()
        do throws(Reason) {
            try admission?.checkBody(hash)
        } catch {
            return fail(Refusal(error, at: .checks))
        }
        if admission?.isBodyIndependent == false {
            guard verifySignature(bodyHash: hash) else { return }
        }
        switch commit {
        case .done(let outcome): proceed(outcome, held)
        case .none: reserveSlot { exchange in exchange.startCommit() }
        case .pending: return
        }
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

    private func proceed(_ outcome: AdmitOutcome, _ held: HeldBody) {
        guard var admission = admission.take() else { return }
        do throws(Reason) {
            log.counter = admission.commitment?.counter
            let permit = try admission.permit(
                outcome: outcome, bodyHash: held.finish(), store: context.store)
            // Enforced, such a path would have been refused: spent all the same, but not verified.
            guard !isPathAmbiguous else {
                return fail(Refusal(.pathAmbiguous, at: .checks))
            }
            forward(permit, held: held)
        } catch {
            fail(Refusal(error, at: .checks))
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
        var held: HeldBody?
        if case .held(let body) = sink { held = body }
        forwardRest(permit, after: held)
    }
}
