internal import GateRuntime
internal import Glibc

/// Where a connection goes.
package enum Endpoint: Equatable, Sendable, CustomStringConvertible {
    /// A name or numeric address, and a port.
    case tcp(String, port: UInt16)
    /// A unix socket.
    case unix(String)

    /// The endpoint that `text` is: `host:port`, `[v6]:port` or `unix:/path`; nil when it is none.
    package init?(_ text: String) {
        if text.hasPrefix("unix:") {
            guard text.utf8.count > 5, text.utf8.count < 5 + 108 else { return nil }
            self = .unix(String(text.dropFirst(5)))
        } else {
            guard let split = WebAddress.split(text[...]), let port = split.port else { return nil }
            self = .tcp(split.host, port: port)
        }
    }

    /// As it was written.
    package var description: String {
        switch self {
        case .tcp(let host, let port):
            return host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
        case .unix(let path): return "unix:\(path)"
        }
    }
}

/// What a wait on a socket ended with.
struct SocketReadiness {
    var isReadable = false
    var isWritable = false
}

/// A stream socket of a command: never blocks but in ``wait(writing:milliseconds:)``.
struct ClientSocket: ~Copyable {
    private let descriptor: Int32

    private init(adopting descriptor: Int32) {
        self.descriptor = descriptor
    }

    deinit { close(descriptor) }

    /// A connection to `endpoint`; tries each address of a name in turn.
    static func connect(
        _ endpoint: Endpoint, milliseconds: Int32
    ) throws(HTTPClientError) -> ClientSocket {
        switch endpoint {
        case .tcp(let host, let port):
            return try connect(host, port, milliseconds: milliseconds)
        case .unix(let path):
            return try connect(unix: path, milliseconds: milliseconds)
        }
    }

    private static func connect(
        _ host: String, _ port: UInt16, milliseconds: Int32
    ) throws(HTTPClientError) -> ClientSocket {
        var hints = unsafe addrinfo()
        unsafe hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        unsafe hints.ai_flags = AI_NUMERICSERV
        var list: UnsafeMutablePointer<addrinfo>?
        let result = unsafe getaddrinfo(host, String(port), &hints, &list)
        guard result == 0 else {
            let reason = unsafe gai_strerror(result).map { unsafe String(cString: $0) } ?? ""
            throw .connection("\"\(host)\" does not resolve: \(reason)")
        }
        defer { unsafe freeaddrinfo(list) }
        var reason = "no address"
        var entry = unsafe list
        while let current = unsafe entry {
            unsafe entry = current.pointee.ai_next
            let descriptor = open(unsafe current.pointee.ai_family)
            guard descriptor >= 0 else {
                reason = "\(SystemError("socket"))"
                continue
            }
            let socket = ClientSocket(adopting: descriptor)
            let code = unsafe Glibc.connect(
                descriptor, current.pointee.ai_addr, current.pointee.ai_addrlen)
            if let failure = socket.finishConnecting(code, milliseconds) {
                reason = failure
                continue
            }
            return socket
        }
        throw .connection("\(Endpoint.tcp(host, port: port)): \(reason)")
    }

    private static func connect(
        unix path: String, milliseconds: Int32
    ) throws(HTTPClientError) -> ClientSocket {
        let descriptor = open(AF_UNIX)
        guard descriptor >= 0 else { throw .connection("\(SystemError("socket"))") }
        let socket = ClientSocket(adopting: descriptor)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8)
        let isFitting = unsafe withUnsafeMutableBytes(of: &address.sun_path) { room in
            guard bytes.count < room.count else { return false }
            unsafe room.copyBytes(from: bytes)
            return true
        }
        guard isFitting else { throw .connection("unix:\(path): path is too long") }
        let code = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { raw in
                unsafe Glibc.connect(descriptor, raw, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        if let failure = socket.finishConnecting(code, milliseconds) {
            throw .connection("unix:\(path): \(failure)")
        }
        return socket
    }

    private static func open(_ family: Int32) -> Int32 {
        socket(
            family,
            Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
                | Int32(SOCK_NONBLOCK.rawValue), 0)
    }

    /// Waits until the connection stands. - Returns: Why it does not; nil when it does.
    private borrowing func finishConnecting(_ result: Int32, _ milliseconds: Int32) -> String? {
        if result == 0 { return nil }
        guard errno == EINPROGRESS || errno == EAGAIN else { return "\(SystemError("connect"))" }
        guard let ready = wait(reading: false, writing: true, milliseconds: milliseconds) else {
            return "no connection in time"
        }
        guard ready.isWritable else { return "no connection" }
        var code: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        guard unsafe getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &length) == 0 else {
            return "\(SystemError("getsockopt"))"
        }
        return code == 0 ? nil : "\(SystemError("connect", code: code))"
    }

    /// Waits until the socket can be read or, where asked for, written; nil when the time is over.
    borrowing func wait(
        reading: Bool = true, writing: Bool, milliseconds: Int32
    ) -> SocketReadiness? {
        var entry = pollfd()
        entry.fd = descriptor
        entry.events = Int16((reading ? POLLIN : 0) | (writing ? POLLOUT : 0))
        while true {
            let count = unsafe poll(&entry, 1, milliseconds)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return nil }
            let ended = Int32(entry.revents) & (POLLHUP | POLLERR) != 0
            return SocketReadiness(
                isReadable: ended || Int32(entry.revents) & POLLIN != 0,
                isWritable: Int32(entry.revents) & POLLOUT != 0)
        }
    }

    /// Sends what fits of `bytes` from `start` on. - Returns: How much; nil when the peer takes no
    /// more.
    borrowing func send(_ bytes: [UInt8], from start: Int) -> Int? {
        let count = unsafe bytes.withUnsafeBytes { all in
            unsafe Glibc.send(
                descriptor, all.baseAddress?.advanced(by: start), bytes.count - start,
                Int32(MSG_NOSIGNAL))
        }
        if count >= 0 { return count }
        return errno == EAGAIN || errno == EINTR ? 0 : nil
    }

    /// What is there to read, empty when nothing is; nil at the end.
    borrowing func receive() -> [UInt8]? {
        var piece = [UInt8](repeating: 0, count: 32 * 1024)
        let count = unsafe piece.withUnsafeMutableBytes { buffer in
            unsafe recv(descriptor, buffer.baseAddress, buffer.count, 0)
        }
        if count > 0 { return Array(piece[..<count]) }
        return count < 0 && (errno == EAGAIN || errno == EINTR) ? [] : nil
    }
}
