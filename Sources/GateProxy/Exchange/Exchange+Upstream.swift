// What an exchange does with the answer of its upstream: relays it as it comes, and turns a failure
// into an answer of the gate's own as long as nothing of another has gone out.

internal import GateConfig
internal import GateHTTP
internal import GateRuntime

extension Exchange: UpstreamRequestOwner {
    var isDownstreamCongested: Bool { stream.isCongested }

    func upstream(interim head: ResponseHead) {
        guard !isOver else { return }
        // A 100 answers an Expect; the gate gave its own where it held the body.
        guard head.status != 100 || isExpectForwarded else { return }
        var head = head
        HopByHop.mark(&head)
        stream.relay(interim: head)
    }

    func upstream(head: ResponseHead) {
        guard !isOver else { return }
        var head = head
        HopByHop.mark(&head)
        log.status = head.status
        isAnswered = true
        setBits(status: head.status)
        stream.relay(
            head: head,
            adding: ResponseAdditions(
                requestID: log.requestID, nextChallenge: challengeOfVerified()))
    }

    func upstream(body bytes: [UInt8], _ range: Range<Int>) {
        guard !isOver else { return }
        stream.send(body: bytes, range)
    }

    func upstreamEnded(trailers: ResponseTrailers?) {
        guard !isOver else { return }
        log.upstreamEnded = worker.loop.now
        log.upstreamResult = .ok
        guard var trailers else { return stream.endAnswer(trailers: nil) }
        TrailerFields.mark(&trailers)
        stream.endAnswer(trailers: trailers)
    }

    func upstream(failed failure: UpstreamFailure) {
        guard !isOver else { return }
        log.upstreamEnded = worker.loop.now
        log.upstreamResult = UpstreamResult(failure)
        log.reason = .upstream
        logUpstream("\(failure)")
        upstream?.cancel()
        guard !isAnswered else { return stream.abort() }
        refuse(Refusal(failure))
    }

    /// There is no place within `max_active` for a request that has not been sent.
    func noSlot() {
        logUpstream("\(UpstreamFailure.noSlot)")
        refuse(Refusal(UpstreamFailure.noSlot))
    }

    /// Says what went wrong with the upstream, and with which of its servers.
    func logUpstream(_ clause: String) {
        let server = upstream?.server.map { "\($0): " } ?? ""
        context.errorLog.write(
            .warn, "upstream \(pool?.upstream.name ?? ""): \(server)\(clause)")
    }

    func upstreamDrained() {
        guard !isOver else { return }
        stream.resumeBody()
    }

    func upstreamPaused() {
        guard !isOver else { return }
        stream.flush()
    }
}

extension Refusal {
    /// What the client is told of a request that has no whole answer.
    fileprivate init(_ failure: UpstreamFailure) {
        if failure == .noSlot {
            self.init(.upstream, as: .retryLater)
        } else if failure.isTimeout {
            self = .upstreamTimeout
        } else {
            self.init(.upstream, as: .upstreamUnavailable)
        }
    }
}
