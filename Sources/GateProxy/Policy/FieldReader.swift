internal import AppAttest
internal import AppAttestWire
internal import GateBytes
internal import GateConfig
internal import GateHTTP

/// Makes a proof of the fields that were found, by the route's binding.
struct FieldReader {
    let bytes: [UInt8]
    let values: ProofValues
    let isKeyIDOptional: Bool
    let isInline: Bool

    /// `client_data`: key ID, assertion and client data.
    func readClientData() -> ProofReading.Outcome {
        guard let ranges = required(values.clientData) else { return missing(values.clientData) }
        guard let clientData = Base64.decode(bytes, ranges.own),
            let fields = fields(ranges.assertion)
        else { return .malformed(.proofMalformed) }
        // Which rule of JSON it broke is in neither log nor answer.
        guard let parsed = try? ClientData.parse(clientData) else {
            return .malformed(.clientDataMalformed)
        }
        return .proof(proof(fields, .clientData(parsed, bytes: clientData)))
    }

    /// `request`: key ID, assertion and challenge.
    func readRequest() -> ProofReading.Outcome {
        guard isUnusedClientDataGood else { return .malformed(.proofMalformed) }
        guard let ranges = required(values.challenge) else { return missing(values.challenge) }
        guard let fields = fields(ranges.assertion) else { return .malformed(.proofMalformed) }
        return .proof(proof(fields, .request(challenge: Array(bytes[ranges.own]))))
    }

    /// `body`: key ID and assertion.
    func readBody(_ challenge: Route.BodyChallenge) -> ProofReading.Outcome {
        guard isUnusedClientDataGood else { return .malformed(.proofMalformed) }
        guard let ranges = required(values.assertion) else { return missing(nil) }
        guard let fields = fields(ranges.assertion) else { return .malformed(.proofMalformed) }
        switch challenge {
        case .none:
            return .proof(proof(fields, .body(challenge: nil)))
        case .pointer(let tokens):
            let pointer = tokens.map { Array($0.utf8) }
            return .inBody(BodyProof(kind: .challenge(at: pointer, fields)))
        }
    }

    /// `envelope`: no field at all, and a body as it came from the app's hand.
    func readEnvelope(_ head: RequestHead) -> ProofReading.Outcome {
        guard values.isProofEmpty, !FieldReader.isCoded(head) else {
            return .malformed(.proofMalformed)
        }
        switch head.framing {
        case .none, .length(0): return .absent
        case .chunked, .length, .untilClose:
            return .inBody(BodyProof(kind: .envelope(isKeyIDOptional: isKeyIDOptional)))
        }
    }

    /// Fields that speak of the bytes on the wire, which are not those that go on.
    private static func isCoded(_ head: RequestHead) -> Bool {
        head.fields.contains { line in
            line.isNamedFolded(contentEncoding, in: head.bytes)
                || line.isNamedFolded(contentDigest, in: head.bytes)
        }
    }

    private static let contentEncoding = FieldName("Content-Encoding")
    private static let contentDigest = FieldName("Content-Digest")

    private var isUnusedClientDataGood: Bool {
        guard let range = values.clientData else { return true }
        return Base64.decode(bytes, range) != nil
    }

    /// Where the assertion stands and what else the binding needs; nil when something is missing.
    private func required(
        _ own: Range<Int>?
    ) -> (assertion: Range<Int>, own: Range<Int>)? {
        guard let assertion = values.assertion, let own, values.keyID != nil || isKeyIDOptional
        else { return nil }
        return (assertion, own)
    }

    private func missing(_ own: Range<Int>?) -> ProofReading.Outcome {
        let isAbsent =
            values.keyID == nil && values.assertion == nil && own == nil
            && !(isInline && values.attestation != nil)
        return isAbsent ? .absent : .malformed(.proofIncomplete)
    }

    /// Key ID, assertion and attestation; nil when one that is there is malformed.
    private func fields(_ assertion: Range<Int>) -> BodyProof.FieldProof? {
        guard let object = Base64.decode(bytes, assertion),
            // Which rule of CBOR it broke is in neither log nor answer.
            let parsed = try? AssertionObject.parse(object)
        else { return nil }
        var fields = BodyProof.FieldProof(keyID: nil, assertion: parsed, attestation: nil)
        if let range = values.keyID {
            fields.keyID = ProofText.keyID(bytes, range)
            guard fields.keyID != nil else { return nil }
        }
        guard isInline, let range = values.attestation else { return fields }
        guard let attestation = Base64.decode(bytes, range), let form = AttestationForm(attestation)
        else { return nil }
        fields.attestation = attestation
        // Where it may be left out, the attestation says which key it is of.
        fields.keyID = fields.keyID ?? form.keyID
        return fields
    }

    private func proof(_ fields: BodyProof.FieldProof, _ statement: Proof.Statement) -> Proof {
        Proof(
            keyID: fields.keyID, assertion: fields.assertion, statement: statement,
            attestation: fields.attestation)
    }
}

extension ProofValues {
    /// Whether none of the five fields is there that are a proof.
    var isProofEmpty: Bool {
        assertion == nil && attestation == nil && challenge == nil && clientData == nil
            && keyID == nil
    }
}
