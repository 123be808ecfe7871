// The `BIO` under a connection: what OpenSSL reads and writes goes straight to the socket, with no
// buffer in between. Not OpenSSL's own socket `BIO`, because that one would let a peer that is gone
// raise SIGPIPE, and because octets of the stream may have been read before TLS began.

internal import CGateOpenSSL
internal import GateBytes
internal import GateRuntime

/// The socket below a connection, and how its last call ended. The owner keeps it as long as the
/// `BIO` lives.
final class Wire {
    let socket: Socket
    /// Octets of the stream that were read before.
    var early: ByteBuffer
    /// Whether the peer has closed the stream.
    private(set) var isEnded = false
    /// The system call that failed.
    private(set) var failure: SystemError?
    /// Octets that may still come before the next of the stream: what a handshake needs many times
    /// over, and all the renegotiations and key updates that an honest peer sends.
    private var quietBytesLeft = Wire.quietBytesMax

    /// A peer that only ever says what concerns TLS itself would keep its loop busy for nothing.
    private static let quietBytesMax = 256 * 1024

    init(_ socket: Socket, early: ByteBuffer) {
        self.socket = socket
        self.early = early
    }

    /// Notes that the peer has said something of use.
    func noteProgress() {
        quietBytesLeft = Wire.quietBytesMax
    }

    fileprivate func read(_ bytes: UnsafeMutableRawBufferPointer) -> Transfer {
        guard quietBytesLeft > 0 else {
            failure = SystemError("SSL_read", code: SystemError.protocolError)
            return .end
        }
        let transfer = unsafe take(bytes)
        if case .bytes(let count) = transfer { quietBytesLeft -= count }
        return transfer
    }

    private func take(_ bytes: UnsafeMutableRawBufferPointer) -> Transfer {
        if !early.isEmpty {
            let count = min(bytes.count, early.count)
            for offset in 0..<count {
                unsafe bytes[offset] = early.storage[early.readable.lowerBound + offset]
            }
            early.consume(count)
            if early.isEmpty { early = ByteBuffer() }
            return .bytes(count)
        }
        do throws(SystemError) {
            let transfer = try unsafe socket.receive(bytes)
            if case .end = transfer { isEnded = true }
            return transfer
        } catch {
            failure = error
            return .end
        }
    }

    fileprivate func write(_ bytes: UnsafeRawBufferPointer) -> Transfer {
        do throws(SystemError) {
            return try unsafe socket.send(bytes)
        } catch {
            failure = error
            return .end
        }
    }
}

enum SocketBIO {
    /// A `BIO` over `wire`, which must outlive it.
    static func make(_ wire: Wire) -> OpaquePointer? {
        guard let bio = unsafe BIO_new(method) else { return nil }
        unsafe BIO_set_data(bio, Unmanaged.passUnretained(wire).toOpaque())
        unsafe BIO_set_init(bio, 1)
        return unsafe bio
    }

    private nonisolated(unsafe) static let method: OpaquePointer? = {
        let type = BIO_get_new_index() | BIO_TYPE_SOURCE_SINK
        guard let method = unsafe BIO_meth_new(type, "gate") else { return nil }
        unsafe BIO_meth_set_read_ex(method) { bio, bytes, count, done in
            let buffer = unsafe UnsafeMutableRawBufferPointer(start: bytes, count: count)
            let transfer = unsafe SocketBIO.wire(bio)?.read(buffer) ?? .end
            return unsafe finish(bio, transfer, done, BIO_FLAGS_READ)
        }
        unsafe BIO_meth_set_write_ex(method) { bio, bytes, count, done in
            let buffer = unsafe UnsafeRawBufferPointer(start: bytes, count: count)
            let transfer = unsafe SocketBIO.wire(bio)?.write(buffer) ?? .end
            return unsafe finish(bio, transfer, done, BIO_FLAGS_WRITE)
        }
        unsafe BIO_meth_set_ctrl(method) { bio, command, _, _ in
            switch command {
            // Nothing is held back, so nothing has to be flushed.
            case BIO_CTRL_FLUSH: return 1
            case BIO_CTRL_EOF: return unsafe SocketBIO.wire(bio)?.isEnded == true ? 1 : 0
            default: return 0
            }
        }
        return unsafe method
    }()

    private static func wire(_ bio: OpaquePointer?) -> Wire? {
        guard let raw = unsafe BIO_get_data(bio) else { return nil }
        return unsafe Unmanaged<Wire>.fromOpaque(raw).takeUnretainedValue()
    }

    private static func finish(
        _ bio: OpaquePointer?, _ transfer: Transfer, _ done: UnsafeMutablePointer<Int>?,
        _ direction: Int32
    ) -> Int32 {
        unsafe BIO_clear_flags(
            bio, BIO_FLAGS_READ | BIO_FLAGS_WRITE | BIO_FLAGS_IO_SPECIAL | BIO_FLAGS_SHOULD_RETRY)
        switch transfer {
        case .bytes(let count):
            unsafe done?.pointee = count
            return 1
        case .wouldBlock:
            unsafe BIO_set_flags(bio, direction | BIO_FLAGS_SHOULD_RETRY)
            return 0
        case .end:
            return 0
        }
    }
}
