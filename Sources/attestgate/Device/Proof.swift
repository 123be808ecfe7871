internal import AppAttestDevice
internal import AppAttestWire
internal import GateBytes
internal import GateCrypto

/// Signs requests as an app does (`protocol.md` §3).
enum Proof {
    /// How the client data is made.
    enum Binding: String, CaseIterable {
        case clientData = "client_data"
        case request
    }

    /// What is signed of a request.
    struct Subject {
        var method: String
        var target: String
        var body: [UInt8]

        /// The parts of `request`.
        init(_ request: HTTPRequest) {
            method = request.method
            target = request.target
            body = request.body
        }
    }

    /// The proof fields of a request, signed by `device`, whose counter goes up, or to `counter`.
    static func fields(
        _ subject: Subject, by device: inout Device, binding: Binding, challenge: Challenge,
        counter: UInt32? = nil
    ) -> [HTTPField] {
        let method = Array(subject.method.utf8)
        let target = Array(subject.target.utf8)
        let bodySHA256 = SHA256.hash(subject.body)
        let clientData: [UInt8]
        let rest: HTTPField
        switch binding {
        case .clientData:
            clientData = ClientData.encode(
                challengeID: challenge.id, challenge: challenge.bytes, method: method, path: target,
                bodySHA256: bodySHA256)
            rest = HTTPField(DefaultFieldNames.clientData, Base64.encode(clientData))
        case .request:
            clientData = RequestBinding.clientData(
                method: method, target: target, challengeID: challenge.id,
                challenge: challenge.bytes, bodySHA256: bodySHA256)
            rest = HTTPField(
                DefaultFieldNames.challenge, String(decoding: challenge.id, as: UTF8.self))
        }
        let assertion = device.assert(
            clientDataHash: SHA256.hash(clientData).array, counter: counter)
        return [
            HTTPField(DefaultFieldNames.keyID, Base64.encode(device.keyID.array)),
            HTTPField(DefaultFieldNames.assertion, Base64.encode(assertion)), rest,
        ]
    }
}
