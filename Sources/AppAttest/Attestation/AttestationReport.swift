internal import GateBytes
internal import GateCrypto

/// An attestation judged step by step, for people: the same steps as the verdict, each with its
/// result.
public struct AttestationReport: Sendable {
    /// Every step in order.
    public let steps: [StepResult<AttestationStep, AttestationError>]
    /// The proof; nil unless every step passed.
    public let verified: VerifiedAttestation?
    /// What the app hashed instead, where only that makes the nonce hold.
    public let hint: NonceHint?

    /// Judges `object`; the arguments are those of ``Attestation``.
    public init(
        object: [UInt8], clientDataHash: [UInt8], keyID: KeyID, appIDs: [String],
        environment: Environment, root: TrustRoot = .apple, at now: Int64
    ) {
        self.init(
            AttestationExamination(
                object: object, clientDataHash: clientDataHash, keyID: keyID, appIDs: appIDs,
                environment: environment, root: root, now: now),
            candidates: NonceHint.candidates(clientDataHash: clientDataHash))
    }

    /// Judges `object` for the challenge whose SHA-256 the app should have given to DeviceCheck.
    public init(
        object: [UInt8], challenge: [UInt8], keyID: KeyID, appIDs: [String],
        environment: Environment, root: TrustRoot = .apple, at now: Int64
    ) {
        self.init(
            AttestationExamination(
                object: object, clientDataHash: SHA256.hash(challenge).array, keyID: keyID,
                appIDs: appIDs, environment: environment, root: root, now: now),
            candidates: NonceHint.candidates(challenge: challenge))
    }

    private init(
        _ examination: AttestationExamination, candidates: [(NonceHint, [UInt8])]
    ) {
        var log = StepLog<AttestationStep, AttestationError>.report
        do throws(AttestationError) {
            verified = try examination.run(&log)
        } catch {
            // The log has it, in its place.
            verified = nil
        }
        steps = log.complete(AttestationStep.allCases)
        hint = AttestationReport.hint(examination, steps, candidates)
    }

    /// Tries the candidates where the nonce did not match, and only there.
    private static func hint(
        _ examination: AttestationExamination,
        _ steps: [StepResult<AttestationStep, AttestationError>],
        _ candidates: [(NonceHint, [UInt8])]
    ) -> NonceHint? {
        for case .failed(.nonceMismatch(_, let found)) in steps.map(\.outcome) {
            // The object was read before the nonce was compared, so this cannot fail here.
            guard let object = try? AttestationObject(examination.object) else { return nil }
            for (hint, clientDataHash) in candidates {
                let nonce = AttestationExamination.nonce(
                    object.bytes, object.authenticatorData, clientDataHash)
                if nonce.array == found { return hint }
            }
        }
        return nil
    }
}

/// What an app gave to DeviceCheck in place of SHA-256 of the challenge's bytes.
public enum NonceHint: Equatable, Sendable {
    /// The challenge itself.
    case challengeUnhashed
    /// SHA-256 of the challenge as text.
    case challengeText(ChallengeText)
    /// The challenge as text, not hashed.
    case challengeTextUnhashed(ChallengeText)
    /// SHA-256 of the client data hash: it was hashed once more.
    case clientDataHashHashed

    /// A spelling of bytes as text.
    public enum ChallengeText: String, CaseIterable, Sendable {
        /// Padded base64.
        case base64
        /// Base64 without padding.
        case base64Unpadded = "unpadded base64"
        /// Base64url with padding.
        case base64URLPadded = "padded base64url"
        /// Base64url without padding.
        case base64URL = "base64url"
        /// Hexadecimal in lower case.
        case hex = "hexadecimal"
        /// Hexadecimal in upper case.
        case hexUpperCase = "upper-case hexadecimal"

        func spelling(_ bytes: [UInt8]) -> String {
            let padded = Base64.encode(bytes)
            let url = Base64.encodeURL(bytes)
            let padding = padded.drop { $0 != "=" }
            switch self {
            case .base64: return padded
            case .base64Unpadded: return String(padded.prefix { $0 != "=" })
            case .base64URLPadded: return url + padding
            case .base64URL: return url
            case .hex: return Hex.encode(bytes)
            case .hexUpperCase: return Hex.encode(bytes).uppercased()
            }
        }
    }

    static func candidates(challenge: [UInt8]) -> [(NonceHint, [UInt8])] {
        var candidates: [(NonceHint, [UInt8])] = [(.challengeUnhashed, challenge)]
        for text in ChallengeText.allCases {
            let spelling = Array(text.spelling(challenge).utf8)
            candidates.append((.challengeText(text), SHA256.hash(spelling).array))
            candidates.append((.challengeTextUnhashed(text), spelling))
        }
        return candidates
    }

    static func candidates(clientDataHash: [UInt8]) -> [(NonceHint, [UInt8])] {
        var candidates: [(NonceHint, [UInt8])] = [
            (.clientDataHashHashed, SHA256.hash(clientDataHash).array)
        ]
        for text in ChallengeText.allCases {
            let spelling = Array(text.spelling(clientDataHash).utf8)
            candidates.append((.challengeTextUnhashed(text), spelling))
            candidates.append((.challengeText(text), SHA256.hash(spelling).array))
        }
        return candidates
    }
}

extension NonceHint: CustomStringConvertible {
    /// What would have matched, as a clause.
    public var description: String {
        switch self {
        case .challengeUnhashed: return "the challenge itself, not hashed, would have matched"
        case .challengeText(let text):
            return "the hash of the challenge as \(text.rawValue) text would have matched"
        case .challengeTextUnhashed(let text):
            return "the challenge as \(text.rawValue) text, not hashed, would have matched"
        case .clientDataHashHashed:
            return "the client data hash hashed once more would have matched"
        }
    }
}
