internal import AppAttestDevice
internal import AppAttestWire
internal import GateBytes
internal import GateCrypto

/// The calls that an app makes at a gate, for one client: one host, one account.
struct GateClient {
    private let http: HTTPClient
    private let authority: String
    /// The fields of every call, such as the account's.
    let fields: [HTTPField]

    init(_ endpoint: Endpoint, authority: String, fields: [HTTPField]) {
        http = HTTPClient(endpoint)
        self.authority = authority
        self.fields = fields
    }

    /// A request of this client; more fields and a body may be added.
    func request(_ method: String, _ target: String, body: [UInt8] = []) -> HTTPRequest {
        HTTPRequest(method, target, authority: authority, fields: fields, body: body)
    }

    /// Sends a request.
    func send(_ request: HTTPRequest) throws(CommandError) -> HTTPResponse {
        do throws(HTTPClientError) {
            return try http.send(request)
        } catch {
            throw .environment("\(request.method) \(request.target): \(error)")
        }
    }

    /// Asks the endpoints below `prefix` for a challenge.
    func challenge(prefix: String, purpose: String) throws(CommandError) -> Challenge {
        var json = JSONWriter()
        json.beginObject()
        json.member("purpose", purpose)
        json.endObject()
        let answer = try send(call(prefix, "challenges", json.bytes))
        guard answer.status == 200 else {
            throw .notHeld("no challenge: \(answer.summary)")
        }
        guard let challenge = Challenge(answer: answer.body) else {
            throw .notHeld("no challenge: the answer holds none")
        }
        return challenge
    }

    /// Attests the key of `device` over `challenge` and enrols it. `hashesText`: the app hashes the
    /// challenge's base64 text (`challenge_hash text`).
    func enrol(
        _ device: Device, prefix: String, challenge: Challenge, hashesText: Bool = false
    ) throws(CommandError) -> (request: HTTPRequest, response: HTTPResponse) {
        let attested =
            hashesText
            ? Array(Base64.encode(challenge.bytes.array).utf8) : challenge.bytes.array
        let object = device.attest(
            clientDataHash: SHA256.hash(attested).array, at: Now.seconds)
        var json = JSONWriter()
        json.beginObject()
        json.member("keyID", Base64.encode(device.keyID.array))
        json.member("challengeID", challenge.id)
        json.member("object", Base64.encode(object))
        json.endObject()
        let request = call(prefix, "keys", json.bytes)
        return (request, try send(request))
    }

    private func call(_ prefix: String, _ name: String, _ body: [UInt8]) -> HTTPRequest {
        var request = request("POST", "\(prefix)/\(name)", body: body)
        if fields.value("Content-Type") == nil {
            request.fields.append(HTTPField("Content-Type", "application/json"))
        }
        return request
    }
}

extension HTTPResponse {
    /// The `code` of a refusal; nil for anything else.
    var code: String? {
        // A body that is no JSON has no code.
        guard let members = try? JSONMembers.scan(body, named: ["code"]),
            case .string(let code) = members[0]
        else { return nil }
        return String(decoding: code, as: UTF8.self)
    }

    /// `401 challenge_required`, or the status and its phrase.
    var summary: String {
        "\(status) \(code ?? reason)".printable
    }

    /// The challenge for the client's next request.
    var nextChallenge: Challenge? {
        fields.value(DefaultFieldNames.nextChallenge).flatMap { Challenge(byValue: $0) }
    }
}
