internal import GateBytes
internal import GateHTTP
internal import GateRuntime

/// What an HTTP/1.1 connection to a server tells the request that uses it.
protocol UpstreamConnectionUser: AnyObject {
    /// The connection stands; the request may be written.
    func connected()
    /// An interim answer (1xx).
    func received(interim: ResponseHead)
    /// The final answer's head.
    func received(head: ResponseHead)
    /// Bytes of the answer's body, valid during the call.
    func received(body bytes: [UInt8], _ range: Range<Int>)
    /// The answer is complete. The connection is the pool's again, or closed.
    func receivedEnd()
    /// What was written has left for the kernel; more may be written.
    func drained()
    /// A batch of events has been delivered.
    func paused()
    /// The connection has failed and is closed.
    func failed(_ failure: UpstreamFailure)
    /// The moment set with ``UpstreamConnection/setDeadline(after:)`` has passed.
    func deadlinePassed()
    /// Whether the answer cannot be taken at the moment.
    var isDownstreamCongested: Bool { get }
}

/// Why an exchange with a server ended without a whole answer.
enum UpstreamFailure: Error, Equatable {
    /// The server closed or reset after part of the answer, or before any of it.
    case closed(afterBytes: Bool)
    case connect(SystemError)
    case connectTimeout
    case firstByteTimeout
    case idleTimeout
    case malformed(MessageError)
    /// No address of the upstream is known.
    case noAddress
    /// The held body could not be read back.
    case spool(SystemError)

    /// Whether the client is told of a time-out (504) rather than a failure (502).
    var isTimeout: Bool {
        switch self {
        case .connectTimeout, .firstByteTimeout, .idleTimeout: return true
        case .closed, .connect, .malformed, .noAddress, .spool: return false
        }
    }
}

/// One HTTP/1.1 connection to one server, on one loop for life: connecting, in use by one request,
/// or idle in the pool.
final class UpstreamConnection: EventHandler {
    private enum Phase {
        case closed
        case connecting
        case idle
        case inUse
    }

    /// The server this connection goes to.
    let server: SocketAddress
    /// When it was given back to the pool.
    private(set) var idleSince: Moment
    /// Requests written on it so far.
    private(set) var requests = 0
    /// Called when an idle connection closes or says something unasked.
    var onIdleEnd: (() -> Void)?

    private let socket: Socket
    private let loop: EventLoop
    private let memory: SpareMemory
    private var phase = Phase.connecting
    private weak var user: (any UpstreamConnectionUser)?
    private var decoder: ResponseDecoder?
    private var input = ByteBuffer()
    private var output = ByteBuffer()
    private var isReadable = false
    private var isPeerEnded = false
    private let deadline = Deadline()
    private var hasReceived = false
    private var isPersistent = false
    private var isRequestWhole = false
    private var isPumping = false

    /// Bytes that may wait to be written before the writer should pause.
    static let outputHighWater = 64 * 1024

    init(
        to server: SocketAddress, memory: SpareMemory, on loop: EventLoop,
        user: any UpstreamConnectionUser
    ) throws(SystemError) {
        self.server = server
        self.loop = loop
        self.memory = memory
        self.user = user
        idleSince = loop.now
        socket = try Socket.connect(to: server, on: loop)
        try socket.register(self)
        deadline.onPassed = { [weak self] in self?.user?.deadlinePassed() }
    }

    /// Tells the user once `duration` has passed from now, unless it is set again before.
    func setDeadline(after duration: Duration) {
        loop.set(deadline, after: duration)
    }

    /// Whether the connection was used before: its server may have closed it a moment ago.
    var isReused: Bool { requests > 1 }

    /// Whether so much waits to be written that the writer should pause.
    var isCongested: Bool { output.count >= UpstreamConnection.outputHighWater }

    /// Whether an idle connection is still quiet.
    var isQuiet: Bool { phase == .idle && socket.isQuiet }

    /// Takes an idle connection out of the pool for `user`.
    func reuse(for user: any UpstreamConnectionUser) {
        precondition(phase == .idle)
        phase = .inUse
        self.user = user
    }

    /// Begins a request: its answer is read as one to a request with this method.
    func begin(isHead: Bool, limits: HeadLimits) {
        precondition(phase == .inUse)
        decoder = ResponseDecoder(requestMethodIsHead: isHead, limits: limits)
        requests += 1
        hasReceived = false
        isPersistent = false
        isRequestWhole = false
    }

    /// Queues bytes of the request; they leave with ``flush()``.
    func write(_ bytes: [UInt8], _ range: Range<Int>) {
        output.append(bytes, range)
    }

    /// Queues bytes that `fill` appends.
    func write<Failure: Error>(
        _ fill: (inout ByteBuffer) throws(Failure) -> Int
    ) throws(Failure) -> Int {
        try fill(&output)
    }

    /// Notes that the whole request has been queued.
    func endRequest() {
        isRequestWhole = true
    }

    /// Writes what the socket takes.
    /// - Returns: Whether everything queued has left.
    @discardableResult
    func flush() -> Bool {
        guard phase == .inUse else { return output.isEmpty }
        while !output.isEmpty {
            do throws(SystemError) {
                guard case .bytes(let count) = try socket.write(output.storage, output.readable)
                else { return false }
                output.consume(count)
            } catch {
                // The event of the failure follows. The server may have answered before it closed,
                // so what it said is read first.
                output.removeAll()
                isReadable = true
                return false
            }
        }
        return true
    }

    /// Goes on reading after the downstream side has taken what it had.
    func resumeReading() {
        pump()
    }

    /// Closes without a word to the user.
    func close() {
        phase = .closed
        user = nil
        onIdleEnd = nil
        loop.remove(deadline)
        socket.close()
    }

    func ready(_ readiness: Readiness) {
        if readiness.contains(.ended) { isPeerEnded = true }
        switch phase {
        case .closed:
            return
        case .connecting:
            guard readiness.contains(.writable) else { return }
            if let error = socket.takeError() { return fail(.connect(error)) }
            phase = .inUse
            user?.connected()
        case .idle:
            // Neither a close nor a byte has a place here; the pool drops the connection.
            guard readiness.contains(.readable) else { return }
            let ended = onIdleEnd
            close()
            ended?()
        case .inUse:
            if readiness.contains(.readable) { isReadable = true }
            if readiness.contains(.writable), !output.isEmpty, flush() { user?.drained() }
            pump()
        }
    }

    /// Reads and decodes until nothing is left, the answer ends or the downstream side is full.
    private func pump() {
        guard !isPumping else { return }
        isPumping = true
        let user = self.user
        defer {
            isPumping = false
            user?.paused()
        }
        while phase == .inUse, let user = self.user, decoder != nil {
            guard !user.isDownstreamCongested else { return }
            do throws(MessageError) {
                guard let event = try decoder?.next(&input) else { return }
                if case .needMore = event {
                    guard isReadable, try readMore() else { return }
                } else {
                    deliver(event, to: user)
                }
            } catch {
                return fail(.malformed(error))
            }
        }
    }

    /// - Returns: Whether decoding can go on.
    private func readMore() throws(MessageError) -> Bool {
        let transfer: Transfer
        do throws(SystemError) {
            memory.lend(to: &input)
            transfer = try socket.read(into: &input)
        } catch {
            fail(.closed(afterBytes: hasReceived))
            return false
        }
        switch transfer {
        case .bytes:
            hasReceived = true
            // An end of stream that was reported already brings no event of its own.
            if socket.isExhausted, !isPeerEnded { isReadable = false }
            return true
        case .wouldBlock:
            isReadable = false
            return false
        case .end:
            isReadable = false
            if hasReceived, try decoder?.close() == true, let user {
                deliver(.end, to: user)
            } else {
                fail(.closed(afterBytes: hasReceived))
            }
            return false
        }
    }

    private func deliver(_ event: ResponseEvent, to user: any UpstreamConnectionUser) {
        switch event {
        case .needMore:
            break
        case .interim(let head):
            user.received(interim: head)
        case .head(let head):
            isPersistent = head.isPersistent
            user.received(head: head)
        case .body(let range):
            user.received(body: input.storage, range)
        case .end:
            end(user)
        }
    }

    private func end(_ user: any UpstreamConnectionUser) {
        let isReusable =
            isPersistent && isRequestWhole && output.isEmpty && input.isEmpty
        decoder = nil
        self.user = nil
        if isReusable {
            phase = .idle
            idleSince = loop.now
            deadline.cancel()
            memory.take(from: &input)
        } else {
            close()
        }
        user.receivedEnd()
    }

    /// Whether the connection can go back to the pool.
    var isIdle: Bool { phase == .idle }

    private func fail(_ failure: UpstreamFailure) {
        let user = user
        close()
        user?.failed(failure)
    }
}
