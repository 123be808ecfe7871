internal import GateBytes
package import GateConfig
internal import GateHTTP
internal import GateRuntime

/// The active health checks of one upstream's servers: each address is asked by itself, from a
/// random moment on, so that not all are asked at once. On one loop for life.
final class HealthChecks {
    let pool: UpstreamPool
    private let health: Upstream.Health
    private let log: ErrorLog
    private let loop: EventLoop
    private var probes: [Int: HealthProbe] = [:]

    /// Begins to check; nil where the upstream has no health checks.
    init?(of pool: UpstreamPool, log: ErrorLog, on loop: EventLoop) {
        guard let health = pool.upstream.health else { return nil }
        self.pool = pool
        self.health = health
        self.log = log
        self.loop = loop
        refresh()
    }

    /// Begins with addresses that are new and ends with those that have gone.
    func refresh() {
        let targets = pool.targets
        let current = Set(targets.map(\.id))
        for (id, probe) in probes where !current.contains(id) {
            probe.stop()
            probes[id] = nil
        }
        for target in targets where probes[target.id] == nil {
            let probe = HealthProbe(target, health: health, pool: pool, on: loop)
            probe.onResult = { [weak self] failure in self?.note(target, failure) }
            probes[target.id] = probe
            let interval = Int64(clamping: health.every.nanoseconds)
            probe.start(after: .nanoseconds(Int64.random(in: 0...interval)))
        }
    }

    /// Ends for good.
    func stop() {
        for probe in probes.values { probe.stop() }
        probes = [:]
    }

    private func note(_ target: UpstreamTarget, _ failure: HealthProbe.Failure?) {
        guard pool.noteCheck(of: target.id, isPassed: failure == nil) else { return }
        let now = failure.map { "is down: \($0)" } ?? "is up"
        log.write(.warn, "upstream \(pool.upstream.name): \(target.address) \(now)")
    }
}

/// The request of a health check.
package enum HealthRequest {
    /// Its parts. It carries the upstream's `set_field` lines: the service may want them.
    package static func make(_ health: Upstream.Health, isHTTP2: Bool) -> InternalRequest {
        var request = InternalRequest(
            .get, encoded(health.path), deadline: health.timeout, answerBytesMax: bodyBytesMax)
        request.add("User-Agent", "attestgate-health")
        if !isHTTP2 { request.add("Connection", "close") }
        return request
    }

    /// A longer answer is judged by its status and not read to its end.
    private static let bodyBytesMax = 64 * 1024

    /// The path as a target: what RFC 3986 §3.3 does not let stand is escaped.
    private static func encoded(_ path: String) -> String {
        var text = ""
        for byte in path.utf8 {
            let scalar = Unicode.Scalar(byte)
            if allowed.contains(scalar) {
                text.unicodeScalars.append(scalar)
            } else {
                text += "%" + Hex.encode([byte]).uppercased()
            }
        }
        return text
    }

    private static let allowed = Set(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~!$&'()*+,;=:@/"
            .unicodeScalars)
}

/// The checks of one address, one at a time. On one loop for life.
final class HealthProbe {
    /// Why a check did not pass.
    enum Failure: Error, Equatable, CustomStringConvertible {
        case call(InternalCallFailure)
        case status(Int, expected: Int)

        var description: String {
            switch self {
            case .call(let failure): return "\(failure)"
            case .status(let status, let expected):
                return "answered \(status), expected \(expected)"
            }
        }
    }

    /// Called with the result of each check; nil is a pass.
    var onResult: ((Failure?) -> Void)?

    private let target: UpstreamTarget
    private let health: Upstream.Health
    private let pool: UpstreamPool
    private let loop: EventLoop
    private let next = Deadline()
    private var call: InternalCall?

    init(
        _ target: UpstreamTarget, health: Upstream.Health, pool: UpstreamPool, on loop: EventLoop
    ) {
        self.target = target
        self.health = health
        self.pool = pool
        self.loop = loop
        next.onPassed = { [weak self] in self?.begin() }
    }

    /// Begins with the first check after `delay`.
    func start(after delay: Duration) {
        loop.set(next, after: delay)
    }

    /// Ends for good.
    func stop() {
        loop.remove(next)
        call?.cancel()
        call = nil
        onResult = nil
    }

    private func begin() {
        loop.set(next, after: health.every)
        // One that may take longer than the interval leaves the next ones out.
        guard call == nil else { return }
        let request = HealthRequest.make(health, isHTTP2: pool.http2Scheme != nil)
        call = InternalCall.start(request, to: .probe(target), over: pool, on: loop) {
            [weak self] outcome in
            self?.conclude(outcome)
        }
    }

    private func conclude(_ outcome: InternalCall.Outcome) {
        call = nil
        let status: Int
        switch outcome {
        case .success(let answer): status = answer.status
        case .failure(.answerTooLong(let known, _)): status = known
        case .failure(let failure):
            // A gate without a socket to spare must not call every server down.
            if case .upstream(let cause) = failure, cause.isOwn { return }
            onResult?(.call(failure))
            return
        }
        onResult?(status == health.status ? nil : .status(status, expected: health.status))
    }
}
