internal import GateBytes
internal import GateConfig
internal import GateHTTP
internal import GateRuntime

/// Takes the PROXY header off a connection whose peer has to send one (`proxy_protocol`): the
/// client it names is the peer from then on, for limits, logs and `X-Forwarded-For`.
///
/// Nothing is guessed (threat T26): who is in the networks sends one, in time, or is closed; who is
/// not is a client like any other, and a header of its making a malformed request.
final class ProxyHeaderStep: IntakeStep {
    func timeout(_ timeouts: ListenerTimeouts) -> Duration { timeouts.header }

    func advance(_ intake: Intake) throws(IntakeError) -> Bool {
        while true {
            if let header = try header(&intake.input) {
                if case .client(let address, let port) = header {
                    try intake.become(.ip(address, port: port))
                }
                return true
            }
            guard try intake.read() else { return false }
        }
    }

    private func header(_ input: inout ByteBuffer) throws(IntakeError) -> ProxyHeader? {
        do throws(ProxyHeaderError) {
            return try ProxyHeaderDecoder.next(&input)
        } catch {
            throw .refused("PROXY header: \(error)")
        }
    }
}
