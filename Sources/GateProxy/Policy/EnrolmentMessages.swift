internal import AppAttestWire
package import GateBytes
package import GateConfig

/// The calls under a host's `enroll` prefix (`protocol.md` §2).
package enum EnrolmentCall: String, CaseIterable, Sendable, Equatable {
    case challenge
    case challenges
    case keys
    case keysRevoke = "keys/revoke"
    case keysStatus = "keys/status"
    case verify

    /// The call of `subpath`, what follows the prefix, with or without its leading slash, in lower
    /// case; nil is 404.
    package init?(subpath: String) {
        self.init(rawValue: subpath.hasPrefix("/") ? String(subpath.dropFirst()) : subpath)
    }

    /// The one method it takes; another is 405.
    package var method: String {
        switch self {
        case .challenge: return "GET"
        case .challenges, .keys, .keysRevoke, .keysStatus, .verify: return "POST"
        }
    }

    /// The most bytes of a request's body.
    package static let bodyBytesMax = 64 * 1024
}

/// The purposes that challenges of a host may be asked for: the reserved ones and those of its
/// routes, whatever their mode.
package struct EnrolmentPurposes: Sendable, Equatable {
    private let names: Set<[UInt8]>

    /// The purposes of `host`.
    package init(_ host: Host) {
        var names: Set<[UInt8]> = [
            Array(ReservedPurpose.attestation.utf8), Array(ReservedPurpose.revoke.utf8),
        ]
        for route in host.routes { names.insert(Array(route.purpose.utf8)) }
        // Requests that no route takes are judged as the route defaults say.
        if host.unmatched == .enforce { names.insert(Array(host.unmatchedRoute.purpose.utf8)) }
        self.names = names
    }

    /// All of them.
    var all: [String] { names.map { String(decoding: $0, as: UTF8.self) } }

    /// `text` as a purpose; nil when it is none of these.
    func purpose(_ text: [UInt8]) -> String? {
        names.contains(text) ? String(decoding: text, as: UTF8.self) : nil
    }
}

/// Reads the bodies of enrolment calls. Whatever is not as `protocol.md` §2 says is thrown as 400.
package enum EnrolmentRequest {
    /// `POST {p}/challenges`.
    package struct Challenges: Sendable, Equatable {
        package var purpose: String
        /// How many; nil asks for one, not in a list.
        package var count: Int?

        /// The most challenges of one call.
        package static let countMax = 16
    }

    /// `POST {p}/keys` and `POST {p}/verify`: an attestation.
    package struct Enrolment: Sendable, Equatable {
        package var keyID: Bytes32
        /// The challenge's id, or for `verify` its text by value; nothing is known of it yet.
        package var challenge: [UInt8]
        /// The attestation object's CBOR; nothing is known of it yet.
        package var object: [UInt8]
    }

    /// Reads the body of `POST {p}/challenges`.
    package static func challenges(
        _ body: [UInt8], _ purposes: EnrolmentPurposes
    ) throws(Refusal) -> Challenges {
        let members = try scan(body, ["purpose", "count"])
        guard let purpose = purposes.purpose(try string(members[0])) else { throw malformed }
        switch members[1] {
        case nil: return Challenges(purpose: purpose, count: nil)
        case .integer(let count) where (1...Challenges.countMax).contains(count):
            return Challenges(purpose: purpose, count: count)
        case .integer, .other, .string: throw malformed
        }
    }

    /// Reads the body of `POST {p}/keys`.
    package static func keys(_ body: [UInt8]) throws(Refusal) -> Enrolment {
        let members = try scan(body, ["keyID", "challengeID", "object"])
        return Enrolment(
            keyID: try keyID(members[0]), challenge: try string(members[1]),
            object: try base64(members[2]))
    }

    /// Reads the body of `POST {p}/keys/status` and of `POST {p}/keys/revoke`.
    package static func key(_ body: [UInt8]) throws(Refusal) -> Bytes32 {
        try keyID(try scan(body, ["keyID"])[0])
    }

    /// Reads the body of `POST {p}/verify`: the key ID under either name but not both, the
    /// challenge as its text by value or as base64 of that.
    package static func verify(_ body: [UInt8]) throws(Refusal) -> Enrolment {
        let members = try scan(body, ["key_id", "keyId", "challenge", "attestation"])
        guard members[0] == nil || members[1] == nil else { throw malformed }
        guard let challenge = ProofText.challengeValue(try string(members[2])) else {
            throw malformed
        }
        return Enrolment(
            keyID: try keyID(members[0] ?? members[1]), challenge: challenge,
            object: try base64(members[3]))
    }

    /// Reads the query of `GET {p}/challenge`, what follows `?`; nil without one. Its `purpose`, or
    /// `attestation`; other parameters are ignored.
    package static func challengePurpose(
        query: [UInt8]?, _ purposes: EnrolmentPurposes
    ) throws(Refusal) -> String {
        var found: String?
        for parameter in (query ?? []).split(separator: UInt8(ascii: "&")) {
            let parts = parameter.split(
                separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            guard parts[0].elementsEqual("purpose".utf8) else { continue }
            guard found == nil, parts.count == 2, let purpose = purposes.purpose(Array(parts[1]))
            else { throw malformed }
            found = purpose
        }
        return found ?? ReservedPurpose.attestation
    }

    private static let malformed = Refusal(.malformed, at: .enrolment)

    private static func scan(
        _ body: [UInt8], _ names: [String]
    ) throws(Refusal) -> [JSONMember?] {
        do {
            return try JSONMembers.scan(body, named: names)
        } catch {
            throw malformed
        }
    }

    private static func string(_ member: JSONMember?) throws(Refusal) -> [UInt8] {
        guard case .string(let text) = member else { throw malformed }
        return text
    }

    private static func base64(_ member: JSONMember?) throws(Refusal) -> [UInt8] {
        // Empty is as good as missing, as with the proof's fields.
        guard let bytes = Base64.decode(try string(member)), !bytes.isEmpty else {
            throw malformed
        }
        return bytes
    }

    private static func keyID(_ member: JSONMember?) throws(Refusal) -> Bytes32 {
        guard let keyID = Bytes32(try base64(member)) else { throw malformed }
        return keyID
    }
}

/// The answers of enrolment calls that went well.
package enum EnrolmentAnswer {
    /// `POST {p}/challenges` without `count`.
    package static func challenge(_ issued: IssuedChallenge, expiresIn seconds: Int64) -> GateAnswer
    {
        var writer = JSONWriter()
        append(issued, seconds, to: &writer)
        return GateAnswer(status: 200, contentType: .json, body: writer.bytes)
    }

    /// `POST {p}/challenges` with `count`.
    package static func challenges(
        _ issued: [IssuedChallenge], expiresIn seconds: Int64
    ) -> GateAnswer {
        var writer = JSONWriter()
        writer.beginObject()
        writer.beginArray("challenges")
        for challenge in issued { append(challenge, seconds, to: &writer) }
        writer.endArray()
        writer.endObject()
        return GateAnswer(status: 200, contentType: .json, body: writer.bytes)
    }

    /// `GET {p}/challenge`.
    package static func challengeValue(_ issued: IssuedChallenge) -> GateAnswer {
        GateAnswer(status: 200, contentType: .octets, body: issued.value)
    }

    /// `POST {p}/keys` (201, or 200 for a key already known) and `POST {p}/verify` (200); with
    /// `isRegistered` false only as the answer of `keys/status`.
    package static func registered(_ isRegistered: Bool, status: Int) -> GateAnswer {
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("registered", isRegistered)
        writer.endObject()
        return GateAnswer(status: status, contentType: .json, body: writer.bytes)
    }

    /// `POST {p}/keys/revoke`.
    package static let revoked = GateAnswer(status: 204)

    private static func append(
        _ issued: IssuedChallenge, _ seconds: Int64, to writer: inout JSONWriter
    ) {
        writer.beginObject()
        writer.member("id", issued.id)
        writer.member("bytes", Base64.encode(issued.bytes.array))
        writer.member("expiresIn", Int(clamping: seconds))
        writer.endObject()
    }
}

extension Host {
    /// The life of a challenge of `purpose`, in seconds.
    package func challengeSeconds(_ purpose: String) -> Int64 {
        purpose == ReservedPurpose.attestation
            ? attestationChallengeLifetime.components.seconds
            : challengeLifetime.components.seconds
    }
}
