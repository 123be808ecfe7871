import Testing
import attestgate

private func answer(_ server: ScriptedServer, _ method: String = "GET") throws -> HTTPResponse {
    try HTTPClient(.tcp("127.0.0.1", port: server.port), timeout: .seconds(5))
        .send(HTTPRequest(method, "/a?b", authority: "gate.test"))
}

@Suite("HTTP client: answers")
struct HTTPClientAnswerTests {
    @Test("status, reason, fields and a body by length are read")
    func length() throws {
        let server = ScriptedServer(
            "HTTP/1.1 201 Made It\r\nX-A: one\r\nx-a: two\r\nContent-Length: 5\r\n\r\nhello")
        let response = try answer(server)
        #expect(response.status == 201)
        #expect(response.reason == "Made It")
        #expect(
            response.fields == [
                HTTPField("X-A", "one"), HTTPField("x-a", "two"), HTTPField("Content-Length", "5"),
            ])
        #expect(response.body == Array("hello".utf8))
    }

    @Test("chunks are put together, whatever pieces they come in")
    func chunked() throws {
        let text =
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
            + "3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\n\r\n"
        #expect(try answer(ScriptedServer(text)).body == Array("abcdefg".utf8))
        #expect(
            try answer(ScriptedServer([text.map { String($0) }])).body == Array("abcdefg".utf8))
    }

    @Test("a body without a length ends with the connection")
    func untilClose() throws {
        #expect(
            try answer(ScriptedServer("HTTP/1.1 200 OK\r\n\r\nall of it")).body
                == Array("all of it".utf8))
    }

    @Test("an interim answer is passed over")
    func interim() throws {
        let response = try answer(
            ScriptedServer(
                "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n"))
        #expect(response.status == 204)
    }

    @Test("the answer to HEAD has no body, whatever its length says")
    func head() throws {
        let response = try answer(
            ScriptedServer("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"), "HEAD")
        #expect(response.body == [])
        #expect(response.fields.value("content-length") == "9")
    }

    @Test("an answer cut off anywhere is an error, never a shorter answer")
    func cut() throws {
        for text in [
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        ] {
            for count in 0..<text.utf8.count {
                let part = String(decoding: Array(text.utf8)[..<count], as: UTF8.self)
                #expect(throws: HTTPClientError.closed) { try answer(ScriptedServer(part)) }
            }
        }
    }

    @Test("what is not HTTP is told apart from silence")
    func malformed() {
        do {
            _ = try answer(ScriptedServer("SSH-2.0-x\r\n\r\n"))
            Issue.record("taken for an answer")
        } catch HTTPClientError.malformed {
            // As it should be.
        } catch {
            Issue.record("\(error)")
        }
    }

    @Test("a port where nobody listens is told with its address")
    func refused() throws {
        let server = ScriptedServer([])
        let client = HTTPClient(.tcp("127.0.0.1", port: 1))
        _ = server
        #expect(throws: HTTPClientError.connection("127.0.0.1:1: connect: Connection refused")) {
            try client.send(HTTPRequest("GET", "/", authority: "x"))
        }
    }
}

@Suite("HTTP client: requests")
struct HTTPClientRequestTests {
    @Test("the head says what is asked of whom, how long the body is, and that no more follows")
    func head() throws {
        let request = HTTPRequest(
            "POST", "/a?b=%zz", authority: "gate.test:80", fields: [HTTPField("X-A", "1")],
            body: Array("body".utf8))
        #expect(
            String(decoding: try request.head(), as: UTF8.self)
                == "POST /a?b=%zz HTTP/1.1\r\nHost: gate.test:80\r\nX-A: 1\r\nContent-Length: 4\r\n"
                + "Connection: close\r\n\r\n")
    }

    @Test("a POST without a body says so, a GET says nothing, and a Host of one's own is used")
    func lengths() throws {
        let post = HTTPRequest("POST", "/", authority: "a", fields: [HTTPField("host", "b")])
        #expect(
            String(decoding: try post.head(), as: UTF8.self)
                == "POST / HTTP/1.1\r\nHost: b\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        let get = HTTPRequest("GET", "/", authority: "a")
        #expect(
            String(decoding: try get.head(), as: UTF8.self)
                == "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    }

    @Test("nothing with a line end or a space in the wrong place is written")
    func injection() {
        for request in [
            HTTPRequest("GET /", "/", authority: "a"),
            HTTPRequest("GET", "/a b", authority: "a"),
            HTTPRequest("GET", "/a\r\nX: y", authority: "a"),
            HTTPRequest("GET", "/", authority: "a\r\nX: y"),
            HTTPRequest("GET", "/", authority: "a", fields: [HTTPField("X", "a\nb")]),
            HTTPRequest("GET", "/", authority: "a", fields: [HTTPField("X y", "a")]),
        ] {
            #expect(throws: HTTPClientError.self) { try request.head() }
        }
    }

    @Test("a body larger than any buffer arrives whole")
    func largeBody() throws {
        let server = ScriptedServer("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        let body = Array(repeating: UInt8(ascii: "x"), count: 3 << 20)
        let response = try HTTPClient(.tcp("127.0.0.1", port: server.port)).send(
            HTTPRequest("POST", "/", authority: "a", body: body))
        #expect(response.status == 200)
        #expect(server.requests.first?.hasSuffix(String(repeating: "x", count: 3 << 20)) == true)
    }
}

@Suite("HTTP client: addresses")
struct WebAddressTests {
    @Test("a URL is split, and its target's bytes are left alone")
    func good() throws {
        let url = try WebAddress("http://Gate.test:8080/a/../b%2f?x=1&y?z#frag")
        #expect(url.authority == "Gate.test:8080")
        #expect(url.host == "Gate.test")
        #expect(url.port == 8080)
        #expect(url.target == "/a/../b%2f?x=1&y?z")
        #expect(url.path == "/a/../b%2f")
        #expect(url.origin == "http://Gate.test:8080")
        #expect(try WebAddress("HTTP://a").target == "/")
        #expect(try WebAddress("http://a").port == 80)
        #expect(try WebAddress("http://a?q").target == "/?q")
        #expect(try WebAddress("http://[::1]:81/x").host == "::1")
        #expect(try WebAddress("http://[::1]/x").port == 80)
    }

    @Test(
        "what is no such URL is refused",
        arguments: [
            "", "a", "a/b", "/a", "ftp://a", "http:/a", "http://", "http:///a", "http://:80",
            "http://a:", "http://a:0", "http://a:65536", "http://a:8x", "http://u@a", "http://[::1",
            "http://[::1]x", "http://a/ b", "http://a/\u{e9}", "http://a/\r\nX: y",
        ])
    func bad(_ text: String) {
        #expect(throws: WebAddress.Fault.malformed) { try WebAddress(text) }
    }

    @Test("https is refused by its own name")
    func secure() {
        #expect(throws: WebAddress.Fault.secure) { try WebAddress("https://a/") }
    }

    @Test("an endpoint is host and port, or a unix socket")
    func endpoints() {
        #expect(Endpoint("localhost:80") == .tcp("localhost", port: 80))
        #expect(Endpoint("[::1]:80") == .tcp("::1", port: 80))
        #expect(Endpoint("unix:/run/x") == .unix("/run/x"))
        for text in ["", "localhost", "localhost:", ":80", "unix:", "[::1]"] {
            #expect(Endpoint(text) == nil, "\(text)")
        }
    }

    @Test("a field is a name, a colon and a value")
    func fields() {
        #expect(HTTPField(line: "X-A: b: c") == HTTPField("X-A", "b: c"))
        #expect(HTTPField(line: "X-A:") == HTTPField("X-A", ""))
        for line in ["", "X", ":", ": b", "X y: b", "X\r\n: b"] {
            #expect(HTTPField(line: line) == nil, "\(line)")
        }
    }
}
