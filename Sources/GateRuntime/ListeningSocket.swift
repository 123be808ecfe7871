internal import CGateLinux
internal import GateBytes
internal import Glibc

/// A listening socket on one loop: each loop binds its own (`SO_REUSEPORT`), or shares a descriptor
/// with the others and is woken alone (`EPOLLEXCLUSIVE`).
///
/// At the descriptor limit it stops accepting for a moment instead of spinning, and tells its
/// owner.
package final class ListeningSocket: EventHandler {
    /// Receives each accepted connection, on the loop.
    package var onConnection: ((Socket, SocketAddress) -> Void)?
    /// Called when accepting fails; the listener pauses by itself where that helps.
    package var onError: ((SystemError) -> Void)?

    private var descriptor: Descriptor?
    private var registration: EventLoop.Registration?
    private let isShared: Bool
    private let isUnix: Bool
    private let loop: EventLoop
    private let pause = Deadline()

    private static let acceptsPerEvent = 64
    private static let pauseAtLimit = Duration.milliseconds(100)

    private init(
        _ descriptor: consuming Descriptor, isShared: Bool, isUnix: Bool, on loop: EventLoop
    ) {
        self.descriptor = consume descriptor
        self.isShared = isShared
        self.isUnix = isUnix
        self.loop = loop
        pause.onPassed = { [weak self] in self?.resume() }
    }

    /// Binds an IP address for this loop alone.
    package static func bind(
        _ address: SocketAddress, backlog: Int32 = 1024, on loop: EventLoop
    ) throws(SystemError) -> ListeningSocket {
        try own(.open(address, backlog: backlog, isReusingPort: true), on: loop)
    }

    /// Listens on a descriptor that is this loop's alone.
    package static func own(
        _ own: ListenerDescriptor, on loop: EventLoop
    ) throws(SystemError) -> ListeningSocket {
        ListeningSocket(try own.take(), isShared: false, isUnix: own.isUnix, on: loop)
    }

    /// Listens on a descriptor that other loops listen on as well.
    package static func share(
        _ shared: ListenerDescriptor, on loop: EventLoop
    ) throws(SystemError) -> ListeningSocket {
        ListeningSocket(try shared.take(), isShared: true, isUnix: shared.isUnix, on: loop)
    }

    /// The address it is bound to: tells the port where 0 was asked for.
    package var localAddress: SocketAddress? {
        guard let number = descriptor?.number else { return nil }
        return SocketAddress.local(of: number)
    }

    /// Starts accepting.
    package func resume() {
        guard let number = descriptor?.number, registration == nil else { return }
        do throws(SystemError) {
            registration = try loop.add(number, .accepting(shared: isShared), self)
        } catch {
            onError?(error)
            loop.set(pause, after: ListeningSocket.pauseAtLimit)
        }
    }

    /// Stops accepting; connections in the backlog stay there.
    package func suspend() {
        guard let number = descriptor?.number, let registration else { return }
        loop.remove(number, registration)
        self.registration = nil
    }

    /// Stops accepting and closes.
    package func close() {
        pause.cancel()
        suspend()
        descriptor = nil
    }

    package func ready(_ readiness: Readiness) {
        for _ in 0..<ListeningSocket.acceptsPerEvent {
            guard let number = descriptor?.number else { return }
            var storage = sockaddr_storage()
            let accepted = unsafe gate_accept(number, &storage)
            if accepted < 0 {
                guard acceptFailed(SystemError("accept4")) else { return }
                continue
            }
            let descriptor = Descriptor(accepted)
            if !isUnix {
                // A connection reset before it was accepted fails here; the first read tells.
                try? System.setOption(accepted, Int32(IPPROTO_TCP), TCP_NODELAY, 1)
            }
            onConnection?(Socket(descriptor, on: loop), SocketAddress(&storage))
        }
    }

    /// - Returns: Whether to go on accepting.
    private func acceptFailed(_ error: SystemError) -> Bool {
        switch error.code {
        case EAGAIN:
            return false
        case ECONNABORTED, EINTR, EPROTO:
            return true
        default:
            onError?(error)
            suspend()
            loop.set(pause, after: ListeningSocket.pauseAtLimit)
            return false
        }
    }
}

/// A bound, listening descriptor that is not yet on any loop: a unix socket, or one that systemd
/// passed.
package final class ListenerDescriptor: Sendable {
    let number: Int32
    let isUnix: Bool

    private init(_ descriptor: consuming Descriptor, isUnix: Bool) {
        number = descriptor.release()
        self.isUnix = isUnix
    }

    deinit { close(number) }

    /// Binds and listens. A unix path left by a process that is gone is replaced, one that still
    /// answers is not.
    package static func open(
        _ address: SocketAddress, backlog: Int32 = 1024, isReusingPort: Bool = false,
        mode: UInt32 = 0o660
    ) throws(SystemError) -> ListenerDescriptor {
        let descriptor = try System.streamSocket(address.family)
        let number = descriptor.number
        if case .unix(let path) = address {
            try removeStale(path)
        } else {
            try System.setOption(number, SOL_SOCKET, SO_REUSEADDR, 1)
            if isReusingPort { try System.setOption(number, SOL_SOCKET, SO_REUSEPORT, 1) }
            if address.family == AF_INET6 {
                let isAny = address.ipAddress == IPAddress(high: 0, low: 0)
                try System.setOption(number, Int32(IPPROTO_IPV6), IPV6_V6ONLY, isAny ? 0 : 1)
            }
        }
        let bound = try unsafe address.withKernelAddress { raw, length in
            unsafe Glibc.bind(number, raw, length)
        }
        guard bound == 0 else { throw SystemError("bind") }
        if case .unix(let path) = address, unsafe chmod(path, mode) != 0 {
            throw SystemError("chmod")
        }
        guard Glibc.listen(number, backlog) == 0 else { throw SystemError("listen") }
        return ListenerDescriptor(descriptor, isUnix: address.family == AF_UNIX)
    }

    /// Takes over a listening descriptor that the service manager passed.
    package static func passed(_ number: Int32) throws(SystemError) -> ListenerDescriptor {
        guard gate_set_nonblocking(number) == 0 else { throw SystemError("fcntl") }
        guard let address = SocketAddress.local(of: number) else {
            throw SystemError("getsockname")
        }
        return ListenerDescriptor(Descriptor(number), isUnix: address.family == AF_UNIX)
    }

    fileprivate func take() throws(SystemError) -> Descriptor {
        let copy = fcntl(number, F_DUPFD_CLOEXEC, 0)
        guard copy >= 0 else { throw SystemError("fcntl") }
        return Descriptor(copy)
    }

    private static func removeStale(_ path: String) throws(SystemError) {
        guard unsafe access(path, F_OK) == 0 else { return }
        let probe = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard probe >= 0 else { throw SystemError("socket") }
        let descriptor = Descriptor(probe)
        let result = try unsafe SocketAddress.unix(path).withKernelAddress { raw, length in
            unsafe Glibc.connect(descriptor.number, raw, length)
        }
        if result == 0 { throw SystemError("bind", code: EADDRINUSE) }
        guard errno == ECONNREFUSED else { throw SystemError("bind", code: EADDRINUSE) }
        guard unsafe unlink(path) == 0 else { throw SystemError("unlink") }
    }
}

extension SystemError {
    /// What an operator can do about a socket that could not be bound; nil where that is not known.
    package var bindRemedy: String? {
        switch code {
        case EADDRINUSE: "stop the process that listens there, or change \"address\""
        case EACCES: "let systemd open the socket and write \"address systemd:NAME\""
        case EADDRNOTAVAIL: "write an \"address\" that this machine has"
        default: nil
        }
    }
}
