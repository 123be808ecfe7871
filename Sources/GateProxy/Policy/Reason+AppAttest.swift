package import AppAttest

extension Reason {
    /// The reason that `error` is.
    package init(_ error: AssertionError) {
        switch error {
        case .authenticatorDataTooShort, .memberMissing, .object, .objectTooLarge:
            self = .assertionMalformed
        case .counterNotGreater: self = .counterNotGreater
        case .relyingPartyIDMismatch: self = .rpIDMismatch
        case .signatureInvalid: self = .signatureInvalid
        }
    }

    /// The reason that `error` is.
    package init(_ error: AttestationError) {
        switch error {
        case .aaguidMismatch: self = .aaguidMismatch
        case .authenticatorData, .certificateCount, .formatMismatch, .memberMissing, .object,
            .objectTooLarge:
            self = .attestationMalformed
        case .certificate: self = .certificateChain
        case .certificateExpired: self = .certificateExpired
        case .certificateNotYetValid: self = .certificateNotYetValid
        case .counterNotZero: self = .counterNotZero
        case .credentialIDMismatch: self = .credentialIDMismatch
        case .credentialKeyMismatch: self = .coseKeyMismatch
        case .keyIDMismatch: self = .keyIDMismatch
        case .nonceAbsent, .nonceMalformed, .nonceMismatch: self = .nonceMismatch
        case .relyingPartyIDMismatch: self = .rpIDMismatch
        }
    }
}
