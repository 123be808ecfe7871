internal import GateBytes

/// A certificate's place in the chain.
public enum CertificateRole: String, Sendable {
    /// The credential certificate: names the attested key.
    case leaf
    /// Apple's issuing authority, which comes with the object.
    case intermediate
    /// The pinned root.
    case root
    /// Signs receipts.
    case signer
}

/// Why a certificate is not part of a good chain.
@nonexhaustive
public enum CertificateError: Error, Equatable, Sendable {
    /// The leaf is itself an authority.
    case authorityUnexpected
    /// An issuer is no authority: no basic constraints that say so.
    case authorityMissing
    /// The bytes are not one certificate in DER.
    case der(DERError)
    /// A critical extension that this verifier does not know.
    case extensionCritical(OID)
    /// An extension is there twice.
    case extensionDuplicate(OID)
    /// An extension this verifier reads is not in its one form.
    case extensionMalformed(OID)
    /// The issuer's name is not the next certificate's subject.
    case issuerMismatch
    /// The key is not on the curve it names.
    case keyInvalid
    /// The key is of a kind that App Attest does not use at this place.
    case keyUnsupported
    /// An authority's key usage leaves out the signing of certificates.
    case keyUsageLacksSigning
    /// An authority allows fewer certificates below it than there are.
    case pathTooLong
    /// The signature is not the issuer's over this certificate.
    case signatureInvalid
    /// The signature algorithm is not ECDSA with SHA-256 or SHA-384.
    case signatureUnsupported(OID)
}

extension CertificateError: CustomStringConvertible {
    /// The fault as a clause.
    public var description: String {
        switch self {
        case .authorityUnexpected: return "is an authority"
        case .authorityMissing: return "is no authority"
        case .der(let error): return error.description
        case .extensionCritical(let oid): return "unknown critical extension \(oid)"
        case .extensionDuplicate(let oid): return "duplicate extension \(oid)"
        case .extensionMalformed(let oid): return "malformed extension \(oid)"
        case .issuerMismatch: return "issuer is not the next certificate's subject"
        case .keyInvalid: return "key is not on its curve"
        case .keyUnsupported: return "key of an unsupported kind"
        case .keyUsageLacksSigning: return "key usage lacks certificate signing"
        case .pathTooLong: return "path length exceeded"
        case .signatureInvalid: return "signature does not verify under its issuer"
        case .signatureUnsupported(let oid): return "unsupported signature algorithm \(oid)"
        }
    }
}
