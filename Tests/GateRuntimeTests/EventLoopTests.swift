import GateBytes
import GateLock
import GateRuntime
import Glibc
import Testing

/// A clock that only moves when told to.
final class ManualClock: Clock {
    private let moment = Lock(Moment(nanoseconds: 1_000_000_000))

    func now() -> Moment { moment.withLock { $0 } }
    func unixNanoseconds() -> Int64 { now().nanoseconds }
    func advance(_ duration: Duration) { moment.withLock { $0 = $0 + duration } }
}

@Suite("Event loop: deadlines under a clock turned by hand")
struct DeadlineTests {
    let clock = ManualClock()
    let loop: EventLoop

    init() throws {
        loop = try EventLoop(name: "test", clock: clock)
    }

    @Test("a deadline passes once, at its moment and not before")
    func passesOnce() {
        let deadline = Deadline()
        var passed = 0
        deadline.onPassed = { passed += 1 }
        loop.set(deadline, after: .seconds(5))
        clock.advance(.seconds(4))
        loop.turn()
        #expect(passed == 0)
        clock.advance(.seconds(1))
        loop.turn()
        loop.turn()
        #expect(passed == 1)
        #expect(!deadline.isSet)
    }

    @Test("a deadline moved later passes at the later moment only")
    func movedLater() {
        let deadline = Deadline()
        var passed = 0
        deadline.onPassed = { passed += 1 }
        loop.set(deadline, after: .seconds(5))
        for _ in 0..<10 {
            clock.advance(.seconds(3))
            loop.turn()
            loop.set(deadline, after: .seconds(5))
        }
        #expect(passed == 0)
        clock.advance(.seconds(5))
        loop.turn()
        #expect(passed == 1)
    }

    @Test("a deadline moved earlier passes at the earlier moment, once")
    func movedEarlier() {
        let deadline = Deadline()
        var passed = 0
        deadline.onPassed = { passed += 1 }
        loop.set(deadline, after: .seconds(50))
        loop.set(deadline, after: .seconds(1))
        clock.advance(.seconds(1))
        loop.turn()
        #expect(passed == 1)
        clock.advance(.seconds(100))
        loop.turn()
        #expect(passed == 1)
    }

    @Test("a cancelled deadline never passes, and can be set again")
    func cancelled() {
        let deadline = Deadline()
        var passed = 0
        deadline.onPassed = { passed += 1 }
        loop.set(deadline, after: .seconds(1))
        deadline.cancel()
        clock.advance(.seconds(2))
        loop.turn()
        #expect(passed == 0)
        loop.set(deadline, after: .seconds(1))
        clock.advance(.seconds(1))
        loop.turn()
        #expect(passed == 1)
    }

    @Test("many deadlines pass in the order of their moments")
    func order() {
        var generator = SystemRandomNumberGenerator()
        var passed: [Int] = []
        let delays = (1...500).map { $0 }.shuffled(using: &generator)
        let deadlines = delays.map { delay in
            let deadline = Deadline()
            deadline.onPassed = { passed.append(delay) }
            loop.set(deadline, after: .milliseconds(delay))
            return deadline
        }
        clock.advance(.seconds(1))
        loop.turn()
        #expect(passed == Array(1...500))
        #expect(deadlines.allSatisfy { !$0.isSet })
    }
}

@Suite("Event loop: work from other threads and sockets")
struct EventLoopSocketTests {
    let loop: EventLoop

    init() throws {
        loop = try EventLoop(name: "test", clock: SystemClock())
    }

    @Test("work submitted from another thread runs on the loop in order")
    func inbox() async {
        let handle = loop.handle
        let seen = Lock<[Int]>([])
        await Task.detached {
            for index in 0..<100 { handle.submit { seen.withLock { $0.append(index) } } }
        }.value
        turn { seen.withLock { $0.count } == 100 }
        #expect(seen.withLock { $0 } == Array(0..<100))
    }

    @Test("a connection carries bytes both ways and reports the end")
    func echo() throws {
        let listener = try ListeningSocket.bind(
            .ip(IPAddress(ipv4: 0x7f00_0001), port: 0), on: loop)
        let address = try #require(listener.localAddress)
        var accepted: Echo?
        listener.onConnection = { [loop] socket, peer in
            #expect(peer.ipAddress == IPAddress("127.0.0.1"))
            accepted = Echo(socket, on: loop)
        }
        listener.resume()
        let client = Collector(try Socket.connect(to: address, on: loop))
        try client.socket.register(client)
        turn { client.isWritable }
        let text = Array("hello".utf8)
        #expect(try client.socket.write(text, 0..<5) == .bytes(5))
        turn { client.received.count == 5 }
        #expect(client.received == text)
        client.socket.shutdownWrites()
        turn { client.isEnded }
        #expect(client.isEnded)
        #expect(accepted != nil)
    }

    @Test("a refused connection reports its error")
    func refused() throws {
        // Nothing listens on port 1 of loopback.
        let address = SocketAddress.ip(IPAddress(ipv4: 0x7f00_0001), port: 1)
        let client = Collector(try Socket.connect(to: address, on: loop))
        try client.socket.register(client)
        turn { client.isWritable }
        #expect(client.error?.call == "connect")
    }

    @Test("a second process is not robbed of a unix path it serves, a stale path is replaced")
    func unixPath() throws {
        let path = "/tmp/attestgate-test-\(UInt64.random(in: 0...UInt64.max)).sock"
        let first = try ListenerDescriptor.open(.unix(path))
        let error = #expect(throws: SystemError.self) {
            _ = try ListenerDescriptor.open(.unix(path))
        }
        #expect(error?.call == "bind")
        withExtendedLifetime(first) {}
        #expect(unlink(path) == 0)
    }

    /// Turns the loop until `condition` holds or ten seconds have passed.
    private func turn(until condition: () -> Bool) {
        let end = SystemClock().now() + .seconds(10)
        while !condition(), SystemClock().now() < end { loop.turn(waiting: .milliseconds(20)) }
    }
}

/// Sends back what it reads.
private final class Echo: EventHandler {
    let socket: Socket
    private var buffer = ByteBuffer()

    init(_ socket: Socket, on loop: EventLoop) {
        self.socket = socket
        try? socket.register(self)
    }

    func ready(_ readiness: Readiness) {
        while true {
            guard let transfer = try? socket.read(into: &buffer) else { return socket.close() }
            switch transfer {
            case .bytes:
                _ = try? socket.write(buffer.storage, buffer.readable)
                buffer.removeAll()
            case .end: return socket.close()
            case .wouldBlock: return
            }
        }
    }
}

/// Keeps what it reads.
private final class Collector: EventHandler {
    let socket: Socket
    var received: [UInt8] = []
    var isWritable = false
    var error: SystemError?
    var isEnded = false

    init(_ socket: Socket) { self.socket = socket }

    func ready(_ readiness: Readiness) {
        // A read would take the error of a failed connection with it.
        if !isWritable { error = socket.takeError() }
        if readiness.contains(.writable) { isWritable = true }
        guard readiness.contains(.readable) else { return }
        var buffer = ByteBuffer()
        while let transfer = try? socket.read(into: &buffer) {
            switch transfer {
            case .bytes: break
            case .end:
                isEnded = true
                return
            case .wouldBlock:
                received += buffer.storage[buffer.readable]
                return
            }
        }
    }
}
