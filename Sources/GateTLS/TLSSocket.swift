// One encrypted connection over a socket, on one loop for life.
//
//   handshake ──done──► open ──our end──► half-closed ──► closed
//       │ refused         │ failed
//       ▼                 ▼
//     broken            broken (reads and writes fail from here on)
//
// Events of the socket pass through: a read that waits for the socket to become writable, or a
// write that waits for something to read, is reported as what its owner waits for.

internal import CGateOpenSSL
package import GateBytes
package import GateRuntime

/// Why a handshake does not come to its end.
package enum TLSHandshakeError: Error, Equatable {
    /// The peer closed before it was done.
    case closed
    /// One side did not take what the other said: one lowercase clause.
    case refused(String)
    /// No connection could be set up: memory, or a name that none can have.
    case setup
    case system(SystemError)
}

/// What a finished handshake says of a connection.
package struct TLSFacts: Sendable, Equatable {
    /// `TLSv1.2` or `TLSv1.3`.
    package var version: String
    /// The name the client asked for, in lower case; nil where it named none.
    package var serverName: String?
    /// The protocol chosen by ALPN; nil where the peer offered none.
    package var applicationProtocol: String?
    /// Whether the peer has shown a certificate that chains to an authority of ours.
    package var isPeerVerified: Bool
    /// Whom that certificate names; nil without one.
    package var peerNames: PeerNames?
    /// Whether an earlier session was taken up again.
    package var isResumed: Bool
}

/// An encrypted stream over a socket.
@safe package final class TLSSocket: Transport, EventHandler {
    private enum Phase {
        case broken
        case closed
        case handshake
        case open
    }

    private enum Side {
        case client(TLSClientContext)
        case server(TLSServerContext, ServerHandshake)
    }

    /// Whether the last read took all there was, so that more brings an event of its own.
    package private(set) var isExhausted = false

    private let side: Side
    private let wire: Wire
    private let ssl: OpaquePointer
    private var handler: (any EventHandler)?
    private var phase = Phase.handshake
    private var isResetting = false
    /// Nothing more is written: our end was said, or a write has failed.
    private var isWriteOver = false
    /// The peer has said that it sends no more.
    private var isPeerEnded = false
    private var isReadWaitingToWrite = false
    private var isWriteWaitingToRead = false

    /// The server's end of a connection.
    /// - Parameter early: Octets that were read from the socket already.
    package init(
        over socket: Socket, early: ByteBuffer = ByteBuffer(), server: TLSServerContext
    ) throws(TLSHandshakeError) {
        guard let ssl = unsafe server.makeConnection() else { throw .setup }
        let handshake = ServerHandshake()
        unsafe handshake.attach(to: ssl)
        side = .server(server, handshake)
        wire = Wire(socket, early: early)
        unsafe self.ssl = ssl
        try attachWire()
    }

    /// The client's end of a connection.
    /// - Parameter name: The name the peer's certificate must have, or a numeric address.
    package init(
        over socket: Socket, client: TLSClientContext, name: String
    ) throws(TLSHandshakeError) {
        let isAddress = IPAddress(name) != nil
        guard let ssl = unsafe client.makeConnection(name: name, isAddress: isAddress) else {
            throw .setup
        }
        side = .client(client)
        wire = Wire(socket, early: ByteBuffer())
        unsafe self.ssl = ssl
        try attachWire()
    }

    deinit {
        unsafe SSL_free(ssl)
    }

    private func attachWire() throws(TLSHandshakeError) {
        guard let bio = unsafe SocketBIO.make(wire) else {
            OpenSSLErrors.clear()
            throw .setup
        }
        unsafe SSL_set_bio(ssl, bio, bio)
    }

    // MARK: Handshake

    /// Goes on with the handshake as far as the octets allow.
    /// - Returns: Whether it is done; false when it waits for an event.
    package func handshake() throws(TLSHandshakeError) -> Bool {
        guard phase == .handshake else { return phase == .open }
        OpenSSLErrors.clear()
        let result = unsafe SSL_do_handshake(ssl)
        if result == 1 {
            phase = .open
            wire.noteProgress()
            return true
        }
        switch unsafe SSL_get_error(ssl, result) {
        case SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE:
            return false
        default:
            phase = .broken
            if let failure = wire.failure {
                OpenSSLErrors.clear()
                throw .system(failure)
            }
            let code = OpenSSLErrors.takeCode()
            guard code != 0, gate_err_reason(code) != SSL_R_UNEXPECTED_EOF_WHILE_READING else {
                throw .closed
            }
            throw .refused(reason(code))
        }
    }

    private func reason(_ code: UInt) -> String {
        guard gate_err_reason(code) == SSL_R_CERTIFICATE_VERIFY_FAILED else {
            return OpenSSLErrors.text(of: code)
        }
        let result = unsafe SSL_get_verify_result(ssl)
        guard let text = unsafe X509_verify_cert_error_string(result) else {
            return "certificate verify failed"
        }
        return unsafe "certificate: \(String(cString: text).lowercased())"
    }

    /// What the handshake said; meaningful once it is done.
    package var facts: TLSFacts {
        var serverName: String?
        if case .server(_, let handshake) = side { serverName = handshake.serverName }
        let version = unsafe SSL_get_version(ssl)
        let hasCertificate = unsafe SSL_get0_peer_certificate(ssl) != nil
        let isVerified = unsafe SSL_get_verify_result(ssl) == Int(X509_V_OK)
        let isPeerVerified = hasCertificate && isVerified && isPeerChecked
        var peerNames: PeerNames?
        if isPeerVerified, case .server = side {
            peerNames = unsafe SSL_get0_peer_certificate(ssl).map { unsafe PeerNames($0) }
        }
        return TLSFacts(
            version: unsafe version.map { unsafe String(cString: $0) } ?? "",
            serverName: serverName, applicationProtocol: applicationProtocol,
            isPeerVerified: isPeerVerified, peerNames: peerNames,
            isResumed: unsafe SSL_session_reused(ssl) == 1)
    }

    private var isPeerChecked: Bool {
        unsafe SSL_get_verify_mode(ssl) & SSL_VERIFY_PEER != 0
    }

    private var applicationProtocol: String? {
        var bytes: UnsafePointer<UInt8>?
        var count: UInt32 = 0
        unsafe SSL_get0_alpn_selected(ssl, &bytes, &count)
        guard count > 0 else { return nil }
        return unsafe String(
            decoding: UnsafeBufferPointer(start: bytes, count: Int(count)), as: UTF8.self)
    }

    // MARK: Transport

    /// Registers with the loop: `handler` hears of readiness from now on. A second call hands the
    /// connection to another handler.
    package func register(_ handler: any EventHandler) throws(SystemError) {
        self.handler = handler
        try wire.socket.register(self)
    }

    package func ready(_ readiness: Readiness) {
        var readiness = readiness
        if readiness.contains(.writable), isReadWaitingToWrite { readiness.insert(.readable) }
        if readiness.contains(.readable), isWriteWaitingToRead { readiness.insert(.writable) }
        handler?.ready(readiness)
    }

    /// Reads what is there into `buffer`: record after record until its free space is full or the
    /// socket has no more.
    package func read(into buffer: inout ByteBuffer) throws(SystemError) -> Transfer {
        isExhausted = false
        guard phase == .open else { throw brokenError }
        guard !isPeerEnded else { return .end }
        var stop = Stop.full
        let count = buffer.write(atLeast: Socket.readBytes) { span, start in
            unsafe span.withUnsafeMutableBytes { bytes in
                let free = unsafe UnsafeMutableRawBufferPointer(rebasing: bytes[start...])
                let (count, reason) = unsafe read(into: free)
                stop = reason
                return count
            }
        }
        isExhausted = stop == .wouldBlock
        if count > 0 { return .bytes(count) }
        switch stop {
        case .full, .wouldBlock: return .wouldBlock
        case .ended: return .end
        case .failed(let error): throw error
        }
    }

    private enum Stop: Equatable {
        case ended
        case failed(SystemError)
        case full
        case wouldBlock
    }

    private func read(into free: UnsafeMutableRawBufferPointer) -> (count: Int, Stop) {
        var total = 0
        isReadWaitingToWrite = false
        while total < free.count {
            var count = 0
            OpenSSLErrors.clear()
            let result = unsafe SSL_read_ex(
                ssl, free.baseAddress?.advanced(by: total), free.count - total, &count)
            guard result != 1 else {
                total += count
                wire.noteProgress()
                continue
            }
            let code = unsafe SSL_get_error(ssl, result)
            isReadWaitingToWrite = code == SSL_ERROR_WANT_WRITE
            return (total, stop(code))
        }
        return (total, .full)
    }

    /// What an error code of a read means for the stream.
    private func stop(_ code: Int32) -> Stop {
        switch code {
        case SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE:
            return .wouldBlock
        case SSL_ERROR_ZERO_RETURN:
            isPeerEnded = true
            return .ended
        default:
            phase = .broken
            let reason = gate_err_reason(OpenSSLErrors.takeCode())
            if let failure = wire.failure { return .failed(failure) }
            guard reason == SSL_R_UNEXPECTED_EOF_WHILE_READING else {
                return .failed(SystemError("SSL_read", code: TLSSocket.protocolError))
            }
            // The stream was cut. An answer may end with its connection, so a cut must not pass for
            // the end; a server's context says the other thing.
            return .failed(SystemError("SSL_read", code: TLSSocket.cutError))
        }
    }

    /// Writes what fits of `bytes[range]`.
    package func write(_ bytes: [UInt8], _ range: Range<Int>) throws(SystemError) -> Transfer {
        guard phase == .open, !isWriteOver else { throw brokenError }
        var total = 0
        var isFailed = false
        isWriteWaitingToRead = false
        unsafe bytes.withUnsafeBytes { all in
            while total < range.count {
                var count = 0
                OpenSSLErrors.clear()
                let result = unsafe SSL_write_ex(
                    ssl, all.baseAddress?.advanced(by: range.lowerBound + total),
                    range.count - total, &count)
                guard result != 1 else {
                    total += count
                    continue
                }
                let code = unsafe SSL_get_error(ssl, result)
                isWriteWaitingToRead = code == SSL_ERROR_WANT_READ
                isFailed = code != SSL_ERROR_WANT_READ && code != SSL_ERROR_WANT_WRITE
                return
            }
        }
        if isFailed {
            // What the peer said before it closed can still be read.
            OpenSSLErrors.clear()
            isWriteOver = true
            throw brokenError
        }
        return total > 0 || range.isEmpty ? .bytes(total) : .wouldBlock
    }

    /// Whether nothing has come and the peer has not closed: what a pooled connection must be.
    /// Tickets and key updates are nothing, and are taken in here; what else has come may bring no
    /// event any more, so a connection that is not quiet is to be closed.
    package var isQuiet: Bool {
        guard phase == .open, !isPeerEnded else { return false }
        var byte: UInt8 = 0
        var count = 0
        OpenSSLErrors.clear()
        let result = unsafe SSL_peek_ex(ssl, &byte, 1, &count)
        guard result != 1 else { return false }
        return stop(unsafe SSL_get_error(ssl, result)) == .wouldBlock
    }

    /// Ends our side: the peer reads an end that nobody between could have made.
    package func shutdownWrites() {
        sayEnd()
        wire.socket.shutdownWrites()
    }

    /// Makes ``close()`` drop the connection with a reset and without an end.
    package func resetOnClose() {
        isResetting = true
        wire.socket.resetOnClose()
    }

    /// Ends the registration and closes. Safe to call twice.
    package func close() {
        guard phase != .closed else { return }
        if !isResetting { sayEnd() }
        phase = .closed
        handler = nil
        wire.socket.close()
    }

    /// Sends our `close_notify` if the socket takes it; a peer that does not read learns of the end
    /// by the close.
    private func sayEnd() {
        guard phase == .open, !isWriteOver else { return }
        isWriteOver = true
        OpenSSLErrors.clear()
        _ = unsafe SSL_shutdown(ssl)
        OpenSSLErrors.clear()
    }

    // MARK: Errors

    /// Errors of TLS as a socket's owner knows errors: the stream has failed, why is not for it to
    /// decide on.
    private var brokenError: SystemError {
        wire.failure ?? SystemError("SSL", code: TLSSocket.protocolError)
    }

    private static let protocolError = SystemError.protocolError
    private static let cutError = SystemError.connectionReset
}
