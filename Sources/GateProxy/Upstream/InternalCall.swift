// One HTTP request of the gate's own and its answer, on one loop for life: that of its pool.
//
//   queued ──► connecting ──► waiting ──► ended, and `then` has heard how
//      └───────────┴─────────────┴── failed, time over, cancelled
//
// Tried again as ``UpstreamRequest`` does: while nothing was sent, when the server says that it
// took nothing, and on a reused connection that closed before any answer if it is repeatable.
// A call keeps itself alive until it has ended.

internal import GateBytes
internal import GateConfig
internal import GateHTTP
internal import GateRuntime

/// Why a call of the gate's own brought no whole answer.
enum InternalCallFailure: Error, Equatable, CustomStringConvertible {
    /// The body is longer than the request takes; the status is known.
    case answerTooLong(status: Int, bytesMax: Int)
    /// The request cannot be written.
    case head(HeadWriterError)
    case timeout(Duration)
    case upstream(UpstreamFailure)

    /// A clause for the log.
    var description: String {
        switch self {
        case .answerTooLong(let status, let bytesMax):
            return "answered \(status) with more than \(bytesMax) bytes"
        case .head(let error): return "the request cannot be written: \(error)"
        case .timeout(let duration): return "no answer within \(duration)"
        case .upstream(let failure): return "\(failure)"
        }
    }
}

/// One request of the gate's own on its way.
final class InternalCall: UpstreamChannelUser {
    /// Where a call goes.
    enum Destination {
        /// To whichever server the upstream's balance says.
        case balanced
        /// To this one, over a new connection where it speaks HTTP/1.1.
        case probe(UpstreamTarget)
    }

    typealias Outcome = Result<InternalAnswer, InternalCallFailure>

    private enum Phase {
        case connecting
        case ended
        case queued
        case waiting
    }

    private let request: InternalRequest
    private let destination: Destination
    private let pool: UpstreamPool
    private let loop: EventLoop
    private var then: ((Outcome) -> Void)?
    private var phase = Phase.queued
    private var channel: (any UpstreamChannel)?
    private var choice: UpstreamServers.Choice?
    private var wanted = BalancerRequest()
    private var retriesLeft: Int
    private let slot: UpstreamSlot?
    private let end = Deadline()
    private var head: ResponseHead?
    private var body: [UInt8] = []
    /// Set while ``start(_:to:over:on:then:)`` runs, in which `then` is not called.
    private var isStarting = true
    private var outcome: Outcome?

    /// Begins a call. `then` runs on the loop once, never before this returns, and not at all after
    /// ``cancel()``.
    @discardableResult
    static func start(
        _ request: InternalRequest, to destination: Destination = .balanced,
        over pool: UpstreamPool, on loop: EventLoop, then: @escaping (Outcome) -> Void
    ) -> InternalCall {
        let call = InternalCall(request, to: destination, over: pool, on: loop, then: then)
        call.begin()
        return call
    }

    private init(
        _ request: InternalRequest, to destination: Destination, over pool: UpstreamPool,
        on loop: EventLoop, then: @escaping (Outcome) -> Void
    ) {
        self.request = request
        self.destination = destination
        self.pool = pool
        self.loop = loop
        self.then = then
        switch destination {
        case .balanced:
            retriesLeft = pool.upstream.retries
            slot = pool.makeSlot()
        case .probe:
            retriesLeft = 0
            slot = nil
        }
    }

    private func begin() {
        // The closure holds the call until it has ended.
        end.onPassed = { self.timeOver() }
        loop.set(end, after: request.deadline)
        if let slot {
            slot.take { [weak self] isTaken in
                guard let self, self.phase == .queued else { return }
                guard isTaken else { return self.fail(.noSlot) }
                self.attempt(mayReuse: true)
            }
        } else {
            attempt(mayReuse: true)
        }
        isStarting = false
    }

    private func timeOver() {
        if phase == .waiting {
            noteFailure()
            channel?.expire()
            channel = nil
        }
        conclude(.failure(.timeout(request.deadline)))
    }

    /// Gives up: `then` is not called any more.
    func cancel() {
        then = nil
        outcome = nil
        conclude(.failure(.upstream(.closed(afterBytes: false))))
    }

    // MARK: Attempts

    private func attempt(mayReuse: Bool) {
        leaveServer()
        let server: SocketAddress
        do throws(UpstreamFailure) {
            server = try choose()
        } catch {
            return fail(error)
        }
        if mayReuse, isReuseMeant, let open = pool.takeIdle(server, for: self) {
            channel = open
            return send()
        }
        phase = .connecting
        do throws(SystemError) {
            channel = try pool.connect(server, for: self)
            channel?.setDeadline(after: pool.upstream.timeouts.connect)
        } catch {
            connectFailed(.connect(error))
        }
    }

    private func choose() throws(UpstreamFailure) -> SocketAddress {
        switch destination {
        case .balanced:
            let choice = try pool.choose(for: wanted)
            self.choice = choice
            return choice.address
        case .probe(let target):
            return target.address
        }
    }

    /// A probe asks HTTP/1.1 on a connection of its own, which shows that the server takes one.
    private var isReuseMeant: Bool {
        if case .probe = destination { return pool.http2Scheme != nil }
        return true
    }

    private func send() {
        guard let channel else { return }
        phase = .waiting
        do throws(HeadWriterError) {
            channel.begin(
                UpstreamRequestHead(
                    form: try form(),
                    body: request.body.isEmpty ? .none : .length(request.body.count),
                    isHead: request.method == .head, limits: HeadLimits()))
        } catch {
            return conclude(.failure(.head(error)))
        }
        if !request.body.isEmpty { channel.write(body: request.body, 0..<request.body.count) }
        channel.endRequest()
        channel.flush()
    }

    private func form() throws(HeadWriterError) -> UpstreamRequestHead.Form {
        let line: Int
        switch destination {
        case .balanced:
            let id = choice?.id
            line =
                request.authority == nil
                ? pool.targets.first { $0.id == id }?.server ?? 0 : 0
        case .probe(let target):
            line = target.server
        }
        let server = pool.upstream.servers[line].endpoint
        guard let scheme = pool.http2Scheme else {
            return .http1(try request.bytes(to: server, setFields: pool.setFields))
        }
        return .http2(try request.block(to: server, setFields: pool.setFields, scheme: scheme))
    }

    private func connectFailed(_ failure: UpstreamFailure) {
        if !failure.isOwn { noteFailure() }
        if let choice { wanted.failed.append(choice.id) }
        retry(failure, mayReuse: true)
    }

    private func retry(_ failure: UpstreamFailure, mayReuse: Bool) {
        guard retriesLeft > 0 else { return fail(failure) }
        retriesLeft -= 1
        attempt(mayReuse: mayReuse)
    }

    private func noteFailure() {
        if let choice { pool.noteFailure(of: choice) }
    }

    private func leaveServer() {
        if let choice { pool.release(choice) }
        choice = nil
    }

    private func fail(_ failure: UpstreamFailure) {
        conclude(.failure(.upstream(failure)))
    }

    private func conclude(_ outcome: Outcome) {
        guard phase != .ended else { return }
        phase = .ended
        leaveServer()
        slot?.giveBack()
        loop.remove(end)
        end.onPassed = nil
        channel?.close()
        channel = nil
        guard isStarting else { return tell(outcome) }
        self.outcome = outcome
        let bound = LoopBound(self, on: loop)
        loop.handle.submit {
            let call = bound.open()
            if let outcome = call.outcome { call.tell(outcome) }
        }
    }

    private func tell(_ outcome: Outcome) {
        let then = then
        self.then = nil
        then?(outcome)
    }

    // MARK: UpstreamChannelUser

    var isDownstreamCongested: Bool { false }

    func connected() {
        if phase == .connecting { send() }
    }

    func received(interim head: ResponseHead) {}

    func received(head: ResponseHead) {
        guard head.status != 101 else { return fail(.malformed(.upgradeUnexpected)) }
        self.head = head
    }

    func received(body bytes: [UInt8], _ range: Range<Int>) {
        guard let head, phase == .waiting else { return }
        guard body.count + range.count <= request.answerBytesMax else {
            return conclude(
                .failure(
                    .answerTooLong(status: head.status, bytesMax: request.answerBytesMax)))
        }
        body.append(contentsOf: bytes[range])
    }

    func receivedEnd(trailers: ResponseTrailers?) {
        guard phase == .waiting, let head else { return }
        if let channel { pool.giveBack(channel) }
        channel = nil
        conclude(.success(InternalAnswer(head: head, body: body)))
    }

    func drained() {}

    func paused() {}

    func failed(_ failure: UpstreamFailure) {
        let wasReused = channel?.isReused ?? false
        channel = nil
        switch failure {
        case .connect, .handshake:
            connectFailed(failure)
        case .closed(afterBytes: false) where wasReused && request.isRepeatable,
            .refused where phase == .waiting && head == nil:
            wanted.avoided = choice?.id
            retry(failure, mayReuse: failure == .refused)
        default:
            noteFailure()
            fail(failure)
        }
    }

    /// A server that takes no connection in its time; of the answer the call's own deadline says.
    func deadlinePassed() {
        guard phase == .connecting else { return }
        channel?.close()
        channel = nil
        connectFailed(.connectTimeout)
    }
}
