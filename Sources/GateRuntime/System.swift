// The system calls of this module, in one file: each reads errno at once and turns it into a value.
// Nothing outside sees a raw pointer.

internal import CGateLinux
internal import GateBytes
internal import Glibc

/// A failed system call: its name and its errno.
package struct SystemError: Error, Equatable, CustomStringConvertible {
    /// The call, `connect`.
    package let call: String
    /// The error number, `ECONNREFUSED`.
    package let code: Int32

    /// The error of `call`, with the errno of this moment unless `code` is given.
    package init(_ call: String, code: Int32? = nil) {
        self.call = call
        self.code = code ?? errno
    }

    /// What the peer said makes no sense to the layer that read it.
    package static let protocolError = EPROTO
    /// The peer has gone without an end.
    package static let connectionReset = ECONNRESET

    /// Whether no descriptor was left, of the process or of the machine.
    package var isDescriptorLimit: Bool { code == EMFILE || code == ENFILE }

    /// `connect: Connection refused`.
    package var description: String {
        let text = unsafe strerror(code)
        return unsafe "\(call): \(text.map { unsafe String(cString: $0) } ?? "error \(code)")"
    }
}

/// An owned descriptor, closed when it goes.
package struct Descriptor: ~Copyable {
    let number: Int32

    init(_ number: Int32) {
        precondition(number >= 0)
        self.number = number
    }

    deinit {
        // Nothing can be done about a failed close, and the number is gone either way.
        _ = close(number)
    }

    /// Gives the descriptor to someone else, unclosed.
    consuming func release() -> Int32 {
        let number = number
        discard self
        return number
    }
}

/// What a read or write on a non-blocking socket did.
package enum Transfer: Equatable, Sendable {
    /// This many bytes moved, at least one.
    case bytes(Int)
    /// The peer has closed its side (reads only).
    case end
    /// Nothing can move now.
    case wouldBlock
}

enum System {
    /// Reads what is there, up to the free space of `buffer` (at least `atLeast` bytes).
    static func read(
        _ descriptor: Int32, into buffer: inout ByteBuffer, atLeast: Int
    ) throws(SystemError) -> Transfer {
        var result = Transfer.wouldBlock
        var failure: SystemError?
        _ = buffer.write(atLeast: atLeast) { span, start in
            let count = unsafe span.withUnsafeMutableBytes { bytes in
                retrying {
                    unsafe recv(
                        descriptor, bytes.baseAddress?.advanced(by: start), bytes.count - start, 0)
                }
            }
            if count > 0 {
                result = .bytes(count)
                return count
            }
            if count == 0 {
                result = .end
            } else if errno != EAGAIN {
                failure = SystemError("recv")
            }
            return 0
        }
        if let failure { throw failure }
        return result
    }

    /// Writes what fits of `bytes[range]`.
    static func write(
        _ descriptor: Int32, _ bytes: [UInt8], _ range: Range<Int>
    ) throws(SystemError) -> Transfer {
        guard !range.isEmpty else { return .bytes(0) }
        let count = unsafe bytes.withUnsafeBytes { all in
            retrying {
                unsafe send(
                    descriptor, all.baseAddress?.advanced(by: range.lowerBound), range.count,
                    Int32(MSG_NOSIGNAL))
            }
        }
        if count >= 0 { return .bytes(count) }
        if errno == EAGAIN { return .wouldBlock }
        throw SystemError("send")
    }

    /// Reads what is there into `bytes`, which has room.
    static func receive(
        _ descriptor: Int32, _ bytes: UnsafeMutableRawBufferPointer
    ) throws(SystemError) -> Transfer {
        let count = retrying { unsafe recv(descriptor, bytes.baseAddress, bytes.count, 0) }
        if count > 0 { return .bytes(count) }
        if count == 0 { return .end }
        if errno == EAGAIN { return .wouldBlock }
        throw SystemError("recv")
    }

    /// Writes what fits of `bytes`, which are not none.
    static func transmit(
        _ descriptor: Int32, _ bytes: UnsafeRawBufferPointer
    ) throws(SystemError) -> Transfer {
        let count = retrying {
            unsafe send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
        }
        if count >= 0 { return .bytes(count) }
        if errno == EAGAIN { return .wouldBlock }
        throw SystemError("send")
    }

    /// Whether an idle socket has neither been closed by its peer nor received anything.
    static func isQuiet(_ descriptor: Int32) -> Bool {
        var byte: UInt8 = 0
        let count = unsafe recv(
            descriptor, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT))
        return count < 0 && errno == EAGAIN
    }

    /// Runs `call` again while a signal interrupts it.
    static func retrying(_ call: () -> Int) -> Int {
        while true {
            let result = call()
            if result < 0, errno == EINTR { continue }
            return result
        }
    }

    /// A non-blocking stream socket of `family`.
    static func streamSocket(_ family: Int32) throws(SystemError) -> Descriptor {
        let number = socket(
            family,
            Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
                | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard number >= 0 else { throw SystemError("socket") }
        return Descriptor(number)
    }

    static func setOption(
        _ descriptor: Int32, _ level: Int32, _ option: Int32, _ value: Int32
    ) throws(SystemError) {
        var value = value
        guard
            unsafe setsockopt(
                descriptor, level, option, &value, socklen_t(MemoryLayout<Int32>.size)) == 0
        else { throw SystemError("setsockopt") }
    }
}
