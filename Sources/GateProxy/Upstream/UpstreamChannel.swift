internal import GateHTTP
internal import GateRuntime

/// What carries one request to a server and its answer back: an HTTP/1.1 connection while it is in
/// use, or a stream of an HTTP/2 one. On one loop for life.
protocol UpstreamChannel: AnyObject {
    /// The server it leads to.
    var server: SocketAddress { get }
    /// Whether the connection was used before: its server may have closed it a moment ago.
    var isReused: Bool { get }
    /// Whether so much waits to be written that the writer should pause.
    var isCongested: Bool { get }
    /// Begins a request with its head.
    func begin(_ head: UpstreamRequestHead)
    /// Queues bytes of the body; they leave with ``flush()``.
    func write(body bytes: [UInt8], _ range: Range<Int>)
    /// Notes that the whole request has been queued.
    func endRequest()
    /// Writes what the server takes.
    /// - Returns: Whether everything queued has left.
    @discardableResult
    func flush() -> Bool
    /// Goes on reading after the downstream side has taken what it had.
    func resumeReading()
    /// Tells the user once `duration` has passed from now, unless it is set again before.
    func setDeadline(after duration: Duration)
    /// Gives the connection away after the server has switched protocols; nil where the channel is
    /// only a part of one.
    func handOver() -> TunnelEnd?
    /// Gives the exchange up, without a word to the user.
    func close()
    /// The same after the server has let a deadline pass: its connection may be dead.
    func expire()
}

extension UpstreamChannel {
    func handOver() -> TunnelEnd? { nil }
}

/// A request's head as a channel takes it.
struct UpstreamRequestHead {
    /// The head as ``UpstreamHead`` wrote it.
    enum Form {
        /// The bytes of HTTP/1.1, empty line included.
        case http1([UInt8])
        /// The section of HTTP/2.
        case http2(FieldBlock)
    }

    var form: Form
    /// How the body goes.
    var body: UpstreamBody
    /// Whether the answer has no body, whatever it says of its length.
    var isHead: Bool
    /// What the answer's head may measure.
    var limits: HeadLimits
    /// What `Sec-WebSocket-Accept` has to be; nil where the request opens no WebSocket.
    var webSocketAccept: [UInt8]?

    /// Whether a body follows.
    var hasBody: Bool { body != .none && body != .length(0) }
}

/// What a channel tells the request that uses it.
protocol UpstreamChannelUser: AnyObject {
    /// The connection stands; the request may be written.
    func connected()
    /// An interim answer (1xx).
    func received(interim head: ResponseHead)
    /// The final answer's head.
    func received(head: ResponseHead)
    /// Bytes of the answer's body, valid during the call.
    func received(body bytes: [UInt8], _ range: Range<Int>)
    /// The answer is complete, with its trailers if it had any. The connection is the pool's again,
    /// or closed.
    func receivedEnd(trailers: ResponseTrailers?)
    /// What was written has left for the kernel; more may be written.
    func drained()
    /// A batch of events has been delivered.
    func paused()
    /// The channel has failed and is closed.
    func failed(_ failure: UpstreamFailure)
    /// The moment set with ``UpstreamChannel/setDeadline(after:)`` has passed.
    func deadlinePassed()
    /// Whether the answer cannot be taken at the moment.
    var isDownstreamCongested: Bool { get }
}

/// Why an exchange with a server ended without a whole answer.
enum UpstreamFailure: Error, Equatable {
    /// Every server is down by its health check.
    case allDown
    /// The server closed or reset after part of the answer, or before any of it.
    case closed(afterBytes: Bool)
    case connect(SystemError)
    case connectTimeout
    case firstByteTimeout
    /// No TLS with the server: one clause.
    case handshake(String)
    /// The HTTP/2 session has come to its end: one clause.
    case http2(String)
    case idleTimeout
    case malformed(MessageError)
    /// No address of the upstream is known.
    case noAddress
    /// No place within `max_active`: the queue is full, or the time to wait was over.
    case noSlot
    /// The server took nothing of the request (REFUSED_STREAM, GOAWAY).
    case refused
    /// The server reset the stream, with this code.
    case reset(String, afterBytes: Bool)
    /// The held body could not be read back.
    case spool(SystemError)

    /// Whether the client is told of a time-out (504) rather than a failure (502).
    var isTimeout: Bool {
        switch self {
        case .connectTimeout, .firstByteTimeout, .idleTimeout: return true
        case .allDown, .closed, .connect, .handshake, .http2, .malformed, .noAddress, .noSlot,
            .refused, .reset, .spool:
            return false
        }
    }
}

extension UpstreamFailure {
    /// Whether it says nothing of the server: the gate itself had no socket to try with.
    var isOwn: Bool {
        guard case .connect(let error) = self else { return false }
        return ["epoll_ctl", "setsockopt", "socket"].contains(error.call)
    }
}

extension UpstreamFailure: CustomStringConvertible {
    /// A clause for the log.
    var description: String {
        switch self {
        case .allDown: return "every server is down"
        case .closed(let afterBytes):
            return "closed \(afterBytes ? "within" : "before") the answer"
        case .connect(let error): return "\(error)"
        case .connectTimeout: return "no connection in time"
        case .firstByteTimeout: return "no answer in time"
        case .handshake(let clause): return "TLS: \(clause)"
        case .http2(let clause): return "HTTP/2: \(clause)"
        case .idleTimeout: return "no progress in time"
        case .malformed(let error): return "malformed answer: \(error)"
        case .noAddress: return "no address is known"
        case .noSlot: return "no place within max_active"
        case .refused: return "the request was refused unread"
        case .reset(let code, let afterBytes):
            return "reset with \(code) \(afterBytes ? "within" : "before") the answer"
        case .spool(let error): return "held body: \(error)"
        }
    }
}
