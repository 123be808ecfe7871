internal import GateBytes
internal import GateConfig
internal import GateRuntime
internal import GateTLS

/// The TLS handshake of a client's connection.
final class TLSStep: IntakeStep {
    private let context: TLSServerContext
    private var socket: TLSSocket?

    init(_ context: TLSServerContext) {
        self.context = context
    }

    func timeout(_ timeouts: ListenerTimeouts) -> Duration { timeouts.handshake }

    func advance(_ intake: Intake) throws(IntakeError) -> Bool {
        let socket: TLSSocket
        if let begun = self.socket { socket = begun } else { socket = try begin(intake) }
        do throws(TLSHandshakeError) {
            guard try socket.handshake() else { return false }
        } catch {
            throw IntakeError(error)
        }
        let facts = socket.facts
        intake.client.tls = facts
        intake.client.isHTTP2 = facts.applicationProtocol == "h2"
        guard intake.client.isHTTP2 || intake.client.listener.listener.http.contains(.h1) else {
            throw .refused("TLS: the client did not ask for HTTP/2")
        }
        return true
    }

    /// Puts TLS over the connection; what was read of it so far is TLS's.
    private func begin(_ intake: Intake) throws(IntakeError) -> TLSSocket {
        guard let plain = intake.transport as? Socket else {
            preconditionFailure("TLS stands on a socket")
        }
        let made: TLSSocket
        do throws(TLSHandshakeError) {
            made = try TLSSocket(over: plain, early: intake.input, server: context)
        } catch {
            throw IntakeError(error)
        }
        intake.input = ByteBuffer()
        intake.transport = made
        do throws(SystemError) {
            try made.register(intake)
        } catch {
            throw .system(error)
        }
        socket = made
        return made
    }
}

extension IntakeError {
    fileprivate init(_ error: TLSHandshakeError) {
        switch error {
        case .closed: self = .closed
        case .refused(let reason): self = .refused("TLS: \(reason)")
        case .setup: self = .refused("TLS: no connection could be set up")
        case .system(let error): self = .system(error)
        }
    }
}
