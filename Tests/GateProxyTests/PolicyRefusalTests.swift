import AppAttest
import GateBytes
import GateProxy
import GateStore
import Testing

@Suite("Refusal: reasons, codes and statuses")
struct RefusalTests {
    /// The closed list as `cli.md` prints it.
    static let listed = """
        proof_absent proof_incomplete proof_malformed challenge_unknown challenge_expired \
        challenge_spent challenge_epoch key_unknown key_foreign key_revoked account_absent \
        account_blocked assertion_malformed rp_id_mismatch counter_not_greater method_mismatch \
        target_mismatch signature_invalid body_mismatch client_data_malformed \
        attestation_malformed certificate_chain certificate_expired certificate_not_yet_valid \
        nonce_mismatch key_id_mismatch aaguid_mismatch counter_not_zero credential_id_mismatch \
        cose_key_mismatch receipt_invalid extensions_unreadable policy_category policy_version \
        policy_metric policy_key_age unsupported device_token_invalid device_bits rate_limited \
        store_unavailable spool_full apple_unavailable unverifiable path_ambiguous key_limit \
        device_token_spent malformed host_unknown no_route method_not_allowed denied too_large \
        timeout upstream
        """

    @Test("the reasons are the documented ones, all of them")
    func closedList() {
        let names = RefusalTests.listed.split(separator: " ").map(String.init)
        #expect(Set(Reason.allCases.map(\.rawValue)) == Set(names))
        #expect(Reason.allCases.count == names.count)
    }

    /// Code and status of each reason at each stage, written out apart from the source.
    static let told: [(Reason, checks: String, fields: String, enrolment: String)] = [
        (.proofAbsent, "proof_required", "proof_required", "proof_required"),
        (.proofIncomplete, "bad_request", "bad_request", "bad_request"),
        (.proofMalformed, "bad_request", "bad_request", "bad_request"),
        (.challengeUnknown, "challenge_required", "challenge_required", "challenge_required"),
        (.challengeExpired, "challenge_required", "challenge_required", "challenge_required"),
        (.challengeSpent, "challenge_required", "challenge_required", "challenge_required"),
        (.challengeEpoch, "challenge_required", "challenge_required", "challenge_required"),
        (.counterNotGreater, "challenge_required", "challenge_required", "challenge_required"),
        (.keyUnknown, "enrollment_required", "enrollment_required", "rejected"),
        (.keyForeign, "enrollment_required", "enrollment_required", "rejected"),
        (.keyRevoked, "enrollment_required", "enrollment_required", "rejected"),
        (.accountAbsent, "account_required", "account_required", "account_required"),
        (.accountBlocked, "rejected", "rejected", "rejected"),
        (.assertionMalformed, "rejected", "rejected", "rejected"),
        (.rpIDMismatch, "rejected", "rejected", "rejected"),
        (.methodMismatch, "rejected", "rejected", "rejected"),
        (.targetMismatch, "rejected", "rejected", "rejected"),
        (.signatureInvalid, "rejected", "rejected", "rejected"),
        (.bodyMismatch, "rejected", "rejected", "rejected"),
        (.clientDataMalformed, "rejected", "bad_request", "rejected"),
        (.attestationMalformed, "rejected", "rejected", "rejected"),
        (.certificateChain, "rejected", "rejected", "rejected"),
        (.certificateExpired, "rejected", "rejected", "rejected"),
        (.certificateNotYetValid, "rejected", "rejected", "rejected"),
        (.nonceMismatch, "rejected", "rejected", "rejected"),
        (.keyIDMismatch, "rejected", "rejected", "rejected"),
        (.aaguidMismatch, "rejected", "rejected", "rejected"),
        (.counterNotZero, "rejected", "rejected", "rejected"),
        (.credentialIDMismatch, "rejected", "rejected", "rejected"),
        (.coseKeyMismatch, "rejected", "rejected", "rejected"),
        (.receiptInvalid, "rejected", "rejected", "rejected"),
        (.extensionsUnreadable, "rejected", "rejected", "rejected"),
        (.policyCategory, "rejected", "rejected", "rejected"),
        (.policyVersion, "rejected", "rejected", "rejected"),
        (.policyMetric, "rejected", "rejected", "rejected"),
        (.policyKeyAge, "rejected", "rejected", "rejected"),
        (.keyLimit, "rejected", "rejected", "rejected"),
        (.unsupported, "unsupported", "unsupported", "unsupported"),
        (.deviceTokenInvalid, "unsupported", "unsupported", "unsupported"),
        (.deviceTokenSpent, "unsupported", "unsupported", "unsupported"),
        (.deviceBits, "unsupported", "unsupported", "unsupported"),
        (.rateLimited, "rate_limited", "rate_limited", "rate_limited"),
        (.storeUnavailable, "retry_later", "retry_later", "retry_later"),
        (.spoolFull, "retry_later", "retry_later", "retry_later"),
        (.appleUnavailable, "retry_later", "retry_later", "retry_later"),
        (.unverifiable, "too_early", "too_early", "too_early"),
        (.pathAmbiguous, "path_ambiguous", "path_ambiguous", "path_ambiguous"),
        (.malformed, "bad_request", "bad_request", "bad_request"),
        (.hostUnknown, "misdirected", "misdirected", "misdirected"),
        (.noRoute, "not_found", "not_found", "not_found"),
        (.methodNotAllowed, "method_not_allowed", "method_not_allowed", "method_not_allowed"),
        (.denied, "denied", "denied", "denied"),
        (.tooLarge, "too_large", "too_large", "too_large"),
        (.timeout, "request_timeout", "request_timeout", "request_timeout"),
        (.upstream, "upstream_unavailable", "upstream_unavailable", "upstream_unavailable"),
    ]

    @Test("every reason is told as documented, at every stage")
    func codes() {
        #expect(Set(RefusalTests.told.map(\.0)).count == Reason.allCases.count)
        for row in RefusalTests.told {
            #expect(Refusal(row.0, at: .checks).code.rawValue == row.checks)
            #expect(Refusal(row.0, at: .fields).code.rawValue == row.fields)
            #expect(Refusal(row.0, at: .enrolment).code.rawValue == row.enrolment)
        }
    }

    @Test("every code has the documented status")
    func statuses() {
        let documented: [String: Int] = [
            "proof_required": 401, "challenge_required": 401, "enrollment_required": 401,
            "rejected": 403, "unsupported": 403, "account_required": 401, "retry_later": 503,
            "rate_limited": 429, "bad_request": 400, "path_ambiguous": 400, "not_found": 404,
            "method_not_allowed": 405, "request_timeout": 408, "too_large": 413,
            "expectation_failed": 417, "misdirected": 421, "too_early": 425, "internal": 500,
            "not_implemented": 501, "upstream_unavailable": 502, "upstream_timeout": 504,
            "version_not_supported": 505, "denied": 403,
        ]
        #expect(ProblemCode.allCases.count == documented.count)
        for code in ProblemCode.allCases {
            #expect(code.status == documented[code.rawValue])
            #expect(!code.title.isEmpty)
        }
        #expect(Set(ProblemCode.allCases.map(\.title)).count == ProblemCode.allCases.count)
    }

    @Test("a message's status picks the code: 413, 414 and 431 share too_large")
    func messages() {
        let expected: [Int: String] = [
            400: "bad_request", 408: "request_timeout", 413: "too_large", 414: "too_large",
            417: "expectation_failed", 431: "too_large", 501: "not_implemented",
            505: "version_not_supported",
        ]
        for (status, code) in expected {
            let refusal = Refusal.message(status: status)
            #expect(refusal.status == status)
            #expect(refusal.code.rawValue == code)
        }
        #expect(Refusal.message(status: 414).reason == .tooLarge)
        #expect(Refusal.message(status: 408).reason == .timeout)
        #expect(Refusal.message(status: 501).reason == .malformed)
        #expect(Refusal.message(status: 200).status == 400)
    }

    @Test("deny STATUS answers that status: 404 as not_found, others as denied")
    func denied() {
        #expect(Refusal.denied(status: 404).code == .notFound)
        #expect(Refusal.denied(status: 404).status == 404)
        #expect(Refusal.denied(status: 410).code == .denied)
        #expect(Refusal.denied(status: 410).status == 410)
        #expect(Refusal.denied(status: 404).reason == .denied)
    }

    @Test("a retry time is there with its two codes and nowhere else, and at least a second")
    func retryAfter() {
        #expect(Refusal(.rateLimited, at: .checks, retryAfter: 17).retryAfter == 17)
        #expect(Refusal(.storeUnavailable, at: .checks).retryAfter == Refusal.retryAfterDefault)
        #expect(Refusal(.rateLimited, at: .checks, retryAfter: 0).retryAfter == 1)
        #expect(Refusal(.signatureInvalid, at: .checks, retryAfter: 17).retryAfter == nil)
        for code in ProblemCode.allCases {
            #expect(code.hasRetryAfter == (code == .rateLimited || code == .retryLater))
        }
    }

    @Test("a slow service is a timeout of the upstream")
    func upstreamTimeout() {
        #expect(Refusal.upstreamTimeout.status == 504)
        #expect(Refusal.upstreamTimeout.reason == .upstream)
    }

    @Test("an assertion's error is the reason it names itself")
    func assertionErrors() {
        let errors: [AssertionError] = [
            .authenticatorDataTooShort(count: 1), .memberMissing(.signature),
            .objectTooLarge(count: 1), .object(.trailingBytes(offset: 1)),
            .counterNotGreater(stored: 1, presented: 1), .relyingPartyIDMismatch,
            .signatureInvalid,
        ]
        for error in errors { #expect(Reason(error).rawValue == error.reason) }
    }

    @Test("an attestation's error is the reason it names itself")
    func attestationErrors() throws {
        let key = try #require(KeyID(base64: Base64.encode(Bytes32().array)))
        let errors: [AttestationError] = [
            .aaguidMismatch(expected: .production, found: []),
            .authenticatorData(.tooShort(count: 1)), .certificateCount(1),
            .certificateExpired(.leaf, notAfter: 1, at: 2),
            .certificateNotYetValid(.leaf, notBefore: 2, at: 1), .counterNotZero(1),
            .credentialIDMismatch(expected: key, found: key), .credentialKeyMismatch,
            .formatMismatch, .keyIDMismatch(presented: key, attested: key),
            .memberMissing(.format), .nonceAbsent, .nonceMismatch(expected: [], found: []),
            .object(.trailingBytes(offset: 1)), .objectTooLarge(count: 1), .relyingPartyIDMismatch,
        ]
        for error in errors { #expect(Reason(error).rawValue == error.reason) }
    }

    @Test("the store's outcomes are refusals, but for those that passed")
    func storeOutcomes() {
        #expect(Refusal(AdmitOutcome.admitted(previousCounter: 1)) == nil)
        let admits: [(AdmitOutcome, Reason, String)] = [
            (.challengeExpired, .challengeExpired, "challenge_required"),
            (.challengeSpent, .challengeSpent, "challenge_required"),
            (.counterNotGreater, .counterNotGreater, "challenge_required"),
            (.epochBehind, .challengeEpoch, "enrollment_required"),
            (.keyRevoked, .keyRevoked, "enrollment_required"),
            (.keyUnknown, .keyUnknown, "enrollment_required"),
            (.unavailable, .storeUnavailable, "retry_later"),
        ]
        for (outcome, reason, code) in admits {
            #expect(Refusal(outcome)?.reason == reason)
            #expect(Refusal(outcome)?.code.rawValue == code)
        }
        #expect(Refusal(EnrolOutcome.enrolled) == nil)
        #expect(Refusal(EnrolOutcome.enrolledRetiring(Bytes32())) == nil)
        #expect(Refusal(EnrolOutcome.alreadyKnown) == nil)
        let enrolments: [(EnrolOutcome, Reason, String)] = [
            (.accountBlocked, .accountBlocked, "rejected"),
            (.challengeExpired, .challengeExpired, "challenge_required"),
            (.challengeSpent, .challengeSpent, "challenge_required"),
            (.counterNotGreater, .counterNotGreater, "challenge_required"),
            (.foreign, .keyForeign, "rejected"), (.limit, .keyLimit, "rejected"),
            (.revoked, .keyRevoked, "rejected"), (.unavailable, .storeUnavailable, "retry_later"),
        ]
        for (outcome, reason, code) in enrolments {
            #expect(Refusal(outcome)?.reason == reason)
            #expect(Refusal(outcome)?.code.rawValue == code)
        }
    }
}
