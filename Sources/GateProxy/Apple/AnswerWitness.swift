internal import GateHTTP
internal import GateRuntime

/// Waits for the answer to a request whose client has left: what came of it is known by its status
/// alone. The request's own deadlines bound the wait.
final class AnswerWitness: UpstreamRequestOwner {
    /// Runs once, with the answer's status, or nil where none will come.
    var onEnd: ((Int?) -> Void)?

    private let request: UpstreamRequest

    /// A witness of `request`.
    init(_ request: UpstreamRequest) {
        self.request = request
    }

    /// Gives the request up and says nothing.
    func stop() {
        onEnd = nil
        request.cancel()
    }

    private func end(_ status: Int?) {
        let onEnd = onEnd
        self.onEnd = nil
        request.cancel()
        onEnd?(status)
    }

    // MARK: UpstreamRequestOwner

    var isDownstreamCongested: Bool { false }

    func upstream(interim head: ResponseHead) {}

    func upstream(head: ResponseHead) { end(head.status) }

    func upstream(switched head: ResponseHead, _ serviceEnd: TunnelEnd) {
        serviceEnd.transport.close()
        end(nil)
    }

    func upstream(body bytes: [UInt8], _ range: Range<Int>) {}

    func upstreamEnded(trailers: ResponseTrailers?) { end(nil) }

    func upstream(failed failure: UpstreamFailure) { end(nil) }

    func upstreamDrained() {}

    func upstreamPaused() {}
}
