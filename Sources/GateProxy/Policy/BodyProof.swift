internal import AppAttest
internal import AppAttestWire
internal import GateBytes

/// A proof of which a part is in the request's body, until that is complete.
package struct BodyProof: Sendable {
    /// What the body must hold.
    enum Kind: Sendable {
        /// All of the proof, and the body it is for.
        case envelope(isKeyIDOptional: Bool)
        /// The challenge by value, at this pointer; the rest stood in fields.
        case challenge(at: [[UInt8]], FieldProof)
    }

    /// What fields said of a proof.
    struct FieldProof: Sendable {
        var keyID: Bytes32?
        var assertion: AssertionObject
        var attestation: [UInt8]?
    }

    /// What the body says.
    package enum Outcome: Sendable {
        /// Nothing of a proof.
        case absent
        /// Not as required: 400.
        case malformed(Reason)
        case proof(Proof)
        /// A proof, and the body that came with it.
        case sealed(Proof, body: [UInt8])
        /// No JSON object: no envelope for whoever says that it cannot make one, else malformed.
        case unreadable
    }

    let kind: Kind

    /// Whether an attestation came with it.
    var bringsAttestation: Bool {
        if case .challenge(_, let fields) = kind { return fields.attestation != nil }
        return false
    }

    /// What `body`, the whole of it, says.
    package func read(_ body: [UInt8]) -> Outcome {
        switch kind {
        case .challenge(let pointer, let fields):
            guard let value = BodyProof.value(of: body, at: pointer) else {
                return .malformed(.clientDataMalformed)
            }
            return .proof(
                Proof(
                    keyID: fields.keyID, assertion: fields.assertion,
                    statement: .body(challenge: value), attestation: fields.attestation))
        case .envelope(let isKeyIDOptional):
            return Envelope.read(body, isKeyIDOptional: isKeyIDOptional)
        }
    }

    /// The challenge's text at `pointer`, as it is or as base64; nil where there is none.
    private static func value(of body: [UInt8], at pointer: [[UInt8]]) -> [UInt8]? {
        do throws(JSONError) {
            guard case .string(let text)? = try JSONMembers.value(of: body, at: pointer) else {
                return nil
            }
            return ProofText.challengeValue(text)
        } catch {
            return nil
        }
    }
}

/// The body of the binding `envelope` (`protocol.md` §3):
/// `{"keyID", "clientData", "assertion", "body"}`, each base64.
enum Envelope {
    private static let names = ["keyID", "clientData", "assertion", "body"].map { Array($0.utf8) }

    /// What `text` says. Members that are there must be good even where others are missing.
    static func read(_ text: [UInt8], isKeyIDOptional: Bool) -> BodyProof.Outcome {
        guard !text.isEmpty else { return .absent }
        let members: [JSONMember?]
        do throws(JSONError) {
            members = try JSONMembers.scan(text, named: names)
        } catch {
            return .unreadable
        }
        guard members[0...2].contains(where: { $0 != nil }) else { return .absent }
        guard members[1...3].allSatisfy({ $0 != nil }), members[0] != nil || isKeyIDOptional else {
            return .malformed(.proofIncomplete)
        }
        var keyID: Bytes32?
        if members[0] != nil {
            keyID = field(members[0]).flatMap { Bytes32($0) }
            guard keyID != nil else { return .malformed(.proofMalformed) }
        }
        guard let clientData = field(members[1]), let assertion = field(members[2]),
            let parsedAssertion = assertionObject(assertion), let body = base64(members[3])
        else { return .malformed(.proofMalformed) }
        // Which rule of JSON it broke is in neither log nor answer.
        guard let parsed = try? ClientData.parse(clientData) else {
            return .malformed(.clientDataMalformed)
        }
        let proof = Proof(
            keyID: keyID, assertion: parsedAssertion,
            statement: .envelope(parsed, bytes: clientData), attestation: nil)
        return .sealed(proof, body: body)
    }

    /// A member that would otherwise be a field: not empty, and no longer than one.
    private static func field(_ member: JSONMember?) -> [UInt8]? {
        guard case .string(let text)? = member,
            (1...ProofReader.fieldBytesMax).contains(text.count)
        else { return nil }
        return Base64.decode(text)
    }

    private static func base64(_ member: JSONMember?) -> [UInt8]? {
        guard case .string(let text)? = member else { return nil }
        return Base64.decode(text)
    }

    private static func assertionObject(_ bytes: [UInt8]) -> AssertionObject? {
        do throws(AssertionError) {
            return try AssertionObject.parse(bytes)
        } catch {
            return nil
        }
    }
}
