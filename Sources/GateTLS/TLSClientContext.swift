internal import CGateOpenSSL

/// What an upstream's `tls` block says, read.
package struct TLSClientSettings {
    /// Whether the service's certificate is checked.
    package var isVerified: Bool
    /// The authorities it may chain to, PEM; nil is the system's.
    package var authorities: [UInt8]?
    /// The gate's own certificate.
    package var identity: TLSIdentity?
    /// The protocols of ALPN, the dearest first.
    package var protocols: [String]

    package init(
        isVerified: Bool = true, authorities: [UInt8]? = nil, identity: TLSIdentity? = nil,
        protocols: [String] = ["http/1.1"]
    ) {
        self.isVerified = isVerified
        self.authorities = authorities
        self.identity = identity
        self.protocols = protocols
    }
}

/// The gate's side of TLS towards one upstream. Immutable, shared by all loops.
package final class TLSClientContext: Sendable {
    private let context: SSLContext
    private let isVerified: Bool

    /// - Throws: What OpenSSL does not take.
    package init(_ settings: TLSClientSettings) throws(TLSSetupError) {
        context = try unsafe SSLContext(TLS_client_method(), minVersion: .tls12)
        isVerified = settings.isVerified
        if let identity = settings.identity { try identity.install(in: context) }
        if let authorities = settings.authorities {
            try context.trust(authorities: authorities, isAnnounced: false)
        } else if settings.isVerified {
            guard unsafe SSL_CTX_set_default_verify_paths(context.pointer) == 1 else {
                throw .rejected(OpenSSLErrors.takeReason())
            }
        }
        unsafe SSL_CTX_set_verify(
            context.pointer, settings.isVerified ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nil)
        var offer: [UInt8] = []
        for name in settings.protocols {
            offer.append(UInt8(clamping: name.utf8.count))
            offer += name.utf8
        }
        // The one call here that answers 0 when it has done its work.
        guard unsafe SSL_CTX_set_alpn_protos(context.pointer, offer, UInt32(offer.count)) == 0
        else { throw .rejected(OpenSSLErrors.takeReason()) }
    }

    /// A connection's `SSL`, in the state of a client.
    /// - Parameters:
    ///   - name: The name the certificate must have, or an address; a name is also asked for.
    ///   - isAddress: Whether it is a numeric address.
    func makeConnection(name: String, isAddress: Bool) -> OpaquePointer? {
        OpenSSLErrors.clear()
        guard let ssl = unsafe SSL_new(context.pointer) else { return nil }
        unsafe SSL_set_connect_state(ssl)
        let parameters = unsafe SSL_get0_param(ssl)
        let isNamed: Bool
        if isAddress {
            isNamed = unsafe X509_VERIFY_PARAM_set1_ip_asc(parameters, name) == 1
        } else {
            unsafe X509_VERIFY_PARAM_set_hostflags(
                parameters, UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS))
            isNamed =
                unsafe X509_VERIFY_PARAM_set1_host(parameters, name, name.utf8.count) == 1
                && gate_ssl_set_host_name(ssl, name) == 1
        }
        // Without its name a certificate would be taken for any.
        guard isNamed else {
            OpenSSLErrors.clear()
            unsafe SSL_free(ssl)
            return nil
        }
        return unsafe ssl
    }
}
