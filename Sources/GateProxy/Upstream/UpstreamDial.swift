// A connection to a server in the making, on one loop for life:
//
//   connecting ──► handshake (where the upstream has TLS) ──► handed over
//        │             │
//        └─────────────┴── failed

internal import GateRuntime
internal import GateTLS

/// How connections to one server are encrypted.
struct UpstreamSecurity {
    let context: TLSClientContext
    /// The name that the server's certificate must have.
    let name: String
    /// Whether the server has to agree to HTTP/2.
    let isHTTP2: Bool
}

/// Who waits for a connection.
protocol UpstreamDialOwner: AnyObject {
    /// The connection stands; the owner registers with it. `isPeerEnded`: the end of what the
    /// server sends has been reported already.
    func dialled(_ transport: any Transport, isPeerEnded: Bool)
    /// There is none; what there was is closed.
    func dialFailed(_ failure: UpstreamFailure)
}

/// Connects to a server.
final class UpstreamDial: EventHandler {
    private enum Phase {
        case connecting
        case handshake(TLSSocket)
        case over
    }

    private let socket: Socket
    private let security: UpstreamSecurity?
    private weak var owner: (any UpstreamDialOwner)?
    private var phase = Phase.connecting
    private var isPeerEnded = false

    /// Begins. The owner hears of the outcome later, never within this call.
    init(
        to server: SocketAddress, security: UpstreamSecurity?, on loop: EventLoop,
        owner: any UpstreamDialOwner
    ) throws(SystemError) {
        self.security = security
        self.owner = owner
        socket = try Socket.connect(to: server, on: loop)
        try socket.register(self)
    }

    /// Gives up without a word to the owner.
    func close() {
        if case .handshake(let tls) = phase { tls.close() }
        phase = .over
        socket.close()
    }

    func ready(_ readiness: Readiness) {
        if readiness.contains(.ended) { isPeerEnded = true }
        switch phase {
        case .connecting:
            guard readiness.contains(.writable) else { return }
            if let error = socket.takeError() { return fail(.connect(error)) }
            guard let security else { return finish(socket) }
            begin(security)
        case .handshake(let tls):
            advance(tls)
        case .over:
            return
        }
    }

    private func begin(_ security: UpstreamSecurity) {
        do throws(TLSHandshakeError) {
            let tls = try TLSSocket(over: socket, client: security.context, name: security.name)
            phase = .handshake(tls)
            try register(tls)
            advance(tls)
        } catch {
            fail(error)
        }
    }

    private func register(_ tls: TLSSocket) throws(TLSHandshakeError) {
        do throws(SystemError) {
            try tls.register(self)
        } catch {
            throw .system(error)
        }
    }

    private func advance(_ tls: TLSSocket) {
        do throws(TLSHandshakeError) {
            guard try tls.handshake() else { return }
        } catch {
            return fail(error)
        }
        if security?.isHTTP2 == true, tls.facts.applicationProtocol != "h2" {
            return fail(.handshake("the server does not speak HTTP/2"))
        }
        finish(tls)
    }

    private func finish(_ transport: any Transport) {
        phase = .over
        owner?.dialled(transport, isPeerEnded: isPeerEnded)
    }

    private func fail(_ error: TLSHandshakeError) {
        switch error {
        case .closed: fail(.handshake("closed by the server"))
        case .refused(let reason): fail(.handshake(reason))
        case .setup: fail(.handshake("no connection could be set up"))
        case .system(let error): fail(.connect(error))
        }
    }

    private func fail(_ failure: UpstreamFailure) {
        close()
        owner?.dialFailed(failure)
    }
}
