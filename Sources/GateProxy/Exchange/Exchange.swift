// One request and its answer, from the parsed head to the last byte downstream.
//
//   begin ─► host ─► connection rules ─► route
//              ├─ enrol ────────────► Exchange+Enrolment
//              ├─ deny ─────────────► answer
//              ├─ off ──────────────► forward, both bodies streaming
//              └─ enforce, monitor ─► Exchange+Judgement ─► forward
//
// The exchange owns no socket: `stream` is the client's side, `upstream` the service's. It lives on
// one loop. Each way out ends in `answerLeft` or `clientGone`, exactly once, and there the log line
// is written.

internal import GateBytes
internal import GateConfig
internal import GateHTTP
internal import GateRuntime
internal import GateStore

/// One request on its way through the gate.
final class Exchange {
    /// Where the request's body goes.
    enum BodySink {
        /// Held until the request has been judged.
        case held(HeldBody)
        /// Nowhere: it is not read.
        case none
        /// To the upstream as it comes.
        case upstream
    }

    let worker: Worker
    /// The configuration that was in force when the request began: it is judged and forwarded by
    /// that, whatever is loaded meanwhile.
    let context: GateContext
    private let pools: [UpstreamPool]
    let client: ClientFacts
    unowned let stream: any DownstreamStream
    /// The request's head; nil where none could be read.
    private(set) var head: RequestHead?
    /// The host asked for, once it is known.
    private(set) var host: HostRuntime?
    /// Index of the route in the host; -1 for the unmatched one. Nil before the match.
    private(set) var routeIndex: Int?
    private(set) var route: Route?
    /// The account; empty where there is none.
    var account: [UInt8] = []
    /// Where it falls with its route's share; nil without one, and before that is known.
    var placement: SharePlacement?
    /// What finds the account out, while the request waits for that (Exchange+Account).
    var accountWait: AccountWait?
    var sink = BodySink.none
    /// Whether the path has two readings, on a host where that is only counted.
    private(set) var isPathAmbiguous = false
    /// Whether the request's body is complete.
    private(set) var isBodyComplete = false
    /// Whether an answer has begun.
    var isAnswered = false
    /// Whether the client has gone or the answer is out: nothing more is done for it.
    private(set) var isOver = false
    var log: AccessRecord

    // The judgement of a protected request (Exchange+Judgement).
    var admission: Admission?
    var commit = CommitState.none
    /// What its fields say where it has no proof and its route's fallback has taken it.
    var fallback: ProofReading?
    /// While that fallback asks DeviceCheck (Exchange+DeviceCheck).
    var deviceCheck: PendingDeviceCheck?
    /// The device's token, where the route sets bits.
    var bitsToken: [UInt8]?
    /// What was found of a proof whose rest is in the body.
    var partialProof: ProofReading?
    /// The body that came in an envelope; the wire's is in ``sink``.
    var innerBody: HeldBody?
    /// While the attestation that the request brought is verified.
    var inlineEnrolment: InlineEnrolment?
    /// Whether the request brings an attestation, to a route that takes one.
    var isAttestationBrought = false
    /// What becomes of the request once enough of its body is here, on an enrolment path.
    var enrolment: PendingCall?
    /// Passes where the store keeps a request waiting too long; nil while none waits.
    private var storeDeadline: Deadline?

    private(set) var upstream: UpstreamRequest?
    /// Its place within `max_active`, taken before the commit.
    var slot: UpstreamSlot?
    /// The permit of a request whose body is held until its length is known.
    private var lengthPermit: Permit?
    /// Octets that a tunnel has brought the client, the 101 among them; nil without one.
    var tunnelBytesOut: Int?
    private(set) var isExpectForwarded = false
    /// Whether the gate has asked the client for the body.
    private var isContinueSent = false

    /// How far the commit is.
    enum CommitState {
        case done(CommitOutcome)
        case none
        case pending(since: Moment)
    }

    init(
        _ head: RequestHead, stream: any DownstreamStream, client: ClientFacts, worker: Worker
    ) {
        self.head = head
        self.stream = stream
        self.worker = worker
        context = worker.context
        pools = worker.pools
        self.client = worker.context.current(client)
        log = AccessRecord(started: worker.loop.now)
    }

    /// An exchange for what was no request: it can only be answered.
    init(
        withoutHead stream: any DownstreamStream, client: ClientFacts, worker: Worker
    ) {
        head = nil
        self.stream = stream
        self.worker = worker
        context = worker.context
        pools = worker.pools
        self.client = worker.context.current(client)
        log = AccessRecord(started: worker.loop.now)
    }

    /// Where the connection came in.
    var listener: ListenerRuntime { client.listener }

    /// Whether the answer goes without a body.
    var isHeadRequest: Bool { head?.knownMethod == .head }

    var bodyTimeout: Duration { route?.bodyTimeout ?? listener.timeouts.body }
    var bodyMinRate: Int { route?.bodyMinRate ?? listener.timeouts.bodyMinRate }
    var writeTimeout: Duration { route?.writeTimeout ?? listener.timeouts.write }

    /// Whether the peer is one of the listener's trusted proxies.
    private(set) lazy var isPeerTrusted = listener.isTrusted(client.peer)

    /// The client's address as limits and logs count it; nil on a unix socket.
    private(set) lazy var clientAddress: IPAddress? = {
        guard let peer = client.peer.ipAddress, let head else { return client.peer.ipAddress }
        return ClientAddress.find(peer: peer, trusted: listener.listener.trustedProxies, head)
    }()

    // MARK: The head

    /// Judges the head and sets the request on its way.
    func begin() {
        guard var head else { return }
        log.requestID = RequestID.choose(
            head, isPeerTrusted: isPeerTrusted, using: &worker.random)
        guard !listener.isAdmin else { return answerAdmin(head) }
        guard listener.isServed(by: context) else {
            return refuse(Refusal(.hostUnknown, at: .checks))
        }
        guard let index = listener.hosts.find(head.bytes, head.host) else {
            return refuse(Refusal(.hostUnknown, at: .checks))
        }
        guard !listener.isMisdirected(client, host: index, name: head.bytes[head.host]) else {
            return refuse(Refusal(.hostUnknown, at: .checks))
        }
        let host = context.hosts[index]
        self.host = host
        do throws(MessageError) {
            try HopByHop.mark(&head, protected: host.fields.protectedNames)
            self.head = head
        } catch {
            return refuse(.message(status: error.status))
        }
        guard !UnderscoreRule.refuses(head, host.fields) else {
            return refuse(Refusal(.malformed, at: .checks))
        }
        guard head.form != .asterisk else {
            var answer = GateAnswer(status: 200)
            answer.allow = Exchange.allowAll
            return self.answer(answer)
        }
        let match = host.table.match(
            head.bytes, method: head.method, path: head.path,
            isPreflight: RequestKind.isPreflight(head))
        follow(match, head, host)
    }

    private static let allowAll = Array("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS".utf8)

    private func follow(_ match: RouteMatch, _ head: RequestHead, _ host: HostRuntime) {
        switch match {
        case .ambiguous:
            refuse(Refusal(.pathAmbiguous, at: .checks))
        case .enroll(let subpath):
            beginEnrolment(subpath, head, host)
        case .methodNotAllowed(let allow):
            refuse(Refusal(.methodNotAllowed, at: .checks), allow: allow)
        case .notFound:
            refuse(Refusal(.noRoute, at: .checks))
        case .preflight(let index):
            routeIndex = index
            route = host.route(index)
            guard let permit = Permit.preflight(match) else { return }
            forwardStreaming(permit)
        case .route(let index, let isAmbiguous):
            let route = host.route(index)
            routeIndex = index
            self.route = route
            isPathAmbiguous = isAmbiguous
            if isAmbiguous { log.reason = .pathAmbiguous }
            switch route.mode {
            case .deny(let status):
                refuse(.denied(status: status))
            case .enforce, .monitor:
                judge(head, host, route)
            case .off:
                guard let permit = Permit.unguarded(route) else { return }
                forwardStreaming(permit)
            }
        }
    }

    // MARK: The body

    /// Whether bytes of the body can be taken now.
    var wantsBody: Bool {
        guard !isOver else { return false }
        switch sink {
        case .held: return !isAnswered
        case .none: return false
        case .upstream: return upstream?.isCongested == false
        }
    }

    /// Whether the client waits to be asked for the body: it is not late.
    var isBodyUnasked: Bool {
        guard case .held = sink, let head else { return false }
        return head.expectsContinue && !isContinueSent
    }

    /// Takes bytes of the body.
    func receive(body bytes: [UInt8], _ range: Range<Int>) {
        log.bytesIn += range.count
        switch sink {
        case .held(let held):
            hold(bytes, range, in: held)
        case .none:
            return
        case .upstream:
            upstream?.sendBody(bytes, range)
        }
    }

    private func hold(_ bytes: [UInt8], _ range: Range<Int>, in held: HeldBody) {
        if mode == .monitor, enrolment == nil, !isLengthAwaited,
            !held.fitsInMemory(range.count)
        {
            // A monitored body is held in memory only; what does not fit goes on unjudged.
            fail(Refusal(.unverifiable, at: .checks))
            guard isLengthAwaited else {
                upstream?.sendBody(bytes, range)
                return
            }
        }
        do throws(HeldBodyError) {
            try held.append(bytes, range)
        } catch {
            switch error {
            case .spoolFailed(let cause):
                let directory = context.spool.directory
                context.errorLog.write(.error, "spool dir \(directory): \(cause)")
                refuse(Refusal(.spoolFull, at: .checks))
            case .spoolFull:
                context.errorLog.write(
                    .warn, "spool max is reached: \(context.spool.limits)")
                refuse(Refusal(.spoolFull, at: .checks))
            case .tooLarge:
                refuse(Refusal(.tooLarge, at: .checks))
            }
        }
    }

    /// No more of the body is here at the moment.
    func bodyPaused() {
        if case .upstream = sink { upstream?.flushBody() }
    }

    /// The body is complete.
    func receiveEnd() {
        isBodyComplete = true
        switch sink {
        case .held(let held):
            guard !isAnswered else { return }
            if enrolment != nil { return enrolmentBodyComplete(held) }
            if let permit = lengthPermit.take() { return forward(permit, held: held) }
            bodyComplete(held)
        case .none:
            return
        case .upstream:
            upstream?.endBody()
        }
    }

    /// The body stopped coming.
    func bodyTimedOut() {
        guard !isAnswered else {
            // The upstream answered early and its answer goes on; the rest of the body is not read.
            sink = .none
            return
        }
        upstream?.cancel()
        refuse(.message(status: 408))
    }

    /// What follows the head is malformed.
    func fail(_ error: MessageError) {
        upstream?.cancel()
        guard !isAnswered else { return stream.abort() }
        refuse(.message(status: error.status))
    }

    /// Asks the client for the body, where it waits to be asked.
    func askForBody() {
        guard let head, head.expectsContinue, !isContinueSent else { return }
        isContinueSent = true
        stream.sendContinue()
    }

    // MARK: Forwarding

    /// Forwards with both bodies streaming: off routes and preflights.
    func forwardStreaming(_ permit: consuming Permit) {
        guard let head else { return }
        if isLengthWanted(head) { return holdForLength(permit, nil) }
        if case .length(let count) = head.framing, let route, count > route.bodyBytesMax,
            pool?.upstream.isLengthRequired == true
        {
            return refuse(Refusal(.tooLarge, at: .checks))
        }
        sink = .upstream
        let body: UpstreamRequest.Body
        switch head.framing {
        case .none, .length(0): body = .none
        case .chunked, .length, .untilClose: body = .streamed(held: nil)
        }
        // A client that has its 100 already sends: the service is not to wait for another.
        isExpectForwarded = head.expectsContinue && !isContinueSent
        forward(permit, body)
    }

    /// Forwards a judged request whose whole body is held.
    func forward(_ permit: consuming Permit, held: HeldBody) {
        sink = .none
        forward(permit, held.count > 0 ? .held(held) : .none)
    }

    /// Forwards a request of a monitored route: what is held first, then the rest as it comes.
    func forwardRest(_ permit: consuming Permit, after held: HeldBody?) {
        guard let head else { return }
        if isBodyComplete, let held { return forward(permit, held: held) }
        // Also where nothing is held yet: the piece that did not fit goes where the rest goes.
        if let held, isLengthWanted(head) { return holdForLength(permit, held) }
        guard let held, held.count > 0 else { return forwardStreaming(permit) }
        sink = .upstream
        forward(permit, .streamed(held: held))
    }

    /// The pool of the route's upstream; nil before the match and where the route has none.
    var pool: UpstreamPool? {
        guard let host, let routeIndex else { return nil }
        let index = host.upstream(of: routeIndex)
        return index >= 0 ? pools[index] : nil
    }

    /// The pool of the upstream called `name` in the exchange's configuration.
    func pool(named name: String) -> UpstreamPool? {
        context.upstreamIndex(named: name).map { pools[$0] }
    }

    private func isLengthWanted(_ head: RequestHead) -> Bool {
        head.framing == .chunked && pool?.upstream.isLengthRequired == true
    }

    private var isLengthAwaited: Bool { lengthPermit != nil }

    /// Holds the rest of a body of unknown length until it is known: `request length`.
    private func holdForLength(_ permit: consuming Permit, _ held: HeldBody?) {
        guard let route else { return }
        sink = .held(
            held
                ?? HeldBody(
                    memoryBytesMax: route.bodyMemoryBytes, bytesMax: route.bodyBytesMax,
                    spool: context.spool))
        lengthPermit = consume permit
        askForBody()
    }

    private func forward(_ permit: consuming Permit, _ body: UpstreamRequest.Body) {
        guard let head, let host, let route else { return }
        log.verdict = permit.verdict
        guard let pool else { return refuse(Refusal(.noRoute, at: .checks)) }
        // HTTP/2 has another way to do this (RFC 8441), which the gate does not go.
        let webSocketAccept = pool.http2Scheme == nil ? webSocketAccept(head, route) : nil
        let said = UpstreamContext(
            isPeerTrusted: isPeerTrusted,
            peer: client.peer.ipAddress.map { Array("\($0)".utf8) } ?? [],
            scheme: client.scheme, requestID: log.requestID, verdict: permit.verdict,
            risk: permit.risk,
            account: account.isEmpty ? nil : account, operationID: permit.operationID,
            contentType: permit.contentType, isProofPassed: route.isProofPassed,
            isExpectForwarded: isExpectForwarded,
            traceParent: TraceParent.replacement(head, using: &worker.random),
            isWebSocket: webSocketAccept != nil,
            body: Exchange.framing(body, head))
        let form: UpstreamRequestHead.Form
        do throws(HeadWriterError) {
            form = try pool.write(head, host.fields, said)
        } catch {
            context.errorLog.write(
                .error, "upstream \"\(pool.upstream.name)\": request head: \(error)")
            return refuse(Refusal(.upstream, as: .internal))
        }
        let timeouts = pool.upstream.timeouts
        let message = UpstreamRequest.Message(
            head: UpstreamRequestHead(
                form: form, body: said.body, isHead: head.knownMethod == .head,
                limits: listener.headLimits, webSocketAccept: webSocketAccept),
            body: body, isIdempotent: head.isIdempotent,
            timeouts: UpstreamRequest.Timeouts(
                connect: route.connectTimeout ?? timeouts.connect,
                firstByte: route.firstByteTimeout ?? timeouts.firstByte,
                idle: route.idleTimeout ?? timeouts.idle),
            key: permit.verdict.keyID)
        log.upstreamStarted = worker.loop.now
        let request = UpstreamRequest.open(
            message, permit: permit, pool: pool, slot: slot.take(), owner: self)
        upstream = request
        request.start()
    }

    private static func framing(_ body: UpstreamRequest.Body, _ head: RequestHead) -> UpstreamBody {
        switch body {
        case .held(let held): return .length(held.count)
        case .none: return head.framing == .none ? .none : .length(0)
        case .streamed:
            if case .length(let count) = head.framing { return .length(count) }
            return .chunked
        }
    }

    // MARK: Answers

    /// Refuses with a problem, whatever the route's mode.
    func refuse(_ refusal: Refusal, allow: [String] = []) {
        guard !isAnswered, !isOver else { return }
        leaveSlot()
        log.reason = refusal.reason
        log.code = refusal.code
        log.limit = refusal.rateLimit?.name.rawValue
        var nextChallenge: [UInt8]?
        if refusal.code == .challengeRequired, let host,
            let purpose = challengePurpose
        {
            nextChallenge = worker.issue(purpose: purpose, host: host, account: account).value
        }
        answer(
            GateAnswer(
                refusal, requestID: log.requestID, nextChallenge: nextChallenge, allow: allow))
    }

    /// The purpose of the challenge that goes with `challenge_required`: what makes such a request
    /// good. One with an attestation is judged by the purpose of attestations.
    private var challengePurpose: String? {
        if isAttestationBrought { return ReservedPurpose.attestation }
        return enrolment?.purpose ?? route?.purpose
    }

    /// Sends an answer of the gate's own.
    func answer(_ answer: GateAnswer) {
        guard !isAnswered, !isOver else { return }
        isAnswered = true
        var answer = answer
        if answer.nextChallenge == nil { answer.nextChallenge = challengeOfVerified() }
        log.status = answer.status
        stream.answer(answer, requestID: log.requestID)
    }

    /// The challenge that goes with every answer to a verified request (`protocol.md` §1).
    func challengeOfVerified() -> [UInt8]? {
        guard case .verified = log.verdict, let host, let route, mode == .enforce else {
            return nil
        }
        return worker.issue(purpose: route.purpose, host: host, account: account).value
    }

    /// Answers what could not be parsed.
    func answerMalformed(_ error: MessageError) {
        log.requestID = RequestID.make(using: &worker.random)
        refuse(.message(status: error.status))
    }

    /// Answers a head that did not come in time.
    func answerTimeout() {
        log.requestID = RequestID.make(using: &worker.random)
        refuse(.message(status: 408))
    }

    // MARK: Waiting for the store

    /// Bounds the wait for the store, until ``storeAnswered()``.
    func awaitStore() {
        let deadline = Deadline()
        deadline.onPassed = { [weak self] in self?.storeTimedOut() }
        storeDeadline = deadline
        worker.loop.set(deadline, after: context.storeWaitMax)
    }

    /// Ends the wait.
    func storeAnswered() {
        guard let deadline = storeDeadline else { return }
        worker.loop.remove(deadline)
        storeDeadline = nil
    }

    /// The outcome may still come, and a proof be spent by it; nobody waits for it any more.
    private func storeTimedOut() {
        storeDeadline = nil
        let bound = context.storeWaitMax
        context.errorLog.write(
            .error,
            "store: no outcome within \(bound); the request is not served, its proof may be spent")
        fail(Refusal(.storeUnavailable, at: .checks))
    }

    // MARK: What the stream reports

    /// Whether the request stands in line for a place within `max_active`: one whose client sends
    /// no more is then taken for abandoned, so that nobody's place is kept for it.
    var isQueued: Bool { slot?.isWaiting == true || upstream?.isQueued == true }

    /// The client can take more of the answer.
    func clientDrained() {
        upstream?.resume()
    }

    /// The answer is complete and queued; the exchange is over.
    func answerLeft() {
        end()
    }

    /// The client has gone, or the answer was broken off.
    func clientGone() {
        guard !isOver else { return }
        end()
    }

    /// Gives back a place that no request took over.
    private func leaveSlot() {
        slot?.giveBack()
        slot = nil
    }

    private func end() {
        guard !isOver else { return }
        isOver = true
        storeAnswered()
        stopWaitingForAccount()
        leaveDeviceCheck()
        leaveSlot()
        log.bytesOut = tunnelBytesOut ?? stream.bytesSent
        log.server = upstream?.server
        if let line = upstream?.serverLine, let pool {
            log.serverLabel = pool.servers.label(ofServer: line)
        }
        if !isAnswerLeftToBitSetter() { upstream?.cancel() }
        upstream = nil
        sink = .none
        worker.finished(self)
    }
}
