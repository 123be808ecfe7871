import GateHTTP
import GateProxy
import Testing

private let id = Array("rid-1".utf8)

private func written(
    _ received: [String], nextChallenge: String? = nil, body: DownstreamBody = .length(2),
    connection: ConnectionNote = .persistent
) throws -> [UInt8] {
    var head = try response(received)
    HopByHop.mark(&head)
    return try DownstreamHead.bytes(
        head, date: Array("Mon".utf8), requestID: id,
        nextChallenge: nextChallenge.map { Array($0.utf8) }, body: body,
        connection: connection)
}

@Suite("Downstream head: an upstream's answer")
struct DownstreamHeadTests {
    @Test("status, reason, order and spelling are the upstream's")
    func keeps() throws {
        let bytes = try written([
            "HTTP/1.1 207 Many Things", "x-B: 1", "Set-Cookie: a", "Set-Cookie: b", "Server: s",
            "Content-Length: 2",
        ])
        #expect(
            Array(lines(bytes).prefix(5)) == [
                "HTTP/1.1 207 Many Things", "x-B: 1", "Set-Cookie: a", "Set-Cookie: b", "Server: s",
            ])
    }

    @Test("the upstream's request id and next challenge go, in every spelling")
    func removed() throws {
        for name in ["X-Request-Id", "App-Attest-Next-Challenge"] {
            for spelling in UpstreamHeadTests.spellings(name) {
                let bytes = try written(["HTTP/1.1 200 OK", "\(spelling): theirs"])
                #expect(!text(bytes).contains("theirs"), "\(spelling)")
            }
        }
    }

    @Test("the gate's request id is on every answer, its next challenge where there is one")
    func added() throws {
        let without = try written(["HTTP/1.1 200 OK"])
        #expect(values("X-Request-Id", without) == ["rid-1"])
        #expect(values("App-Attest-Next-Challenge", without).isEmpty)
        let with = try written(["HTTP/1.1 200 OK"], nextChallenge: "id.mac")
        #expect(values("App-Attest-Next-Challenge", with) == ["id.mac"])
    }

    @Test("hop-by-hop fields go, and what Connection names")
    func hopByHop() throws {
        let bytes = try written([
            "HTTP/1.1 200 OK", "Connection: keep-alive, X-Hop", "X-Hop: gone", "Keep-Alive: gone",
            "Upgrade: gone", "Trailer: gone", "Proxy-Connection: gone",
        ])
        #expect(!text(bytes).contains("gone"))
        #expect(values("Connection", bytes).isEmpty)
    }

    @Test("hop-by-hop fields go even from a head that nobody marked")
    func unmarked() throws {
        let head = try response(["HTTP/1.1 200 OK", "Connection: x", "Transfer-Encoding: chunked"])
        let bytes = try DownstreamHead.bytes(
            head, date: Array("Mon".utf8), requestID: id, nextChallenge: nil, body: .chunked,
            connection: .persistent)
        #expect(values("Connection", bytes).isEmpty)
        #expect(values("Transfer-Encoding", bytes) == ["chunked"])
    }

    @Test("the framing is the gate's")
    func framing() throws {
        let received = ["HTTP/1.1 200 OK", "Content-Length: 7"]
        func framing(_ body: DownstreamBody) throws -> [[String]] {
            let bytes = try written(received, body: body)
            return [values("Content-Length", bytes), values("Transfer-Encoding", bytes)]
        }
        #expect(try framing(.length(7)) == [["7"], []])
        #expect(try framing(.chunked) == [[], ["chunked"]])
        #expect(try framing(.none) == [[], []])
        #expect(try framing(.untilClose) == [[], []])
    }

    @Test("the connection's fate is told as the client's version needs it")
    func connection() throws {
        #expect(ConnectionNote(.http11, isPersistent: true) == .persistent)
        #expect(ConnectionNote(.http11, isPersistent: false) == .close)
        #expect(ConnectionNote(.http10, isPersistent: true) == .keepAlive)
        #expect(ConnectionNote(.http10, isPersistent: false) == .close)
        for (note, expected) in [
            (ConnectionNote.close, ["close"]), (.keepAlive, ["keep-alive"]), (.persistent, []),
        ] {
            let bytes = try written(["HTTP/1.1 200 OK"], connection: note)
            #expect(values("Connection", bytes) == expected)
        }
    }

    @Test("an interim answer keeps its fields and gets none")
    func interim() throws {
        var head = try response([
            "HTTP/1.1 103 Early Hints", "Link: </a>; rel=preload", "X-Request-Id: theirs",
        ])
        HopByHop.mark(&head)
        #expect(
            lines(try DownstreamHead.interimBytes(head)) == [
                "HTTP/1.1 103 Early Hints", "Link: </a>; rel=preload",
            ])
    }
}
