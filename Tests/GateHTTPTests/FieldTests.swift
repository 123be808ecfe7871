import GateHTTP
import Testing

@Suite("Fields: lines, names, values")
struct FieldTests {
    private let start = "GET / HTTP/1.1\r\nHost: h\r\n"

    @Test("order, spelling and inner space stay; space and tab around a value go")
    func kept() throws {
        let head = try head(request("GET / HTTP/1.1", "x-b: 1", "X-A:\t a \t b \t", "E:", "F: \t"))
        #expect(describe(head).hasSuffix("|Host=h&x-b=1&X-A=a \t b&E=&F="))
    }

    @Test("octets past ASCII in a value pass as they are")
    func obsText() throws {
        let head = try head(request("GET / HTTP/1.1", "X: caf\u{e9}\u{80}\u{ff}"))
        let value = try #require(head.firstValue(of: FieldName("x")))
        #expect(Array(head.bytes[value]) == latin1("caf\u{e9}\u{80}\u{ff}"))
    }

    @Test(
        "an octet that no name has is refused as it arrives",
        arguments: [
            ":", " ", "\t", "X ", "X\t", "X(", "X\r", "X\u{0}", "X\u{e9}", "X\"", "X/", "X@", "{",
            "X\u{7f}", "X\n",
        ])
    func badName(text: String) {
        #expect(errorAtLastByte(start + text) == .fieldNameInvalid)
    }

    @Test("a folded line is refused at the space that folds it", arguments: [" ", "\t"])
    func folded(blank: String) {
        #expect(errorAtLastByte(start + "X: a\r\n" + blank) == .fieldNameInvalid)
        #expect(errorAtLastByte("GET / HTTP/1.1\r\n" + blank) == .fieldNameInvalid)
    }

    @Test("every control octet but tab is refused in a value as it arrives")
    func badValue() {
        for octet in (UInt8(0)..<0x20).map({ $0 }) + [0x7f] where ![9, 10, 13].contains(octet) {
            let character = String(Unicode.Scalar(octet))
            #expect(errorAtLastByte(start + "X: a" + character) == .fieldValueInvalid)
            #expect(errorAtLastByte(start + "X:" + character) == .fieldValueInvalid)
        }
    }

    @Test(
        "a bare LF or CR is refused as it shows",
        arguments: [
            "X: a\n", "X: \n", "X: a\rb", "X: a\r\r", "X:\r\u{0}", "\n", "\r\r", "\rX", "\r\u{0}",
        ])
    func lineEnds(text: String) {
        #expect(errorAtLastByte(start + text) == .lineEndInvalid)
    }

    @Test("values are found by name, case ignored")
    func lookup() throws {
        let head = try head(request("GET / HTTP/1.1", "X-a: 1", "Y: 2", "x-A: 3", "X_A: 4"))
        let name = FieldName("X-A")
        #expect(head.firstValue(of: name).map(head.text) == "1")
        #expect(head.values(of: name).map(head.text) == ["1", "3"])
        #expect(head.onlyValue(of: name) == nil)
        #expect(head.onlyValue(of: FieldName("y")).map(head.text) == "2")
        #expect(head.onlyValue(of: FieldName("z")) == nil)
        #expect(head.firstValue(of: FieldName("z")) == nil)
    }

    @Test("folded, underscore and dot are a dash and case is ignored")
    func foldedNames() throws {
        let name = FieldName("App-Attest-Verdict")
        let head = try head(
            request(
                "GET / HTTP/1.1", "APP_attest.VERDICT: a", "App-Attest-Verdicts: b", "AppAttest: c")
        )
        let folded = head.fields.filter { $0.isNamedFolded(name, in: head.bytes) }
        #expect(folded.map { head.text($0.value) } == ["a"])
        #expect(head.values(of: name).isEmpty)
        let prefix = FieldName("app-attest-")
        let prefixed = head.fields.filter { $0.hasFoldedPrefix(prefix, in: head.bytes) }
        #expect(prefixed.map { head.text($0.value) } == ["a", "b"])
        #expect(name.equalsFolded(FieldName("app_attest_verdict")))
        #expect(!name.equalsFolded(FieldName("app_attest_verdic")))
        #expect(name != FieldName("app_attest_verdict"))
    }

    @Test("a name is a token", arguments: ["", "a b", "a:", "\u{e9}", "a\n"])
    func fieldNames(text: String) {
        #expect(FieldName(parsing: text) == nil)
        #expect(FieldName(parsing: "a-!#$%&'*+.^_`|~9") != nil)
    }
}

@Suite("Expect: 100-continue or nothing")
struct ExpectTests {
    @Test(
        "it is honoured where there is a body to wait for",
        arguments: ["100-continue", "100-CONTINUE"])
    func honoured(value: String) throws {
        let length = try head(request("POST / HTTP/1.1", "Expect: \(value)", "Content-Length: 1"))
        #expect(length.expectsContinue)
        let chunked = try head(
            request("POST / HTTP/1.1", "Transfer-Encoding: chunked", "Expect: \(value)"))
        #expect(chunked.expectsContinue)
    }

    @Test("without a body, or in HTTP/1.0, it means nothing")
    func ignored() throws {
        let line = "Expect: 100-continue"
        #expect(try head(request("GET / HTTP/1.1", line)).expectsContinue == false)
        #expect(
            try head(request("POST / HTTP/1.1", line, "Content-Length: 0")).expectsContinue == false
        )
        #expect(
            try head(request("POST / HTTP/1.0", line, "Content-Length: 1")).expectsContinue == false
        )
        #expect(try head(request("POST / HTTP/1.1", "Content-Length: 1")).expectsContinue == false)
    }

    @Test(
        "anything else is refused once the head is whole",
        arguments: [
            "", "200-maybe", "y 100-continue", "100-continue, 100-continue", "100-continue;q=1",
            "100-continu", "100-continue\r\nExpect: 100-continue", "\"100-continue\"",
        ])
    func refused(value: String) {
        for version in ["1.0", "1.1"] {
            let text = request("POST / HTTP/\(version)", "Expect: \(value)", "Content-Length: 1")
            #expect(errorAtLastByte(text) == .expectationUnknown)
        }
        #expect(MessageError.expectationUnknown.status == 417)
    }

    @Test("a malformed message and an unknown method come first")
    func order() {
        let unknown = decodeRequests(request("FOO / HTTP/1.1", "Expect: x"))
        #expect(unknown.error == .methodUnknown)
        #expect(decodeRequests("GET / HTTP/1.1\r\nExpect: x\r\n\r\n").error == .hostMissing)
    }
}

@Suite("Connection: tokens and persistence")
struct ConnectionTests {
    private func persists(_ version: String, _ lines: String...) throws -> Bool {
        let text = (["GET / HTTP/\(version)", "Host: h"] + lines + ["", ""]).joined(
            separator: "\r\n")
        return try head(text).isPersistent
    }

    @Test("HTTP/1.1 persists unless it says close, HTTP/1.0 does not unless it says keep-alive")
    func persistence() throws {
        #expect(try persists("1.1"))
        #expect(try persists("1.1", "Connection: keep-alive"))
        #expect(try persists("1.1", "Connection:"))
        #expect(try persists("1.1", "Connection: Close") == false)
        #expect(try persists("1.1", "Connection: x , ,close,y") == false)
        #expect(try persists("1.1", "Connection: x", "Connection: close") == false)
        #expect(try persists("1.1", "Connection: keep-alive, close") == false)
        #expect(try persists("1.1", "Connection: closed"))
        #expect(try persists("1.1", "X: close"))
        #expect(try persists("1.0") == false)
        #expect(try persists("1.0", "Connection: Keep-Alive"))
        #expect(try persists("1.0", "Connection: keep-alive, close") == false)
    }

    @Test("an upgrade is recorded and changes nothing")
    func upgrade() throws {
        let text = request("GET / HTTP/1.1", "Connection: Upgrade, x", "Upgrade: websocket")
        let head = try head(text)
        #expect(head.wantsUpgrade)
        #expect(head.firstValue(of: FieldName("upgrade")).map(head.text) == "websocket")
        #expect(decodeRequests(text + request("GET /b HTTP/1.1")).messages.count == 2)
    }

    @Test(
        "what is no list of tokens is refused as it shows",
        arguments: ["a b", "a;", "close x", "\"", "a\tb", "=", "\u{e9}", "a/"])
    func malformed(value: String) {
        let start = "GET / HTTP/1.1\r\nHost: h\r\nConnection: "
        #expect(errorAtLastByte(start + value) == .connectionInvalid)
    }

    @Test("options are counted over all lines")
    func tooMany() throws {
        let half = "Connection: " + Array(repeating: "a", count: 32).joined(separator: ",")
        _ = try head(request("GET / HTTP/1.1", half, half))
        let trace = decodeRequests(request("GET / HTTP/1.1", half, half, "Connection: b"))
        #expect(trace.error == .connectionOptionsTooMany)
        #expect(MessageError.connectionOptionsTooMany.status == 431)
    }

    @Test("what follows a request that closes is never read")
    func afterClose() {
        let trace = decodeRequests(
            request("GET / HTTP/1.1", "Connection: close") + "GET /smuggled HTTP/1.1\r\n\r\n\n\n")
        #expect(trace.messages.count == 1)
        #expect(trace.messages[0].isComplete)
        #expect(trace.error == nil)
        #expect(!trace.left.isEmpty)
        let chunked = decodeRequests(
            request("POST / HTTP/1.1", "Connection: close", "Transfer-Encoding: chunked")
                + "0\r\n\r\n\n\n")
        #expect(chunked.messages.count == 1 && chunked.error == nil)
    }
}
