internal import GateBytes
internal import GateCrypto

/// The certificate at which a chain must end, an attestation's or a receipt's, pinned whole: name
/// and key alone are not enough, since a look-alike of Apple's root with the same key and another
/// end date is in circulation.
public struct TrustRoot: Sendable {
    let certificate: Certificate
    let key: ECPublicKey

    /// Apple's App Attest root, embedded.
    public static let apple = embedded(AppleRoot.der)

    /// Apple Root CA - G3, where receipts' chains end, embedded.
    public static let appleReceipts = embedded(AppleReceiptRoot.der)

    private static func embedded(_ der: [UInt8]) -> TrustRoot {
        do {
            return try TrustRoot(der: der)
        } catch {
            preconditionFailure("the embedded root is no root: \(error)")
        }
    }

    /// A root from one certificate in DER.
    ///
    /// It must be an authority on P-256 or P-384 that may have one more below it, and carry its own
    /// good signature. Its dates are checked when an attestation is, not here.
    ///
    /// - Parameter der: the certificate (RFC 5280 §4.1), and nothing behind it.
    /// - Throws: ``TrustRootError/certificate(_:)`` with what is wrong with it.
    public init(der: [UInt8]) throws(TrustRootError) {
        do throws(CertificateError) {
            let certificate = try Certificate(der)
            try certificate.refuseUnknownCritical()
            key = try certificate.authorityKey(authoritiesBelow: 1)
            guard certificate.isIssued(by: certificate) else { throw .issuerMismatch }
            try certificate.verifySignature(by: key)
            self.certificate = certificate
        } catch {
            throw .certificate(error)
        }
    }

    /// A root from PEM text (RFC 7468) with exactly one certificate; text outside its lines is
    /// ignored.
    ///
    /// - Parameter pem: the text; line ends of any kind.
    /// - Throws: ``TrustRootError/pem`` unless there is exactly one certificate, otherwise as with
    ///   DER.
    public init(pem: [UInt8]) throws(TrustRootError) {
        guard let der = TrustRoot.certificate(inPEM: pem) else { throw .pem }
        try self.init(der: der)
    }

    /// The certificate in DER.
    public var der: [UInt8] { certificate.bytes }

    /// SHA-256 of the certificate, 32 bytes.
    public var fingerprint: [UInt8] { SHA256.hash(certificate.bytes).array }

    private static func certificate(inPEM text: [UInt8]) -> [UInt8]? {
        var base64: [UInt8] = []
        var isInside = false
        var count = 0
        for line in text.split(whereSeparator: { $0 == 0x0a || $0 == 0x0d }) {
            if line.elementsEqual("-----BEGIN CERTIFICATE-----".utf8) {
                guard !isInside else { return nil }
                isInside = true
                count += 1
            } else if line.elementsEqual("-----END CERTIFICATE-----".utf8) {
                guard isInside else { return nil }
                isInside = false
            } else if isInside {
                base64 += line
            }
        }
        guard count == 1, !isInside, let der = Base64.decode(base64) else { return nil }
        return der
    }
}

/// Why bytes make no trust root.
@nonexhaustive
public enum TrustRootError: Error, Equatable, Sendable {
    /// The certificate is none that could be a root here.
    case certificate(CertificateError)
    /// The text has not exactly one certificate in PEM.
    case pem
}

extension TrustRootError: CustomStringConvertible {
    /// The fault as a clause.
    public var description: String {
        switch self {
        case .certificate(let error): return "root certificate: \(error)"
        case .pem: return "expected one certificate in PEM"
        }
    }
}
