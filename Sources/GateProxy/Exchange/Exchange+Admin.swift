internal import GateHTTP
internal import GateLock

extension Exchange {
    /// Answers on the admin listener: `/healthz` says that the process lives, `/readyz` that it may
    /// be sent traffic.
    func answerAdmin(_ head: RequestHead) {
        guard head.knownMethod == .get || head.knownMethod == .head else {
            return refuse(Refusal(.methodNotAllowed, at: .checks), allow: ["GET", "HEAD"])
        }
        switch head.text(head.path) {
        case "/healthz":
            answerPlain(200, "alive\n")
        case "/readyz":
            let context = worker.context
            if context.isReady {
                answerPlain(200, "ready\n")
            } else {
                answerPlain(503, context.isDraining.isSet ? "draining\n" : "store not available\n")
            }
        default:
            refuse(Refusal(.noRoute, at: .checks))
        }
    }

    private func answerPlain(_ status: Int, _ text: String) {
        answer(GateAnswer(status: status, contentType: .plain, body: Array(text.utf8)))
    }
}
