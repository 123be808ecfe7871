// The metrics of `cli.md`: what the loops have counted, added up when somebody asks, and what
// others know at that moment.

internal import GateBytes
internal import GateConfig
internal import GateLock
internal import GateRuntime
internal import GateStore

/// What is counted beside the loops, and the loops to ask. One a process: counters go on over
/// reloads.
package final class Metrics: Sendable {
    let labels = MetricLabels()
    private let version: String
    private let workers = Lock<[(handle: LoopHandle, worker: LoopBound<Worker>)]>([])
    private let syncs = Lock(LatencyHistogram())
    private let lastReload: Lock<Reload>

    private struct Reload: Sendable {
        var isSuccessful = true
        /// Unix seconds of the last successful one, or of the start.
        var successAt: Int64
    }

    /// - Parameters:
    ///   - version: The program's.
    ///   - now: Unix seconds; a start counts as a load of the configuration.
    package init(version: String, now: Int64) {
        self.version = version
        lastReload = Lock(Reload(successAt: now))
    }

    /// Called once, when the workers of a gate are made.
    func watch(_ workers: [Worker]) {
        self.workers.withLock { watched in
            watched = workers.map { ($0.loop.handle, LoopBound($0, on: $0.loop)) }
        }
    }

    /// Notes one sync of the store's log; from any thread.
    package func noteSync(nanoseconds: UInt64) {
        syncs.withLock { $0.note(nanoseconds: nanoseconds) }
    }

    /// Notes that a reload has put a configuration in force, at `now` in unix seconds.
    package func noteReload(now: Int64) {
        lastReload.withLock { $0 = Reload(successAt: now) }
    }

    /// Notes a reload that was refused.
    package func noteRefusedReload() {
        lastReload.withLock { $0.isSuccessful = false }
    }

    /// Has each loop hand over its figures; `then` gets their sum, on whichever loop is last.
    func collect(then: @escaping @Sendable (LoopMetrics) -> Void) {
        let workers = workers.withLock { $0 }
        let sum = Lock((left: workers.count, metrics: LoopMetrics()))
        for (handle, worker) in workers {
            handle.submit {
                let figures = worker.open().figures()
                let all: LoopMetrics? = sum.withLock { sum in
                    sum.metrics.add(figures)
                    sum.left -= 1
                    return sum.left == 0 ? sum.metrics : nil
                }
                if let all { then(all) }
            }
        }
    }

    /// The whole text: the loops' figures, and what `context` knows.
    func text(_ loops: LoopMetrics, _ context: GateContext) -> [UInt8] {
        var text = MetricsText()
        let names = labels.texts
        appendRequests(&text, loops, names)
        appendUpstreams(&text, loops, names, context)
        appendListeners(&text, loops, names, context)
        appendProofs(&text, loops, names)
        appendStore(&text, loops, context)
        appendProcess(&text)
        return text.bytes
    }
}

extension Metrics {
    private func appendRequests(
        _ text: inout MetricsText, _ loops: LoopMetrics, _ names: [String]
    ) {
        text.begin("requests_total", "counter", "Requests by route, method, status and verdict.")
        for (key, count) in loops.requests.sorted(by: { $0.key < $1.key }) {
            text.sample(
                [
                    ("route", names[key.route]), ("method", key.methodText),
                    ("code", "\(key.status)"), ("verdict", key.verdictText),
                ], count)
        }
        text.begin("refusals_total", "counter", "Refused requests by internal reason.")
        text.samples(loops.refusals, "route", "reason", names) { $0.rawValue }
        text.begin(
            "would_refuse_total", "counter",
            "Requests of monitored routes that an enforcing one would have refused.")
        text.samples(loops.wouldRefuse, "route", "reason", names) { $0.rawValue }
        text.begin(
            "request_duration_seconds", "histogram", "From a request's first octet to its end.")
        for (label, histogram) in loops.requestDurations.sorted(by: { $0.key < $1.key }) {
            text.sample([("route", names[Int(label)])], histogram)
        }
        text.begin("verify_duration_seconds", "histogram", "Verification of an assertion.")
        text.sample([], loops.verifyDuration)
        text.begin(
            "fail_open_total", "counter",
            "Requests of monitored routes forwarded while the store was not available.")
        text.sample([], loops.failOpen)
    }

    private func appendUpstreams(
        _ text: inout MetricsText, _ loops: LoopMetrics, _ names: [String], _ context: GateContext
    ) {
        text.begin("upstream_duration_seconds", "histogram", "Exchanges with a service.")
        for (label, histogram) in loops.upstreamDurations.sorted(by: { $0.key < $1.key }) {
            text.sample([("upstream", names[Int(label)])], histogram)
        }
        text.begin("upstream_requests_total", "counter", "Requests to a service by their result.")
        let requests = loops.upstreamRequests.map { key, count in
            (names[Int(key.upstream)], names[Int(key.server)], key.result.text, count)
        }
        for (upstream, server, result, count) in requests.sorted(by: { $0 < $1 }) {
            text.sample(
                [("upstream", upstream), ("server", server), ("result", result)], count)
        }
        text.begin(
            "upstream_connections", "gauge",
            "Connections to a service: idle, or active with a request.")
        for servers in context.upstreams {
            let name = servers.upstream.name
            text.sample(
                [("upstream", name), ("state", "active")],
                servers.targets.reduce(0) { $0 + $1.active })
            text.sample(
                [("upstream", name), ("state", "idle")], loops.upstreamIdle[servers.label] ?? 0)
        }
    }

    private func appendListeners(
        _ text: inout MetricsText, _ loops: LoopMetrics, _ names: [String], _ context: GateContext
    ) {
        text.begin("downstream_connections", "gauge", "Open connections of clients.")
        for listener in context.listeners where !listener.isAdmin {
            text.sample([("listener", listener.listener.name)], listener.connectionCount)
        }
        text.begin("receive_bytes_total", "counter", "Octets of requests, heads included.")
        text.samples(loops.received, "listener", names)
        text.begin("transmit_bytes_total", "counter", "Octets of answers, heads included.")
        text.samples(loops.transmitted, "listener", names)
    }

    private func appendProofs(
        _ text: inout MetricsText, _ loops: LoopMetrics, _ names: [String]
    ) {
        text.begin("challenges_issued_total", "counter", "Challenges issued by purpose.")
        text.samples(loops.challengesIssued, "purpose", names)
        text.begin(
            "enrolments_total", "counter",
            "Attestations judged: enrolled, known, or the reason of the refusal.")
        text.samples(loops.enrolments, "app", "result", names) { $0 }
        text.begin(
            "unsupported_total", "counter", "Requests that say their app cannot attest.")
        text.samples(loops.unsupported, "route", names)
        text.begin("fallback_total", "counter", "What became of those.")
        text.samples(loops.fallbacks, "route", "result", names) { $0 }
        text.begin("apple_calls_total", "counter", "Calls to Apple's servers by their result.")
        let calls = loops.appleCalls.map { ($0.key.call, $0.key.result, $0.value) }
        for (call, result, count) in calls.sorted(by: { $0 < $1 }) {
            text.sample([("call", call), ("result", result)], count)
        }
        text.begin("rate_limited_total", "counter", "Requests refused for a limit.")
        for (limit, count) in loops.rateLimited.sorted(by: { $0.key < $1.key }) {
            text.sample([("limit", limit)], count)
        }
    }

    private func appendStore(
        _ text: inout MetricsText, _ loops: LoopMetrics, _ context: GateContext
    ) {
        let figures = context.store.figures
        text.begin("store_commit_duration_seconds", "histogram", "A request's wait for the store.")
        text.sample([], loops.commitDuration)
        text.begin("store_fsync_duration_seconds", "histogram", "Syncs of the store's log.")
        text.sample([], syncs.withLock { $0 })
        text.begin("keys", "gauge", "Enrolled keys, revoked ones included, by app.")
        var keys = Dictionary(
            context.configuration.apps.map { ($0.name, 0) }, uniquingKeysWith: { $0 + $1 })
        for (appID, count) in figures.keysByApp {
            let app = context.configuration.apps.first { $0.appIDs.contains(appID) }
            keys[app?.name ?? appID, default: 0] += count
        }
        for (app, count) in keys.sorted(by: { $0.key < $1.key }) {
            text.sample([("app", app)], count)
        }
        text.begin("spent_challenges", "gauge", "Spent challenges that are remembered.")
        text.sample([], figures.spentChallenges)
        text.begin("store_log_bytes", "gauge", "Bytes of the log, allocated segments whole.")
        text.sample([], figures.logBytes)
        if let time = figures.snapshotAt {
            text.begin(
                "store_snapshot_age_seconds", "gauge",
                "Age of the newest snapshot; absent without one.")
            text.sample([], Int(max(0, context.unixSeconds() - Int64(time))))
        }
        text.begin("store_ready", "gauge", "Whether the store takes writes.")
        text.sample(context.store.isReady)
        text.begin("spool_bytes", "gauge", "Bytes of bodies in the spool.")
        text.sample([], context.spool.usage.bytes)
    }

    private func appendProcess(_ text: inout MetricsText) {
        let reload = lastReload.withLock { $0 }
        text.begin(
            "config_last_reload_successful", "gauge", "Whether the last load took effect.")
        text.sample(reload.isSuccessful)
        text.begin(
            "config_last_reload_success_timestamp_seconds", "gauge",
            "When the configuration in force was loaded.")
        text.sample([], Int(clamping: reload.successAt))
        text.begin("build_info", "gauge", "One, with the version.")
        text.sample([("version", version)], 1)
    }
}

extension MetricsText {
    /// A sample for each label.
    fileprivate mutating func samples(
        _ counts: [UInt16: UInt64], _ label: String, _ names: [String]
    ) {
        for (number, count) in counts.sorted(by: { $0.key < $1.key }) {
            sample([(label, names[Int(number)])], count)
        }
    }

    /// A sample for each label and word.
    fileprivate mutating func samples<Word>(
        _ counts: [LoopMetrics.LabelledKey<Word>: UInt64], _ label: String, _ wordLabel: String,
        _ names: [String], _ text: (Word) -> String
    ) {
        let rows = counts.map { (names[Int($0.key.label)], text($0.key.word), $0.value) }
        for (name, word, count) in rows.sorted(by: { $0 < $1 }) {
            sample([(label, name), (wordLabel, word)], count)
        }
    }
}

extension LoopMetrics.RequestKey: Comparable {
    static func < (left: Self, right: Self) -> Bool {
        (left.route, left.method, left.status, left.verdict)
            < (right.route, right.method, right.status, right.verdict)
    }
}
