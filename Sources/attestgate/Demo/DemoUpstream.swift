internal import Dispatch
internal import GateBytes
internal import GateHTTP
internal import GateLock
internal import GateRuntime
internal import Glibc

/// The demo's service: knows nothing of App Attest and answers each request with what it got.
///
/// One queue turns all of its connections; what it saw is behind a lock.
final class DemoUpstream: Sendable {
    /// A request as it arrived.
    struct Seen: Sendable {
        let method: String
        let target: String
        let fields: [HTTPField]
        let body: [UInt8]
    }

    private struct State: Sendable {
        var count = 0
        var last: Seen?
        var isStopping = false
        var hasEnded = false
    }

    /// The port on 127.0.0.1.
    let port: UInt16
    private let listener: Int32
    private let state = Lock(State())

    private static let connectionsMax = 256
    private static let turnMilliseconds: Int32 = 50

    /// Starts it on a free port of the loopback.
    static func start() throws(CommandError) -> DemoUpstream {
        let socket = try LoopbackSocket.bind()
        guard listen(socket.descriptor, 64) == 0 else {
            throw .environment("demo upstream: \(SystemError("listen"))")
        }
        let upstream = DemoUpstream(port: socket.port, listener: socket.descriptor)
        DispatchQueue(label: "attestgate.demo.upstream").async { @Sendable in upstream.turn() }
        return upstream
    }

    private init(port: UInt16, listener: Int32) {
        self.port = port
        self.listener = listener
    }

    /// Requests that have arrived.
    var count: Int { state.withLock { $0.count } }

    /// The request that arrived last.
    var last: Seen? { state.withLock { $0.last } }

    /// Stops it and waits for its end.
    func stop() {
        state.withLock { $0.isStopping = true }
        state.wait(seconds: 2, until: { $0.hasEnded }, then: { _ in })
    }

    private func turn() {
        var connections: [DemoConnection] = []
        while !state.withLock({ $0.isStopping }) {
            let readiness = poll(connections)
            var kept: [DemoConnection] = []
            for (index, connection) in connections.enumerated() {
                var connection = connection
                let isOpen =
                    !readiness.ready.contains(index) || connection.advance { note($0) }
                if isOpen {
                    kept.append(connection)
                } else {
                    close(connection.descriptor)
                }
            }
            connections = kept
            if readiness.hasNew, let connection = accept(), connections.count < Self.connectionsMax
            {
                connections.append(connection)
            }
        }
        connections.forEach { close($0.descriptor) }
        close(listener)
        state.withLock { $0.hasEnded = true }
        state.wake()
    }

    private func note(_ seen: Seen) {
        state.withLock { state in
            state.count += 1
            state.last = seen
        }
    }

    private func poll(_ connections: [DemoConnection]) -> (ready: Set<Int>, hasNew: Bool) {
        var entries = connections.map { connection in
            pollfd(
                fd: connection.descriptor,
                events: Int16(POLLIN | (connection.isSending ? POLLOUT : 0)), revents: 0)
        }
        entries.append(pollfd(fd: listener, events: Int16(POLLIN), revents: 0))
        let count = unsafe Glibc.poll(&entries, nfds_t(entries.count), Self.turnMilliseconds)
        guard count > 0 else { return ([], false) }
        let ready = connections.indices.filter { entries[$0].revents != 0 }
        return (Set(ready), entries[connections.count].revents != 0)
    }

    private func accept() -> DemoConnection? {
        let descriptor = Glibc.accept(listener, nil, nil)
        return descriptor < 0 ? nil : DemoConnection(descriptor: descriptor)
    }
}

/// One connection of the demo's service.
private struct DemoConnection {
    let descriptor: Int32
    private var decoder = RequestDecoder(limits: HeadLimits())
    private var buffer = ByteBuffer()
    private var head: RequestHead?
    private var body: [UInt8] = []
    private var output: [UInt8] = []

    private static let bodyBytesMax = 1 << 20

    init(descriptor: Int32) {
        self.descriptor = descriptor
    }

    var isSending: Bool { !output.isEmpty }

    /// Reads and writes what can be. - Returns: Whether the connection goes on.
    mutating func advance(_ note: (DemoUpstream.Seen) -> Void) -> Bool {
        var piece = [UInt8](repeating: 0, count: 32 * 1024)
        let count = unsafe piece.withUnsafeMutableBytes { bytes in
            unsafe recv(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_DONTWAIT))
        }
        if count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR) { return false }
        if count > 0 {
            buffer.append(piece, 0..<count)
            do throws(MessageError) {
                try decode(note)
            } catch {
                return false
            }
        }
        return flush()
    }

    private mutating func decode(_ note: (DemoUpstream.Seen) -> Void) throws(MessageError) {
        while true {
            switch try decoder.next(&buffer) {
            case .body(let range):
                body += buffer.storage[range].prefix(max(0, Self.bodyBytesMax - body.count))
            case .end:
                guard let head else { return }
                let seen = DemoUpstream.Seen(
                    method: head.methodText, target: head.targetText,
                    fields: head.fields.map {
                        HTTPField(head.text($0.name), head.text($0.value))
                    }, body: body)
                note(seen)
                output += DemoEcho.answer(seen)
                self.head = nil
                body = []
            case .head(let head):
                self.head = head
                if head.expectsContinue { output += "HTTP/1.1 100 Continue\r\n\r\n".utf8 }
            case .needMore: return
            }
        }
    }

    private mutating func flush() -> Bool {
        guard !output.isEmpty else { return true }
        let count = unsafe output.withUnsafeBytes { bytes in
            unsafe send(
                descriptor, bytes.baseAddress, bytes.count,
                Int32(MSG_DONTWAIT | MSG_NOSIGNAL))
        }
        if count < 0 { return errno == EAGAIN || errno == EINTR }
        output.removeFirst(count)
        return true
    }
}

/// The answer of the demo's service.
private enum DemoEcho {
    static func answer(_ seen: DemoUpstream.Seen) -> [UInt8] {
        var text = "the service got\n\n\(seen.method) \(seen.target)\n"
        for field in seen.fields { text += "\(field.name): \(field.value)\n" }
        let body = Array(text.utf8) + [0x0a] + seen.body + (seen.body.isEmpty ? [] : [0x0a])
        let head =
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\n"
            + "Content-Length: \(body.count)\r\n\r\n"
        return Array(head.utf8) + (seen.method == "HEAD" ? [] : body)
    }
}

/// A socket bound to a free port of 127.0.0.1.
struct LoopbackSocket {
    let descriptor: Int32
    let port: UInt16

    /// Binds one. With `isShared` others may bind the port as well, so that it can be kept for a
    /// listener that comes later: a bound socket that does not listen takes no connection.
    static func bind(isShared: Bool = false) throws(CommandError) -> LoopbackSocket {
        let descriptor = socket(
            AF_INET,
            Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
                | Int32(SOCK_NONBLOCK.rawValue), 0)
        guard descriptor >= 0 else { throw .environment("\(SystemError("socket"))") }
        var one: Int32 = 1
        let size = socklen_t(MemoryLayout<Int32>.size)
        if isShared {
            // Both: the gate first looks, without sharing, whether somebody listens there.
            _ = unsafe setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &one, size)
            _ = unsafe setsockopt(descriptor, SOL_SOCKET, SO_REUSEPORT, &one, size)
        }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = unsafe withUnsafeMutablePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { raw in
                unsafe Glibc.bind(descriptor, raw, length) == 0
                    && getsockname(descriptor, raw, &length) == 0
            }
        }
        guard isBound else {
            let fault = SystemError("bind")
            close(descriptor)
            throw .environment("127.0.0.1: \(fault)")
        }
        return LoopbackSocket(descriptor: descriptor, port: UInt16(bigEndian: address.sin_port))
    }
}
