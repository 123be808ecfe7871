import AppAttest
import AppAttestWire
import Foundation
import GateBytes
import GateCrypto
import Testing
import attestgate

private let appID = "TEAM123456.com.example.app"

private func newDevice(_ scratch: Scratch, _ arguments: String...) -> Run {
    Run(["device", "new", "--app-id", appID, "--state", scratch.file("state")] + arguments)
}

@Suite("Device: state")
struct DeviceStateTests {
    @Test("a new device is written for its owner alone, its root for all, and the root is named")
    func new() throws {
        let scratch = Scratch()
        let run = newDevice(scratch)
        #expect(run.code == .done)
        #expect(run.output.hasSuffix("    root file:\(scratch.file("state.root.pem"))\n"))
        func mode(_ name: String) throws -> Int {
            let attributes = try FileManager.default.attributesOfItem(atPath: scratch.file(name))
            return attributes[.posixPermissions] as? Int ?? 0
        }
        #expect(try mode("state") == 0o600)
        #expect(try mode("state.root.pem") & 0o600 == 0o600)
        let pem = try String(contentsOfFile: scratch.file("state.root.pem"), encoding: .utf8)
        #expect(throws: Never.self) { try TrustRoot(pem: Array(pem.utf8)) }
        #expect(try FileManager.default.contentsOfDirectory(atPath: scratch.path).count == 2)
    }

    @Test("a device that is there is replaced by --force alone")
    func existing() {
        let scratch = Scratch()
        let first = newDevice(scratch, "--json").text("keyID")
        let refused = newDevice(scratch)
        #expect(refused.code == .environment)
        #expect(refused.errors.contains("exists; name another with --state"))
        #expect(
            Run(
                "device", "attest", "--state", scratch.file("state"), "--challenge", "AAAA",
                "--json"
            ).text("keyID") == first)
        #expect(newDevice(scratch, "--force", "--json").text("keyID") != first)
    }

    @Test("two devices share a root where asked for")
    func sharedRoot() throws {
        let scratch = Scratch()
        _ = newDevice(scratch)
        let run = Run(
            "device", "new", "--app-id", appID, "--state", scratch.file("other"),
            "--root-of", scratch.file("state"))
        #expect(run.code == .done)
        let first = try String(contentsOfFile: scratch.file("state.root.pem"), encoding: .utf8)
        let second = try String(contentsOfFile: scratch.file("other.root.pem"), encoding: .utf8)
        #expect(first == second)
    }

    @Test("the counter goes up with every assertion, over runs, and where it is sent")
    func counter() {
        let scratch = Scratch()
        _ = newDevice(scratch)
        func assert(_ arguments: String...) -> Int {
            let run = Run(
                [
                    "device", "assert", "--state", scratch.file("state"), "--client-data",
                    "AAAA", "--json",
                ] + arguments)
            return run.json["signCounter"] as? Int ?? 0
        }
        #expect(assert() == 1)
        #expect(assert() == 2)
        #expect(assert("--counter", "41") == 41)
        #expect(assert() == 42)
    }

    @Test("gaps stay within their bound")
    func gaps() {
        let scratch = Scratch()
        _ = newDevice(scratch, "--counter-gap", "3")
        var last = 0
        for _ in 0..<20 {
            let run = Run(
                "device", "assert", "--state", scratch.file("state"), "--client-data",
                "AAAA", "--json")
            let counter = run.json["signCounter"] as? Int ?? 0
            #expect((1...4).contains(counter - last))
            last = counter
        }
    }

    @Test("client data comes from a file as from the command line; --raw gives the bytes")
    func sources() throws {
        let scratch = Scratch()
        let key = newDevice(scratch, "--json").text("publicKey")
        let path = scratch.write("data", "\u{0}\u{0}\u{0}")
        let run = Run(
            "device", "assert", "--state", scratch.file("state"), "--client-data",
            "@" + path, "--raw")
        #expect(run.bytes.first == 0xa2)
        #expect(
            Run(
                [
                    "verify", "assertion", "-", "--app-id", appID, "--public-key", key,
                    "--client-data", "AAAA",
                ], input: run.bytes
            ).code == .done)
    }

    @Test("a state that is missing, or is something else, is told apart")
    func badState() {
        let scratch = Scratch()
        let missing = Run(
            "device", "attest", "--state", scratch.file("none"), "--challenge", "AAAA")
        #expect(missing.code == .environment)
        #expect(missing.errors.contains("no such file; make a device with attestgate device new"))
        for text in ["", "hello\n", "attestgate-device 1\n", "attestgate-device 2\n"] {
            let path = scratch.write("bad", text)
            let run = Run("device", "attest", "--state", path, "--challenge", "AAAA")
            #expect(run.code == .environment)
            #expect(run.errors.contains("not the state of a device"))
        }
    }
}

private func answer(
    _ status: String, _ body: String = "", next: String? = nil, type: String = "application/json"
) -> String {
    let field = next.map { "App-Attest-Next-Challenge: \($0)\r\n" } ?? ""
    return "HTTP/1.1 \(status)\r\nContent-Type: \(type)\r\n\(field)"
        + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
}

private let mac = Array(repeating: UInt8(7), count: 32)
private func issued(_ id: String) -> String {
    answer("200 OK", #"{"id":"\#(id)","bytes":"\#(Base64.encode(mac))","expiresIn":300}"#)
}
private func byValue(_ id: String) -> String { "\(id).\(Base64.encodeURL(mac))" }
private let required = #"{"status":401,"code":"challenge_required"}"#

/// A request that the device sent, taken apart.
private struct Sent {
    let line: String
    let fields: [String: String]
    let body: [UInt8]

    init(_ text: String) {
        let parts = text.components(separatedBy: "\r\n\r\n")
        let lines = parts[0].components(separatedBy: "\r\n")
        line = lines[0]
        body = Array(parts.dropFirst().joined(separator: "\r\n\r\n").utf8)
        fields = Dictionary(
            lines.dropFirst().compactMap { line in
                line.firstRange(of: ": ").map {
                    (String(line[..<$0.lowerBound]), String(line[$0.upperBound...]))
                }
            }, uniquingKeysWith: { $0 + "," + $1 })
    }

    func decoded(_ name: String) -> [UInt8] { Base64.decode(fields[name] ?? "!") ?? [] }

    func counter(
        _ publicKey: String, clientData: [UInt8], previous: UInt32 = 0,
        field: String = "App-Attest-Assertion"
    ) throws -> UInt32 {
        let key = try #require(PublicKey(x963: Base64.decode(publicKey) ?? []))
        return try Assertion.verify(
            object: decoded(field), clientData: clientData, publicKey: key,
            appID: appID, previousCounter: previous
        ).signCounter
    }
}

@Suite("Device: requests")
struct DeviceRequestTests {
    private let scratch = Scratch()
    private let keyID: String
    private let publicKey: String

    init() {
        let run = newDevice(scratch, "--json")
        keyID = run.text("keyID")
        publicKey = run.text("publicKey")
    }

    private func request(_ server: ScriptedServer, _ arguments: String...) -> Run {
        request(server, arguments)
    }

    private func request(_ server: ScriptedServer, _ arguments: [String]) -> Run {
        Run(
            [
                "device", "request", "POST", "http://gate.test/v1/a?b=%2f", "--connect",
                "127.0.0.1:\(server.port)", "--state", scratch.file("state"),
            ] + arguments)
    }

    @Test("the client data says method, target, body and challenge, and is signed")
    func clientData() throws {
        let server = ScriptedServer(issued("id1"), answer("200 OK", "done"))
        let run = request(server, "-d", "body", "-H", "X-Account-Id: alice")
        #expect(run.code == .done)
        #expect(run.output == "done\n")
        let challenge = Sent(server.request(0))
        #expect(challenge.line == "POST /v1/app-attest/challenges HTTP/1.1")
        #expect(challenge.fields["Host"] == "gate.test")
        #expect(challenge.fields["X-Account-Id"] == "alice")
        #expect(challenge.body == Array(#"{"purpose":"request"}"#.utf8))
        let sent = Sent(server.request(1))
        #expect(sent.line == "POST /v1/a?b=%2f HTTP/1.1")
        #expect(sent.fields["App-Attest-Key-Id"] == keyID)
        #expect(sent.fields["X-Account-Id"] == "alice")
        #expect(sent.body == Array("body".utf8))
        let bytes = sent.decoded("App-Attest-Client-Data")
        let data = try ClientData.parse(bytes)
        #expect(data.challengeID == Array("id1".utf8))
        #expect(data.challenge == mac)
        #expect(data.method == Array("POST".utf8))
        #expect(data.path == Array("/v1/a?b=%2f".utf8))
        #expect(data.bodySHA256 == SHA256.hash(Array("body".utf8)).array)
        #expect(try sent.counter(publicKey, clientData: bytes) == 1)
    }

    @Test("with the binding request only the challenge travels")
    func requestBinding() throws {
        let server = ScriptedServer(issued("id1"), answer("204 No Content"))
        #expect(request(server, "--binding", "request", "--purpose", "pay").code == .done)
        #expect(Sent(server.request(0)).body == Array(#"{"purpose":"pay"}"#.utf8))
        let sent = Sent(server.request(1))
        #expect(sent.fields["App-Attest-Challenge"] == "id1")
        #expect(sent.fields["App-Attest-Client-Data"] == nil)
        let empty = Base64.encode(SHA256.hash([]).array)
        let data = "attestgate-v1\nPOST\n/v1/a?b=%2f\nid1\n\(Base64.encode(mac))\n\(empty)"
        #expect(try sent.counter(publicKey, clientData: Array(data.utf8)) == 1)
    }

    @Test("with the binding body the body is signed, the challenge put into it or none asked for")
    func bodyBinding() throws {
        let server = ScriptedServer(issued("id1"), answer("200 OK"), answer("200 OK"))
        let arguments = ["--binding", "body", "--no-key-id", "--assertion-field", "X-App"]
        #expect(
            request(server, arguments + ["-d", #" {"a":1}"#, "--challenge-pointer", "/p~1/c"]).code
                == .done)
        let sent = Sent(server.request(1))
        let body = #" {"p/":{"c":"\#(byValue("id1"))"},"a":1}"#
        #expect(String(decoding: sent.body, as: UTF8.self) == body)
        #expect(sent.fields["App-Attest-Key-Id"] == nil)
        #expect(sent.fields["App-Attest-Assertion"] == nil)
        #expect(sent.fields["X-App"] != nil)
        #expect(
            try sent.counter(publicKey, clientData: Array(body.utf8), field: "X-App") == 1)
        #expect(request(server, ["--binding", "body", "-d", "raw"]).code == .done)
        let raw = Sent(server.request(2))
        #expect(raw.line == "POST /v1/a?b=%2f HTTP/1.1")
        #expect(try raw.counter(publicKey, clientData: Array("raw".utf8)) == 2)
    }

    @Test("with the binding envelope all is in one JSON object, and no field")
    func envelope() throws {
        let server = ScriptedServer(issued("id1"), answer("200 OK"))
        #expect(request(server, "--binding", "envelope", "-d", "inner").code == .done)
        let sent = Sent(server.request(1))
        #expect(sent.fields["App-Attest-Key-Id"] == nil)
        #expect(sent.fields["App-Attest-Assertion"] == nil)
        #expect(sent.fields["Content-Type"] == "application/json")
        let members = try JSONMembers.scan(
            sent.body, named: ["keyID", "clientData", "assertion", "body"]
        ).map { member -> [UInt8] in
            guard case .string(let text)? = member else { return [] }
            return Base64.decode(text) ?? []
        }
        #expect(Base64.encode(members[0]) == keyID)
        #expect(members[3] == Array("inner".utf8))
        let data = try ClientData.parse(members[1])
        #expect(data.bodySHA256 == SHA256.hash(Array("inner".utf8)).array)
    }

    @Test("an attestation that comes along is over the same challenge, in the form that travels")
    func inline() throws {
        let server = ScriptedServer(
            issued("id1"), answer("200 OK", next: byValue("id2")), issued("id3"),
            answer("200 OK"))
        #expect(request(server, "--inline").code == .done)
        #expect(Sent(server.request(0)).body == Array(#"{"purpose":"attestation"}"#.utf8))
        #expect(!Sent(server.request(1)).decoded("App-Attest-Attestation").isEmpty)
        // What the answer brought is for the route, not for another attestation.
        #expect(
            request(server, "--inline", "--binding", "body", "--challenge-pointer", "/c").code
                == .done)
        #expect(Sent(server.request(2)).body == Array(#"{"purpose":"attestation"}"#.utf8))
    }

    @Test(
        "options that do not go together are a fault of use",
        arguments: [
            ["--challenge-pointer", "/c"], ["--binding", "body", "--challenge-pointer", "c"],
            ["--binding", "body", "--challenge-pointer", "/~2"],
            ["--inline", "--binding", "envelope"], ["--inline", "--binding", "body"],
        ])
    func styleFaults(arguments: [String]) {
        let server = ScriptedServer(issued("id1"))
        #expect(request(server, arguments).code == .usage)
    }

    @Test(
        "a body that cannot take the challenge is a fault of use",
        arguments: ["text", "[]", #"{"c":1}"#, #"{"\u0063":1}"#])
    func bodyFaults(body: String) {
        let server = ScriptedServer(issued("id1"))
        let arguments = ["--binding", "body", "--challenge-pointer", "/c", "-d", body]
        #expect(request(server, arguments).code == .usage)
    }

    @Test("the challenge of an answer is used next, once, by the same client for the same purpose")
    func nextChallenge() throws {
        let server = ScriptedServer(
            issued("id1"), answer("200 OK", next: byValue("id2")),
            answer("200 OK"), issued("id3"), answer("200 OK", next: byValue("id4")),
            issued("id5"), answer("200 OK", next: byValue("id6")),
            issued("id7"), answer("200 OK", next: byValue("id8")),
            issued("id9"), answer("200 OK"))
        func challengeID(_ index: Int) throws -> String {
            let data = Sent(server.request(index)).decoded("App-Attest-Client-Data")
            return String(decoding: try ClientData.parse(data).challengeID, as: UTF8.self)
        }
        _ = request(server)
        _ = request(server)
        #expect(try challengeID(2) == "id2")
        _ = request(server)
        #expect(try challengeID(4) == "id3")
        _ = request(server, "-H", "X-Account-Id: bob")
        #expect(try challengeID(6) == "id5")
        _ = request(server, "-H", "X-Account-Id: bob", "--purpose", "pay")
        #expect(try challengeID(8) == "id7")
        _ = request(server, "-H", "X-Account-Id: bob", "--purpose", "pay", "--fresh")
        #expect(try challengeID(10) == "id9")
    }

    @Test("a remembered challenge that has become stale is replaced by the answer's, once")
    func retry() throws {
        let server = ScriptedServer(
            issued("id1"), answer("200 OK", next: byValue("id2")),
            answer("401 Unauthorized", required, next: byValue("id3")), answer("200 OK", "good"),
            answer("401 Unauthorized", required, next: byValue("id5")))
        _ = request(server)
        let run = request(server)
        #expect(run.code == .done)
        #expect(run.output == "good\n")
        let first = Sent(server.request(2)).decoded("App-Attest-Client-Data")
        let second = Sent(server.request(3)).decoded("App-Attest-Client-Data")
        #expect(try ClientData.parse(first).challengeID == Array("id2".utf8))
        #expect(try ClientData.parse(second).challengeID == Array("id3".utf8))
        #expect(
            try Sent(server.request(3)).counter(publicKey, clientData: second, previous: 2) == 3)
        let given = request(server, "--challenge", byValue("id4"))
        #expect(given.code == .notHeld)
        #expect(given.output == required + "\n")
        #expect(server.requests.count == 5)
    }

    @Test("no challenge, no request: the gate's code is told")
    func noChallenge() {
        let server = ScriptedServer(answer("429 Too Many Requests", #"{"code":"rate_limited"}"#))
        let run = request(server)
        #expect(run.code == .notHeld)
        #expect(run.errors == "attestgate: no challenge: 429 rate_limited\n")
        let other = ScriptedServer(answer("200 OK", #"{"id":"x"}"#))
        #expect(request(other).errors == "attestgate: no challenge: the answer holds none\n")
    }

    @Test("--curl sends nothing but the call for a challenge, and prints words for a shell")
    func curl() {
        let server = ScriptedServer(issued("id1"))
        let run = request(server, "--curl", "-d", "it's", "-H", "X-A: b c")
        #expect(run.code == .done)
        #expect(run.output.hasPrefix("curl -sS -X POST -H 'X-A: b c' -H 'App-Attest-Key-Id: "))
        #expect(run.output.contains(" --data-raw 'it'\\''s' "))
        #expect(run.output.contains(" --connect-to gate.test:80:127.0.0.1:\(server.port) "))
        #expect(run.output.hasSuffix(" 'http://gate.test/v1/a?b=%2f'\n"))
    }

    @Test("--curl sends a body as it was signed: no file for @, no text for other bytes")
    func curlBodies() throws {
        func line(_ body: [UInt8]) throws -> String {
            try Data(body).write(to: URL(fileURLWithPath: scratch.file("body")))
            let server = ScriptedServer(issued("id1"))
            return request(server, "--curl", "-d", "@" + scratch.file("body")).output
        }
        #expect(try line(Array("@/etc/passwd".utf8)).contains(" --data-raw @/etc/passwd "))
        for (bytes, word) in [([0xff, 0, 0x41], "/wBB"), ([0x41, 0], "'QQA='")] as [([UInt8], _)] {
            let text = try line(bytes)
            #expect(text.hasPrefix("printf %s \(word) | base64 -d | curl "), "\(text)")
            #expect(text.contains(" --data-binary @- "))
        }
    }

    @Test(
        "a method that is none is a usage error before anything is sent",
        arguments: ["", "G T", "GET/", "é", "1GET"])
    func methods(method: String) {
        let run = Run(
            "device", "request", method, "http://127.0.0.1:1/", "--state", scratch.file("state"))
        #expect(run.code == .usage && run.errors.contains("is no METHOD"), "\(run.errors)")
    }

    @Test("heads are printed where asked for, and JSON has everything")
    func printing() throws {
        let server = ScriptedServer(
            answer("403 Forbidden", #"{"code":"rejected"}"#),
            answer("403 Forbidden", #"{"code":"rejected"}"#))
        let text = request(server, "--challenge", byValue("id1"), "-i", "-v")
        #expect(
            text.output.hasPrefix("HTTP/1.1 403 Forbidden\r\nContent-Type: application/json\r\n"))
        #expect(text.output.hasSuffix("\r\n\r\n{\"code\":\"rejected\"}\n"))
        #expect(text.errors.hasPrefix("> POST /v1/a?b=%2f HTTP/1.1\n> Host: gate.test\n"))
        #expect(text.errors.contains("\n< HTTP/1.1 403 Forbidden\n"))
        let json = request(server, "--challenge", byValue("id1"), "--json")
        #expect(json.json["status"] as? Int == 403)
        #expect(json.text("code") == "rejected")
        #expect(json.text("body") == #"{"code":"rejected"}"#)
    }

    @Test("enrolling attests the challenge, and the prefix is remembered")
    func enrol() throws {
        let server = ScriptedServer(
            issued("id1"), answer("201 Created", #"{"registered":true}"#), issued("id2"),
            answer("200 OK"))
        let run = Run(
            "device", "enrol", "http://127.0.0.1:\(server.port)/att/", "--state",
            scratch.file("state"))
        #expect(run.code == .done)
        #expect(run.output == "{\"registered\":true}\n")
        #expect(Sent(server.request(0)).line == "POST /att/challenges HTTP/1.1")
        let sent = Sent(server.request(1))
        #expect(sent.line == "POST /att/keys HTTP/1.1")
        let members = try JSONMembers.scan(
            sent.body, named: ["keyID", "challengeID", "object"])
        #expect(members[0] == .string(Array(keyID.utf8)))
        #expect(members[1] == .string(Array("id1".utf8)))
        guard case .string(let object) = members[2] else {
            Issue.record("no object")
            return
        }
        let pem = try String(contentsOfFile: scratch.file("state.root.pem"), encoding: .utf8)
        let verified = try Attestation.verify(
            object: Base64.decode(object) ?? [], challenge: mac,
            keyID: try #require(KeyID(base64: keyID)), appIDs: [appID],
            environment: .production, root: try TrustRoot(pem: Array(pem.utf8)),
            at: Int64(Date().timeIntervalSince1970))
        #expect(Base64.encode(verified.publicKeyX963) == publicKey)
        _ = request(server)
        #expect(Sent(server.request(2)).line == "POST /att/challenges HTTP/1.1")
    }

    @Test("a refused enrolment ends with 1 and is not remembered")
    func enrolRefused() {
        let server = ScriptedServer(
            issued("id1"), answer("403 Forbidden", #"{"code":"rejected"}"#), issued("id2"),
            answer("200 OK"))
        let run = Run(
            "device", "enrol", "http://127.0.0.1:\(server.port)/att", "--state",
            scratch.file("state"))
        #expect(run.code == .notHeld)
        _ = request(server)
        #expect(Sent(server.request(2)).line == "POST /v1/app-attest/challenges HTTP/1.1")
    }

    @Test("https and anything that is no URL are refused before anything is signed")
    func urls() {
        for (url, text) in [
            ("https://a/", "https is not available in this version; use http"),
            ("a/b", "expected http://host[:port]/path, got \"a/b\""),
        ] {
            let run = Run("device", "request", "GET", url, "--state", scratch.file("state"))
            #expect(run.code == .usage)
            #expect(run.errors.hasPrefix("attestgate: \(text)\n"))
        }
    }
}
