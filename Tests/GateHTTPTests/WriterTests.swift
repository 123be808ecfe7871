import GateHTTP
import Testing

@Suite("HeadWriter: the last gate")
struct HeadWriterTests {
    @Test("a request head is written line by line")
    func request() throws {
        var writer = HeadWriter()
        writer.startRequest(latin1("xGET /ay"), method: 1..<4, target: 5..<7)
        writer.field("Host", latin1("a.test"))
        writer.field("X", latin1("-value-"), 1..<6)
        writer.field("Y", "string" + "s")
        writer.field("Z", "static" as StaticString)
        writer.field("Content-Length", 1_234_567_890)
        writer.field(latin1("n"), latin1("v"))
        let expected =
            "GET /a HTTP/1.1\r\nHost: a.test\r\nX: value\r\nY: strings\r\nZ: static\r\n"
            + "Content-Length: 1234567890\r\nn: v\r\n\r\n"
        #expect(try writer.finish() == latin1(expected))
        writer.startRequest(method: .delete, target: "/b?c")
        writer.field("L", 0)
        #expect(try writer.finish() == latin1("DELETE /b?c HTTP/1.1\r\nL: 0\r\n\r\n"))
    }

    @Test("a response head is written line by line")
    func response() throws {
        var writer = HeadWriter()
        writer.startResponse(status: 404, reason: "Not Found")
        #expect(try writer.finish() == latin1("HTTP/1.1 404 Not Found\r\n\r\n"))
        writer.startResponse(status: 200, latin1("xO K"), reason: 1..<4)
        #expect(try writer.finish() == latin1("HTTP/1.1 200 O K\r\n\r\n"))
    }

    @Test("a control octet anywhere writes nothing at all")
    func controls() {
        for octet in (UInt8(0)..<0x20).filter({ $0 != 9 }) + [0x7f] {
            let bad = [0x61, octet, 0x62]
            func error(_ write: (inout HeadWriter) -> Void) -> HeadWriterError? {
                var writer = HeadWriter()
                write(&writer)
                writer.field("After", "x" as StaticString)
                do {
                    _ = try writer.finish()
                    return nil
                } catch {
                    return error
                }
            }
            #expect(
                error { $0.startRequest(bad, method: 0..<3, target: 2..<3) } == .firstLineInvalid)
            #expect(
                error { $0.startRequest(bad, method: 0..<1, target: 0..<3) } == .firstLineInvalid)
            #expect(
                error { $0.startResponse(status: 200, bad, reason: 0..<3) } == .firstLineInvalid)
            #expect(error { $0.field("X", bad) } == .fieldValueInvalid)
            #expect(
                error { $0.field("X", String(decoding: bad, as: UTF8.self)) } == .fieldValueInvalid)
            #expect(error { $0.field(bad, [0x61]) } == .fieldNameInvalid)
            #expect(error { $0.field([0x61], bad) } == .fieldValueInvalid)
            #expect(error { $0.field(bad, name: 0..<3, value: 0..<1) } == .fieldNameInvalid)
            #expect(error { $0.field(bad, name: 0..<1, value: 0..<3) } == .fieldValueInvalid)
        }
    }

    @Test("what is no token, no target, no status and no length writes nothing")
    func otherFaults() {
        func error(_ write: (inout HeadWriter) -> Void) -> HeadWriterError? {
            var writer = HeadWriter()
            write(&writer)
            do {
                _ = try writer.finish()
                return nil
            } catch {
                return error
            }
        }
        let text = latin1("a b#")
        #expect(error { $0.startRequest(text, method: 0..<0, target: 0..<1) } == .firstLineInvalid)
        #expect(error { $0.startRequest(text, method: 0..<3, target: 0..<1) } == .firstLineInvalid)
        #expect(error { $0.startRequest(text, method: 0..<1, target: 0..<0) } == .firstLineInvalid)
        #expect(error { $0.startRequest(text, method: 0..<1, target: 0..<3) } == .firstLineInvalid)
        #expect(error { $0.startRequest(text, method: 0..<1, target: 3..<4) } == .firstLineInvalid)
        #expect(error { $0.startRequest(method: .get, target: "/\r\n") } == .firstLineInvalid)
        #expect(error { $0.startResponse(status: 99, reason: "x") } == .firstLineInvalid)
        #expect(error { $0.startResponse(status: 1000, reason: "x") } == .firstLineInvalid)
        #expect(error { $0.field("X", -1) } == .fieldValueInvalid)
        #expect(error { $0.field("X", "a\nb" as StaticString) } == .fieldValueInvalid)
        #expect(error { $0.field("a b", "c" as StaticString) } == .fieldNameInvalid)
        #expect(error { $0.field("", 1) } == .fieldNameInvalid)
        #expect(error { $0.field([], [0x61]) } == .fieldNameInvalid)
        #expect(error { $0.field("a:", latin1("c")) } == .fieldNameInvalid)
    }

    @Test("the first fault is told, and the writer is then as new")
    func reuse() throws {
        var writer = HeadWriter()
        writer.field("a b", 1)
        writer.field("a", -1)
        #expect(throws: HeadWriterError.fieldNameInvalid) { try writer.finish() }
        writer.startResponse(status: 200, reason: "OK")
        #expect(try writer.finish() == latin1("HTTP/1.1 200 OK\r\n\r\n"))
    }

    @Test("a head that was read, written again, reads the same")
    func roundTrip() throws {
        for text in validHeads {
            let first = try head(text)
            var writer = HeadWriter()
            writer.startRequest(first.bytes, method: first.method, target: first.pathAndQuery)
            for line in first.fields { writer.field(first.bytes, line) }
            let bytes = try writer.finish()
            let second = try #require(try RequestHead.parse(bytes))
            if first.version == .http11 {
                #expect(fieldsOf(second) == fieldsOf(first))
                #expect(second.text(second.pathAndQuery) == first.text(first.pathAndQuery))
                #expect(second.framing == first.framing)
                #expect(second.isPersistent == first.isPersistent)
            }
            writer.startRequest(second.bytes, method: second.method, target: second.target)
            for line in second.fields { writer.field(second.bytes, line) }
            #expect(try writer.finish() == bytes)
        }
    }

    private func fieldsOf(_ head: RequestHead) -> Substring? {
        describe(head).split(separator: "|", omittingEmptySubsequences: false).last
    }
}

@Suite("ChunkedWriter: what it writes is one body")
struct ChunkedWriterTests {
    @Test("every size reads back", arguments: [1, 9, 10, 15, 16, 17, 255, 256, 4095, 65536, 70000])
    func sizes(count: Int) {
        let data = [UInt8](repeating: 0x61, count: count)
        var bytes = latin1(request("POST / HTTP/1.1", "Transfer-Encoding: chunked"))
        ChunkedWriter.append(data, 0..<count, to: &bytes)
        ChunkedWriter.append(data, 0..<0, to: &bytes)
        ChunkedWriter.append(data, 0..<1, to: &bytes)
        ChunkedWriter.appendLast(to: &bytes)
        let trace = decodeRequests([bytes])
        #expect(trace.messages[0].body == data + [0x61])
        #expect(trace.areComplete && trace.left.isEmpty)
    }

    @Test("the bytes are the grammar's")
    func text() {
        var bytes: [UInt8] = []
        ChunkedWriter.append([], 0..<0, to: &bytes)
        #expect(bytes.isEmpty)
        ChunkedWriter.append(latin1("-abcdefghijklmnop-"), 1..<17, to: &bytes)
        ChunkedWriter.appendLast(to: &bytes)
        #expect(bytes == latin1("10\r\nabcdefghijklmnop\r\n0\r\n\r\n"))
    }
}

@Suite("Hop-by-hop: what ends here")
struct HopByHopTests {
    private func kept(_ text: String, protected: [FieldName] = []) throws -> [String] {
        var head = try head(text)
        try HopByHop.mark(&head, protected: protected)
        return head.fields.filter { !$0.isHopByHop }.map { head.text($0.name) }
    }

    @Test("the fields of a hop go, whatever their spelling")
    func always() throws {
        let names = try kept(
            request(
                "GET / HTTP/1.1", "KEEP-alive: 1", "Proxy-Connection: x", "proxy-authorization: x",
                "TE: trailers", "Trailer: X", "Transfer-Encoding: chunked", "Upgrade: h2c",
                "HTTP2-Settings: x", "Connection: close", "A: b", "Expect: 100-continue",
                "Proxy-Authenticate: x", "Keep-Alives: x"))
        #expect(names == ["Host", "A", "Expect", "Proxy-Authenticate", "Keep-Alives"])
    }

    @Test("the fields that Connection names go, on every line of it, before and after")
    func named() throws {
        let names = try kept(
            request(
                "GET / HTTP/1.1", "x-a: 1", "Connection: close, X-A ,,x-b", "X-B: 2", "X-a: 3",
                "connection: X-C", "X-C: 4", "X-D: 5", "X_A: 6", "X-Aa: 7"))
        #expect(names == ["Host", "X-D", "X_A", "X-Aa"])
    }

    @Test(
        "naming a protected field is an error, in every spelling that folds to it",
        arguments: ["Host", "close, AUTHORIZATION", "x,app_attest.key-ID", "authorization"])
    func protected(value: String) {
        let names = [FieldName("Host"), FieldName("Authorization"), FieldName("App-Attest-Key-Id")]
        #expect(throws: MessageError.connectionNamesProtectedField) {
            try kept(request("GET / HTTP/1.1", "Connection: \(value)"), protected: names)
        }
        #expect(throws: Never.self) {
            try kept(request("GET / HTTP/1.1", "Connection: Hosts, auth"), protected: names)
        }
    }

    @Test("a response loses its own")
    func response() throws {
        var decoder = ResponseDecoder(requestMethodIsHead: false, limits: HeadLimits())
        var buffer = buffer(
            "HTTP/1.1 200 \r\nConnection: X, Content-Length\r\nX: 1\r\nKeep-Alive: 2\r\n"
                + "Set-Cookie: 3\r\n\r\n"
        )
        guard case .head(var head) = try decoder.next(&buffer) else {
            Issue.record("expected a head")
            return
        }
        HopByHop.mark(&head)
        let kept = head.fields.filter { !$0.isHopByHop }
        #expect(kept.map { head.text($0.name) } == ["Set-Cookie"])
    }
}
