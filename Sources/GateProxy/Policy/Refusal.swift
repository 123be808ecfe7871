/// A refusal: the reason for log and metrics, and what the peer is told.
package struct Refusal: Error, Sendable, Equatable {
    /// Where in the order of `protocol.md` §4 a check failed: a few reasons are told differently
    /// there.
    package enum Stage: Sendable, Equatable {
        /// The checks of a protected request, once its fields are well formed.
        case checks
        /// A call of the enrolment endpoints.
        case enrolment
        /// Reading the message and the proof's fields.
        case fields
    }

    /// The internal name, for log and metrics alone.
    package var reason: Reason
    /// What the peer is told.
    package var code: ProblemCode
    /// The answer's status.
    package var status: Int
    /// Seconds after which trying again makes sense; only with a code that carries it.
    package var retryAfter: Int?
    /// The limit it is for, with `rate_limited`.
    package var rateLimit: RateStatus?

    /// The seconds of `Retry-After` where nothing better is known.
    package static let retryAfterDefault = 5

    /// A refusal for `reason`, told as `protocol.md` §2 and §5 say for that stage.
    package init(_ reason: Reason, at stage: Stage, retryAfter: Int? = nil) {
        self.init(reason, as: Refusal.code(reason, stage), retryAfter: retryAfter)
    }

    /// A refusal told as `code`, with another than its usual status where `status` is given.
    package init(
        _ reason: Reason, as code: ProblemCode, status: Int? = nil, retryAfter: Int? = nil
    ) {
        self.reason = reason
        self.code = code
        self.status = status ?? code.status
        self.retryAfter =
            code.hasRetryAfter ? max(1, retryAfter ?? Refusal.retryAfterDefault) : nil
    }

    /// The refusal of a `deny STATUS` route.
    package static func denied(status: Int) -> Refusal {
        Refusal(.denied, as: status == 404 ? .notFound : .denied, status: status)
    }

    /// The refusal of a message that no valid request can be, by the status the codec names: 400,
    /// 408, 413, 414, 417, 431, 501 or 505; any other is 400.
    package static func message(status: Int) -> Refusal {
        switch status {
        case 408: return Refusal(.timeout, as: .requestTimeout)
        case 413, 414, 431: return Refusal(.tooLarge, as: .tooLarge, status: status)
        case 417: return Refusal(.malformed, as: .expectationFailed)
        case 501: return Refusal(.malformed, as: .notImplemented)
        case 505: return Refusal(.malformed, as: .versionNotSupported)
        default: return Refusal(.malformed, as: .badRequest)
        }
    }

    /// The refusal of a request whose service did not answer in time.
    package static var upstreamTimeout: Refusal { Refusal(.upstream, as: .upstreamTimeout) }

    /// The one place where a reason becomes an answer.
    private static func code(_ reason: Reason, _ stage: Stage) -> ProblemCode {
        switch reason {
        case .proofAbsent: return .proofRequired
        case .proofIncomplete, .proofMalformed, .malformed: return .badRequest
        case .challengeEpoch, .challengeExpired, .challengeSpent, .challengeUnknown,
            .counterNotGreater:
            return .challengeRequired
        // An enrolment of a key that others hold or that was revoked must not send the app round in
        // circles, enrolling again.
        case .keyForeign, .keyRevoked, .keyUnknown:
            return stage == .enrolment ? .rejected : .enrollmentRequired
        case .accountAbsent: return .accountRequired
        // Client data that is no JSON of the right shape is malformed; a bad member found after the
        // signature is a failed check.
        case .clientDataMalformed: return stage == .fields ? .badRequest : .rejected
        case .aaguidMismatch, .accountBlocked, .assertionMalformed, .attestationMalformed,
            .bodyMismatch, .certificateChain, .certificateExpired, .certificateNotYetValid,
            .coseKeyMismatch, .counterNotZero, .credentialIDMismatch, .extensionsUnreadable,
            .keyIDMismatch, .keyLimit, .methodMismatch, .nonceMismatch, .policyCategory,
            .policyKeyAge, .policyMetric, .policyVersion, .receiptInvalid, .rpIDMismatch,
            .signatureInvalid, .targetMismatch:
            return .rejected
        case .deviceBits, .deviceTokenInvalid, .deviceTokenSpent, .unsupported: return .unsupported
        case .rateLimited: return .rateLimited
        case .appleUnavailable, .spoolFull, .storeUnavailable: return .retryLater
        // Early data is the one thing refused for it; monitored bodies are only counted.
        case .unverifiable: return .tooEarly
        case .pathAmbiguous: return .pathAmbiguous
        case .hostUnknown: return .misdirected
        case .noRoute: return .notFound
        case .methodNotAllowed: return .methodNotAllowed
        case .denied: return .denied
        case .tooLarge: return .tooLarge
        case .timeout: return .requestTimeout
        case .upstream: return .upstreamUnavailable
        }
    }
}
