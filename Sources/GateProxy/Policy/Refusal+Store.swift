package import GateStore

extension Refusal {
    /// The refusal that an admit's outcome is; nil when the request was admitted.
    package init?(_ outcome: AdmitOutcome) {
        switch outcome {
        case .admitted: return nil
        case .challengeExpired: self.init(.challengeExpired, at: .checks)
        case .challengeSpent: self.init(.challengeSpent, at: .checks)
        case .counterNotGreater: self.init(.counterNotGreater, at: .checks)
        case .epochBehind: self = .epochBehind
        case .keyRevoked: self.init(.keyRevoked, at: .checks)
        case .keyUnknown: self.init(.keyUnknown, at: .checks)
        case .unavailable: self.init(.storeUnavailable, at: .checks)
        }
    }

    /// The refusal of a key that has not passed with a challenge in this epoch, where the route
    /// takes none: a fresh challenge would not help there, a new key does.
    package static var epochBehind: Refusal {
        Refusal(.challengeEpoch, as: .enrollmentRequired)
    }

    /// The refusal that an enrolment's outcome is; nil when the key is enrolled, now or before.
    package init?(_ outcome: EnrolOutcome) {
        switch outcome {
        case .alreadyKnown, .enrolled, .enrolledRetiring: return nil
        case .accountBlocked: self.init(.accountBlocked, at: .enrolment)
        case .challengeExpired: self.init(.challengeExpired, at: .enrolment)
        case .challengeSpent: self.init(.challengeSpent, at: .enrolment)
        case .counterNotGreater: self.init(.counterNotGreater, at: .enrolment)
        case .foreign: self.init(.keyForeign, at: .enrolment)
        case .limit: self.init(.keyLimit, at: .enrolment)
        case .revoked: self.init(.keyRevoked, at: .enrolment)
        case .unavailable: self.init(.storeUnavailable, at: .enrolment)
        }
    }
}
