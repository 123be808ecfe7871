import AppAttestWire
import GateBytes
import GateConfig
import GateCrypto
import GateHTTP
import GateProxy
import Testing

private let keyID = SHA256.hash([7])
private let clientData = ClientData.encode(
    challengeID: Array("some-id".utf8), challenge: SHA256.hash([1]), method: Array("POST".utf8),
    path: Array("/v1/a?b=1".utf8), bodySHA256: SHA256.hash([]))

/// A CBOR map of the two members an assertion has.
private func assertion(_ authenticatorData: Int = 37) -> [UInt8] {
    [0xa2, 0x69] + Array("signature".utf8) + [0x43, 1, 2, 3, 0x71]
        + Array("authenticatorData".utf8) + [0x58, UInt8(authenticatorData)]
        + [UInt8](repeating: 0, count: authenticatorData)
}

private func field(_ name: String, _ bytes: [UInt8]) -> String {
    "App-Attest-\(name): \(Base64.encode(bytes))"
}

private let key = field("Key-Id", keyID.array)
private let signed = field("Assertion", assertion())
private let data = field("Client-Data", clientData)
private let challenge = "App-Attest-Challenge: some-id"

private enum Seen: Equatable {
    case absent
    case inBody
    case malformed(Reason)
    case proof
}

private func read(
    _ lines: [String], _ binding: Route.Binding = .clientData, host: Host = makeHost()
) throws -> ProofReading {
    ProofReader.read(try request("POST /v1/a?b=1", lines), makeFields(host), binding)
}

private func seen(
    _ lines: [String], _ binding: Route.Binding = .clientData, host: Host = makeHost()
) throws -> Seen {
    switch try read(lines, binding, host: host).outcome {
    case .absent: return .absent
    case .inBody: return .inBody
    case .malformed(let reason): return .malformed(reason)
    case .proof: return .proof
    }
}

@Suite("Proof: the fields of client_data")
struct ProofReaderClientDataTests {
    @Test("all three fields are a proof, with the exact bytes that were signed")
    func whole() throws {
        guard case .proof(let proof) = try read([key, signed, data]).outcome else {
            Issue.record("no proof")
            return
        }
        #expect(proof.keyID == keyID)
        guard case .clientData(let parsed, let bytes) = proof.statement else {
            Issue.record("no client data")
            return
        }
        #expect(bytes == clientData)
        #expect(text(parsed.challengeID) == "some-id")
    }

    @Test("no field is no proof, one or two are incomplete")
    func incomplete() throws {
        #expect(try seen([]) == .absent)
        for lines in [[key], [signed], [data], [key, signed], [key, data], [signed, data]] {
            #expect(try seen(lines) == .malformed(.proofIncomplete), "\(lines.count)")
        }
    }

    @Test(
        "a doubled field is malformed, each of the seven",
        arguments: [
            key, signed, data, challenge, field("Attestation", [1]), "App-Attest-Unsupported: ?1",
            field("Device-Token", [1]),
        ])
    func doubled(line: String) throws {
        var lines = [key, signed, data].filter { $0 != line }
        #expect(try seen(lines + [line]) == .proof)
        lines += [line, line]
        #expect(try seen(lines) == .malformed(.proofMalformed))
        #expect(try seen([line, line]) == .malformed(.proofMalformed))
    }

    @Test(
        "an empty field is malformed, each of the seven",
        arguments: [
            "Key-Id", "Assertion", "Client-Data", "Challenge", "Attestation", "Unsupported",
            "Device-Token",
        ])
    func empty(name: String) throws {
        #expect(try seen(["App-Attest-\(name):"]) == .malformed(.proofMalformed))
        #expect(try seen(["App-Attest-\(name):  "]) == .malformed(.proofMalformed))
    }

    @Test(
        "8 KiB is the most of a field, 24 KiB of an attestation",
        arguments: [
            "Key-Id", "Assertion", "Client-Data", "Challenge", "Attestation", "Unsupported",
            "Device-Token",
        ])
    func tooLong(name: String) throws {
        let most = name == "Attestation" ? 24 * 1024 : 8 * 1024
        let over = String(repeating: "A", count: most + 4)
        #expect(
            try seen(
                [key, signed, data].filter { !$0.contains(name) } + ["App-Attest-\(name): \(over)"])
                == .malformed(.proofMalformed))
        let full = String(repeating: "A", count: most)
        // Of the fields that are only looked at, this much is good.
        if ["Challenge", "Attestation", "Device-Token"].contains(name) {
            #expect(try seen([key, signed, data, "App-Attest-\(name): \(full)"]) == .proof)
        }
    }

    @Test(
        "an assertion of exactly 8 KiB of text is judged by what it holds, one more by its length")
    func lengthBorder() throws {
        let long = ClientData.encode(
            challengeID: Array("some-id".utf8), challenge: SHA256.hash([1]),
            method: Array("POST".utf8), path: [UInt8](repeating: 97, count: 6144 - 186),
            bodySHA256: SHA256.hash([]))
        let pad = 6144 - long.count
        let exact = ClientData.encode(
            challengeID: Array("some-id".utf8), challenge: SHA256.hash([1]),
            method: Array("POST".utf8), path: [UInt8](repeating: 97, count: 6144 - 186 + pad),
            bodySHA256: SHA256.hash([]))
        #expect(Base64.encode(exact).utf8.count == 8192)
        #expect(try seen([key, signed, field("Client-Data", exact)]) == .proof)
    }

    @Test("base64 and base64url, padded or not, are all read")
    func alphabets() throws {
        let url = Base64.encodeURL(keyID.array)
        #expect(try seen(["App-Attest-Key-Id: \(url)", signed, data]) == .proof)
        #expect(try seen(["App-Attest-Key-Id: \(url)=", signed, data]) == .proof)
    }

    @Test(
        "a field that is not base64 is malformed, each that has to be",
        arguments: [
            "Key-Id", "Assertion", "Client-Data", "Attestation", "Device-Token",
        ])
    func notBase64(name: String) throws {
        let others = [key, signed, data].filter { !$0.hasPrefix("App-Attest-\(name):") }
        for bad in ["!", "A", "AA=A", "AB==", "AA AA", "A+_A"] {
            #expect(
                try seen(others + ["App-Attest-\(name): \(bad)"]) == .malformed(.proofMalformed),
                "\(bad)")
        }
    }

    @Test("a key ID that is not 32 bytes is malformed")
    func keyIDLength() throws {
        for length in [0, 1, 31, 33, 64] {
            let short = field("Key-Id", [UInt8](repeating: 1, count: length))
            #expect(try seen([short, signed, data]) == .malformed(.proofMalformed))
        }
    }

    @Test("an assertion cut anywhere, or with more behind it, is malformed")
    func assertionCut() throws {
        let whole = assertion()
        for length in 1..<whole.count {
            let cut = field("Assertion", Array(whole[..<length]))
            #expect(try seen([key, cut, data]) == .malformed(.proofMalformed), "\(length)")
        }
        #expect(
            try seen([key, field("Assertion", whole + [0]), data]) == .malformed(.proofMalformed))
    }

    @Test("an assertion of well-formed CBOR is no fault of the fields, however short its data")
    func assertionShort() throws {
        #expect(try seen([key, field("Assertion", assertion(36)), data]) == .proof)
    }

    @Test("client data cut anywhere is malformed")
    func clientDataCut() throws {
        for length in 1..<clientData.count {
            let cut = field("Client-Data", Array(clientData[..<length]))
            #expect(
                try seen([key, signed, cut]) == .malformed(.clientDataMalformed), "\(length)")
        }
    }

    @Test("client data without a required member, or with one that is no string, is malformed")
    func clientDataMembers() throws {
        let members = [
            ("challengeID", "\"x\""), ("challenge", "\"AAAA\""), ("method", "\"GET\""),
            ("path", "\"/\""), ("bodySHA256", "\"AAAA\""),
        ]
        func json(_ members: [(String, String)]) -> String {
            let text = "{" + members.map { "\"\($0)\":\($1)" }.joined(separator: ",") + "}"
            return field("Client-Data", Array(text.utf8))
        }
        #expect(try seen([key, signed, json(members)]) == .proof)
        for index in members.indices {
            var without = members
            without.remove(at: index)
            #expect(try seen([key, signed, json(without)]) == .malformed(.clientDataMalformed))
            for value in ["1", "null", "[]", "{}", "true"] {
                var other = members
                other[index].1 = value
                #expect(try seen([key, signed, json(other)]) == .malformed(.clientDataMalformed))
            }
            #expect(
                try seen([key, signed, json(members + [members[index]])])
                    == .malformed(.clientDataMalformed))
        }
    }

    @Test("fields the binding does not use are ignored unless malformed")
    func unused() throws {
        let attestation = field("Attestation", [1, 2])
        #expect(try seen([key, signed, data, challenge, attestation]) == .proof)
        #expect(try seen([challenge]) == .absent)
        #expect(try seen([attestation]) == .absent)
        #expect(
            try seen([key, signed, data, "App-Attest-Challenge:"]) == .malformed(.proofMalformed))
        #expect(
            try seen([key, signed, data, "App-Attest-Attestation: !"])
                == .malformed(.proofMalformed))
    }

    @Test("names are read in any case, but not in the spellings that fold to them")
    func spelling() throws {
        #expect(
            try seen([key, signed, data].map { $0.replacing("App-Attest", with: "app-attest") })
                == .proof)
        let host = makeHost(underscores: .keep)
        let folded = [key, signed, data].map { $0.replacing("App-Attest-", with: "App_Attest_") }
        #expect(try seen(folded, host: host) == .absent)
        #expect(try seen([key, signed, data] + folded, host: host) == .proof)
    }

    @Test("renamed fields are read under their names, the default ones then are not")
    func renamed() throws {
        let host = makeHost(keyIDField: "X-Key")
        #expect(try seen([key, signed, data], host: host) == .malformed(.proofIncomplete))
        let renamed = key.replacing("App-Attest-Key-Id", with: "X-Key")
        #expect(try seen([renamed, signed, data], host: host) == .proof)
    }
}

@Suite("Proof: the fields of request")
struct ProofReaderRequestTests {
    @Test("key, assertion and challenge are a proof, the challenge's text as sent")
    func whole() throws {
        guard case .proof(let proof) = try read([key, signed, challenge], .request).outcome,
            case .request(let sent) = proof.statement
        else {
            Issue.record("no proof")
            return
        }
        #expect(text(sent) == "some-id")
    }

    @Test("no field is no proof, one or two are incomplete")
    func incomplete() throws {
        #expect(try seen([], .request) == .absent)
        for lines in [
            [key], [signed], [challenge], [key, signed], [key, challenge], [signed, challenge],
        ] {
            #expect(try seen(lines, .request) == .malformed(.proofIncomplete))
        }
    }

    @Test("a challenge of any text is well formed: it is judged as a challenge")
    func anyChallenge() throws {
        #expect(try seen([key, signed, "App-Attest-Challenge: !?"], .request) == .proof)
    }

    @Test("a bad key ID or assertion is malformed")
    func malformed() throws {
        let short = field("Key-Id", [1])
        #expect(try seen([short, signed, challenge], .request) == .malformed(.proofMalformed))
        let cut = field("Assertion", [0xa2])
        #expect(try seen([key, cut, challenge], .request) == .malformed(.proofMalformed))
    }

    @Test("client data beside it is ignored unless it is no base64")
    func unused() throws {
        #expect(try seen([key, signed, challenge, data], .request) == .proof)
        let noJSON = field("Client-Data", [1])
        #expect(try seen([key, signed, challenge, noJSON], .request) == .proof)
        #expect(try seen([data], .request) == .absent)
        #expect(
            try seen([key, signed, challenge, "App-Attest-Client-Data: !"], .request)
                == .malformed(.proofMalformed))
    }
}

@Suite("Proof: unsupported and device token")
struct ProofReaderFallbackTests {
    @Test("?1 is told, ?0 is absent, all else malformed")
    func flag() throws {
        #expect(try read(["App-Attest-Unsupported: ?1"]).isUnsupported)
        #expect(!(try read(["App-Attest-Unsupported: ?0"]).isUnsupported))
        #expect(!(try read([]).isUnsupported))
        for bad in ["1", "?2", "?1;a", "? 1", "true", "?11", "?"] {
            #expect(try seen(["App-Attest-Unsupported: \(bad)"]) == .malformed(.proofMalformed))
        }
    }

    @Test("neither is a proof, and a proof beside them is read")
    func beside() throws {
        let token = field("Device-Token", [1, 2, 3])
        let alone = try read(["App-Attest-Unsupported: ?1", token])
        guard case .absent = alone.outcome else {
            Issue.record("counted as proof")
            return
        }
        #expect(alone.deviceToken == [1, 2, 3])
        #expect(alone.isUnsupported)
        let reading = try read(["App-Attest-Unsupported: ?1", token, key, signed, data])
        guard case .proof = reading.outcome else {
            Issue.record("proof not read")
            return
        }
        #expect(reading.deviceToken == [1, 2, 3])
    }
}

@Suite("Signed request: what client data says")
struct SignedRequestTests {
    private func clientData(
        method: String = "POST", path: String = "/v1/a?b=1", operationID: String? = nil
    ) throws -> ClientData {
        try ClientData.parse(
            ClientData.encode(
                challengeID: [], challenge: Bytes32(), method: Array(method.utf8),
                path: Array(path.utf8), bodySHA256: SHA256.hash([5]),
                operationID: operationID.map { Array($0.utf8) }))
    }

    @Test("method and target agree byte for byte, or the reason is which does not")
    func mismatch() throws {
        let head = try request("POST /v1/a?b=1")
        #expect(SignedRequest.mismatch(try clientData(), head) == nil)
        for method in ["post", "PUT", "", "POST "] {
            #expect(SignedRequest.mismatch(try clientData(method: method), head) == .methodMismatch)
        }
        for path in [
            "/v1/a", "/v1/a?b=2", "/v1/a?b=1&c", "/v1/A?b=1", "", "/v1/a?b=1 ", "/v1/%61?b=1",
        ] {
            #expect(SignedRequest.mismatch(try clientData(path: path), head) == .targetMismatch)
        }
        #expect(
            SignedRequest.mismatch(try clientData(method: "GET", path: "/x"), head)
                == .methodMismatch)
    }

    @Test("a query that is there but empty is not the same as none")
    func emptyQuery() throws {
        let head = try request("POST /v1/a?")
        #expect(SignedRequest.mismatch(try clientData(path: "/v1/a"), head) == .targetMismatch)
        #expect(SignedRequest.mismatch(try clientData(path: "/v1/a?"), head) == nil)
    }

    @Test("the signed target of an absolute-form request is its path and query")
    func absoluteForm() throws {
        let head = try request("POST http://api.example.com/v1/a?b=1")
        #expect(SignedRequest.mismatch(try clientData(), head) == nil)
    }

    @Test("an operation id is 1 to 128 visible ASCII characters, or rejected, not malformed")
    func operationID() throws {
        #expect(try SignedRequest.operationID(try clientData()) == nil)
        #expect(
            try SignedRequest.operationID(try clientData(operationID: "op-1"))
                == Array("op-1".utf8))
        let longest = String(repeating: "x", count: 128)
        #expect(
            try SignedRequest.operationID(try clientData(operationID: longest))?.count == 128)
        for bad in ["", "a b", longest + "x"] {
            #expect(throws: Refusal(.clientDataMalformed, as: .rejected)) {
                try SignedRequest.operationID(try clientData(operationID: bad))
            }
        }
        let number = try ClientData.parse(
            Array(
                #"{"challengeID":"","challenge":"","method":"","path":"","bodySHA256":"","operationID":1}"#
                    .utf8))
        #expect(throws: Refusal(.clientDataMalformed, as: .rejected)) {
            try SignedRequest.operationID(number)
        }
    }

    @Test("only the hash that was signed is the body's; a hash of another length is nobody's")
    func body() throws {
        let data = try clientData()
        #expect(SignedRequest.isBody(SHA256.hash([5]), of: data))
        #expect(!SignedRequest.isBody(SHA256.hash([6]), of: data))
        for length in [0, 31, 33] {
            let hash = Base64.encode([UInt8](repeating: 0, count: length))
            let json =
                #"{"challengeID":"","challenge":"","method":"","path":"","bodySHA256":"\#(hash)"}"#
            let other = try ClientData.parse(Array(json.utf8))
            #expect(!SignedRequest.isBody(Bytes32(), of: other))
        }
    }
}

@Suite("Proof: the key ID alone")
struct ProofReaderKeyIDTests {
    private func found(_ lines: [String]) throws -> Bytes32? {
        ProofReader.keyID(try request("POST /v1/a", lines), makeFields())
    }

    @Test("it is read where it is single and well formed, whatever the rest is")
    func whole() throws {
        #expect(try found([key]) == keyID)
        #expect(try found([key, "App-Attest-Assertion: ?"]) == keyID)
    }

    @Test("otherwise there is none")
    func none() throws {
        #expect(try found([]) == nil)
        #expect(try found([key, key]) == nil)
        #expect(try found(["App-Attest-Key-Id: "]) == nil)
        #expect(try found(["App-Attest-Key-Id: \(Base64.encode([1, 2, 3]))"]) == nil)
        #expect(try found([key.replacing("-Key-Id", with: "_Key_Id")]) == nil)
    }
}
