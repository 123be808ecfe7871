internal import CGateOpenSSL

/// A certificate with its chain and its private key: what one side of a connection shows. Immutable
/// and shared by any thread.
@safe package final class TLSIdentity: Sendable {
    /// The DNS names it is for, lower case, wildcards as `*.example.com`.
    package let names: [String]
    /// Its first and last moment, in seconds of UTC since 1970.
    package let validity: ClosedRange<Int64>

    nonisolated(unsafe) let leaf: OpaquePointer
    /// What stands behind the leaf, a stack.
    nonisolated(unsafe) let chain: OpaquePointer
    nonisolated(unsafe) let key: OpaquePointer
    /// OpenSSL's number of the key's algorithm: a context holds one identity of each.
    let algorithm: Int32

    /// An identity of two PEM texts: the leaf and what stands behind it, and the leaf's key.
    package init(chain: [UInt8], key: [UInt8]) throws(TLSSetupError) {
        let certificates = try unsafe PEM.certificates(chain)
        let behind = unsafe gate_x509_stack_new()
        guard let behind = unsafe behind, let leaf = unsafe certificates.first else {
            preconditionFailure("out of memory")
        }
        unsafe certificates.dropFirst().forEach { certificate in
            precondition(unsafe gate_x509_stack_push(behind, certificate) > 0, "out of memory")
        }
        let names = unsafe TLSIdentity.names(of: leaf)
        let validity = unsafe TLSIdentity.validity(of: leaf)
        do throws(TLSSetupError) {
            let privateKey = try unsafe PEM.privateKey(key)
            guard unsafe X509_check_private_key(leaf, privateKey) == 1 else {
                OpenSSLErrors.clear()
                unsafe EVP_PKEY_free(privateKey)
                throw .foreignKey
            }
            guard let validity else {
                unsafe EVP_PKEY_free(privateKey)
                throw .certificate("its dates cannot be read")
            }
            self.names = names
            self.validity = validity
            unsafe self.leaf = leaf
            unsafe self.chain = behind
            unsafe self.key = privateKey
            algorithm = unsafe EVP_PKEY_get_base_id(privateKey)
        } catch {
            unsafe X509_free(leaf)
            unsafe gate_x509_stack_free(behind)
            throw error
        }
    }

    deinit {
        unsafe X509_free(leaf)
        unsafe gate_x509_stack_free(chain)
        unsafe EVP_PKEY_free(key)
    }

    /// Tries whether a connection could show it: not with a key that is too short.
    package func examine() throws(TLSSetupError) {
        try install(in: unsafe SSLContext(TLS_server_method(), minVersion: .tls12))
    }

    /// Puts the identity into `context`, beside those of other algorithms.
    func install(in context: SSLContext) throws(TLSSetupError) {
        OpenSSLErrors.clear()
        guard
            unsafe SSL_CTX_use_cert_and_key(context.pointer, leaf, key, chain, 1) == 1
        else { throw .rejected(OpenSSLErrors.takeReason()) }
    }

    /// The SHA-256 of the leaf.
    var fingerprint: [UInt8] {
        var digest = [UInt8](repeating: 0, count: 32)
        var count: UInt32 = 0
        precondition(unsafe X509_digest(leaf, EVP_sha256(), &digest, &count) == 1, "no digest")
        return digest
    }

    private static func names(of leaf: OpaquePointer) -> [String] {
        guard let raw = unsafe X509_get_ext_d2i(leaf, NID_subject_alt_name, nil, nil) else {
            OpenSSLErrors.clear()
            return []
        }
        let names = OpaquePointer(raw)
        defer { unsafe GENERAL_NAMES_free(names) }
        var found: [String] = []
        for index in 0..<max(0, unsafe gate_names_count(names)) {
            guard let text = unsafe gate_names_dns(names, index) else { continue }
            let bytes = unsafe UnsafeBufferPointer(
                start: ASN1_STRING_get0_data(text), count: Int(ASN1_STRING_length(text)))
            if let name = unsafe ServerName.lowercased(bytes) { found.append(name) }
        }
        return found
    }

    private static func validity(of leaf: OpaquePointer) -> ClosedRange<Int64>? {
        guard
            let begin = unsafe seconds(X509_get0_notBefore(leaf)),
            let end = unsafe seconds(X509_get0_notAfter(leaf)), begin <= end
        else { return nil }
        return begin...end
    }

    private static func seconds(_ time: UnsafePointer<ASN1_TIME>?) -> Int64? {
        guard let epoch = unsafe ASN1_TIME_set(nil, 0) else { return nil }
        defer { unsafe ASN1_TIME_free(epoch) }
        var days: Int32 = 0
        var seconds: Int32 = 0
        guard unsafe ASN1_TIME_diff(&days, &seconds, epoch, time) == 1 else {
            OpenSSLErrors.clear()
            return nil
        }
        return Int64(days) * 86_400 + Int64(seconds)
    }
}
