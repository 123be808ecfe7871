internal import GateConfig
internal import GateHTTP
internal import GateRuntime

extension Exchange {
    /// Counts the exchange, which is over. Those of the admin listener are not counted.
    func count(in metrics: inout LoopMetrics) {
        guard !listener.isAdmin else { return }
        let label = routeLabel
        metrics.requests[
            LoopMetrics.RequestKey(
                route: label, method: LoopMetrics.RequestKey.number(of: head?.knownMethod),
                status: UInt16(clamping: log.status ?? 0),
                verdict: LoopMetrics.RequestKey.number(of: log.verdict)), default: 0] += 1
        metrics.requestDurations[label, default: LatencyHistogram()].note(
            worker.loop.clock.now().duration(since: log.started))
        if let time = log.verifyTime { metrics.verifyDuration.note(time) }
        if let time = log.commitTime { metrics.commitDuration.note(time) }
        metrics.received[listener.label, default: 0] +=
            UInt64(log.bytesIn + (head?.bytes.count ?? 0))
        metrics.transmitted[listener.label, default: 0] += UInt64(log.bytesOut)
        countRefusal(label, &metrics)
        countFallback(label, &metrics)
        countUpstream(&metrics)
        if let result = log.enrolment, let app = host?.app {
            metrics.enrolments[.init(label: app.label, word: result), default: 0] += 1
        }
    }

    /// The label of whatever took the request: a route, the enrolment endpoints, what no route
    /// takes; the empty one before the match.
    private var routeLabel: UInt16 {
        guard let host else { return 0 }
        if enrolment != nil { return host.enrollLabel }
        return routeIndex.map(host.label) ?? 0
    }

    private func countRefusal(_ label: UInt16, _ metrics: inout LoopMetrics) {
        guard let reason = log.reason else { return }
        if case .monitored = log.verdict {
            metrics.wouldRefuse[.init(label: label, word: reason), default: 0] += 1
            if reason == .storeUnavailable { metrics.failOpen += 1 }
        } else if log.code != nil {
            metrics.refusals[.init(label: label, word: reason), default: 0] += 1
        }
        if let limit = log.limit { metrics.rateLimited[limit, default: 0] += 1 }
    }

    private func countFallback(_ label: UInt16, _ metrics: inout LoopMetrics) {
        guard log.isUnsupported else { return }
        metrics.unsupported[label, default: 0] += 1
        let result: String
        switch log.verdict {
        case .fallback: result = "passed"
        case .unverified: result = "unverified"
        case .monitored, .off, .verified, nil: result = log.reason?.rawValue ?? "none"
        }
        metrics.fallbacks[.init(label: label, word: result), default: 0] += 1
    }

    private func countUpstream(_ metrics: inout LoopMetrics) {
        guard let started = log.upstreamStarted, let pool else { return }
        let ended = log.upstreamEnded ?? worker.loop.clock.now()
        let label = pool.servers.label
        metrics.upstreamDurations[label, default: LatencyHistogram()].note(
            ended.duration(since: started))
        metrics.upstreamRequests[
            .init(
                upstream: label, server: log.serverLabel,
                result: log.upstreamResult ?? .aborted), default: 0] += 1
    }
}
