// PEM texts (RFC 7468) as OpenSSL reads them. A key under a passphrase is refused: nobody is there
// to type it.

internal import CGateOpenSSL

enum PEM {
    /// Certificates in one file, the first its leaf; more is no chain and no list of authorities.
    static let certificatesMax = 512

    /// Every certificate of `text`, in its order; the caller owns them. At least one.
    static func certificates(_ text: [UInt8]) throws(TLSSetupError) -> [OpaquePointer] {
        OpenSSLErrors.clear()
        var certificates: [OpaquePointer] = unsafe []
        let failure: String? = unsafe read(text) { memory in
            while unsafe certificates.count < PEM.certificatesMax {
                guard let next = unsafe PEM_read_bio_X509(memory, nil, noPassphrase, nil) else {
                    let code = OpenSSLErrors.takeCode()
                    let isEnd = gate_err_reason(code) == PEM_R_NO_START_LINE
                    if isEnd, unsafe !certificates.isEmpty { return nil }
                    return isEnd ? "no BEGIN CERTIFICATE in it" : OpenSSLErrors.text(of: code)
                }
                unsafe certificates.append(next)
            }
            return "more than \(PEM.certificatesMax) certificates"
        }
        guard let failure else { return unsafe certificates }
        unsafe certificates.forEach { unsafe X509_free($0) }
        throw .certificate(failure)
    }

    /// The private key of `text`; the caller owns it.
    static func privateKey(_ text: [UInt8]) throws(TLSSetupError) -> OpaquePointer {
        OpenSSLErrors.clear()
        let key = unsafe read(text) { memory in
            unsafe PEM_read_bio_PrivateKey(memory, nil, noPassphrase, nil)
        }
        if let key = unsafe key { return unsafe key }
        // OpenSSL tries one decoder after the other and says what the last one missed.
        let reason = OpenSSLErrors.takeReason()
        let shown = String(decoding: text, as: UTF8.self)
        guard shown.contains("PRIVATE KEY-----") else { throw .key("no BEGIN PRIVATE KEY in it") }
        throw .key(shown.contains("ENCRYPTED") ? "it is under a passphrase" : reason)
    }

    private static func read<Result>(_ text: [UInt8], _ body: (OpaquePointer) -> Result) -> Result {
        unsafe text.withUnsafeBytes { bytes in
            let count = Int32(clamping: bytes.count)
            guard let memory = unsafe BIO_new_mem_buf(bytes.baseAddress, count) else {
                preconditionFailure("out of memory")
            }
            defer { unsafe BIO_free(memory) }
            return unsafe body(memory)
        }
    }
}

/// OpenSSL would ask the terminal otherwise.
private func noPassphrase(
    _: UnsafeMutablePointer<CChar>?, _: Int32, _: Int32, _: UnsafeMutableRawPointer?
) -> Int32 {
    -1
}
