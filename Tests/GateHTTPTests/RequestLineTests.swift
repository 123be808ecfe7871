import GateHTTP
import Testing

@Suite("Request line: one reading")
struct RequestLineTests {
    @Test("method, target and version are found where they stand")
    func plainLine() throws {
        let head = try head("GET /a/b?c=d HTTP/1.1\r\nHost: api.example.test\r\n\r\n")
        #expect(head.methodText == "GET")
        #expect(head.knownMethod == .get)
        #expect(head.targetText == "/a/b?c=d")
        #expect(head.text(head.path) == "/a/b")
        #expect(head.query.map(head.text) == "c=d")
        #expect(head.form == .origin)
        #expect(head.version == .http11)
        #expect(head.hostName == "api.example.test")
    }

    @Test(
        "an octet that no request line has at its place is refused as it arrives",
        arguments: [
            ("GET\t", MessageError.methodInvalid), (" ", .methodInvalid), ("G=", .methodInvalid),
            ("G\"", .methodInvalid), ("G\u{0}", .methodInvalid), ("G\u{e9}", .methodInvalid),
            ("\n", .methodInvalid), ("GET\r", .methodInvalid), ("\u{16}", .methodInvalid),
            ("GET  ", .targetInvalid), ("GET \t", .targetInvalid), ("GET ?", .targetInvalid),
            ("GET a", .targetInvalid), ("GET \r", .targetInvalid), ("GET *", .targetInvalid),
            ("POST *", .targetInvalid), ("OPTIONS *x", .targetInvalid),
            ("GET /a\t", .targetInvalid), ("GET /a#", .targetInvalid),
            ("GET /a?b#", .targetInvalid), ("GET /a\r", .targetInvalid),
            ("GET /a\n", .targetInvalid), ("GET /a\u{7f}", .targetInvalid),
            ("GET /a\u{80}", .targetInvalid), ("GET /a?\u{e9}", .targetInvalid),
            ("GET /a\u{0}", .targetInvalid), ("GET /a  ", .versionInvalid),
            ("GET /a x", .versionInvalid), ("GET /a \r", .versionInvalid),
            ("GET /a h", .versionInvalid), ("GET /a HTTP ", .versionInvalid),
            ("GET /a HTTP/a", .versionInvalid), ("GET /a HTTP/1\r", .versionInvalid),
            ("GET /a HTTP/1,", .versionInvalid), ("GET /a HTTP/11", .versionInvalid),
            ("GET /a HTTP/1.x", .versionInvalid), ("GET /a HTTP/1.1x", .versionInvalid),
            ("GET /a HTTP/1.1 ", .versionInvalid), ("GET /a HTTP/1.10", .versionInvalid),
            ("GET /a HTTP/42", .versionInvalid), ("GET /a HTTP/1.1\n", .lineEndInvalid),
            ("GET /a HTTP/1.1\rX", .lineEndInvalid), ("GET /a HTTP/1.1\r\r", .lineEndInvalid),
        ])
    func badOctet(text: String, error: MessageError) {
        #expect(errorAtLastByte(text) == error)
    }

    @Test(
        "another version is not supported, once its line is whole",
        arguments: ["1.2", "1.9", "2.0", "0.9", "3.0"])
    func otherVersion(version: String) {
        #expect(errorAtLastByte("GET /a HTTP/\(version)\r\n") == .versionUnsupported)
        #expect(MessageError.versionUnsupported.status == 505)
    }

    @Test("every visible octet but # may stand in path and query")
    func visibleTarget() throws {
        let visible = (0x21...0x7e).filter { $0 != 0x23 }
        let text = String(String.UnicodeScalarView(visible.compactMap { Unicode.Scalar($0) }))
        let head = try head(request("GET /\(text)?\(text) HTTP/1.1"))
        #expect(head.targetText == "/\(text)?\(text)")
        #expect(head.text(head.path) == "/" + text.prefix { $0 != "?" })
    }

    @Test("the query starts at the first question mark, and an empty one is one")
    func query() throws {
        let twice = try head(request("GET /a?b?c HTTP/1.1"))
        #expect(twice.query.map(twice.text) == "b?c")
        let empty = try head(request("GET /a? HTTP/1.1"))
        #expect(empty.query.map(empty.text) == "")
        #expect(empty.text(empty.pathAndQuery) == "/a?")
        #expect(try head(request("GET /a HTTP/1.1")).query == nil)
    }

    @Test("one empty line before the request is let pass, a second is not")
    func leadingEmptyLine() {
        let text = request("GET /a HTTP/1.1")
        #expect(decodeRequests("\r\n" + text).messages.count == 1)
        #expect(decodeRequests(bytewise("\r\n" + text)).messages.count == 1)
        #expect(decodeRequests("\r\n" + text + "\r\n" + text).messages.count == 2)
        #expect(errorAtLastByte("\r\n\r") == .methodInvalid)
        #expect(errorAtLastByte("\rG") == .lineEndInvalid)
        #expect(errorAtLastByte("\r\n\n") == .methodInvalid)
    }
}

@Suite("Request target: absolute-form")
struct AbsoluteFormTests {
    @Test(
        "the target's path and query are what is signed and forwarded",
        arguments: [
            ("http://h/a?b", "/a?b"), ("https://h/a", "/a"), ("HTTP://h/a", "/a"),
            ("hTTpS://H/a//b", "/a//b"), ("http://h?b=/c", "/?b=/c"), ("http://h", "/"),
            ("http://h/", "/"), ("http://h?", "/?"),
        ])
    func originForm(target: String, expected: String) throws {
        let head = try head(request("GET \(target) HTTP/1.1"))
        #expect(head.text(head.pathAndQuery) == expected)
        #expect(head.targetText == target)
        #expect(head.form == .absolute)
        let path = expected.prefix { $0 != "?" }
        #expect(head.text(head.path) == path)
        let query = path == expected ? nil : String(expected.dropFirst(path.count + 1))
        #expect(head.query.map(head.text) == query)
    }

    @Test("OPTIONS for a whole server in absolute-form is OPTIONS *")
    func optionsWithoutPath() throws {
        let whole = try head(request("OPTIONS http://h HTTP/1.1"))
        #expect(whole.form == .asterisk)
        #expect(whole.text(whole.pathAndQuery) == "*")
        let path = try head(request("OPTIONS http://h/ HTTP/1.1"))
        #expect(path.form == .absolute)
        #expect(try head(request("OPTIONS * HTTP/1.1")).form == .asterisk)
    }

    @Test(
        "no other scheme, no userinfo, no opaque form",
        arguments: [
            "GET f", "GET hx", "GET http:@", "GET http:/v", "GET http:///", "GET http://?",
            "GET http:// ", "GET http://a@", "GET http://a:b", "GET http://a%", "GET https:x",
            "GET httpss", "GET http:s", "GET http://h\\", "GET http://h#", "GET http://h/#",
            "GET http://h:/", "GET http://h: ", "GET http://.",
        ])
    func otherTargets(text: String) {
        #expect(errorAtLastByte(text) == .targetInvalid)
    }

    @Test("the authority must be the Host, case apart")
    func authorityIsHost() throws {
        func of(_ target: String, _ host: String) -> MessageError? {
            decodeRequests("GET \(target) HTTP/1.1\r\nHost: \(host)\r\n\r\n").error
        }
        #expect(of("http://a.test/", "A.TEST") == nil)
        #expect(of("http://a.test:80/", "a.test:80") == nil)
        #expect(of("http://a.test/", "b.test") == .authorityMismatch)
        #expect(of("http://a.test/", "a.test.") == .authorityMismatch)
        #expect(of("http://a.test/", "a.tes") == .authorityMismatch)
        #expect(of("http://a.test:80/", "a.test") == .authorityMismatch)
        #expect(of("http://a.test/", "a.test:80") == .authorityMismatch)
        #expect(of("http://a.test/", "@") == .hostInvalid)
    }

    @Test("a Host unlike the authority is refused at the first octet that differs")
    func earlyMismatch() {
        #expect(errorAtLastByte("GET http://ab/ HTTP/1.1\r\nHost: ax") == .authorityMismatch)
        #expect(errorAtLastByte("GET http://ab/ HTTP/1.1\r\nHost: abc") == .authorityMismatch)
        #expect(errorAtLastByte("GET http://ab/ HTTP/1.1\r\nHost: a\r") == .authorityMismatch)
        #expect(errorAtLastByte("GET http://ab/ HTTP/1.1\r\nHost: a ") == .authorityMismatch)
    }
}

@Suite("Methods: the registered ones")
struct MethodTests {
    @Test(
        "every method of the registry is taken and keeps its spelling", arguments: Method.allCases)
    func registered(method: Method) throws {
        let head = try head(request("\(method.rawValue) /a HTTP/1.1"))
        #expect(head.knownMethod == method)
        #expect(head.methodText == method.rawValue)
    }

    @Test(
        "an unregistered one, CONNECT and TRACE are refused once the head is whole",
        arguments: ["FOO", "post", "Get", "GETS", "TRACE", "PRI", "P", "AAAAAAAAAAAAAAAAAAAA"])
    func unknown(method: String) {
        #expect(errorAtLastByte(request("\(method) /a HTTP/1.1")) == .methodUnknown)
        #expect(MessageError.methodUnknown.status == 501)
    }

    @Test("CONNECT is read with its own target and refused")
    func connect() {
        #expect(errorAtLastByte(request("CONNECT h:443 HTTP/1.1")) == .methodUnknown)
        #expect(errorAtLastByte("CONNECT /") == .targetInvalid)
        #expect(errorAtLastByte("CONNECT h/") == .targetInvalid)
        #expect(errorAtLastByte("CONNECT h: ") == .targetInvalid)
    }

    @Test("a method longer than any there is is refused before it ends")
    func longMethod() {
        let long = String(repeating: "A", count: 32)
        #expect(errorAtLastByte(long + "A") == .methodUnknown)
        #expect(errorAtLastByte(long + "=") == .methodInvalid)
        #expect(errorAtLastByte(request("\(long) /a HTTP/1.1")) == .methodUnknown)
    }

    @Test("a malformed message is malformed whatever its method")
    func malformedFirst() {
        #expect(decodeRequests("FOO /a HTTP/1.1\r\n\r\n").error == .hostMissing)
        #expect(
            decodeRequests("FOO /a HTTP/1.1\r\nHost: h\r\nX\r\n\r\n").error == .fieldNameInvalid)
    }

    @Test("safe and idempotent as the registry has it")
    func properties() {
        let safe = Method.allCases.filter(\.isSafe).map(\.rawValue)
        #expect(safe == ["GET", "HEAD", "OPTIONS", "PROPFIND", "QUERY", "REPORT", "SEARCH"])
        let once = Method.allCases.filter { !$0.isIdempotent }.map(\.rawValue)
        #expect(once == ["LOCK", "PATCH", "POST"])
    }
}
