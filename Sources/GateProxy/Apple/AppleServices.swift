package import GateConfig
internal import GateCrypto
internal import GateHTTP
internal import GateLock
internal import GateRuntime

/// One call to a service of Apple's.
struct AppleRequest {
    /// What is called; the word of the metrics.
    enum Call: String {
        case attestationData = "attestation_data"
        case queryTwoBits = "query_two_bits"
        case updateTwoBits = "update_two_bits"
        case validateDeviceToken = "validate_device_token"

        var path: String {
            self == .attestationData ? "/v1/attestationData" : "/v1/\(rawValue)"
        }
    }

    var call: Call
    var environment: App.Environment
    var body: [UInt8]
    /// For the whole call.
    var deadline: Duration
    /// The longest answer that is taken.
    var answerBytesMax = 16 * 1024
}

/// What came of a call.
enum AppleOutcome {
    /// An answer that is about what was asked: 200, 304, 400 or 404.
    case answer(status: Int, body: [UInt8])
    /// Apple does not take the gate for the operator, or not its clock: nothing a client can mend.
    case refused(status: Int)
    /// Nothing is to be had now.
    case unavailable(retryAfter: Int?)
}

/// Nothing is asked now: the service has not answered for a while.
struct AppleUnavailable: Error {
    var retryAfter: Int
}

/// How the gate asks Apple's servers: the token, and what is known of each service. One for all
/// loops and, while `apple` stays the same, for all configurations.
package final class AppleServices: Sendable {
    let settings: AppleSettings
    private let token: AppleToken
    /// By upstream, that is by service and environment.
    private let breakers: [String: Lock<CircuitBreaker>]

    /// - Throws: What is wrong with the key.
    package init(_ settings: AppleSettings) throws(StartError) {
        self.settings = settings
        do throws(PrivateKeyTextError) {
            token = AppleToken(
                teamID: settings.teamID, keyID: settings.keyID,
                key: try ServiceSigningKey(pem: settings.key))
        } catch {
            throw StartError("apple: key: \(error)")
        }
        let services = Array(settings.deviceCheck.values) + Array(settings.attestData.values)
        breakers = Dictionary(
            services.map { ($0.upstream, Lock(CircuitBreaker())) },
            uniquingKeysWith: { one, _ in one
            })
    }

    /// Begins a call over the pools of `worker`. `then` runs on its loop once, never before this
    /// returns, and not at all after the call was cancelled.
    /// - Throws: Where nothing is asked now; Apple is left alone.
    func start(
        _ request: AppleRequest, on worker: Worker, then: @escaping (AppleOutcome) -> Void
    ) throws(AppleUnavailable) -> InternalCall {
        let isExchange = request.call == .attestationData
        let services = isExchange ? settings.attestData : settings.deviceCheck
        guard let service = services[request.environment],
            let pool = worker.pool(named: service.upstream),
            let breaker = breakers[service.upstream]
        else {
            worker.metrics.noteAppleCall(request.call.rawValue, "unconfigured")
            throw AppleUnavailable(retryAfter: Refusal.retryAfterDefault)
        }
        let decision = breaker.withLock { $0.decide(at: worker.loop.now) }
        if case .wait(let seconds) = decision {
            worker.metrics.noteAppleCall(request.call.rawValue, "circuit_open")
            throw AppleUnavailable(retryAfter: seconds)
        }
        let bearer = isExchange ? "" : "Bearer "
        var message = InternalRequest(
            .post, service.url.path(appending: request.call.path),
            authority: service.url.authority, body: request.body, deadline: request.deadline,
            answerBytesMax: request.answerBytesMax, isRepeatable: true)
        message.add("Content-Type", isExchange ? "text/plain" : "application/json")
        message.add("Accept", "*/*")
        message.add("User-Agent", "attestgate")
        message.add("Authorization", bearer + token.text(now: worker.context.unixSeconds()))
        let judgement = AppleJudgement(request.call, service: service, breaker, decision)
        return InternalCall.start(message, over: pool, on: worker.loop) { [weak worker] outcome in
            guard let worker else { return }
            then(judgement.judge(outcome, worker))
        }
    }
}

extension ServiceURL {
    /// The target of a call whose path follows that of the URL.
    fileprivate func path(appending path: String) -> String {
        (target.hasSuffix("/") ? String(target.dropLast()) : target) + path
    }
}

/// What an answer, or none, means: for the caller, the breaker, the log and the metrics.
private struct AppleJudgement {
    private let call: AppleRequest.Call
    private let service: AppleSettings.Service
    private let breaker: Lock<CircuitBreaker>
    private let decision: CircuitBreaker.Decision

    private static let retryAfter = FieldName("Retry-After")
    private static let trace = FieldName("X-B3-TraceId")

    init(
        _ call: AppleRequest.Call, service: AppleSettings.Service,
        _ breaker: Lock<CircuitBreaker>, _ decision: CircuitBreaker.Decision
    ) {
        self.call = call
        self.service = service
        self.breaker = breaker
        self.decision = decision
    }

    func judge(_ outcome: InternalCall.Outcome, _ worker: Worker) -> AppleOutcome {
        let log = worker.context.errorLog
        switch outcome {
        case .success(let answer):
            return judge(answer, worker)
        case .failure(let failure):
            log.write(.warn, "apple: \(call.rawValue): \(failure)")
            note(failure.isOwn ? "failed_here" : failure.isTimeout ? "timeout" : "failed", worker)
            // What the gate could not even try says nothing of Apple.
            if !failure.isOwn { noteFailure(nil, worker) }
            return .unavailable(retryAfter: nil)
        }
    }

    private func judge(_ answer: InternalAnswer, _ worker: Worker) -> AppleOutcome {
        let isOwnFault = answer.status == 400 && AppleText.isOwnFault(answer.body)
        switch answer.status {
        case 200:
            return passed(answer, "ok", worker)
        case 304:
            return passed(answer, "not_modified", worker)
        case 400 where !isOwnFault:
            write(.info, answer, worker)
            return passed(answer, "bad_request", worker)
        case 404:
            write(.info, answer, worker)
            return passed(answer, "not_found", worker)
        case 429, 500...:
            write(.warn, answer, worker)
            note(answer.status == 429 ? "busy" : "error", worker)
            let seconds = seconds(answer)
            let isPauseWanted = answer.status == 429 || seconds != nil
            noteFailure(
                isPauseWanted ? seconds.map { .seconds($0) } ?? CircuitBreaker.pause : nil, worker)
            return .unavailable(retryAfter: seconds)
        default:
            write(.error, answer, worker)
            noteAnswer(worker)
            note("refused", worker)
            return .refused(status: answer.status)
        }
    }

    private func passed(
        _ answer: InternalAnswer, _ result: String, _ worker: Worker
    ) -> AppleOutcome {
        noteAnswer(worker)
        note(result, worker)
        return .answer(status: answer.status, body: answer.body)
    }

    /// The one place where the result of a call is known.
    private func note(_ result: String, _ worker: Worker) {
        worker.metrics.noteAppleCall(call.rawValue, result)
    }

    private func noteAnswer(_ worker: Worker) {
        guard breaker.withLock({ $0.noteAnswer(to: decision) }) else { return }
        worker.context.errorLog.write(.warn, "apple: \(service.url.authority) answers again")
    }

    private func noteFailure(_ pause: Duration?, _ worker: Worker) {
        let isOpened = breaker.withLock {
            $0.noteFailure(of: decision, pause: pause, at: worker.loop.now)
        }
        guard isOpened else { return }
        worker.context.errorLog.write(
            .warn,
            "apple: \(service.url.authority) is not asked for a while; what needs it is answered "
                + "retry_later")
    }

    /// `Retry-After` in seconds; a date is left to the usual pause.
    private func seconds(_ answer: InternalAnswer) -> Int? {
        guard let value = answer.value(of: AppleJudgement.retryAfter), value.count <= 6 else {
            return nil
        }
        return Int(String(decoding: value, as: UTF8.self)).map { max(1, $0) }
    }

    private func write(_ severity: LogSettings.Level, _ answer: InternalAnswer, _ worker: Worker) {
        let trace = answer.value(of: AppleJudgement.trace).map {
            " (trace \(AppleText.excerpt($0)))"
        }
        worker.context.errorLog.write(
            severity,
            "apple: \(call.rawValue): answered \(answer.status) "
                + "\"\(AppleText.excerpt(answer.body))\"\(trace ?? "")")
    }
}

extension InternalCallFailure {
    /// Whether the gate itself had no means to ask.
    fileprivate var isOwn: Bool {
        switch self {
        case .head: true
        case .upstream(let failure): failure.isOwn || failure == .noSlot
        case .answerTooLong, .timeout: false
        }
    }

    fileprivate var isTimeout: Bool {
        switch self {
        case .timeout: true
        case .upstream(let failure): failure.isTimeout
        case .answerTooLong, .head: false
        }
    }
}
