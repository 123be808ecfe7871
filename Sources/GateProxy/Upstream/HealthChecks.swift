internal import GateBytes
package import GateConfig
package import GateHTTP
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
            let server = pool.upstream.servers[target.server]
            let request: UpstreamRequestHead.Form
            do throws(HeadWriterError) {
                request = try form(of: server.endpoint)
            } catch {
                log.write(.error, "upstream \(pool.upstream.name): health request: \(error)")
                continue
            }
            let probe = HealthProbe(
                target.address, request: request, health: health, pool: pool, on: loop)
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

    private func form(
        of server: Upstream.Server.Endpoint
    ) throws(HeadWriterError) -> UpstreamRequestHead.Form {
        guard let scheme = pool.http2Scheme else {
            return .http1(
                try HealthRequest.bytes(
                    path: health.path, server: server, setFields: pool.setFields))
        }
        return .http2(
            try HealthRequest.block(
                path: health.path, server: server, setFields: pool.setFields, scheme: scheme))
    }

    private func note(_ target: UpstreamTarget, _ failure: HealthProbe.Failure?) {
        guard pool.noteCheck(of: target.id, isPassed: failure == nil) else { return }
        let now = failure.map { "is down: \($0)" } ?? "is up"
        log.write(.warn, "upstream \(pool.upstream.name): \(target.address) \(now)")
    }
}

/// The request of a health check.
package enum HealthRequest {
    /// Its head. It carries the upstream's `set_field` lines: the service may want them.
    /// - Parameter path: Decoded, as the configuration has it.
    package static func bytes(
        path: String, server: Upstream.Server.Endpoint, setFields: SetFields
    ) throws(HeadWriterError) -> [UInt8] {
        var writer = HeadWriter()
        writer.startRequest(method: .get, target: encoded(path))
        writer.field("Host", authority(of: server))
        append(setFields, connection: "close", to: &writer)
        return try writer.finish()
    }

    /// The same in the form of HTTP/2.
    package static func block(
        path: String, server: Upstream.Server.Endpoint, setFields: SetFields, scheme: Scheme
    ) throws(HeadWriterError) -> FieldBlock {
        let method = Array("GET".utf8)
        let authority = Array(authority(of: server).utf8)
        let target = Array(encoded(path).utf8)
        let authorityEnd = method.count + authority.count
        var writer = FieldBlockWriter(
            method + authority + target, method: 0..<method.count, scheme: scheme.name,
            authority: method.count..<authorityEnd,
            path: authorityEnd..<(authorityEnd + target.count))
        append(setFields, to: &writer)
        return try writer.finish()
    }

    private static func append(
        _ setFields: SetFields, connection: StaticString? = nil, to writer: inout some FieldWriter
    ) {
        writer.field("User-Agent", "attestgate-health" as StaticString)
        if let connection { writer.field("Connection", connection) }
        for field in setFields.fields { writer.field(field.name, field.value) }
    }

    private static func authority(of server: Upstream.Server.Endpoint) -> String {
        switch server {
        case .host(let name, let port):
            let address = IPAddress(name)
            return address.map { $0.isIPv4 } ?? true ? "\(name):\(port)" : "[\(name)]:\(port)"
        case .unix: return "localhost"
        }
    }

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
final class HealthProbe: UpstreamChannelUser {
    /// Why a check did not pass.
    enum Failure: Error, Equatable, CustomStringConvertible {
        case status(Int, expected: Int)
        case timeout(Duration)
        case upstream(UpstreamFailure)

        var description: String {
            switch self {
            case .status(let status, let expected):
                return "answered \(status), expected \(expected)"
            case .timeout(let duration): return "no answer within \(duration)"
            case .upstream(let failure): return "\(failure)"
            }
        }
    }

    /// Called with the result of each check; nil is a pass.
    var onResult: ((Failure?) -> Void)?

    private let address: SocketAddress
    private let request: UpstreamRequestHead.Form
    private let health: Upstream.Health
    private let pool: UpstreamPool
    private let loop: EventLoop
    private let next = Deadline()
    private let end = Deadline()
    private var channel: (any UpstreamChannel)?
    private var status: Int?
    private var bodyBytes = 0

    /// A longer answer is judged by its status and not read to its end.
    private static let bodyBytesMax = 64 * 1024

    init(
        _ address: SocketAddress, request: UpstreamRequestHead.Form, health: Upstream.Health,
        pool: UpstreamPool,
        on loop: EventLoop
    ) {
        self.address = address
        self.request = request
        self.health = health
        self.pool = pool
        self.loop = loop
        next.onPassed = { [weak self] in self?.begin() }
        end.onPassed = { [weak self] in self?.timeOver() }
    }

    /// Begins with the first check after `delay`.
    func start(after delay: Duration) {
        loop.set(next, after: delay)
    }

    /// Ends for good.
    func stop() {
        loop.remove(next)
        loop.remove(end)
        channel?.close()
        channel = nil
        onResult = nil
    }

    private func begin() {
        loop.set(next, after: health.every)
        // One that may take longer than the interval leaves the next ones out.
        guard channel == nil else { return }
        status = nil
        bodyBytes = 0
        loop.set(end, after: health.timeout)
        // HTTP/1.1 is asked on a connection of its own, which shows that the server takes one.
        if pool.http2Scheme != nil, let open = pool.takeIdle(address, for: self) {
            channel = open
            return connected()
        }
        do throws(SystemError) {
            channel = try pool.connect(address, for: self)
        } catch {
            conclude(.upstream(.connect(error)))
        }
    }

    private func conclude(_ failure: Failure?) {
        end.cancel()
        channel?.close()
        channel = nil
        // A gate without a socket to spare must not call every server down.
        if case .upstream(let cause) = failure, cause.isOwn { return }
        onResult?(failure)
    }

    /// The answer is there as far as it matters.
    private func judge() {
        guard let status else { return conclude(.upstream(.closed(afterBytes: true))) }
        conclude(status == health.status ? nil : .status(status, expected: health.status))
    }

    private func timeOver() {
        if channel != nil { conclude(.timeout(health.timeout)) }
    }

    // MARK: UpstreamChannelUser

    var isDownstreamCongested: Bool { false }

    func connected() {
        guard let channel else { return }
        channel.begin(
            UpstreamRequestHead(
                form: request, body: .none, isHead: false, limits: HeadLimits()))
        channel.endRequest()
        channel.flush()
    }

    func received(interim head: ResponseHead) {}

    func received(head: ResponseHead) {
        status = head.status
    }

    func received(body bytes: [UInt8], _ range: Range<Int>) {
        bodyBytes += range.count
        if bodyBytes > HealthProbe.bodyBytesMax { judge() }
    }

    func receivedEnd(trailers: ResponseTrailers?) {
        judge()
    }

    func drained() {}

    func paused() {}

    func failed(_ failure: UpstreamFailure) {
        channel = nil
        conclude(.upstream(failure))
    }

    func deadlinePassed() {}
}
