internal import CGateOpenSSL

/// Why a PEM text is no P-256 signing key.
package enum PrivateKeyTextError: Error, Equatable, Sendable, CustomStringConvertible {
    /// It is under a passphrase, and nobody is there to type it.
    case encrypted
    /// There is no PKCS #8 key in it.
    case missing
    /// It is a key of another kind.
    case otherKind
    case unreadable

    /// A lowercase clause.
    package var description: String {
        switch self {
        case .encrypted: "it is under a passphrase"
        case .missing: "no BEGIN PRIVATE KEY in it"
        case .otherKind: "it is no P-256 key"
        case .unreadable: "it cannot be read"
        }
    }
}

/// A P-256 key that signs for a service of others (JWS ES256, RFC 7518 §3.4). No message shows it.
package struct ServiceSigningKey: Sendable, CustomStringConvertible, CustomReflectable {
    private let key: ECKey

    /// The key of a PKCS #8 text in PEM.
    package init(pem text: [UInt8]) throws(PrivateKeyTextError) {
        let shown = String(decoding: text, as: UTF8.self)
        guard shown.contains("-----BEGIN PRIVATE KEY-----") else {
            throw shown.contains("ENCRYPTED") ? .encrypted : .missing
        }
        key = try ECKey.privateKey(pem: text)
        guard key.scalar != nil else { throw .unreadable }
    }

    /// The uncompressed public point.
    package var point: [UInt8] { key.point }

    /// ECDSA with SHA-256 over `message` as JWS has it: r and s, 32 bytes each.
    package func sign(_ message: [UInt8]) -> [UInt8] {
        ECDSANumbers.raw(der: key.sign(message, digest: .sha256), bytes: 32)
    }

    /// That there is a key.
    package var description: String { "a signing key" }

    /// Nothing.
    package var customMirror: Mirror { Mirror(self, children: []) }
}

/// The two numbers of an ECDSA signature.
enum ECDSANumbers {
    /// The numbers of libcrypto's own DER, each in `count` bytes.
    static func raw(der: [UInt8], bytes count: Int) -> [UInt8] {
        // SEQUENCE, one byte of length up to P-256, then two INTEGERs.
        var raw: [UInt8] = []
        var position = 2
        for _ in 0..<2 {
            precondition(position + 2 <= der.count && der[position] == 0x02, "a signature's DER")
            let end = position + 2 + Int(der[position + 1])
            precondition(end <= der.count, "a signature's DER")
            let number = der[(position + 2)..<end].drop { $0 == 0 }
            precondition(number.count <= count, "a signature's DER")
            raw += [UInt8](repeating: 0, count: count - number.count)
            raw += number
            position = end
        }
        return raw
    }
}

extension ECKey {
    /// The P-256 key pair of a PEM text.
    fileprivate static func privateKey(
        pem text: [UInt8]
    ) throws(PrivateKeyTextError) -> ECKey {
        ERR_clear_error()
        defer { ERR_clear_error() }
        let found: OpaquePointer? = unsafe text.withUnsafeBytes { bytes in
            let count = Int32(clamping: bytes.count)
            guard let memory = unsafe BIO_new_mem_buf(bytes.baseAddress, count) else { return nil }
            defer { unsafe BIO_free(memory) }
            return unsafe PEM_read_bio_PrivateKey(memory, nil, noPassphrase, nil)
        }
        guard let pointer = unsafe found else { throw .unreadable }
        var name = [CChar](repeating: 0, count: 64)
        var length = 0
        let isNamed =
            unsafe EVP_PKEY_get_utf8_string_param(
                pointer, OSSL_PKEY_PARAM_GROUP_NAME, &name, name.count, &length) == 1
        let group = name.prefix(length).map { UInt8(bitPattern: $0) }
        let names = [ECCurve.p256.name, "prime256v1"]
        guard isNamed, names.contains(String(decoding: group, as: UTF8.self)) else {
            unsafe EVP_PKEY_free(pointer)
            throw .otherKind
        }
        return unsafe ECKey(.p256, owning: pointer)
    }
}

/// OpenSSL would ask the terminal otherwise.
private func noPassphrase(
    _: UnsafeMutablePointer<CChar>?, _: Int32, _: Int32, _: UnsafeMutableRawPointer?
) -> Int32 {
    -1
}
