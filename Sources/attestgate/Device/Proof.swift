internal import AppAttestDevice
internal import AppAttestWire
internal import GateBytes
internal import GateCrypto

/// How an app signs its requests, and what of it travels (`protocol.md` §3).
struct ProofStyle: Equatable {
    /// How the client data is made.
    var binding = Proof.Binding.clientData
    /// With the binding `body`: where the challenge stands in it; nil where there is none.
    var pointer: BodyPointer?
    /// Whether the key's attestation, over the same challenge, comes with the request.
    var isInline = false
    /// Whether the key ID is sent.
    var hasKeyID = true
    /// The name of the assertion's field.
    var assertionField = DefaultFieldNames.assertion

    /// Whether a challenge is signed.
    var needsChallenge: Bool { binding != .body || pointer != nil }
}

/// Signs requests as an app does (`protocol.md` §3).
enum Proof {
    /// How the client data is made.
    enum Binding: String, CaseIterable {
        case body
        case clientData = "client_data"
        case envelope
        case request
    }

    /// `unsigned` with its proof, signed by `device`, whose counter goes up, or to `counter`.
    /// - Parameter challenge: Nil only where the style needs none. With the binding `body` it is in
    ///   the body already.
    static func sign(
        _ unsigned: HTTPRequest, by device: inout Device, _ style: ProofStyle,
        challenge: Challenge?, counter: UInt32? = nil
    ) -> HTTPRequest {
        var request = unsigned
        let clientData = clientData(request, style.binding, challenge)
        let assertion = device.assert(
            clientDataHash: SHA256.hash(clientData).array, counter: counter)
        guard style.binding != .envelope else {
            request.body = envelope(unsigned.body, clientData, assertion, device, style)
            if request.fields.value("Content-Type") == nil {
                request.fields.append(HTTPField("Content-Type", "application/json"))
            }
            return request
        }
        if style.hasKeyID {
            request.fields.append(
                HTTPField(DefaultFieldNames.keyID, Base64.encode(device.keyID.array)))
        }
        request.fields.append(HTTPField(style.assertionField, Base64.encode(assertion)))
        switch style.binding {
        case .body, .envelope: break
        case .clientData:
            request.fields.append(
                HTTPField(DefaultFieldNames.clientData, Base64.encode(clientData)))
        case .request:
            request.fields.append(
                HTTPField(
                    DefaultFieldNames.challenge,
                    String(decoding: challenge?.id ?? [], as: UTF8.self)))
        }
        if style.isInline, let challenge {
            request.fields.append(attestation(of: device, style.binding, challenge))
        }
        return request
    }

    /// What is signed.
    private static func clientData(
        _ request: HTTPRequest, _ binding: Binding, _ challenge: Challenge?
    ) -> [UInt8] {
        guard binding != .body, let challenge else { return request.body }
        let method = Array(request.method.utf8)
        let target = Array(request.target.utf8)
        let bodySHA256 = SHA256.hash(request.body)
        guard binding == .request else {
            return ClientData.encode(
                challengeID: challenge.id, challenge: challenge.bytes, method: method,
                path: target, bodySHA256: bodySHA256)
        }
        return RequestBinding.clientData(
            method: method, target: target, challengeID: challenge.id, challenge: challenge.bytes,
            bodySHA256: bodySHA256)
    }

    private static func envelope(
        _ body: [UInt8], _ clientData: [UInt8], _ assertion: [UInt8], _ device: Device,
        _ style: ProofStyle
    ) -> [UInt8] {
        var json = JSONWriter()
        json.beginObject()
        if style.hasKeyID { json.member("keyID", Base64.encode(device.keyID.array)) }
        json.member("clientData", Base64.encode(clientData))
        json.member("assertion", Base64.encode(assertion))
        json.member("body", Base64.encode(body))
        json.endObject()
        return json.bytes
    }

    /// The attestation for the form in which the challenge travels.
    private static func attestation(
        of device: Device, _ binding: Binding, _ challenge: Challenge
    ) -> HTTPField {
        let hashed = binding == .body ? Array(challenge.byValue.utf8) : challenge.bytes.array
        let object = device.attest(clientDataHash: SHA256.hash(hashed).array, at: Now.seconds)
        return HTTPField(DefaultFieldNames.attestation, Base64.encode(object))
    }
}
