import GateBytes
import GateHTTP
import GateHTTP2
import Testing

@Suite("HTTP/2 session: a client and a server")
struct SessionPairTests {
    let client = Side(.client, limits: HTTP2Limits(resets: nil, control: nil))
    let server = Side(.server)

    @discardableResult
    private func toServer() -> [String] { server.receive(client.send()) }

    @discardableResult
    private func toClient() -> [String] { client.receive(server.send()) }

    @Test("a request and its answer, with an interim one and trailers")
    func exchange() throws {
        let id = try #require(client.session.request(request("POST", "/x"), isEnd: false))
        client.session.send("hello", on: id)
        client.session.end(id)
        #expect(
            toServer() == [
                "head 1 :method=POST :scheme=http :authority=a.test :path=/x", "data 1 hello",
                "end 1",
            ])
        server.session.respond(1, interim: try block(status: 103, [("link", "</a>")]))
        server.session.respond(1, try block(status: 200, [("X-A", "b")]), isEnd: false)
        server.session.send("one", on: 1)
        server.session.send("two", on: 1)
        server.session.end(1, trailers: try trailers([("grpc-status", "0")]))
        #expect(
            toClient() == [
                "interim 1 :status=103 link=</a>", "head 1 :status=200 x-a=b", "data 1 onetwo",
                "trailers 1 grpc-status=0", "end 1", "closed 1 NO_ERROR",
            ])
        #expect(server.events() == ["closed 1 NO_ERROR"])
        #expect(!server.session.isOpen(1))
    }

    @Test("an answer without a body ends with its head")
    func bodiless() throws {
        _ = client.session.request(try request(), isEnd: true)
        #expect(
            toServer() == [
                "head 1 :method=GET :scheme=http :authority=a.test :path=/ end", "end 1",
            ])
        server.session.respond(1, try block(status: 204), isEnd: true)
        #expect(
            toClient() == ["head 1 :status=204 end", "end 1", "closed 1 NO_ERROR"])
    }

    @Test("a body waits for its octets, and for the window")
    func flowControl() throws {
        _ = client.session.request(try request(), isEnd: true)
        toServer()
        server.session.respond(1, try block(status: 200), isEnd: false)
        #expect(toClient() == ["head 1 :status=200"])
        let part = [UInt8](repeating: 0x61, count: 64 * 1024)
        for _ in 0..<6 { server.session.send(part, 0..<part.count, on: 1) }
        #expect(server.session.isCongested(1))
        #expect(server.session.stalledSince(1) != nil)
        let window = 256 * 1024
        var received = 0
        func count(_ said: [String]) -> Int { said.reduce(0) { $0 + $1.utf8.count - 7 } }
        received += count(toClient())
        #expect(received == window)
        #expect(server.session.drainedStreams() == [])
        #expect(toClient() == [])
        client.session.consume(window, of: 1)
        toServer()
        received += count(toClient())
        #expect(received == 6 * part.count)
        #expect(server.session.drainedStreams() == [1])
        #expect(server.session.drainedStreams() == [])
        #expect(server.session.stalledSince(1) == nil)
    }

    @Test("octets wait from when they came or the last of them left, not from the request on")
    func stalls() throws {
        _ = client.session.request(try request(), isEnd: true)
        toServer()
        server.now = 100
        server.session.respond(1, try block(status: 200), isEnd: false)
        let part = [UInt8](repeating: 0x61, count: 400 * 1024)
        server.session.send(part, 0..<part.count, on: 1, now: 1000)
        #expect(server.session.stalledSince(1) == 1000)
        server.now = 2000
        toClient()
        #expect(server.session.stalledSince(1) == 2000)
        server.now = 3000
        toClient()
        #expect(server.session.stalledSince(1) == 2000)
    }

    @Test("a connection holds so much for all its streams")
    func queued() throws {
        toClient()
        let part = [UInt8](repeating: 0x61, count: 60 * 1024)
        var ids: [Int32] = []
        for _ in 0..<20 {
            ids.append(try #require(client.session.request(request(), isEnd: true)))
        }
        toServer()
        var held = 0
        for id in ids {
            server.session.respond(id, try block(status: 200), isEnd: false)
            guard held < HTTP2Session.queuedBytesMax else { continue }
            #expect(!server.session.isCongested(id))
            server.session.send(part, 0..<part.count, on: id)
            held += part.count
        }
        #expect(ids.filter { server.session.isCongested($0) }.count == held / part.count)
        #expect(server.session.drainedStreams() == [])
        toClient()
        #expect(server.session.drainedStreams().count == held / part.count)
    }

    @Test("what is not consumed is not sent for; a stream that goes gives its share back")
    func consumption() throws {
        toClient()
        let part = [UInt8](repeating: 0x61, count: 256 * 1024)
        // Four times a stream's window is the connection's.
        for _ in 0..<5 {
            let id = try #require(client.session.request(request("POST"), isEnd: false))
            client.session.send(part, 0..<part.count, on: id)
        }
        func bodies(_ said: [String]) -> [String: Int] {
            said.filter { $0.hasPrefix("data") }.reduce(into: [:]) { sums, line in
                sums[String(line.prefix(6)), default: 0] += line.utf8.count - 7
            }
        }
        let first = bodies(toServer())
        #expect(first.values.reduce(0, +) == 1024 * 1024)
        toClient()
        #expect(bodies(toServer()) == [:])
        // A window is opened again once half of it has been consumed.
        for stream: Int32 in [1, 3, 5] { server.session.reset(stream, .cancel) }
        toClient()
        #expect(bodies(toServer()).values.reduce(0, +) > 0)
    }

    @Test("a reset is told to both, and nothing is sent on that stream")
    func reset() throws {
        let id = try #require(client.session.request(request("POST"), isEnd: false))
        toServer()
        client.session.reset(id, .cancel)
        #expect(toServer() == ["closed 1 CANCEL"])
        #expect(client.events() == ["closed 1 CANCEL"])
        #expect(!server.session.respond(1, try block(status: 200), isEnd: true))
        server.session.send("late", on: 1)
        server.session.reset(1, .cancel)
        #expect(toClient() == [])
    }

    @Test("an answer that ends before its request tells the client to stop")
    func early() throws {
        let id = try #require(client.session.request(request("POST"), isEnd: false))
        toServer()
        server.session.respond(1, try block(status: 401), isEnd: false)
        server.session.send("no", on: 1)
        server.session.end(1)
        #expect(
            toClient() == ["head 1 :status=401", "data 1 no", "end 1", "closed 1 NO_ERROR"])
        #expect(!client.session.isOpen(id))
    }

    @Test("a GOAWAY lets what was begun end, and refuses the rest")
    func goAway() throws {
        _ = client.session.request(try request(), isEnd: true)
        toServer()
        server.session.announceShutdown()
        #expect(toClient() == ["goaway 2147483647 NO_ERROR"])
        #expect(!client.session.canRequest)
        server.session.sendGoAway()
        #expect(toClient() == ["goaway 1 NO_ERROR"])
        server.session.respond(1, try block(status: 200), isEnd: true)
        #expect(toClient() == ["head 1 :status=200 end", "end 1", "closed 1 NO_ERROR"])
        #expect(client.session.request(try request(), isEnd: true) == nil)
        _ = toServer()
        #expect(server.session.isFinished)
    }

    @Test("no more streams are opened than the server takes")
    func concurrency() throws {
        let client = Side(.client, limits: HTTP2Limits(resets: nil, control: nil))
        let server = Side(.server, limits: HTTP2Limits(streamsMax: 2))
        client.receive(server.send())
        #expect(client.session.peerStreamsMax == 2)
        for _ in 0..<2 { #expect(client.session.request(try request(), isEnd: true) != nil) }
        #expect(client.session.request(try request(), isEnd: true) == nil)
    }

    @Test("what is sent does not depend on how it is cut")
    func everyCut() throws {
        let octets =
            Frames.preface + Frames.request(1, method: "POST", isEnd: false)
            + Frames.data(1, Array("hello".utf8), isEnd: true)
            + Frames.request(3, isWhole: false) + Frames.frame(9, flags: 4, stream: 3)
        let whole = Side(.server).receive(octets)
        #expect(whole.count == 5)
        for cut in 0...octets.count {
            let side = Side(.server)
            let said = side.receive(Array(octets[..<cut])) + side.receive(Array(octets[cut...]))
            #expect(said == whole || said.filter { $0.hasPrefix("data") }.count == 2)
            #expect(said.filter { !$0.hasPrefix("data") } == whole.filter { !$0.hasPrefix("data") })
            #expect(!side.session.isInHeaders)
        }
    }
}
