import GateBytes
import GateConfig
import GateCrypto
import GateProxy
import Testing

private let purposes = EnrolmentPurposes(
    makeHost(unmatched: .deny, modes: [.off, .enforce], purposes: ["export", "request"]))
private let keyText = Base64.encode(SHA256.hash([7]).array)
private let malformed = Refusal(.malformed, as: .badRequest)

@Suite("Enrolment: calls and purposes")
struct EnrolmentCallTests {
    @Test("each call has its path and its one method, everything else is none")
    func calls() {
        let documented: [(String, EnrolmentCall, String)] = [
            ("challenges", .challenges, "POST"), ("keys/status", .keysStatus, "POST"),
            ("keys", .keys, "POST"), ("keys/revoke", .keysRevoke, "POST"),
            ("challenge", .challenge, "GET"), ("verify", .verify, "POST"),
        ]
        #expect(EnrolmentCall.allCases.count == documented.count)
        for (path, call, method) in documented {
            #expect(EnrolmentCall(subpath: path) == call)
            #expect(EnrolmentCall(subpath: "/" + path) == call)
            #expect(call.method == method)
        }
        for path in ["", "/", "key", "keys/", "keys/x", "//keys", "challenges/1"] {
            #expect(EnrolmentCall(subpath: path) == nil)
        }
    }

    @Test("purposes are the reserved ones and those of the routes, whatever their mode")
    func purposeSet() throws {
        for purpose in ["attestation", "revoke", "export", "request"] {
            let body = Array(#"{"purpose":"\#(purpose)"}"#.utf8)
            #expect(try EnrolmentRequest.challenges(body, purposes).purpose == purpose)
        }
        for purpose in ["", "other", "Export", "unmatched", "attestation "] {
            let body = Array(#"{"purpose":"\#(purpose)"}"#.utf8)
            #expect(throws: malformed) { try EnrolmentRequest.challenges(body, purposes) }
        }
    }

    @Test("the purpose of unmatched requests counts where they are enforced")
    func unmatchedPurpose() throws {
        let body = Array(#"{"purpose":"unmatched"}"#.utf8)
        let enforced = EnrolmentPurposes(makeHost(unmatched: .enforce))
        #expect(try EnrolmentRequest.challenges(body, enforced).purpose == "unmatched")
    }

    @Test("an attestation's challenge lives a day, any other five minutes, unless configured")
    func lifetimes() {
        #expect(makeHost().challengeSeconds("attestation") == 86_400)
        #expect(makeHost().challengeSeconds("revoke") == 300)
        #expect(makeHost().challengeSeconds("request") == 300)
    }
}

@Suite("Enrolment: request bodies")
struct EnrolmentRequestTests {
    private func challenges(_ json: String) throws -> EnrolmentRequest.Challenges {
        try EnrolmentRequest.challenges(Array(json.utf8), purposes)
    }

    @Test("count is 1 to 16 or absent")
    func count() throws {
        #expect(try challenges(#"{"purpose":"request"}"#).count == nil)
        for count in [1, 2, 16] {
            #expect(try challenges(#"{"purpose":"request","count":\#(count)}"#).count == count)
        }
        for bad in [
            "0", "17", "-1", "1.5", "1e1", "\"2\"", "null", "true", "[]", "99999999999999999999",
        ] {
            #expect(throws: malformed) {
                try challenges(#"{"purpose":"request","count":\#(bad)}"#)
            }
        }
    }

    @Test("other members are ignored, duplicates and bad JSON are not")
    func strict() throws {
        #expect(try challenges(#"{"x":{"y":[1]},"purpose":"request"}"#).purpose == "request")
        for bad in [
            "", "{", "[]", "\"request\"", #"{"purpose":"request"} x"#, #"{"purpose":1}"#, "{}",
            #"{"purpose":"request","purpose":"request"}"#, #"{"purpose":"request",}"#,
            "\u{feff}" + #"{"purpose":"request"}"#,
        ] {
            #expect(throws: malformed) { try challenges(bad) }
        }
    }

    @Test("an enrolment has a key ID of 32 bytes, a challenge and an object in base64")
    func keys() throws {
        let body = #"{"keyID":"\#(keyText)","challengeID":"some-id","object":"AQID"}"#
        let request = try EnrolmentRequest.keys(Array(body.utf8))
        #expect(request.keyID == SHA256.hash([7]))
        #expect(text(request.challenge) == "some-id")
        #expect(request.object == [1, 2, 3])
        let url = Base64.encodeURL(SHA256.hash([7]).array)
        let other = #"{"keyID":"\#(url)","challengeID":"some-id","object":"AQID"}"#
        #expect(try EnrolmentRequest.keys(Array(other.utf8)) == request)
        for bad in [
            #"{"challengeID":"a","object":"AQID"}"#, #"{"keyID":"\#(keyText)","object":"AQID"}"#,
            #"{"keyID":"\#(keyText)","challengeID":"a"}"#,
            #"{"keyID":"AQID","challengeID":"a","object":"AQID"}"#,
            #"{"keyID":"!","challengeID":"a","object":"AQID"}"#,
            #"{"keyID":1,"challengeID":"a","object":"AQID"}"#,
            #"{"keyID":"\#(keyText)","challengeID":1,"object":"AQID"}"#,
            #"{"keyID":"\#(keyText)","challengeID":"a","object":"A"}"#,
            #"{"keyID":"\#(keyText)","challengeID":"a","object":[]}"#,
            #"{"keyID":"\#(keyText)","challengeID":"a","object":""}"#,
        ] {
            #expect(throws: malformed) { try EnrolmentRequest.keys(Array(bad.utf8)) }
        }
    }

    @Test("a body cut anywhere is refused")
    func cut() {
        let body = Array(#"{"keyID":"\#(keyText)","challengeID":"some-id","object":"AQID"}"#.utf8)
        for length in 0..<body.count {
            #expect(throws: malformed) { try EnrolmentRequest.keys(Array(body[..<length])) }
            #expect(throws: malformed) { try EnrolmentRequest.key(Array(body[..<length])) }
        }
    }

    @Test("status and revoke name a key")
    func key() throws {
        #expect(
            try EnrolmentRequest.key(Array(#"{"keyID":"\#(keyText)"}"#.utf8)) == SHA256.hash([7]))
        for bad in ["{}", #"{"keyID":"AQID"}"#, #"{"keyID":null}"#, #"{"key_id":"\#(keyText)"}"#] {
            #expect(throws: malformed) { try EnrolmentRequest.key(Array(bad.utf8)) }
        }
    }

    @Test("verify takes the key ID under either name, the challenge as text or base64 of it")
    func verify() throws {
        let value = "some-id.mac_-"
        let encoded = Base64.encode(Array(value.utf8))
        for name in ["key_id", "keyId"] {
            for challenge in [value, encoded] {
                let body =
                    #"{"\#(name)":"\#(keyText)","challenge":"\#(challenge)","attestation":"AQID"}"#
                let request = try EnrolmentRequest.verify(Array(body.utf8))
                #expect(request.keyID == SHA256.hash([7]))
                #expect(text(request.challenge) == value)
                #expect(request.object == [1, 2, 3])
            }
        }
        for bad in [
            #"{"challenge":"a.b","attestation":"AQID"}"#,
            #"{"keyID":"\#(keyText)","challenge":"a.b","attestation":"AQID"}"#,
            #"{"key_id":"\#(keyText)","keyId":"\#(keyText)","challenge":"a.b","attestation":"AQID"}"#,
            #"{"key_id":"\#(keyText)","attestation":"AQID"}"#,
            #"{"key_id":"\#(keyText)","challenge":"!","attestation":"AQID"}"#,
            #"{"key_id":"\#(keyText)","challenge":"a.b"}"#,
            #"{"key_id":"\#(keyText)","challenge":"a.b","attestation":"!"}"#,
        ] {
            #expect(throws: malformed) { try EnrolmentRequest.verify(Array(bad.utf8)) }
        }
    }

    @Test("the challenge by value is for the purpose of the query, attestation without one")
    func query() throws {
        func purpose(_ query: String?) throws -> String {
            try EnrolmentRequest.challengePurpose(query: query.map { Array($0.utf8) }, purposes)
        }
        #expect(try purpose(nil) == "attestation")
        #expect(try purpose("") == "attestation")
        #expect(try purpose("x=1&y") == "attestation")
        #expect(try purpose("purpose=export") == "export")
        #expect(try purpose("x=1&purpose=revoke&y=2") == "revoke")
        for bad in [
            "purpose=", "purpose", "purpose=other", "purpose=export&purpose=export",
            "purpose=%65xport", "purpose=export=1",
        ] {
            #expect(throws: malformed) { try purpose(bad) }
        }
    }
}
