/// What a peer is told about a refusal: the codes of `protocol.md` §5.
///
/// The raw value is the `code` member and the tail of the `type`. One code may stand for many
/// reasons, so that an answer never says which check failed.
package enum ProblemCode: String, CaseIterable, Sendable, Equatable {
    case accountRequired = "account_required"
    case badRequest = "bad_request"
    case challengeRequired = "challenge_required"
    case denied
    case enrollmentRequired = "enrollment_required"
    case expectationFailed = "expectation_failed"
    case `internal`
    case methodNotAllowed = "method_not_allowed"
    case misdirected
    case notFound = "not_found"
    case notImplemented = "not_implemented"
    case pathAmbiguous = "path_ambiguous"
    case proofRequired = "proof_required"
    case rateLimited = "rate_limited"
    case rejected
    case requestTimeout = "request_timeout"
    case retryLater = "retry_later"
    case tooEarly = "too_early"
    case tooLarge = "too_large"
    case unsupported
    case upstreamTimeout = "upstream_timeout"
    case upstreamUnavailable = "upstream_unavailable"
    case versionNotSupported = "version_not_supported"

    /// The status it is answered with unless the refusal says another: 414 and 431 for `too_large`,
    /// the status of the route for `denied`.
    package var status: Int {
        switch self {
        case .badRequest, .pathAmbiguous: return 400
        case .accountRequired, .challengeRequired, .enrollmentRequired, .proofRequired: return 401
        case .denied, .rejected, .unsupported: return 403
        case .notFound: return 404
        case .methodNotAllowed: return 405
        case .requestTimeout: return 408
        case .tooLarge: return 413
        case .expectationFailed: return 417
        case .misdirected: return 421
        case .tooEarly: return 425
        case .rateLimited: return 429
        case .internal: return 500
        case .notImplemented: return 501
        case .upstreamUnavailable: return 502
        case .retryLater: return 503
        case .upstreamTimeout: return 504
        case .versionNotSupported: return 505
        }
    }

    /// The `title` member: one phrase, the same for every request.
    package var title: String {
        switch self {
        case .accountRequired: return "Sign in first"
        case .badRequest: return "Malformed request"
        case .challengeRequired: return "A fresh challenge is required"
        case .denied: return "Denied"
        case .enrollmentRequired: return "An enrolled key is required"
        case .expectationFailed: return "Expectation failed"
        case .internal: return "Internal error"
        case .methodNotAllowed: return "Method not allowed"
        case .misdirected: return "Misdirected request"
        case .notFound: return "Not found"
        case .notImplemented: return "Not implemented"
        case .pathAmbiguous: return "Ambiguous request target"
        case .proofRequired: return "Proof of the app is required"
        case .rateLimited: return "Too many requests"
        case .rejected: return "Rejected"
        case .requestTimeout: return "Request timeout"
        case .retryLater: return "Try again later"
        case .tooEarly: return "Too early"
        case .tooLarge: return "Too large"
        case .unsupported: return "Not available without App Attest"
        case .upstreamTimeout: return "Upstream timeout"
        case .upstreamUnavailable: return "Upstream unavailable"
        case .versionNotSupported: return "HTTP version not supported"
        }
    }

    /// Whether an answer says when to come back.
    package var hasRetryAfter: Bool {
        switch self {
        case .rateLimited, .retryLater:
            return true
        case .accountRequired, .badRequest, .challengeRequired, .denied, .enrollmentRequired,
            .expectationFailed, .internal, .methodNotAllowed, .misdirected, .notFound,
            .notImplemented, .pathAmbiguous, .proofRequired, .rejected, .requestTimeout, .tooEarly,
            .tooLarge, .unsupported, .upstreamTimeout, .upstreamUnavailable, .versionNotSupported:
            return false
        }
    }
}
