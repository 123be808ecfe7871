package import GateBytes

/// What the gate found: `App-Attest-Verdict` and the access log.
package enum Verdict: Sendable, Equatable {
    /// The fallback passed (DeviceCheck).
    case fallback
    /// Would have been refused; the route is monitored.
    case monitored
    /// The route is off.
    case off
    /// The route lets requests without proof pass (`allow_unverified`).
    case unverified
    /// The proof holds.
    case verified(VerifiedKey)

    /// The key whose proof holds; nil without.
    package var keyID: Bytes32? {
        if case .verified(let key) = self { key.keyID } else { nil }
    }

    /// What is known of that key.
    package var risk: RiskSignals? {
        if case .verified(let key) = self { key.risk } else { nil }
    }

    /// The field's value.
    package var name: StaticString {
        switch self {
        case .fallback: return "fallback"
        case .monitored: return "monitored"
        case .off: return "off"
        case .unverified: return "unverified"
        case .verified: return "verified"
        }
    }
}

/// The key a verified request was signed by.
package struct VerifiedKey: Sendable, Equatable {
    /// SHA-256 of the public key.
    package var keyID: Bytes32
    /// The assertion's counter.
    package var counter: UInt32
    /// What is known beside the proof.
    package var risk: RiskSignals

    /// A key by its parts.
    package init(keyID: Bytes32, counter: UInt32, risk: RiskSignals = RiskSignals()) {
        self.keyID = keyID
        self.counter = counter
        self.risk = risk
    }
}
