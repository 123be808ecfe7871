import GateBytes
import GateHTTP
import GateRuntime
import Glibc
import Testing

@testable import GateProxy

/// What a connection tells its request.
private final class Listener: UpstreamChannelUser {
    var isConnected = false
    var drainedCount = 0
    var failure: UpstreamFailure?
    var isDownstreamCongested: Bool { false }

    func connected() { isConnected = true }
    func received(interim head: ResponseHead) {}
    func received(head: ResponseHead) {}
    func received(body bytes: [UInt8], _ range: Range<Int>) {}
    func receivedEnd(trailers: ResponseTrailers?) {}
    func drained() { drainedCount += 1 }
    func paused() {}
    func failed(_ failure: UpstreamFailure) { self.failure = failure }
    func deadlinePassed() {}
}

/// A server's end that takes what is sent only when told to.
private struct Server {
    let listener: Int32
    let port: UInt16

    init() throws {
        let number = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let name = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { raw in
                guard bind(number, raw, length) == 0, listen(number, 1) == 0 else { return -1 }
                return Int(getsockname(number, raw, &length))
            }
        }
        try #require(name == 0)
        listener = number
        port = UInt16(bigEndian: address.sin_port)
    }

    /// Reads what has come, and no more.
    static func takeAll(_ connection: Int32) {
        var piece = [UInt8](repeating: 0, count: 1 << 16)
        while recv(connection, &piece, piece.count, Int32(MSG_DONTWAIT)) > 0 {}
    }
}

@Suite("Upstream connection: who was refused is told")
struct UpstreamConnectionTests {
    @Test("a write that was refused is followed by a word, also where the next one was not")
    func drainedAfterRefusal() throws {
        let server = try Server()
        defer { close(server.listener) }
        let loop = try EventLoop(name: "test", clock: SystemClock())
        let user = Listener()
        let address = try #require(IPAddress("127.0.0.1"))
        let connection = try loop.run {
            Result {
                try UpstreamConnection(
                    to: .ip(address, port: server.port), security: nil, memory: SpareMemory(),
                    on: loop, user: user)
            }
        }.get()
        let peer = accept(server.listener, nil, nil)
        defer { close(peer) }
        while !user.isConnected, user.failure == nil { loop.turn(waiting: .milliseconds(100)) }
        let block = [UInt8](repeating: 0x78, count: 1 << 20)
        loop.run {
            connection.begin(
                UpstreamRequestHead(
                    form: .http1(Array("PUT / HTTP/1.1\r\n\r\n".utf8)), body: .length(1 << 30),
                    isHead: false, limits: HeadLimits()))
            // Full, then empty again before the loop looks: no event finds anything left to write.
            repeat { connection.write(body: block, 0..<block.count) } while connection.flush()
            while !connection.flush() { Server.takeAll(peer) }
        }
        #expect(user.drainedCount == 0)
        for _ in 0..<100 where user.drainedCount == 0 { loop.turn(waiting: .milliseconds(20)) }
        #expect(user.drainedCount == 1)
        #expect(user.failure == nil)
        loop.run { connection.close() }
    }
}
