internal import GateBytes

/// Why an attestation does not verify: one case for each thing that a step can find.
@nonexhaustive
public enum AttestationError: Error, Equatable, Sendable {
    /// The AAGUID is not that of the environment that is allowed.
    case aaguidMismatch(expected: Environment, found: [UInt8])
    /// The authenticator data cannot be read.
    case authenticatorData(AuthenticatorDataError)
    /// A certificate is not part of a good chain to the root.
    case certificate(CertificateRole, CertificateError)
    /// `x5c` has another number of certificates than two.
    case certificateCount(Int)
    /// A certificate's validity has ended; seconds since 1970.
    case certificateExpired(CertificateRole, notAfter: Int64, at: Int64)
    /// A certificate's validity has not begun; seconds since 1970.
    case certificateNotYetValid(CertificateRole, notBefore: Int64, at: Int64)
    /// The sign counter of a new key is not 0.
    case counterNotZero(UInt32)
    /// The credential ID is not the key ID.
    case credentialIDMismatch(expected: KeyID, found: KeyID)
    /// The key in the authenticator data is not the leaf's.
    case credentialKeyMismatch
    /// `fmt` is not `apple-appattest`.
    case formatMismatch
    /// The key ID is not SHA-256 of the leaf's point.
    case keyIDMismatch(presented: KeyID, attested: KeyID)
    /// A member is missing.
    case memberMissing(AttestationMember)
    /// The leaf has no nonce extension.
    case nonceAbsent
    /// The leaf's nonce extension is not the one DER form that it has.
    case nonceMalformed(DERError)
    /// The leaf's nonce is not SHA-256 of authenticator data and client data hash.
    case nonceMismatch(expected: [UInt8], found: [UInt8])
    /// The object is not the CBOR it should be.
    case object(CBORError)
    /// The object is larger than any attestation.
    case objectTooLarge(count: Int)
    /// The relying party ID hash is not that of an allowed App ID.
    case relyingPartyIDMismatch
}

/// The members of an attestation object.
public enum AttestationMember: String, CaseIterable, Sendable {
    /// The authenticator data.
    case authenticatorData = "authData"
    /// The certificates.
    case certificates = "x5c"
    /// The format's name.
    case format = "fmt"
    /// The receipt for Apple's fraud metric.
    case receipt
    /// What holds certificates and receipt.
    case statement = "attStmt"
}

extension AttestationError {
    /// The internal name of the refusal, of a closed list: what logs and metrics are labelled with.
    public var reason: String {
        switch self {
        case .aaguidMismatch: return "aaguid_mismatch"
        case .authenticatorData, .certificateCount, .formatMismatch, .memberMissing, .object,
            .objectTooLarge:
            return "attestation_malformed"
        case .certificate: return "certificate_chain"
        case .certificateExpired: return "certificate_expired"
        case .certificateNotYetValid: return "certificate_not_yet_valid"
        case .counterNotZero: return "counter_not_zero"
        case .credentialIDMismatch: return "credential_id_mismatch"
        case .credentialKeyMismatch: return "cose_key_mismatch"
        case .keyIDMismatch: return "key_id_mismatch"
        case .nonceAbsent, .nonceMalformed, .nonceMismatch: return "nonce_mismatch"
        case .relyingPartyIDMismatch: return "rp_id_mismatch"
        }
    }
}

extension AttestationError: CustomStringConvertible {
    /// The fault as a clause, for people.
    public var description: String {
        switch self {
        case .aaguidMismatch(let expected, let found):
            let other = Environment.allCases.first { $0.aaguid == found }?.rawValue
            return "expected environment \(expected.rawValue), got "
                + (other ?? "AAGUID \(Hex.encode(found))")
        case .authenticatorData(let error): return error.description
        case .certificate(let role, let error): return "\(role.rawValue) certificate: \(error)"
        case .certificateCount(let count): return "expected 2 certificates, got \(count)"
        case .certificateExpired(let role, let notAfter, let now):
            return "\(role.rawValue) certificate ended \(CivilTime.text(notAfter)), "
                + "now is \(CivilTime.text(now))"
        case .certificateNotYetValid(let role, let notBefore, let now):
            return "\(role.rawValue) certificate begins \(CivilTime.text(notBefore)), "
                + "now is \(CivilTime.text(now))"
        case .counterNotZero(let counter): return "expected counter 0, got \(counter)"
        case .credentialIDMismatch(let expected, let found):
            return "expected credential ID \(expected), got \(found)"
        case .credentialKeyMismatch: return "key in authenticator data is not the certificate's"
        case .formatMismatch: return "expected fmt apple-appattest"
        case .keyIDMismatch(let presented, let attested):
            return "expected key ID \(presented), got \(attested)"
        case .memberMissing(let member): return "member \(member.rawValue) is missing"
        case .nonceAbsent: return "leaf certificate has no nonce extension"
        case .nonceMalformed(let error): return "nonce extension: \(error)"
        case .nonceMismatch(let expected, let found):
            return "expected nonce \(Hex.encode(expected)), got \(Hex.encode(found))"
        case .object(let error): return error.description
        case .objectTooLarge(let count):
            return "expected at most \(AttestationObject.bytesMax) bytes, got \(count)"
        case .relyingPartyIDMismatch: return "relying party ID hash is of no allowed App ID"
        }
    }
}
