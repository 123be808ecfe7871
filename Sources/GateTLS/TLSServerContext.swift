// One listener's side of TLS: an `SSL_CTX` for each group of certificates, alike but for these.
//
// A hello is looked at before OpenSSL does anything with it: its server name chooses the group, and
// with it the session id context. So a ticket is taken only where listener, certificates and
// client-certificate policy are the ones it was given out under (T18).
//
// The callbacks run on the loops' threads, inside a handshake; they find this object through the
// `SSL_CTX`, which it owns.

internal import CGateOpenSSL
package import GateRuntime

/// One listener's certificates and rules for TLS. Immutable but for its ticket keys, which are
/// behind a lock; shared by all loops.
package final class TLSServerContext: Sendable {
    private let contexts: [SSLContext]
    private let choice: CertificateChoice
    private let protocols: [[UInt8]]
    private let tickets: TicketKeys?

    /// The longest life of a session, whatever the period of the keys (RFC 8446 §4.6.1).
    private static let sessionSecondsMax: Int64 = 7 * 86_400

    /// - Throws: What OpenSSL does not take; a certificate that is too weak, for example.
    package init(_ settings: TLSServerSettings, clock: any Clock) throws(TLSSetupError) {
        let choice = CertificateChoice(
            settings.identities.map { (names: $0.names, algorithm: $0.algorithm) })
        var contexts: [SSLContext] = []
        for group in choice.groups {
            contexts.append(
                try TLSServerContext.make(settings, group.map { settings.identities[$0] }))
        }
        self.choice = choice
        self.contexts = contexts
        protocols = settings.protocols.map { Array($0.utf8) }
        tickets = settings.ticketPeriod.map { TicketKeys(period: $0, clock: clock) }
        for context in contexts { connect(context) }
    }

    /// Which group of certificates answers for `name`: the same number, the same certificates.
    package func certificates(for name: String) -> Int {
        choice.group(for: name)
    }

    /// Lets go of ticket keys whose time is over.
    package func rotateTicketKeys() {
        tickets?.rotate()
    }

    /// A connection's `SSL`, in the state of a server.
    func makeConnection() -> OpaquePointer? {
        guard let ssl = unsafe SSL_new(contexts[0].pointer) else { return nil }
        unsafe SSL_set_accept_state(ssl)
        return unsafe ssl
    }

    // MARK: Making

    private static func make(
        _ settings: TLSServerSettings, _ identities: [TLSIdentity]
    ) throws(TLSSetupError) -> SSLContext {
        let context = try unsafe SSLContext(
            TLS_server_method(), minVersion: settings.minVersion)
        // A request says itself whether it is whole, so a stream that was cut is just at its end.
        unsafe SSL_CTX_set_options(context.pointer, gate_ssl_op_ignore_unexpected_eof)
        for identity in identities { try identity.install(in: context) }
        var session = SessionContextHash()
        session.add(Array(settings.name.utf8))
        for identity in identities { session.add(identity.fingerprint) }
        switch settings.clientCertificates {
        case .none:
            session.add([0])
        case .optional(let authorities):
            try context.trust(authorities: authorities, isAnnounced: true)
            unsafe SSL_CTX_set_verify(context.pointer, SSL_VERIFY_PEER, nil)
            session.add([1])
            session.add(authorities)
        case .require(let authorities):
            try context.trust(authorities: authorities, isAnnounced: true)
            unsafe SSL_CTX_set_verify(
                context.pointer, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nil)
            session.add([2])
            session.add(authorities)
        }
        let id = session.finish()
        unsafe SSL_CTX_set_session_id_context(context.pointer, id, UInt32(id.count))
        if let period = settings.ticketPeriod {
            let seconds = min(max(1, period.wholeSeconds), sessionSecondsMax)
            unsafe SSL_CTX_set_timeout(context.pointer, Int(seconds))
        } else {
            unsafe SSL_CTX_set_options(context.pointer, gate_ssl_op_no_ticket)
            unsafe SSL_CTX_set_num_tickets(context.pointer, 0)
        }
        return context
    }

    private func connect(_ context: SSLContext) {
        let here = unsafe Unmanaged.passUnretained(self).toOpaque()
        unsafe SSL_CTX_set_ex_data(context.pointer, 0, here)
        unsafe SSL_CTX_set_client_hello_cb(
            context.pointer,
            { ssl, _, _ in
                unsafe TLSServerContext.of(ssl)?.chooseCertificates(ssl)
                return SSL_CLIENT_HELLO_SUCCESS
            }, nil)
        unsafe SSL_CTX_set_alpn_select_cb(
            context.pointer,
            { ssl, chosen, chosenCount, offered, offeredCount, _ in
                let offer = unsafe UnsafeBufferPointer(start: offered, count: Int(offeredCount))
                guard let range = unsafe TLSServerContext.of(ssl)?.chooseProtocol(offer) else {
                    return SSL_TLSEXT_ERR_ALERT_FATAL
                }
                unsafe chosen?.pointee = offered.map { unsafe $0 + range.lowerBound }
                unsafe chosenCount?.pointee = UInt8(range.count)
                return SSL_TLSEXT_ERR_OK
            }, nil)
        guard tickets != nil else { return }
        unsafe SSL_CTX_set_tlsext_ticket_key_evp_cb(context.pointer) {
            ssl, name, iv, cipher, mac, isSealing in
            guard let tickets = unsafe TLSServerContext.of(ssl)?.tickets, let name = unsafe name
            else { return -1 }
            return isSealing == 1
                ? unsafe TLSServerContext.seal(tickets, name, iv, cipher, mac)
                : unsafe TLSServerContext.open(tickets, name, iv, cipher, mac)
        }
    }

    private static func of(_ ssl: OpaquePointer?) -> TLSServerContext? {
        guard let context = unsafe SSL_get_SSL_CTX(ssl),
            let raw = unsafe SSL_CTX_get_ex_data(context, 0)
        else { return nil }
        return unsafe Unmanaged<TLSServerContext>.fromOpaque(raw).takeUnretainedValue()
    }

    // MARK: Callbacks

    private func chooseCertificates(_ ssl: OpaquePointer?) {
        var bytes: UnsafePointer<UInt8>?
        var count = 0
        guard
            unsafe SSL_client_hello_get0_ext(
                ssl, UInt32(TLSEXT_TYPE_server_name), &bytes, &count) == 1,
            let name = unsafe ServerName.parse(UnsafeBufferPointer(start: bytes, count: count))
        else { return }
        unsafe ServerHandshake.of(ssl)?.serverName = name
        _ = unsafe SSL_set_SSL_CTX(ssl, contexts[choice.group(for: name)].pointer)
    }

    /// The place in `offer` (lists of a length and a name, RFC 7301 §3.1) of the dearest protocol
    /// that both sides speak.
    private func chooseProtocol(_ offer: UnsafeBufferPointer<UInt8>) -> Range<Int>? {
        for wanted in protocols {
            var index = 0
            while index < offer.count {
                let start = index + 1
                let end = unsafe start + Int(offer[index])
                guard end <= offer.count else { break }
                if unsafe offer[start..<end].elementsEqual(wanted) { return start..<end }
                index = end
            }
        }
        return nil
    }

    private static func seal(
        _ tickets: TicketKeys, _ name: UnsafeMutablePointer<UInt8>,
        _ iv: UnsafeMutablePointer<UInt8>?, _ cipher: OpaquePointer?, _ mac: OpaquePointer?
    ) -> Int32 {
        let key = tickets.current()
        for (index, byte) in key.name.enumerated() { unsafe name[index] = byte }
        guard unsafe RAND_bytes(iv, Int32(TicketKeys.ivBytes)) == 1 else { return -1 }
        return unsafe key.prepare(cipher, mac, iv: iv, isSealing: true) ? 1 : -1
    }

    private static func open(
        _ tickets: TicketKeys, _ name: UnsafeMutablePointer<UInt8>,
        _ iv: UnsafeMutablePointer<UInt8>?, _ cipher: OpaquePointer?, _ mac: OpaquePointer?
    ) -> Int32 {
        let wanted = unsafe Array(UnsafeBufferPointer(start: name, count: TicketKeys.nameBytes))
        guard let (key, isOld) = tickets.find(wanted) else { return 0 }
        guard unsafe key.prepare(cipher, mac, iv: iv, isSealing: false) else { return -1 }
        return isOld ? 2 : 1
    }
}

/// What a hello said, kept beside the connection: OpenSSL forgets the name when it resumes a
/// session of TLS 1.2.
final class ServerHandshake {
    var serverName: String?

    /// The one of a connection.
    static func of(_ ssl: OpaquePointer?) -> ServerHandshake? {
        guard let raw = unsafe SSL_get_ex_data(ssl, 0) else { return nil }
        return unsafe Unmanaged<ServerHandshake>.fromOpaque(raw).takeUnretainedValue()
    }

    /// Makes it the one of `ssl`, which must not outlive it.
    func attach(to ssl: OpaquePointer) {
        _ = unsafe SSL_set_ex_data(ssl, 0, Unmanaged.passUnretained(self).toOpaque())
    }
}

/// The hash that stands for listener, certificates and client-certificate policy in a session.
struct SessionContextHash {
    private var bytes: [UInt8] = []

    /// Adds a part; its length goes first, so that parts cannot run into one another.
    mutating func add(_ part: [UInt8]) {
        let count = UInt64(part.count)
        for shift in stride(from: 56, through: 0, by: -8) {
            bytes.append(UInt8(truncatingIfNeeded: count >> UInt64(shift)))
        }
        bytes += part
    }

    /// SHA-256 of the parts: 32 bytes, just what a session holds.
    func finish() -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: 32)
        var count: UInt32 = 0
        let result = unsafe EVP_Digest(bytes, bytes.count, &digest, &count, EVP_sha256(), nil)
        precondition(result == 1, "no digest")
        return digest
    }
}
