import GateBytes
import GateRuntime
import GateTLS
import Testing

@Suite("TLS: the stream behind the handshake")
struct StreamTests {
    private let pair: Pair

    init() throws {
        let certificates = try Certificates.shared.get()
        let server = try TLSServerContext(
            TLSServerSettings(identities: [try certificates.identity("api-ec")]),
            clock: SystemClock())
        let client = try TLSClientContext(
            TLSClientSettings(authorities: certificates.bytes("root.pem")))
        pair = try Pair(server, client)
        try #require(pair.shake())
    }

    private func pattern(_ count: Int) -> [UInt8] {
        var value: UInt32 = 1
        return (0..<count).map { _ in
            value = value &* 1_664_525 &+ 1_013_904_223
            return UInt8(truncatingIfNeeded: value >> 24)
        }
    }

    @Test("megabytes pass both ways at once, each octet at its place")
    func bothWays() throws {
        let server = try #require(pair.server)
        let up = pattern(3_000_001)
        let down = Array(pattern(2_000_003).reversed())
        pair.client.send(up)
        server.send(down)
        pair.run { server.received.count >= up.count && pair.client.received.count >= down.count }
        #expect(server.received == up)
        #expect(pair.client.received == down)
    }

    @Test("a side that does not read holds the other up, and loses nothing")
    func backPressure() throws {
        let server = try #require(pair.server)
        let bytes = pattern(8_000_000)
        pair.client.isReading = false
        server.send(bytes)
        for _ in 0..<20 { pair.loop.turn(waiting: .milliseconds(1)) }
        #expect(pair.client.received.isEmpty)
        pair.client.isReading = true
        pair.client.step()
        pair.run { pair.client.received.count >= bytes.count }
        #expect(pair.client.received == bytes)
    }

    @Test("an end that is said is an end; the other direction stays open")
    func halfClose() throws {
        let server = try #require(pair.server)
        pair.client.send(Array("question".utf8))
        pair.client.tls.shutdownWrites()
        pair.run { server.isEnded }
        #expect(server.received == Array("question".utf8))
        #expect(server.isEnded && server.failure == nil)
        server.send(Array("answer".utf8))
        server.tls.shutdownWrites()
        pair.run { pair.client.isEnded }
        #expect(pair.client.received == Array("answer".utf8))
        #expect(pair.client.isEnded && pair.client.failure == nil)
    }

    @Test("close says the end as well")
    func closeSaysEnd() throws {
        let server = try #require(pair.server)
        server.tls.close()
        server.tls.close()
        pair.run { pair.client.isEnded || pair.client.failure != nil }
        #expect(pair.client.isEnded && pair.client.failure == nil)
    }

    @Test("a stream that was cut is an error for a client")
    func cutAnswer() throws {
        try #require(pair.serverSocket).close()
        pair.run { pair.client.failure != nil || pair.client.isEnded }
        #expect(pair.client.failure != nil)
        #expect(!pair.client.isEnded)
    }

    @Test("a stream that was cut is a plain end for a server, which can still answer")
    func cutRequest() throws {
        let server = try #require(pair.server)
        pair.client.send(Array("half".utf8))
        pair.clientSocket.shutdownWrites()
        pair.run { server.failure != nil || server.isEnded }
        #expect(server.isEnded && server.failure == nil)
        #expect(server.received == Array("half".utf8))
        server.send(Array("answer".utf8))
        pair.run { pair.client.received.count == 6 }
        #expect(pair.client.received == Array("answer".utf8))
    }

    @Test("a connection on which only tickets have come is quiet, one with data or an end is not")
    func quiet() throws {
        let server = try #require(pair.server)
        pair.client.isReading = false
        #expect(pair.client.tls.isQuiet)
        server.send([1])
        for _ in 0..<1000 where pair.client.tls.isQuiet {
            pair.loop.turn(waiting: .milliseconds(1))
        }
        #expect(!pair.client.tls.isQuiet)
        pair.client.isReading = true
        pair.client.ready(.readable)
        #expect(pair.client.received == [1])
        #expect(pair.client.tls.isQuiet)
        server.tls.close()
        for _ in 0..<1000 where pair.client.tls.isQuiet {
            pair.loop.turn(waiting: .milliseconds(1))
        }
        #expect(!pair.client.tls.isQuiet)
    }
}
