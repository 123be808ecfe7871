internal import GateBytes

/// What a challenge is bound to besides its account: host, app and purpose.
///
/// The parts stand ready for the MAC, each preceded by its length as u16: make one for each route
/// and enrolment call, once.
package struct ChallengeScope: Sendable, Equatable {
    /// The three parts with their lengths.
    let parts: [UInt8]

    /// A scope of `host` (the first name of the host block), `app` (the name of the app block) and
    /// `purpose`; each comes from the configuration and is far below 64 KiB.
    package init(host: String, app: String, purpose: String) {
        var parts: [UInt8] = []
        for part in [host, app, purpose] { parts.append(lengthPrefixed: Array(part.utf8)) }
        self.parts = parts
    }
}

/// The purposes that every host has, besides those of its routes.
package enum ReservedPurpose {
    /// Enrolling a key.
    package static let attestation = "attestation"
    /// Revoking a key by itself.
    package static let revoke = "revoke"
}

extension Array where Element == UInt8 {
    /// Appends `part` preceded by its length as u16; traps over 65,535 bytes, which nothing a peer
    /// sends can reach: accounts are bounded when they are read.
    mutating func append(lengthPrefixed part: [UInt8]) {
        precondition(part.count <= UInt16.max)
        append(bigEndian: UInt16(truncatingIfNeeded: part.count))
        append(contentsOf: part)
    }
}
