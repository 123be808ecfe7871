// `fallback devicecheck` (`protocol.md` §8): a device that cannot attest shows a DeviceCheck token.
//
//   token there ─► body may be held ─► no key of the account ─► rate ─► token not known as spent
//     ─► Apple: a token of the team, with these bits ─► body complete, slot taken
//     ─► the token's hash durably spent ─► Permit, verdict `fallback`
//
// Apple is asked while the body comes; the token is spent last, so that one whose request cannot go
// on stays good. Nothing of an answer is kept: another token asks anew.

internal import GateBytes
internal import GateConfig
internal import GateCrypto
internal import GateHTTP
internal import GateRuntime
internal import GateStore

/// A request whose fallback asks DeviceCheck.
struct PendingDeviceCheck {
    let reading: ProofReading
    /// SHA-256 of the token.
    let hash: Bytes32
    /// While Apple is asked.
    var call: InternalCall?
    /// Whether Apple has taken the token and its bits are as the route wants them.
    var isPassed = false
    /// The bits, where they were asked for.
    var bits: DeviceCheckMessage.Bits?
}

extension Exchange {
    /// Takes a request without proof that says its device cannot attest.
    func fallBack(
        toDeviceCheck terms: Fallback.DeviceCheck, _ reading: ProofReading, _ head: RequestHead,
        _ route: Route
    ) {
        guard let token = reading.deviceToken, !token.isEmpty else {
            return fail(Refusal(.deviceTokenInvalid, at: .checks))
        }
        guard takeLength(head, route) else { return }
        let hash = SHA256.hash(token)
        if let refusal = refusal(terms, hash) { return fail(refusal) }
        do throws(AppleUnavailable) {
            let call = try ask(terms, token)
            deviceCheck = PendingDeviceCheck(reading: reading, hash: hash, call: call)
        } catch {
            return fail(
                Refusal(.appleUnavailable, at: .checks, retryAfter: error.retryAfter))
        }
        fallback = reading
        // A client that waits to be asked for the body is asked once Apple has answered.
        hold(head, route, isAsking: false)
    }

    /// What refuses the request before Apple is asked, the cheapest first.
    private func refusal(_ terms: Fallback.DeviceCheck, _ hash: Bytes32) -> Refusal? {
        guard context.store.isReady else { return Refusal(.storeUnavailable, at: .checks) }
        guard let host, let app = host.app, let routeIndex else {
            return Refusal(.noRoute, at: .checks)
        }
        // Who could attest before can do so now.
        let hasKey =
            !terms.isAlsoEnrolled && !account.isEmpty
            && app.app.appIDs.contains { appID in
                !context.store.keys(ofAccount: account, app: appID).isEmpty
            }
        guard !hasKey else { return Refusal(.unsupported, at: .checks) }
        if let refusal = host.fallbackLimit(routeIndex)?.take(
            account: account, address: limitAddress, at: limitTime)
        {
            return refusal
        }
        guard !context.store.isTokenSpent(hash) else {
            return Refusal(.deviceTokenSpent, at: .checks)
        }
        return nil
    }

    private func ask(
        _ terms: Fallback.DeviceCheck, _ token: [UInt8]
    ) throws(AppleUnavailable) -> InternalCall {
        guard let apple = context.apple, let app = host?.app else {
            throw AppleUnavailable(retryAfter: Refusal.retryAfterDefault)
        }
        let areBitsWanted = terms.bit0 != nil || terms.bit1 != nil
        return try apple.askDeviceCheck(
            areBitsWanted ? .queryTwoBits : .validateDeviceToken, token,
            environment: app.app.environment, deadline: terms.timeout, on: worker
        ) { [weak self] outcome in
            self?.deviceCheckAnswered(outcome, terms)
        }
    }

    private func deviceCheckAnswered(
        _ outcome: DeviceCheckOutcome, _ terms: Fallback.DeviceCheck
    ) {
        guard !isOver, !isAnswered, deviceCheck != nil else { return }
        deviceCheck?.call = nil
        switch outcome {
        case .tokenInvalid:
            fail(Refusal(.deviceTokenInvalid, at: .checks))
        case .unavailable(let retryAfter):
            fail(Refusal(.appleUnavailable, at: .checks, retryAfter: retryAfter))
        case .passed(let bits):
            if let bits, !bits.meet(terms) {
                return fail(Refusal(.deviceBits, at: .checks))
            }
            deviceCheck?.isPassed = true
            deviceCheck?.bits = bits
            askForBody()
            if isBodyComplete { deviceCheckBodyComplete() }
        }
    }

    /// The body is complete, or Apple has answered: once both are so, the token is spent.
    func deviceCheckBodyComplete() {
        guard deviceCheck?.isPassed == true else { return }
        reserveSlot { exchange in exchange.spendToken() }
    }

    private func spendToken() {
        guard let hash = deviceCheck?.hash else { return }
        commit = .pending(since: worker.loop.clock.now())
        awaitStore()
        let bound = LoopBound(self, on: worker.loop)
        let handle = worker.loop.handle
        context.store.spendToken(hash, now: UInt32(clamping: context.unixSeconds())) { outcome in
            handle.submit {
                bound.open().storeAnswered()
                bound.open().tokenSpent(outcome)
            }
        }
    }

    private func tokenSpent(_ outcome: TokenOutcome) {
        if case .pending(let since) = commit {
            log.commitTime = worker.loop.clock.now().duration(since: since)
        }
        guard !isOver, !isAnswered, let pending = deviceCheck, let route,
            case .held(let held) = sink
        else { return }
        do throws(Reason) {
            let permit = try Permit.fallback(route, pending, outcome)
            // Enforced, such a path would have been refused: spent all the same.
            guard !isPathAmbiguous else {
                return fail(Refusal(.pathAmbiguous, at: .checks))
            }
            forward(permit, held: held)
        } catch {
            fail(Refusal(error, at: .checks))
        }
    }

    /// Asks Apple no more: the request is over, or goes on without.
    func leaveDeviceCheck() {
        deviceCheck?.call?.cancel()
        deviceCheck = nil
    }
}
