import GateBytes
import GateHTTP
import Testing

@Suite("Trailers: what of a response's may pass")
struct TrailerTests {
    private func trailers(_ lines: String) throws -> ResponseTrailers {
        var stream = buffer(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\(lines)\r\n")
        var decoder = ResponseDecoder(requestMethodIsHead: false, limits: HeadLimits())
        guard case .head = try decoder.next(&stream), case .end = try decoder.next(&stream) else {
            throw MessageError.bodyTruncated
        }
        return try #require(decoder.trailers)
    }

    private func written(_ lines: String) throws -> String {
        var trailers = try trailers(lines)
        TrailerFields.mark(&trailers)
        var bytes: [UInt8] = []
        ChunkedWriter.appendLast(trailers, to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }

    @Test("they pass in order and as spelled, without the space around their values")
    func pass() throws {
        #expect(
            try written("Grpc-Status: 0\r\nX-sum:  a b \r\nX-sum:\r\n")
                == "0\r\nGrpc-Status: 0\r\nX-sum: a b\r\nX-sum: \r\n\r\n")
        #expect(try written("") == "0\r\n\r\n")
    }

    @Test(
        "none that frames, names somebody, sets a cookie or changes what the head said",
        arguments: [
            "Content-Length", "transfer-encoding", "Trailer", "Connection", "Upgrade", "Host", "TE",
            "Keep-Alive", "Set-Cookie", "Set-Cookie2", "Cookie", "Authorization",
            "WWW-Authenticate", "Proxy-Authenticate", "Proxy-Authorization", "Authentication-Info",
            "Content-Type", "Content-Encoding", "Content-Range", "Cache-Control", "Expires", "Age",
            "Date", "Vary", "Location", "Retry-After", "X-Request-Id", "App-Attest-Next-Challenge",
            "app_attest.verdict", "Set_Cookie", "content.length",
        ])
    func barred(name: String) throws {
        #expect(try written("A: b\r\n\(name): 1\r\nC: d\r\n") == "0\r\nA: b\r\nC: d\r\n\r\n")
    }

    @Test("a client takes them that says so, in HTTP/1.1")
    func accepted() throws {
        func accepts(_ lines: String, version: String = "1.1") throws -> Bool? {
            try RequestHead.parse(
                latin1("GET / HTTP/\(version)\r\nHost: a\r\n\(lines)\r\n"))?.acceptsTrailers
        }
        for line in ["TE: trailers", "te: Trailers", "TE: gzip, trailers", "TE: x\r\nTE: trailers"]
        {
            #expect(try accepts(line + "\r\n") == true, "\(line)")
            #expect(try accepts(line + "\r\n", version: "1.0") == false, "\(line)")
        }
        for line in ["X: trailers", "TE: gzip", "TE: trailersx", "TE:", "Trailer: trailers"] {
            #expect(try accepts(line + "\r\n") == false, "\(line)")
        }
    }
}
