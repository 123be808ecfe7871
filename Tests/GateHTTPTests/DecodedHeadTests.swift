import GateHTTP
import Testing

/// A section as HPACK would give it.
private func block(
    _ fields: [(String, String)], limits: HeadLimits = HeadLimits()
) -> FieldBlock {
    var block = FieldBlock()
    for (name, value) in fields {
        // One scalar, one octet, so that any octet can be written.
        let name = name.unicodeScalars.map { UInt8($0.value) }
        let value = value.unicodeScalars.map { UInt8($0.value) }
        block.receive(name.span, value.span, limits: limits)
    }
    return block
}

private let good = [
    (":method", "GET"), (":scheme", "https"), (":authority", "api.example.test"),
    (":path", "/public/a?x=1"),
]

/// ``good`` with one pseudo-field given another value.
private func with(_ name: String, _ value: String) -> [(String, String)] {
    good.map { $0.0 == name ? (name, value) : $0 }
}

private func parse(
    _ fields: [(String, String)], isEnd: Bool = true, limits: HeadLimits = HeadLimits()
) throws(MessageError) -> RequestHead {
    try RequestHead(block(fields, limits: limits), isEnd: isEnd, limits: limits)
}

@Suite("HTTP/2: a request's head")
struct DecodedRequestTests {
    @Test("is the head of HTTP/1 that says the same")
    func whole() throws {
        let head = try parse(
            good + [("user-agent", "curl/8"), ("app-attest-assertion", "AAAA"), ("x", "")])
        #expect(
            String(decoding: head.bytes, as: UTF8.self)
                == "GET /public/a?x=1 HTTP/1.1\r\nHost: api.example.test\r\n"
                + "User-Agent: curl/8\r\nApp-Attest-Assertion: AAAA\r\nX: \r\n\r\n")
        #expect(head.version == .http2)
        #expect(head.knownMethod == .get)
        #expect(head.targetText == "/public/a?x=1")
        #expect(head.text(head.path) == "/public/a")
        #expect(head.hostName == "api.example.test")
        #expect(head.framing == .none)
        #expect(head.isPersistent)
    }

    @Test("has the framing that its length and its end say")
    func framing() throws {
        #expect(try parse(good, isEnd: false).framing == .chunked)
        let length = good + [("content-length", "5")]
        #expect(try parse(length, isEnd: false).framing == .length(5))
        #expect(throws: MessageError.bodyTruncated) { try parse(length) }
        #expect(try parse(good + [("content-length", "0")]).framing == .length(0))
    }

    @Test("joins the crumbs of a cookie")
    func cookies() throws {
        let head = try parse(good + [("cookie", "a=1"), ("x", "y"), ("cookie", "b=2")])
        let value = try #require(head.onlyValue(of: FieldName("cookie")))
        #expect(head.text(value) == "a=1; b=2")
    }

    @Test("may ask to continue where a body follows")
    func expectation() throws {
        let fields = good + [("expect", "100-continue")]
        #expect(try parse(fields, isEnd: false).expectsContinue)
        #expect(try !parse(fields).expectsContinue)
        #expect(throws: MessageError.expectationUnknown) { try parse(good + [("expect", "x")]) }
    }

    @Test("may name the host in a field, alone or as the authority does")
    func host() throws {
        let without = good.filter { $0.0 != ":authority" }
        #expect(try parse(without + [("host", "a.test:8443")]).hostName == "a.test")
        #expect(try parse(good + [("host", "API.example.test")]).hostName == "api.example.test")
        #expect(throws: MessageError.hostMissing) { try parse(without) }
        #expect(throws: MessageError.hostInvalid) { try parse(without + [("host", "")]) }
        #expect(throws: MessageError.authorityMismatch) {
            try parse(good + [("host", "evil.test")])
        }
        #expect(throws: MessageError.hostRepeated) {
            try parse(
                good + [("host", "api.example.test"), ("host", "api.example.test")])
        }
        #expect(throws: MessageError.hostRepeated) {
            try parse(without + [("host", "a.test"), ("host", "a.test")])
        }
    }

    @Test(
        "has no authority that another would read differently",
        arguments: [
            "user@api.example.test", "api.example.test/x", "api.example.test\r\nX: y",
            "api.example.test ", " api.example.test", "a..b", "a:0", "a:99999", "[::1", "a\0",
            "a?x", "a#x", "\u{e9}.test",
        ])
    func authority(_ value: String) {
        #expect(throws: MessageError.hostInvalid) { try parse(with(":authority", value)) }
    }

    @Test(
        "has a path that starts with a slash and is visible ASCII",
        arguments: [
            "v1/exports", "http://api.example.test/v1/exports", "/a b", "/a\t", "/a\0", "/a#b",
            "/a\r\nX: y", "/public/a HTTP/1.1\r\nHost: evil\r\n\r\nGET /smuggled", "?/v1",
            "/\u{e9}", "*", "*/", "/a\u{7f}", "/ HTTP/1.1",
        ])
    func path(_ value: String) {
        #expect(throws: MessageError.targetInvalid) { try parse(with(":path", value)) }
    }

    @Test("may ask about the gate itself with OPTIONS")
    func asterisk() throws {
        let fields = with(":path", "*").map { $0.0 == ":method" ? ($0.0, "OPTIONS") : $0 }
        #expect(try parse(fields).form == .asterisk)
    }

    @Test("has a method that is a token, and one the gate knows")
    func method() {
        for value in ["GET /x HTTP/1.1\r\nX: ", "GET ", " GET", "G\0T", "GET\r\n"] {
            #expect(throws: MessageError.methodInvalid) { try parse(with(":method", value)) }
        }
        for value in ["get", "NONSENSE", "CONNECT", "TRACE", "PRI"] {
            #expect(throws: MessageError.methodUnknown) { try parse(with(":method", value)) }
        }
        #expect(throws: MessageError.methodUnknown) {
            try parse([(":method", "CONNECT"), (":authority", "a.test:443")])
        }
    }

    @Test("has each pseudo-field once, first, known and not empty")
    func pseudoFields() {
        func refused(_ fields: [(String, String)]) {
            #expect(throws: MessageError.pseudoFieldInvalid) { try parse(fields) }
        }
        for name in [":method", ":scheme", ":path"] {
            refused(good.filter { $0.0 != name })
        }
        for (name, value) in good {
            refused(with(name, ""))
            refused(good + [(name, value)])
            refused(good.filter { $0.0 != name } + [("x", "y"), (name, value)])
        }
        refused(good + [(":protocol", "websocket")])
        refused(good + [(":x", "y")])
        refused(good + [(":status", "200")])
        refused(with(":scheme", "ftp"))
        refused(with(":scheme", "http\r\nX: y"))
    }

    @Test(
        "has field names in lower case that are tokens",
        arguments: ["X-User", "", "x:y", "x y", "x\r\ny", "x: a\r\nx-user", "x\0", "\u{e9}"])
    func names(_ name: String) {
        #expect(throws: MessageError.fieldNameInvalid) { try parse(good + [(name, "a")]) }
    }

    @Test(
        "has values without control octets and without blanks around",
        arguments: [
            "a\r\nX-User: admin", "a\nb", "a\rb", "a\0b", "a\u{7f}", " a", "a ", "\ta", "a\t", " ",
        ])
    func values(_ value: String) {
        #expect(throws: MessageError.fieldValueInvalid) { try parse(good + [("x", value)]) }
        #expect(throws: MessageError.fieldValueInvalid) { try parse(good + [("cookie", value)]) }
    }

    @Test("says nothing of a connection")
    func connectionFields() throws {
        for (name, value) in [
            ("connection", "close"), ("keep-alive", "timeout=5"), ("proxy-connection", "close"),
            ("transfer-encoding", "chunked"), ("upgrade", "h2c"), ("http2-settings", "AAMAAABk"),
            ("te", "gzip"), ("te", "trailers, gzip"), ("te", ""),
        ] {
            #expect(throws: MessageError.connectionFieldForbidden, "\(name)") {
                try parse(good + [(name, value)])
            }
        }
        #expect(try parse(good + [("te", "trailers")]).framing == .none)
    }

    @Test("has at most one length, in digits")
    func lengths() {
        #expect(throws: MessageError.contentLengthRepeated) {
            try parse(good + [("content-length", "5"), ("content-length", "6")], isEnd: false)
        }
        #expect(throws: MessageError.contentLengthInvalid) {
            try parse(good + [("content-length", "+5")], isEnd: false)
        }
    }
}

@Suite("HTTP/2: limits of a section")
struct FieldBlockTests {
    private let limits = HeadLimits(
        headerFields: 3, headerSize: 1000, fieldSize: 200, targetSize: 20)

    @Test("each is told by its name, and nothing of the section is kept")
    func faults() throws {
        func fault(_ fields: [(String, String)]) -> MessageError? {
            let block = block(fields, limits: limits)
            if block.fault != nil {
                #expect(block.bytes.isEmpty)
                #expect(block.lines.isEmpty)
            }
            return block.fault
        }
        #expect(fault(with(":path", "/a")) == nil)
        #expect(fault(with(":path", "/" + String(repeating: "a", count: 20))) == .targetTooLong)
        #expect(fault(good + [("x", "1"), ("y", "2"), ("z", "3")]) == nil)
        #expect(fault(good + [("x", "1"), ("y", "2"), ("z", "3"), ("w", "4")]) == .fieldsTooMany)
        #expect(fault(good + [("x", String(repeating: "a", count: 197))]) == nil)
        #expect(fault(good + [("x", String(repeating: "a", count: 198))]) == .fieldTooLong)
        let long = String(repeating: "a", count: 190)
        #expect(fault(with(":path", "/") + [("x", long), ("y", long), ("z", long)]) == nil)
        #expect(
            block(
                [("x", long), ("y", long), ("z", long), ("v", long), ("w", long)], limits: limits
            )
            .fault == .headTooLarge)
    }

    @Test("a field costs 32 octets beside its own, and goes on counting past the limit")
    func size() {
        #expect(block([("ab", "cde")]).size == 37)
        let many = block((0..<100).map { _ in ("x", "yz") }, limits: limits)
        #expect(many.fault == .fieldsTooMany)
        #expect(many.size == 100 * 35)
    }

    @Test("a head over them is refused for its limit; a HEAD is known all the same")
    func refused() {
        let fields = with(":method", "HEAD") + (0..<200).map { _ in ("x", "y") }
        #expect(throws: MessageError.fieldsTooMany) { try parse(fields, limits: limits) }
        #expect(block(fields, limits: limits).isHead)
        #expect(!block(good, limits: limits).isHead)
    }
}

@Suite("HTTP/2: a response's head")
struct DecodedResponseTests {
    private func parse(
        _ fields: [(String, String)], isEnd: Bool = false, isHead: Bool = false
    ) throws(MessageError) -> ResponseHead {
        try ResponseHead(
            block(fields), isEnd: isEnd, requestMethodIsHead: isHead, limits: HeadLimits())
    }

    @Test("is the head of HTTP/1 that says the same")
    func whole() throws {
        let head = try parse([(":status", "200"), ("content-type", "text/plain")])
        #expect(
            String(decoding: head.bytes, as: UTF8.self)
                == "HTTP/1.1 200 \r\nContent-Type: text/plain\r\n\r\n")
        #expect(head.status == 200)
        #expect(head.version == .http2)
        #expect(head.framing == .chunked)
        #expect(head.contentLength == nil)
    }

    @Test("has the framing that its status, its length and its end say")
    func framing() throws {
        let length = ("content-length", "5")
        #expect(try parse([(":status", "200"), length]).framing == .length(5))
        #expect(try parse([(":status", "200")], isEnd: true).framing == .length(0))
        #expect(throws: MessageError.bodyTruncated) {
            try parse([(":status", "200"), length], isEnd: true)
        }
        let head = try parse([(":status", "200"), length], isEnd: true, isHead: true)
        #expect(head.framing == .none)
        #expect(head.contentLength == 5)
        #expect(try parse([(":status", "304"), length], isEnd: true).framing == .none)
        #expect(try parse([(":status", "204")], isEnd: true).framing == .none)
        #expect(throws: MessageError.contentUnexpected) { try parse([(":status", "204"), length]) }
    }

    @Test("is refused where it is malformed")
    func refused() {
        for fields in [
            [], [("x", "y")], [(":status", "20")], [(":status", "2x0")], [(":status", "099")],
            [(":status", "600")],
        ] {
            #expect(throws: MessageError.statusLineInvalid) { try parse(fields) }
        }
        #expect(throws: MessageError.upgradeUnexpected) { try parse([(":status", "101")]) }
        #expect(throws: MessageError.pseudoFieldInvalid) {
            try parse([(":status", "200"), (":status", "200")])
        }
        for name in ["connection", "transfer-encoding", "te"] {
            #expect(throws: MessageError.connectionFieldForbidden) {
                try parse([(":status", "200"), (name, "trailers")])
            }
        }
        #expect(throws: MessageError.fieldValueInvalid) {
            try parse([(":status", "200"), ("x", "a\r\nb")])
        }
    }

    @Test("has trailers without pseudo-fields")
    func trailers() throws {
        let trailers = try ResponseTrailers(block([("grpc-status", "0")]), limits: HeadLimits())
        #expect(String(decoding: trailers.bytes, as: UTF8.self) == "Grpc-Status: 0\r\n\r\n")
        #expect(trailers.fields.count == 1)
        #expect(throws: MessageError.fieldNameInvalid) {
            try ResponseTrailers(block([(":status", "200")]), limits: HeadLimits())
        }
    }
}

@Suite("HTTP/2: a written section")
struct FieldBlockWriterTests {
    private func lines(_ block: FieldBlock) -> [String] {
        block.lines.map { "\(block.text($0.name))=\(block.text($0.value))" }
    }

    @Test("has its names in lower case, pseudo-fields first")
    func written() throws {
        var writer = FieldBlockWriter(status: 204)
        writer.field("X-Request-Id", Array("r1".utf8))
        writer.field("Content-Length", 0)
        let block = try writer.finish()
        #expect(lines(block) == [":status=204", "x-request-id=r1", "content-length=0"])
        #expect(block.lines.map(\.isNeverIndexed) == [false, true, false])
        let source = Array("GET/p a".utf8)
        var request = FieldBlockWriter(
            source, method: 0..<3, scheme: "https", authority: 6..<7, path: 3..<5)
        request.field("X", "y" as StaticString)
        #expect(
            lines(try request.finish())
                == [":method=GET", ":scheme=https", ":authority=a", ":path=/p", "x=y"])
    }

    @Test("is not written where a part cannot stand in a message")
    func refused() {
        var writer = FieldBlockWriter(status: 200)
        writer.field("X", Array("a\r\nb".utf8))
        #expect(throws: HeadWriterError.fieldValueInvalid) { try writer.finish() }
        writer.field(Array("x y".utf8), Array("a".utf8))
        #expect(throws: HeadWriterError.fieldNameInvalid) { try writer.finish() }
        var status = FieldBlockWriter(status: 20)
        #expect(throws: HeadWriterError.firstLineInvalid) { try status.finish() }
        let source = Array("GET /p a".utf8)
        var request = FieldBlockWriter(
            source, method: 0..<3, scheme: "http", authority: 7..<8, path: 3..<6)
        #expect(throws: HeadWriterError.firstLineInvalid) { try request.finish() }
    }
}
