package import AppAttest
package import AppAttestWire
package import GateBytes
package import GateConfig
package import GateHTTP

/// A proof whose fields are all there and well formed; nothing of it has been verified.
package struct Proof: Sendable {
    /// What was signed, by the route's binding.
    package enum Statement: Sendable {
        /// `body`: the body, and the text of the challenge that stands in it; nil where the route
        /// takes none.
        case body(challenge: [UInt8]?)
        /// `client_data`: the client data, and its exact bytes, whose SHA-256 was signed.
        case clientData(ClientData, bytes: [UInt8])
        /// `envelope`: the same, of a body that came with it.
        case envelope(ClientData, bytes: [UInt8])
        /// `request`: the text of a challenge, by id or by value; the rest is built from the
        /// request.
        case request(challenge: [UInt8])
    }

    /// The key that is said to have signed; nil where it may be any of the account's.
    package let keyID: Bytes32?
    /// The assertion, parsed as CBOR.
    package let assertion: AssertionObject
    /// What was signed.
    package let statement: Statement
    /// The attestation of a key that is not enrolled yet, well formed; nil without, and where the
    /// route takes none.
    package let attestation: [UInt8]?
}

/// What a request's proof fields say.
package struct ProofReading: Sendable {
    /// The proof, or why there is none.
    package enum Outcome: Sendable {
        /// No field that the binding uses: `proof_required`, or the route's fallback.
        case absent
        /// The fields are good so far; the rest is in the body.
        case inBody(BodyProof)
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

    /// Whether the proof comes with an attestation that the route takes.
    var bringsAttestation: Bool {
        switch outcome {
        case .absent, .malformed: return false
        case .inBody(let proof): return proof.bringsAttestation
        case .proof(let proof): return proof.attestation != nil
        }
    }
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

    /// What `head` says for a route of `binding`; `isInline` where it takes attestations.
    package static func read(
        _ head: RequestHead, _ fields: HostFields, _ binding: Route.Binding, isInline: Bool = false
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

        let reader = FieldReader(
            bytes: head.bytes, values: values, isKeyIDOptional: fields.isKeyIDOptional,
            isInline: isInline)
        let outcome: ProofReading.Outcome
        switch binding {
        case .body(let challenge): outcome = reader.readBody(challenge)
        case .clientData: outcome = reader.readClientData()
        case .envelope: outcome = reader.readEnvelope(head)
        case .request: outcome = reader.readRequest()
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
}

/// Where the values of the seven fields stand in a head.
struct ProofValues {
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
        case .account, .contentType, .dropped, .droppedUntrusted, .forwardedFor, .forwardedHost,
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
