internal import CGateLinux
package import GateBytes
internal import Glibc

/// A connected or connecting stream socket: non-blocking, on one loop for life.
package final class Socket: Transport {
    /// Whether the last read took all there was.
    package private(set) var isExhausted = false

    private var descriptor: Descriptor?
    private var registration: EventLoop.Registration?
    private let loop: EventLoop

    /// Bytes of free space offered to each read.
    package static let readBytes = 16 * 1024

    /// Takes over `descriptor`, which must be non-blocking.
    init(_ descriptor: consuming Descriptor, on loop: EventLoop) {
        self.descriptor = consume descriptor
        self.loop = loop
    }

    /// Starts a connection to `address`; the socket becomes writable when it stands or has failed.
    package static func connect(
        to address: SocketAddress, on loop: EventLoop
    ) throws(SystemError) -> Socket {
        let descriptor = try System.streamSocket(address.family)
        let number = descriptor.number
        if address.family != AF_UNIX {
            try System.setOption(number, Int32(IPPROTO_TCP), TCP_NODELAY, 1)
        }
        let result = try unsafe address.withKernelAddress { raw, length in
            unsafe Glibc.connect(number, raw, length)
        }
        // EAGAIN is a unix socket whose backlog is full: a failure, unlike EINPROGRESS.
        guard result == 0 || errno == EINPROGRESS else { throw SystemError("connect") }
        return Socket(descriptor, on: loop)
    }

    /// Registers with the loop, or hands the registration to another handler.
    package func register(_ handler: any EventHandler) throws(SystemError) {
        guard let number = descriptor?.number else { return }
        if let registration { return loop.change(registration, to: handler) }
        registration = try loop.add(number, .stream, handler)
    }

    /// Whether the socket has not been closed here.
    package var isOpen: Bool { descriptor != nil }

    /// Reads what is there into `buffer`.
    package func read(into buffer: inout ByteBuffer) throws(SystemError) -> Transfer {
        guard let number = descriptor?.number else { return .end }
        let transfer = try System.read(number, into: &buffer, atLeast: Socket.readBytes)
        if case .bytes(let count) = transfer {
            isExhausted = count < Socket.readBytes
        } else {
            isExhausted = true
        }
        return transfer
    }

    /// Writes what fits of `bytes[range]`.
    package func write(_ bytes: [UInt8], _ range: Range<Int>) throws(SystemError) -> Transfer {
        guard let number = descriptor?.number else {
            throw SystemError("send", code: EPIPE)
        }
        return try System.write(number, bytes, range)
    }

    /// Reads what is there into `bytes`, which has room: for a layer with buffers of its own.
    package func receive(_ bytes: UnsafeMutableRawBufferPointer) throws(SystemError) -> Transfer {
        guard let number = descriptor?.number else { return .end }
        return try unsafe System.receive(number, bytes)
    }

    /// Writes what fits of `bytes`, which are not none.
    package func send(_ bytes: UnsafeRawBufferPointer) throws(SystemError) -> Transfer {
        guard let number = descriptor?.number else {
            throw SystemError("send", code: EPIPE)
        }
        return try unsafe System.transmit(number, bytes)
    }

    /// The error that a failed connection attempt left; nil when the connection stands.
    package func takeError() -> SystemError? {
        guard let number = descriptor?.number else { return SystemError("connect", code: EBADF) }
        var code: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        guard unsafe getsockopt(number, SOL_SOCKET, SO_ERROR, &code, &length) == 0 else {
            return SystemError("getsockopt")
        }
        return code == 0 ? nil : SystemError("connect", code: code)
    }

    /// Whether nothing has come and the peer has not closed: what a pooled connection must be.
    package var isQuiet: Bool {
        guard let number = descriptor?.number else { return false }
        return System.isQuiet(number)
    }

    /// Closes our side for writing; the peer reads an end of stream.
    package func shutdownWrites() {
        guard let number = descriptor?.number else { return }
        // The peer may be gone already; then there is nothing to tell it.
        _ = shutdown(number, Int32(SHUT_WR))
    }

    /// Makes ``close()`` drop the connection with a reset, so that the peer cannot take a cut-off
    /// message for a whole one.
    package func resetOnClose() {
        guard let number = descriptor?.number else { return }
        var option = linger(l_onoff: 1, l_linger: 0)
        _ = unsafe setsockopt(
            number, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
    }

    /// Ends the registration and closes. Safe to call twice.
    package func close() {
        guard let number = descriptor?.number else { return }
        if let registration { loop.remove(number, registration) }
        registration = nil
        descriptor = nil
    }

    deinit { close() }
}
