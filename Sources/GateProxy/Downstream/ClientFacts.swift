internal import GateBytes
internal import GateConfig
internal import GateRuntime
internal import GateTLS

/// What is known of a client's connection: the same for every request on it.
struct ClientFacts {
    /// Who is connected.
    var peer: SocketAddress
    /// What `per_address` counts the connection as; nil where it does not.
    var limitKey: IPAddress?
    /// Where the connection came in.
    var listener: ListenerRuntime
    /// What the handshake said; nil on a clear connection.
    var tls: TLSFacts?
    /// Whether it speaks HTTP/2, by ALPN or by prior knowledge.
    var isHTTP2 = false

    /// The scheme of every request.
    var scheme: Scheme { tls == nil ? .http : .https }

    init(peer: SocketAddress, listener: ListenerRuntime) {
        self.peer = peer
        self.listener = listener
    }
}

/// A client's connection as its worker keeps it, whatever it speaks. On one loop for life.
protocol ClientConnection: AnyObject {
    var client: ClientFacts { get }
    /// Registers with the loop and begins.
    func start() throws(SystemError)
    /// Closes after what is in work, at once when there is nothing: the gate is stopping.
    func drain()
    /// Since when nothing is in work on it and it could be closed; nil while something is.
    var idleSince: Moment? { get }
    /// Closes at once; an answer that has begun is broken off.
    func abort()
}

extension ClientConnection {
    var idleSince: Moment? { nil }
}
