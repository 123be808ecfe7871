internal import GateBytes

/// Why a receipt does not verify: one case for each thing that a step can find.
@nonexhaustive
public enum ReceiptError: Error, Equatable, Sendable {
    /// The digest or signature algorithm is not SHA-256 and ECDSA with SHA-256.
    case algorithmUnsupported(OID)
    /// The receipt is of another app.
    case appIDMismatch(found: String)
    /// A certificate is not part of a good chain to the root.
    case certificate(CertificateRole, CertificateError)
    /// A certificate's validity had ended when the receipt was made; seconds since 1970.
    case certificateExpired(CertificateRole, notAfter: Int64, at: Int64)
    /// The receipt lacks a certificate of the chain.
    case certificateMissing(CertificateRole)
    /// A certificate's validity had not begun when the receipt was made; seconds since 1970.
    case certificateNotYetValid(CertificateRole, notBefore: Int64, at: Int64)
    /// One of the certificates that came along cannot be read.
    case certificateUnreadable(CertificateError)
    /// The receipt belongs to an attestation of another client data hash.
    case clientDataHashMismatch
    /// The receipt was made in another environment.
    case environmentMismatch(expected: Environment, found: String)
    /// A field is not what its kind of value is.
    case fieldMalformed(ReceiptField)
    /// A field is missing.
    case fieldMissing(ReceiptField)
    /// The receipt is of another kind.
    case kindMismatch(expected: ReceiptKind, found: ReceiptKind)
    /// A certificate lacks the extension that marks it for its task.
    case markMissing(CertificateRole, OID)
    /// The receipt was made later than now; milliseconds and seconds since 1970.
    case notYetMade(creation: Int64, at: Int64)
    /// The payload is not the SET of fields it should be.
    case payload(BERError)
    /// The receipt is of another key.
    case publicKeyMismatch
    /// The signature is not the signer's over the content.
    case signatureInvalid
    /// There are signed attributes, which Apple's receipts do not have.
    case signedAttributes
    /// The receipt has another number of signers than one.
    case signerCount(Int)
    /// The receipt was made too long ago to have just arrived; milliseconds and seconds since 1970.
    case stale(creation: Int64, at: Int64)
    /// The bytes are not the CMS structure they should be.
    case structure(BERError)
    /// The bytes are more than any receipt has.
    case tooLarge(count: Int)
}

extension ReceiptError {
    /// The internal name of the refusal, of a closed list: what logs and metrics are labelled with.
    public var reason: String { "receipt_invalid" }
}

extension ReceiptError: CustomStringConvertible {
    /// The fault as a clause, for people.
    public var description: String {
        switch self {
        case .algorithmUnsupported(let oid): return "unsupported algorithm \(oid)"
        case .appIDMismatch(let found): return "App ID \(found) is none of those allowed"
        case .certificate(let role, let error): return "\(role.rawValue) certificate: \(error)"
        case .certificateExpired(let role, let notAfter, let time):
            return "\(role.rawValue) certificate ended \(CivilTime.text(notAfter)), "
                + "the receipt was made \(CivilTime.text(time))"
        case .certificateMissing(let role): return "\(role.rawValue) certificate is missing"
        case .certificateNotYetValid(let role, let notBefore, let time):
            return "\(role.rawValue) certificate begins \(CivilTime.text(notBefore)), "
                + "the receipt was made \(CivilTime.text(time))"
        case .certificateUnreadable(let error): return "a certificate: \(error)"
        case .clientDataHashMismatch: return "client data hash is another attestation's"
        case .environmentMismatch(let expected, let found):
            return "expected environment \(expected.rawValue), got \(found)"
        case .fieldMalformed(let field): return "field \(field.rawValue) is malformed"
        case .fieldMissing(let field): return "field \(field.rawValue) is missing"
        case .kindMismatch(let expected, let found):
            return "expected a receipt of kind \(expected.rawValue), got \(found.rawValue)"
        case .markMissing(let role, let oid):
            return "\(role.rawValue) certificate lacks extension \(oid)"
        case .notYetMade(let creation, let now):
            return "made \(CivilTime.text(creation / 1000)), now is \(CivilTime.text(now))"
        case .payload(let error): return "payload: \(error)"
        case .publicKeyMismatch: return "certificate in field 3 is of another key"
        case .signatureInvalid: return "signature does not verify"
        case .signedAttributes: return "signed attributes, expected none"
        case .signerCount(let count): return "expected 1 signer, got \(count)"
        case .stale(let creation, let now):
            return "made \(CivilTime.text(creation / 1000)), too long before it arrived "
                + CivilTime.text(now)
        case .structure(let error): return error.description
        case .tooLarge(let count):
            return "expected at most \(Receipt.bytesMax) bytes, got \(count)"
        }
    }
}
