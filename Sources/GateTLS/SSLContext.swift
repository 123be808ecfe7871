internal import CGateOpenSSL

/// The oldest version that is spoken.
package enum TLSVersion: Sendable, Equatable {
    case tls12
    case tls13

    fileprivate var number: Int32 {
        switch self {
        case .tls12: TLS1_2_VERSION
        case .tls13: TLS1_3_VERSION
        }
    }
}

/// Certificates of authorities, as PEM.
package enum TLSAuthorities {
    /// Reads them; throws what is wrong.
    package static func examine(_ text: [UInt8]) throws(TLSSetupError) {
        let context = try unsafe SSLContext(TLS_server_method(), minVersion: .tls12)
        try context.trust(authorities: text, isAnnounced: false)
    }
}

/// The owner of one `SSL_CTX`, with what holds for every connection of the gate. Not changed once
/// its maker has returned, so any thread may use it.
@safe final class SSLContext: Sendable {
    nonisolated(unsafe) let pointer: OpaquePointer

    /// Authenticated encryption and forward secrecy only: nothing that a scanner has a word for.
    /// Those of TLS 1.3 are all of this kind.
    private static let ciphers = """
        ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:\
        ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:\
        ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305
        """
    private static let suites = """
        TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256
        """
    private static let groups = "X25519:P-256:P-384"
    /// No SHA-1, which OpenSSL would still take in TLS 1.2 under some system settings.
    private static let signatures = """
        ECDSA+SHA256:ECDSA+SHA384:ECDSA+SHA512:ed25519:RSA-PSS+SHA256:RSA-PSS+SHA384:\
        RSA-PSS+SHA512:rsa_pss_pss_sha256:rsa_pss_pss_sha384:rsa_pss_pss_sha512:RSA+SHA256:\
        RSA+SHA384:RSA+SHA512
        """

    init(_ method: OpaquePointer?, minVersion: TLSVersion) throws(TLSSetupError) {
        OpenSSLErrors.clear()
        guard let pointer = unsafe SSL_CTX_new(method) else {
            throw .rejected(OpenSSLErrors.takeReason())
        }
        unsafe self.pointer = pointer
        guard
            unsafe gate_ssl_ctx_set_min_version(pointer, minVersion.number) == 1,
            unsafe gate_ssl_ctx_clear_max_version(pointer) == 1,
            unsafe SSL_CTX_set_cipher_list(pointer, SSLContext.ciphers) == 1,
            unsafe SSL_CTX_set_ciphersuites(pointer, SSLContext.suites) == 1,
            unsafe gate_ssl_ctx_set_groups(pointer, SSLContext.groups) == 1,
            unsafe gate_ssl_ctx_set_signature_algorithms(pointer, SSLContext.signatures) == 1
        else { throw .rejected(OpenSSLErrors.takeReason()) }
        unsafe SSL_CTX_set_options(
            pointer,
            gate_ssl_op_no_renegotiation | gate_ssl_op_no_compression
                | gate_ssl_op_cipher_server_preference | gate_ssl_op_prioritize_chacha)
        unsafe gate_ssl_ctx_set_mode(pointer, gate_ssl_modes)
        // A record in one system call instead of two.
        unsafe gate_ssl_ctx_set_read_ahead(pointer)
        unsafe gate_ssl_ctx_set_session_cache_mode(pointer, Int(SSL_SESS_CACHE_OFF))
    }

    deinit {
        unsafe SSL_CTX_free(pointer)
    }

    /// Makes the peer's certificate chain to one of the authorities in `text`, and to no other.
    /// - Parameter isAnnounced: Whether clients are told their names.
    func trust(authorities text: [UInt8], isAnnounced: Bool) throws(TLSSetupError) {
        let certificates = try unsafe PEM.certificates(text)
        guard let store = unsafe X509_STORE_new() else { preconditionFailure("out of memory") }
        unsafe certificates.forEach { certificate in
            // One that stands there twice is no fault.
            _ = unsafe X509_STORE_add_cert(store, certificate)
            if isAnnounced { _ = unsafe SSL_CTX_add_client_CA(pointer, certificate) }
            unsafe X509_free(certificate)
        }
        unsafe SSL_CTX_set_cert_store(pointer, store)
        OpenSSLErrors.clear()
    }
}
