package import AppAttest
package import AppAttestWire
package import GateBytes
package import GateConfig
package import GateHTTP

/// A proof whose fields are all there and well formed; nothing of it has been verified.
package struct Proof: Sendable {
    /// What was signed, by the route's binding.
    package enum Statement: Sendable {
        /// `client_data`: the client data, and its exact bytes, whose SHA-256 was signed.
        case clientData(ClientData, bytes: [UInt8])
        /// `request`: the text of a challenge, by id or by value; the rest is built from the
        /// request.
        case request(challenge: [UInt8])
    }

    /// The key that is said to have signed.
    package let keyID: Bytes32
    /// The assertion, parsed as CBOR.
    package let assertion: AssertionObject
    /// What was signed.
    package let statement: Statement
}

/// What a request's proof fields say.
package struct ProofReading: Sendable {
    /// The proof, or why there is none.
    package enum Outcome: Sendable {
        /// No field that the binding uses: `proof_required`, or the route's fallback.
        case absent
        /// Fields missing, doubled, empty, too long, or not base64, JSON or CBOR as required: 400.
        case malformed(Reason)
        case proof(Proof)
    }

    /// The proof, or why there is none. It decides, whatever ``isUnsupported`` says.
    package let outcome: Outcome
    /// `App-Attest-Unsupported: ?1`.
    package let isUnsupported: Bool
    /// The DeviceCheck token, decoded.
    package let deviceToken: [UInt8]?
}

/// The proof fields of `protocol.md` §3 out of a request's head.
///
/// A field is one that is spelled as configured, ASCII case aside. Fields that the binding does not
/// use must be single, not empty, within their size and, where they are base64, base64; then they
/// are ignored.
package enum ProofReader {
    /// The most bytes of a field's value.
    package static let fieldBytesMax = 8 * 1024
    /// The most bytes of an attestation's.
    package static let attestationBytesMax = 24 * 1024

    /// What `head` says for a route of `binding`.
    package static func read(
        _ head: RequestHead, _ fields: HostFields, _ binding: Route.Binding
    ) -> ProofReading {
        var values = ProofValues()
        var isUnsupported = false
        var deviceToken: [UInt8]?
        func malformed(_ reason: Reason) -> ProofReading {
            ProofReading(
                outcome: .malformed(reason), isUnsupported: isUnsupported,
                deviceToken: deviceToken)
        }

        for line in head.fields {
            let match = fields.table.match(head.bytes, line.name)
            guard match.use.isProof, match.isExact else { continue }
            guard values.take(match.use, line.value) else { return malformed(.proofMalformed) }
        }
        if let range = values.unsupported {
            guard let flag = ProofText.unsupported(head.bytes, range) else {
                return malformed(.proofMalformed)
            }
            isUnsupported = flag
        }
        if let range = values.deviceToken {
            deviceToken = Base64.decode(head.bytes, range)
            guard deviceToken != nil else { return malformed(.proofMalformed) }
        }
        if let range = values.attestation, Base64.decode(head.bytes, range) == nil {
            return malformed(.proofMalformed)
        }

        let outcome: ProofReading.Outcome
        switch binding {
        case .clientData: outcome = readClientData(head.bytes, values)
        case .request: outcome = readRequest(head.bytes, values)
        }
        return ProofReading(
            outcome: outcome, isUnsupported: isUnsupported, deviceToken: deviceToken)
    }

    /// The key ID alone, where `head` has one that is well formed and single.
    package static func keyID(_ head: RequestHead, _ fields: HostFields) -> Bytes32? {
        var found: Range<Int>?
        for line in head.fields {
            let match = fields.table.match(head.bytes, line.name)
            guard match.use == .keyID, match.isExact else { continue }
            guard found == nil, line.value.count <= fieldBytesMax else { return nil }
            found = line.value
        }
        return found.flatMap { ProofText.keyID(head.bytes, $0) }
    }

    private static func readClientData(
        _ bytes: [UInt8], _ values: ProofValues
    ) -> ProofReading.Outcome {
        guard let keyID = values.keyID, let assertion = values.assertion,
            let clientData = values.clientData
        else {
            let isAbsent =
                values.keyID == nil && values.assertion == nil && values.clientData == nil
            return isAbsent ? .absent : .malformed(.proofIncomplete)
        }
        guard let keyID = ProofText.keyID(bytes, keyID),
            let assertion = readAssertion(bytes, assertion),
            let clientData = Base64.decode(bytes, clientData)
        else { return .malformed(.proofMalformed) }
        // Which rule of JSON it broke is in neither log nor answer.
        guard let parsed = try? ClientData.parse(clientData) else {
            return .malformed(.clientDataMalformed)
        }
        return .proof(
            Proof(
                keyID: keyID, assertion: assertion,
                statement: .clientData(parsed, bytes: clientData)))
    }

    private static func readRequest(
        _ bytes: [UInt8], _ values: ProofValues
    ) -> ProofReading.Outcome {
        if let range = values.clientData, Base64.decode(bytes, range) == nil {
            return .malformed(.proofMalformed)
        }
        guard let keyID = values.keyID, let assertion = values.assertion,
            let challenge = values.challenge
        else {
            let isAbsent =
                values.keyID == nil && values.assertion == nil && values.challenge == nil
            return isAbsent ? .absent : .malformed(.proofIncomplete)
        }
        guard let keyID = ProofText.keyID(bytes, keyID),
            let assertion = readAssertion(bytes, assertion)
        else { return .malformed(.proofMalformed) }
        return .proof(
            Proof(
                keyID: keyID, assertion: assertion,
                statement: .request(challenge: Array(bytes[challenge]))))
    }

    private static func readAssertion(
        _ bytes: [UInt8], _ range: Range<Int>
    ) -> AssertionObject? {
        guard let object = Base64.decode(bytes, range) else { return nil }
        // Which rule of CBOR it broke is in neither log nor answer.
        return try? AssertionObject.parse(object)
    }
}

/// Where the values of the seven fields stand in a head.
private struct ProofValues {
    var assertion: Range<Int>?
    var attestation: Range<Int>?
    var challenge: Range<Int>?
    var clientData: Range<Int>?
    var deviceToken: Range<Int>?
    var keyID: Range<Int>?
    var unsupported: Range<Int>?

    /// Notes one field; false when it is doubled, empty or too long.
    mutating func take(_ use: FieldUse, _ value: Range<Int>) -> Bool {
        let bytesMax =
            use == .attestation ? ProofReader.attestationBytesMax : ProofReader.fieldBytesMax
        guard (1...bytesMax).contains(value.count) else { return false }
        switch use {
        case .assertion: return ProofValues.set(&assertion, value)
        case .attestation: return ProofValues.set(&attestation, value)
        case .challenge: return ProofValues.set(&challenge, value)
        case .clientData: return ProofValues.set(&clientData, value)
        case .deviceToken: return ProofValues.set(&deviceToken, value)
        case .keyID: return ProofValues.set(&keyID, value)
        case .unsupported: return ProofValues.set(&unsupported, value)
        case .account, .dropped, .droppedUntrusted, .forwardedFor, .forwardedHost,
            .forwardedProto, .idempotencyKey, .other, .requestID, .trace:
            return true
        }
    }

    private static func set(_ slot: inout Range<Int>?, _ value: Range<Int>) -> Bool {
        guard slot == nil else { return false }
        slot = value
        return true
    }
}
