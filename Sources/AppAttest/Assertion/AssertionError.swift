/// Why an assertion does not verify: one case for each thing that a step can find.
@nonexhaustive
public enum AssertionError: Error, Equatable, Sendable {
    /// The authenticator data has fewer than 37 bytes.
    case authenticatorDataTooShort(count: Int)
    /// The sign counter is not greater than the stored one.
    case counterNotGreater(stored: UInt32, presented: UInt32)
    /// A member is missing.
    case memberMissing(AssertionMember)
    /// The object is not the CBOR it should be.
    case object(CBORError)
    /// The object is larger than any assertion.
    case objectTooLarge(count: Int)
    /// The relying party ID hash is not that of the key's App ID.
    case relyingPartyIDMismatch
    /// The signature is not the key's over this nonce.
    case signatureInvalid
}

/// The members of an assertion.
public enum AssertionMember: String, CaseIterable, Sendable {
    /// The authenticator data.
    case authenticatorData
    /// The signature.
    case signature
}

extension AssertionError {
    /// The internal name of the refusal, of a closed list: what logs and metrics are labelled with.
    public var reason: String {
        switch self {
        case .authenticatorDataTooShort, .memberMissing, .object, .objectTooLarge:
            return "assertion_malformed"
        case .counterNotGreater: return "counter_not_greater"
        case .relyingPartyIDMismatch: return "rp_id_mismatch"
        case .signatureInvalid: return "signature_invalid"
        }
    }
}

extension AssertionError: CustomStringConvertible {
    /// The fault as a clause, for people.
    public var description: String {
        switch self {
        case .authenticatorDataTooShort(let count):
            return "expected at least 37 bytes of authenticator data, got \(count)"
        case .counterNotGreater(let stored, let presented):
            return "expected a counter above \(stored), got \(presented)"
        case .memberMissing(let member): return "member \(member.rawValue) is missing"
        case .object(let error): return error.description
        case .objectTooLarge(let count):
            return "expected at most \(AssertionObject.bytesMax) bytes, got \(count)"
        case .relyingPartyIDMismatch: return "relying party ID hash is not that of the App ID"
        case .signatureInvalid: return "signature does not verify"
        }
    }
}
