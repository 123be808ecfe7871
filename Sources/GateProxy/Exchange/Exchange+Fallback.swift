// A request without proof that says its device cannot attest (`protocol.md` §8). Its route's
// fallback decides; the body is held and complete before anything is forwarded, as with a proof.

internal import GateConfig
internal import GateHTTP
internal import GateStore

extension Exchange {
    /// Takes a request whose fields say `App-Attest-Unsupported: ?1` and that has no proof.
    func fallBack(_ reading: ProofReading, _ head: RequestHead, _ route: Route) {
        switch route.fallback {
        case .deny:
            return fail(Refusal(.unsupported, at: .checks))
        case .deviceCheck(let terms):
            return fallBack(toDeviceCheck: terms, reading, head, route)
        case .allowUnverified:
            guard context.store.isReady else {
                return fail(Refusal(.storeUnavailable, at: .checks))
            }
        }
        guard mode == .enforce else { return forwardUnjudged(reading, route) }
        guard takeLength(head, route) else { return }
        fallback = reading
        hold(head, route)
    }

    /// The body of such a request is complete.
    func fallbackBodyComplete(_ held: HeldBody, _ reading: ProofReading) {
        guard deviceCheck == nil else { return deviceCheckBodyComplete() }
        reserveSlot { exchange in
            guard let route = exchange.route, let permit = Permit.unverified(route, reading) else {
                return exchange.fail(Refusal(.unsupported, at: .checks))
            }
            exchange.forward(permit, held: held)
        }
    }

    /// Lets it pass where only the gate's opinion is wanted: nothing more is held for it.
    private func forwardUnjudged(_ reading: ProofReading, _ route: Route) {
        guard !isPathAmbiguous, let permit = Permit.unverified(route, reading) else {
            return fail(Refusal(.pathAmbiguous, at: .checks))
        }
        guard case .held(let held) = sink else { return forwardStreaming(permit) }
        forwardRest(permit, after: held)
    }
}
