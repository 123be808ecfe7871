internal import CGateOpenSSL

/// Whom a peer's certificate names; worth something only where the certificate was verified.
package struct PeerNames: Sendable, Equatable {
    /// The subject as RFC 2253 (and so RFC 4514) writes it, most specific part first, in printable
    /// ASCII: `CN=alice,O=Example`. Empty where the certificate has none, or one over
    /// ``bytesMax``.
    package var subject: [UInt8]
    /// The first of its alternative names that is a DNS name, a URI or an email address, after its
    /// type: `DNS:`, `URI:` or `email:`, so that a name of one type is never taken for one of
    /// another. Empty without, and where it is longer.
    package var alternativeName: [UInt8]

    /// The most bytes of either; nobody is told apart by more.
    package static let bytesMax = 4096

    /// Names by their texts.
    package init(subject: [UInt8], alternativeName: [UInt8]) {
        self.subject = subject
        self.alternativeName = alternativeName
    }

    /// The names of `certificate`.
    @unsafe init(_ certificate: OpaquePointer) {
        subject = unsafe PeerNames.subject(of: certificate)
        alternativeName = unsafe PeerNames.alternativeName(of: certificate)
        OpenSSLErrors.clear()
    }

    @unsafe private static func subject(of certificate: OpaquePointer) -> [UInt8] {
        guard let name = unsafe X509_get_subject_name(certificate),
            unsafe X509_NAME_entry_count(name) > 0,
            let memory = unsafe BIO_new(BIO_s_mem())
        else { return [] }
        defer { unsafe BIO_free(memory) }
        guard unsafe X509_NAME_print_ex(memory, name, 0, gate_name_rfc2253) >= 0 else { return [] }
        var bytes = [UInt8](repeating: 0, count: bytesMax + 1)
        var count = 0
        guard unsafe BIO_read_ex(memory, &bytes, bytes.count, &count) == 1, count <= bytesMax else {
            return []
        }
        return Array(bytes[..<count])
    }

    @unsafe private static func alternativeName(of certificate: OpaquePointer) -> [UInt8] {
        guard let raw = unsafe X509_get_ext_d2i(certificate, NID_subject_alt_name, nil, nil) else {
            return []
        }
        let names = OpaquePointer(raw)
        defer { unsafe GENERAL_NAMES_free(names) }
        for index in 0..<max(0, unsafe gate_names_count(names)) {
            guard let text = unsafe gate_names_text(names, index) else { continue }
            let bytes = unsafe Array(
                UnsafeBufferPointer(
                    start: ASN1_STRING_get0_data(text), count: Int(ASN1_STRING_length(text))))
            guard !bytes.isEmpty, bytes.count < bytesMax - 8 else { return [] }
            switch unsafe gate_names_type(names, index) {
            case GEN_DNS: return Array("DNS:".utf8) + bytes
            case GEN_EMAIL: return Array("email:".utf8) + bytes
            default: return Array("URI:".utf8) + bytes
            }
        }
        return []
    }
}
