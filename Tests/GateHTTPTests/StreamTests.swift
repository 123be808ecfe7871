import GateBytes
import GateHTTP
import Testing

@Suite("Stream: one request after another")
struct StreamTests {
    @Test("pipelined requests come out in order, each judged afresh")
    func pipeline() {
        let text =
            request("GET /1 HTTP/1.1")
            + request("POST /2 HTTP/1.1", "Content-Length: 2", body: "{}")
            + request("POST /3 HTTP/1.1", "Transfer-Encoding: chunked")
            + "1\r\nx\r\n0\r\nA: b\r\n\r\n"
            + "\r\nGET /4 HTTP/1.0\r\nHost: other\r\n\r\n"
        let trace = decodeRequests(text)
        #expect(
            trace.messages.map { $0.head.split(separator: "|")[1] } == ["/1", "/2", "/3", "/4"])
        #expect(trace.bodies == ["", "{}", "x", ""])
        #expect(trace.messages[3].head.contains("|other|other|http10|none|close|"))
        #expect(trace.areComplete)
        let bad = decodeRequests(request("GET /1 HTTP/1.1") + "GET /2 HTTP/1.1\r\n\r\n")
        #expect(bad.messages.count == 1 && bad.error == .hostMissing)
    }

    @Test("the decoder says whether a head has begun")
    func state() throws {
        var decoder = RequestDecoder(limits: HeadLimits())
        var buffer = ByteBuffer()
        func feed(_ text: String) throws -> RequestEvent {
            buffer.append(latin1(text))
            return try decoder.next(&buffer)
        }
        #expect(decoder.isIdle && !decoder.isHeadStarted && !decoder.isFinished)
        _ = try feed("\r")
        #expect(decoder.isIdle && !decoder.isHeadStarted)
        _ = try feed("\n")
        #expect(decoder.isIdle && !decoder.isHeadStarted)
        _ = try feed("G")
        #expect(!decoder.isIdle && decoder.isHeadStarted)
        _ = try feed("ET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 1\r\n\r\n")
        #expect(!decoder.isIdle && !decoder.isHeadStarted)
        _ = try feed("x")
        #expect(!decoder.isIdle && !decoder.isFinished)
        guard case .end = try decoder.next(&buffer) else {
            Issue.record("expected the end")
            return
        }
        #expect(!decoder.isIdle && decoder.isFinished)
    }

    @Test("after an error every call gives it")
    func errorStays() {
        var decoder = RequestDecoder(limits: HeadLimits())
        var buffer = ByteBuffer()
        buffer.append(latin1(" " + request("GET / HTTP/1.1")))
        #expect(throws: MessageError.methodInvalid) { try decoder.next(&buffer) }
        buffer.removeAll()
        buffer.append(latin1(request("GET / HTTP/1.1")))
        #expect(throws: MessageError.methodInvalid) { try decoder.next(&buffer) }
        #expect(!decoder.isIdle)
    }

    @Test("a head belongs to itself: the buffer may be written over")
    func ownership() throws {
        var decoder = RequestDecoder(limits: HeadLimits())
        var buffer = ByteBuffer()
        buffer.append(latin1(request("GET /first HTTP/1.1", "A: b")))
        guard case .head(let head) = try decoder.next(&buffer) else {
            Issue.record("expected a head")
            return
        }
        buffer.append([UInt8](repeating: 0x78, count: 1000))
        #expect(describe(head).hasPrefix("GET|/first|"))
        #expect(head.bytes == latin1(request("GET /first HTTP/1.1", "A: b")))
    }

    @Test("a body range is valid in the buffer although consumed")
    func bodyRange() throws {
        var decoder = RequestDecoder(limits: HeadLimits())
        var buffer = ByteBuffer()
        buffer.append(latin1(request("POST / HTTP/1.1", "Content-Length: 3", body: "abc")))
        _ = try decoder.next(&buffer)
        guard case .body(let range) = try decoder.next(&buffer) else {
            Issue.record("expected a body")
            return
        }
        #expect(buffer.isEmpty)
        #expect(Array(buffer.storage[range]) == latin1("abc"))
    }
}
