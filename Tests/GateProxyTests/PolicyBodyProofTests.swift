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
    path: Array("/v1/a".utf8), bodySHA256: SHA256.hash([]))

private let assertion: [UInt8] =
    [0xa2, 0x69] + Array("signature".utf8) + [0x43, 1, 2, 3, 0x71]
    + Array("authenticatorData".utf8) + [0x58, 37] + [UInt8](repeating: 0, count: 37)

private let key = "App-Attest-Key-Id: \(Base64.encode(keyID.array))"
private let signed = "App-Attest-Assertion: \(Base64.encode(assertion))"
private let length = "Content-Length: 5"

private let pointed = Route.Binding.body(.pointer(["c"]))
private let unchallenged = Route.Binding.body(.none)

private func read(
    _ lines: [String], _ binding: Route.Binding, host: Host = makeHost(), isInline: Bool = false
) throws -> ProofReading.Outcome {
    ProofReader.read(
        try request("POST /v1/a", lines), makeFields(host), binding, isInline: isInline
    ).outcome
}

/// The outcome in a word.
private func word(_ outcome: ProofReading.Outcome) -> String {
    switch outcome {
    case .absent: "absent"
    case .inBody: "in body"
    case .malformed(let reason): reason.rawValue
    case .proof: "proof"
    }
}

private func word(_ outcome: BodyProof.Outcome) -> String {
    switch outcome {
    case .absent: "absent"
    case .malformed(let reason): reason.rawValue
    case .proof: "proof"
    case .sealed: "sealed"
    case .unreadable: "unreadable"
    }
}

/// A host that looks keys up by the account.
private var searching: Host {
    var host = makeHost()
    host.proof.isKeyIDOptional = true
    return host
}

private func inBody(_ outcome: ProofReading.Outcome) throws -> BodyProof {
    guard case .inBody(let proof) = outcome else { throw ExpectationFailedError() }
    return proof
}

@Suite("Proof: the body as client data")
struct BodyProofTests {
    @Test("key ID and assertion are needed, nothing else")
    func fields() throws {
        #expect(word(try read([key, signed], unchallenged)) == "proof")
        #expect(word(try read([key, signed], pointed)) == "in body")
        for binding in [pointed, unchallenged] {
            #expect(word(try read([], binding)) == "absent")
            #expect(word(try read([key], binding)) == "proof_incomplete")
            #expect(word(try read([signed], binding)) == "proof_incomplete")
            #expect(word(try read([key, signed, signed], binding)) == "proof_malformed")
            #expect(word(try read(["App-Attest-Challenge: x"], binding)) == "absent")
            let bad = "App-Attest-Client-Data: !"
            #expect(word(try read([key, signed, bad], binding)) == "proof_malformed")
            #expect(
                word(try read([key, "App-Attest-Assertion: oA=="], binding)) == "proof_malformed")
        }
    }

    @Test("the key ID may be left out where the account's keys are tried, in every binding")
    func keyIDOptional() throws {
        let data = "App-Attest-Client-Data: \(Base64.encode(clientData))"
        for (lines, binding) in [
            ([signed], pointed), ([signed], unchallenged), ([signed, data], .clientData),
            ([signed, "App-Attest-Challenge: a"], .request),
        ] {
            #expect(word(try read(lines, binding)) == "proof_incomplete")
            #expect(["proof", "in body"].contains(word(try read(lines, binding, host: searching))))
            let bad = "App-Attest-Key-Id: AAAA"
            #expect(
                word(try read(lines + [bad], binding, host: searching)) == "proof_malformed")
        }
        #expect(word(try read([key], unchallenged, host: searching)) == "proof_incomplete")
        guard case .proof(let proof) = try read([signed], unchallenged, host: searching) else {
            throw ExpectationFailedError()
        }
        #expect(proof.keyID == nil)
    }

    @Test("an attestation counts where the route takes one, and must be the CBOR of one there")
    func attestation() throws {
        let line = "App-Attest-Attestation: \(Base64.encode([0xa0]))"
        #expect(word(try read([line], unchallenged)) == "absent")
        #expect(word(try read([line], .request, isInline: true)) == "proof_incomplete")
        #expect(word(try read([key, signed, line], unchallenged)) == "proof")
        #expect(word(try read([key, signed, line], pointed, isInline: true)) == "proof_malformed")
        #expect(word(try read([key, signed], pointed, isInline: true)) == "in body")
    }

    @Test("the challenge is a string at the pointer, as it is or as base64")
    func challenge() throws {
        let proof = try inBody(try read([key, signed], pointed))
        func challenge(_ body: String) -> String? {
            guard case .proof(let whole) = proof.read(Array(body.utf8)),
                case .body(let challenge?) = whole.statement
            else { return nil }
            return text(challenge)
        }
        #expect(challenge(#"{"c":"id.mac"}"#) == "id.mac")
        #expect(challenge(#"{"c":"aWQubWFj"}"#) == "id.mac")
        #expect(challenge(#"{"c":""}"#) == "")
        for body in [
            "", "{", "{}", "[]", #"{"c":1}"#, #"{"c":["a.b"]}"#, #"{"c":"a b"}"#,
            #"{"c":"a.b","c":"a.b"}"#, #"{"d":{"c":"a.b"}}"#,
        ] {
            #expect(word(proof.read(Array(body.utf8))) == "client_data_malformed", "\(body)")
        }
    }
}

@Suite("Proof: the envelope")
struct EnvelopeTests {
    private static let members: [(String, [UInt8])] = [
        ("keyID", keyID.array), ("clientData", clientData), ("assertion", assertion),
        ("body", Array("inner".utf8)),
    ]

    private func text(_ members: [(String, String)]) -> [UInt8] {
        let pairs = members.map { "\"\($0.0)\":\($0.1)" }
        return Array("{\(pairs.joined(separator: ","))}".utf8)
    }

    private var good: [(String, String)] {
        Self.members.map { ($0.0, "\"\(Base64.encode($0.1))\"") }
    }

    private func proof(_ host: Host = makeHost()) throws -> BodyProof {
        try inBody(try read([length], .envelope, host: host))
    }

    @Test("the proof and the body it is for")
    func whole() throws {
        guard case .sealed(let read, let body) = try proof().read(text(good)),
            case .envelope(let parsed, let bytes) = read.statement
        else { throw ExpectationFailedError() }
        #expect(read.keyID == keyID)
        #expect(bytes == clientData)
        #expect(parsed.method == Array("POST".utf8))
        #expect(body == Array("inner".utf8))
        #expect(word(try proof().read(text(good.reversed() + [("x", "{}")]))) == "sealed")
        let empty = good.map { $0.0 == "body" ? ("body", "\"\"") : $0 }
        #expect(word(try proof().read(text(empty))) == "sealed")
    }

    @Test("no member of a proof is no proof, one that is missing makes it incomplete")
    func missing() throws {
        for body in ["", "{}", #"{"body":"AAAA"}"#, #"{"x":1}"#] {
            #expect(word(try proof().read(Array(body.utf8))) == "absent", "\(body)")
        }
        for (name, _) in good {
            let rest = good.filter { $0.0 != name }
            #expect(word(try proof().read(text(rest))) == "proof_incomplete", "\(name)")
            let found = word(try proof(searching).read(text(rest)))
            #expect(found == (name == "keyID" ? "sealed" : "proof_incomplete"), "\(name)")
        }
    }

    @Test("members that are not as they must be, each of them")
    func malformed() throws {
        for (name, value) in good {
            for bad in ["1", "null", "[\(value)]", "\"!\"", "\"A\"", "\" \(value.dropFirst())"] {
                let members = good.map { $0.0 == name ? (name, bad) : $0 }
                #expect(
                    word(try proof().read(text(members))) == "proof_malformed", "\(name) \(bad)")
            }
            guard name != "body" else { continue }
            let long = "\"\(String(repeating: "A", count: 8196))\""
            for bad in ["\"\"", long] {
                let members = good.map { $0.0 == name ? (name, bad) : $0 }
                #expect(word(try proof().read(text(members))) == "proof_malformed", "\(name)")
            }
        }
        #expect(word(try proof().read(text(good + [("body", "\"\"")]))) == "unreadable")
        let data = good.map { $0.0 == "clientData" ? ("clientData", "\"e30=\"") : $0 }
        #expect(word(try proof().read(text(data))) == "client_data_malformed")
    }

    @Test("every cut of an envelope is no JSON")
    func cuts() throws {
        let whole = text(good)
        for size in 1..<whole.count {
            #expect(word(try proof().read(Array(whole[..<size]))) == "unreadable")
        }
    }

    @Test(
        "what may not stand beside it",
        arguments: [
            key, signed, "App-Attest-Client-Data: e30=", "App-Attest-Challenge: a",
            "App-Attest-Attestation: AAAA", "Content-Encoding: gzip", "content-encoding:",
            "Content_Encoding: gzip", "Content-Digest: sha-256=:AAAA:", "Content.Digest: x",
        ])
    func beside(line: String) throws {
        #expect(word(try read([length, line], .envelope)) == "proof_malformed")
        #expect(word(try read([line], .envelope)) == "proof_malformed")
    }

    @Test("a request without a body has no proof; the two that are none may stand beside one")
    func without() throws {
        #expect(word(try read([], .envelope)) == "absent")
        #expect(word(try read(["Content-Length: 0"], .envelope)) == "absent")
        #expect(word(try read(["Transfer-Encoding: chunked"], .envelope)) == "in body")
        let others = ["App-Attest-Unsupported: ?1", "App-Attest-Device-Token: AAAA"]
        #expect(word(try read([length] + others, .envelope)) == "in body")
    }
}
