import GateHTTP
import Testing

private let opening = """
    GET /live HTTP/1.1\r
    Host: a.test\r
    Connection: keep-alive, Upgrade\r
    Upgrade: websocket\r
    Sec-WebSocket-Version: 13\r
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r
    \r

    """

private func key(_ text: String) throws -> String? {
    let head = try #require(try RequestHead.parse(latin1(text)))
    return WebSocketHandshake.key(of: head).map(head.text)
}

@Suite("WebSocket: the opening handshake")
struct WebSocketTests {
    @Test("a whole one is known by its key")
    func good() throws {
        #expect(try key(opening) == "dGhlIHNhbXBsZSBub25jZQ==")
        for (old, new) in [
            ("Upgrade: websocket", "UPGRADE: WebSocket"),
            ("Connection: keep-alive, Upgrade", "Connection: upgrade"),
            ("Connection: keep-alive, Upgrade", "Connection: x\r\nConnection: UPGRADE"),
            ("dGhlIHNhbXBsZSBub25jZQ==", "+/+/+/+/+/+/+/+/+/+/+w=="),
        ] {
            #expect(try key(opening.replacing(old, with: new)) != nil, "\(new)")
        }
    }

    @Test(
        "what lacks anything is none",
        arguments: [
            ("GET /live", "POST /live"), ("GET /live", "HEAD /live"),
            ("HTTP/1.1\r\nHost", "HTTP/1.0\r\nHost"),
            ("Host: a.test", "Host: a.test\r\nContent-Length: 0"),
            ("Host: a.test", "Host: a.test\r\nContent-Length: 2"),
            ("Host: a.test", "Host: a.test\r\nTransfer-Encoding: chunked"),
            ("keep-alive, Upgrade", "keep-alive"), ("keep-alive, Upgrade", "upgraded"),
            ("Upgrade: websocket", "X: y"), ("Upgrade: websocket", "Upgrade: h2c"),
            ("Upgrade: websocket", "Upgrade: websocket, h2c"),
            ("Upgrade: websocket", "Upgrade: websocket\r\nUpgrade: websocket"),
            ("Upgrade: websocket", "Upgrade: websocket/13"), ("Upgrade: websocket", "Upgrade:"),
            ("Version: 13", "Version: 999"), ("Version: 13", "Version: 8, 13"),
            ("Version: 13", "Version: 013"), ("Version: 13", "Version:"),
            ("Version: 13", "Version: 13\r\nSec-WebSocket-Version: 13"),
            ("Sec-WebSocket-Version: 13\r\n", ""),
            ("Sec-WebSocket-Version", "Sec.WebSocket.Version"),
            ("dGhlIHNhbXBsZSBub25jZQ==", "dGhlIHNhbXBsZSBub25jZQ"),
            ("dGhlIHNhbXBsZSBub25jZQ==", "dGhlIHNhbXBsZSBub25jZR=="),
            ("dGhlIHNhbXBsZSBub25jZQ==", "dGhlIHNhbXBsZSBub25jZQAA"),
            ("dGhlIHNhbXBsZSBub25jZQ==", "dGhlIHNhbXBsZSBub25j"),
            ("dGhlIHNhbXBsZSBub25jZQ==", "-_-_-_-_-_-_-_-_-_-_-w=="),
            ("dGhlIHNhbXBsZSBub25jZQ==", ""),
            (
                "dGhlIHNhbXBsZSBub25jZQ==",
                "dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
            ),
        ])
    func none(old: String, new: String) throws {
        let text = opening.replacing(old, with: new)
        #expect(text != opening)
        #expect(try key(text) == nil)
    }

    @Test("what is hashed is the key and the protocol's own text")
    func accepted() {
        let expected = "dGhlIHNhbXBsZSBub25jZQ==258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        #expect(
            WebSocketHandshake.accepted(key: latin1("dGhlIHNhbXBsZSBub25jZQ==")) == latin1(expected)
        )
    }

    private static let answer = """
        HTTP/1.1 101 Switching Protocols\r
        Upgrade: websocket\r
        Connection: Upgrade\r
        Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r
        \r

        """

    private func isAccepted(_ text: String) throws -> Bool {
        var stream = buffer(text)
        var decoder = ResponseDecoder(
            requestMethodIsHead: false, limits: HeadLimits(), expectsUpgrade: true)
        guard case .head(let head) = try decoder.next(&stream) else { return false }
        return WebSocketHandshake.isAccepted(
            head, accept: latin1("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="))
    }

    @Test("an answer accepts with 101, both fields and the right hash, and with nothing less")
    func acceptance() throws {
        #expect(try isAccepted(Self.answer))
        for (old, new) in [
            ("Upgrade: websocket", "upgrade: WEBSOCKET"),
            ("Connection: Upgrade", "Connection: x, upgrade"),
        ] {
            #expect(try isAccepted(Self.answer.replacing(old, with: new)), "\(new)")
        }
        for (old, new) in [
            ("101 Switching Protocols", "200 OK"),
            ("101 Switching Protocols", "426 Upgrade Required"),
            ("HTTP/1.1", "HTTP/1.0"), ("Upgrade: websocket", "Upgrade: h2c"),
            ("Upgrade: websocket", "X: y"), ("Connection: Upgrade", "Connection: keep-alive"),
            ("Connection: Upgrade", "X: y"), ("s3pP", "S3pP"), ("xOo=", "xOo"),
            ("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", "X: y"),
            (
                "Sec-WebSocket-Accept",
                "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nSec-WebSocket-Accept"
            ),
        ] {
            let text = Self.answer.replacing(old, with: new)
            #expect(text != Self.answer)
            #expect(try !isAccepted(text), "\(new)")
        }
    }
}
