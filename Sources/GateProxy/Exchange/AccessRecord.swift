internal import GateBytes
internal import GateConfig
internal import GateHTTP
internal import GateRuntime
internal import GateStore
internal import GateTLS

/// What an exchange notes on its way for its line in the access log.
struct AccessRecord {
    /// When the exchange began.
    let started: Moment
    var requestID: [UInt8] = []
    var status: Int?
    var code: ProblemCode?
    var verdict: Verdict?
    var reason: Reason?
    var keyID: Bytes32?
    var counter: UInt32?
    var bytesIn = 0
    var bytesOut = 0
    var verifyTime: Duration?
    var commitTime: Duration?
    var upstreamStarted: Moment?
    var upstreamEnded: Moment?
    var server: SocketAddress?
    /// The number of its server line in the metrics.
    var serverLabel: UInt16 = 0
    var upstreamResult: UpstreamResult?
    /// What came of an attestation: `enrolled`, `known`, or the reason of the refusal.
    var enrolment: String?
    /// Whether the request says that its app cannot attest, and brings no proof.
    var isUnsupported = false
    /// The limit it was refused for.
    var limit: String?

    init(started: Moment) {
        self.started = started
    }
}

extension Exchange {
    /// The exchange's line, made when it is over.
    func logLine() -> AccessLogLine {
        let settings = context.configuration.log
        let now = worker.loop.clock.now()
        var line = AccessLogLine(time: context.clock.unixNanoseconds() / 1_000_000)
        line.requestID = log.requestID
        line.client = clientAddress.map { Array("\($0)".utf8) }
        line.listener = listener.listener.name
        line.host = host?.host.names.first
        if let head {
            line.method = Array(head.bytes[head.method])
            line.target = Array(head.bytes[head.target])
            line.version = head.version
        }
        line.tls = client.tls?.version
        line.status = log.status
        line.code = log.code
        line.verdict = log.verdict
        line.reason = log.reason
        line.route = route?.name
        line.app = host?.app?.app.name
        line.keyID = log.keyID
        if !account.isEmpty {
            line.account =
                settings.isAccountPlain
                ? account
                : AccountText.hashed(account, secret: context.store.secrets.current)
        }
        line.counter = log.counter
        line.bytesIn = log.bytesIn + (head?.bytes.count ?? 0)
        line.bytesOut = log.bytesOut
        line.duration = now.duration(since: log.started)
        line.verify = log.verifyTime
        line.commit = log.commitTime
        if let started = log.upstreamStarted {
            line.upstreamDuration = (log.upstreamEnded ?? now).duration(since: started)
        }
        line.upstream = log.server?.description
        return line
    }
}
