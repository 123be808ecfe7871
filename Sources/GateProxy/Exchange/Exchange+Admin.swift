internal import GateBytes
internal import GateHTTP
internal import GateLock
internal import GateRuntime

extension Exchange {
    /// Answers on the admin listener: `/healthz` says that the process lives, `/readyz` that it may
    /// be sent traffic, `/metrics` how it fares.
    func answerAdmin(_ head: RequestHead) {
        guard isAdminHost(head) else { return refuse(Refusal(.hostUnknown, at: .checks)) }
        guard head.knownMethod == .get || head.knownMethod == .head else {
            return refuse(Refusal(.methodNotAllowed, at: .checks), allow: ["GET", "HEAD"])
        }
        switch head.text(head.path) {
        case "/healthz":
            answerPlain(200, "alive\n")
        case "/readyz":
            if context.isReady {
                answerPlain(200, "ready\n")
            } else {
                answerPlain(503, context.isDraining.isSet ? "draining\n" : "store not available\n")
            }
        case "/metrics":
            answerMetrics()
        default:
            refuse(Refusal(.noRoute, at: .checks))
        }
    }

    /// Whether the listener was asked for by address. A web page that has its own name resolve to
    /// this machine makes a browser say that name (threat T28).
    private func isAdminHost(_ head: RequestHead) -> Bool {
        guard client.peer.ipAddress != nil else { return true }
        let name = head.hostName
        let address = name.hasPrefix("[") ? String(name.dropFirst().dropLast()) : name
        return name == "localhost" || IPAddress(address) != nil
    }

    private func answerMetrics() {
        let bound = LoopBound(self, on: worker.loop)
        let handle = worker.loop.handle
        context.metrics.collect { figures in
            handle.submit {
                let exchange = bound.open()
                exchange.answer(
                    GateAnswer(
                        status: 200, contentType: .metrics,
                        body: exchange.context.metrics.text(figures, exchange.context)))
            }
        }
    }

    private func answerPlain(_ status: Int, _ text: String) {
        answer(GateAnswer(status: status, contentType: .plain, body: Array(text.utf8)))
    }
}
