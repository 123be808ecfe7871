/// Why a request was refused, or would have been: the closed list of `cli.md`, "Reasons".
///
/// The raw value is what log and metrics show. What the peer is told comes from ``Refusal``;
/// several reasons share one answer on purpose.
package enum Reason: String, Error, CaseIterable, Sendable, Equatable {
    case aaguidMismatch = "aaguid_mismatch"
    case accountAbsent = "account_absent"
    case accountBlocked = "account_blocked"
    case appleUnavailable = "apple_unavailable"
    case assertionMalformed = "assertion_malformed"
    case attestationMalformed = "attestation_malformed"
    case bodyMismatch = "body_mismatch"
    case certificateChain = "certificate_chain"
    case certificateExpired = "certificate_expired"
    case certificateNotYetValid = "certificate_not_yet_valid"
    case challengeEpoch = "challenge_epoch"
    case challengeExpired = "challenge_expired"
    case challengeSpent = "challenge_spent"
    case challengeUnknown = "challenge_unknown"
    case clientDataMalformed = "client_data_malformed"
    case coseKeyMismatch = "cose_key_mismatch"
    case counterNotGreater = "counter_not_greater"
    case counterNotZero = "counter_not_zero"
    case credentialIDMismatch = "credential_id_mismatch"
    case denied
    case deviceBits = "device_bits"
    case deviceTokenInvalid = "device_token_invalid"
    case deviceTokenSpent = "device_token_spent"
    case extensionsUnreadable = "extensions_unreadable"
    case hostUnknown = "host_unknown"
    case keyForeign = "key_foreign"
    case keyIDMismatch = "key_id_mismatch"
    case keyLimit = "key_limit"
    case keyRevoked = "key_revoked"
    case keyUnknown = "key_unknown"
    case malformed
    case methodMismatch = "method_mismatch"
    case methodNotAllowed = "method_not_allowed"
    case noRoute = "no_route"
    case nonceMismatch = "nonce_mismatch"
    case pathAmbiguous = "path_ambiguous"
    case policyCategory = "policy_category"
    case policyKeyAge = "policy_key_age"
    case policyMetric = "policy_metric"
    case policyVersion = "policy_version"
    case proofAbsent = "proof_absent"
    case proofIncomplete = "proof_incomplete"
    case proofMalformed = "proof_malformed"
    case rateLimited = "rate_limited"
    case receiptInvalid = "receipt_invalid"
    case rpIDMismatch = "rp_id_mismatch"
    case signatureInvalid = "signature_invalid"
    case spoolFull = "spool_full"
    case storeUnavailable = "store_unavailable"
    case targetMismatch = "target_mismatch"
    case timeout
    case tooLarge = "too_large"
    case unsupported
    case unverifiable
    case upstream
}
