internal import CGateLinux
package import GateBytes
internal import Glibc

/// A socket address: IP and port, or a unix path.
package enum SocketAddress: Hashable, Sendable, CustomStringConvertible {
    case ip(IPAddress, port: UInt16)
    case unix(String)

    /// `10.0.0.1:80`, `[::1]:80`, `unix:/path`.
    package var description: String {
        switch self {
        case .ip(let address, let port):
            return address.isIPv4 ? "\(address):\(port)" : "[\(address)]:\(port)"
        case .unix(let path):
            return "unix:\(path)"
        }
    }

    /// The IP address; nil for a unix socket.
    package var ipAddress: IPAddress? {
        guard case .ip(let address, _) = self else { return nil }
        return address
    }

    var family: Int32 {
        switch self {
        case .ip(let address, _): return address.isIPv4 ? AF_INET : AF_INET6
        case .unix: return AF_UNIX
        }
    }

    /// Runs `body` with the address as the kernel takes it.
    func withKernelAddress<Result>(
        _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
    ) throws(SystemError) -> Result {
        switch self {
        case .ip(let address, let port) where address.isIPv4:
            var raw = sockaddr_in()
            raw.sin_family = sa_family_t(AF_INET)
            raw.sin_port = port.bigEndian
            raw.sin_addr.s_addr = UInt32(truncatingIfNeeded: address.low).bigEndian
            return unsafe SocketAddress.with(&raw, body)
        case .ip(let address, let port):
            var raw = sockaddr_in6()
            raw.sin6_family = sa_family_t(AF_INET6)
            raw.sin6_port = port.bigEndian
            unsafe withUnsafeMutableBytes(of: &raw.sin6_addr) { bytes in
                unsafe bytes.storeBytes(of: address.high.bigEndian, as: UInt64.self)
                unsafe bytes.storeBytes(
                    of: address.low.bigEndian, toByteOffset: 8, as: UInt64.self)
            }
            return unsafe SocketAddress.with(&raw, body)
        case .unix(let path):
            var raw = sockaddr_un()
            raw.sun_family = sa_family_t(AF_UNIX)
            let bytes = Array(path.utf8)
            guard bytes.count < MemoryLayout.size(ofValue: raw.sun_path) else {
                throw SystemError("bind", code: ENAMETOOLONG)
            }
            unsafe withUnsafeMutableBytes(of: &raw.sun_path) { unsafe $0.copyBytes(from: bytes) }
            return unsafe SocketAddress.with(&raw, body)
        }
    }

    private static func with<Raw, Result>(
        _ raw: inout Raw, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
    ) -> Result {
        unsafe withUnsafePointer(to: &raw) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                unsafe body(address, socklen_t(MemoryLayout<Raw>.size))
            }
        }
    }

    /// The address `descriptor` is bound to; nil when it is no socket.
    static func local(of descriptor: Int32) -> SocketAddress? {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let result = unsafe withUnsafeMutablePointer(to: &storage) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                unsafe getsockname(descriptor, address, &length)
            }
        }
        return result == 0 ? SocketAddress(&storage) : nil
    }

    /// The address in `storage`; a unix peer has no path worth keeping.
    init(_ storage: inout sockaddr_storage) {
        switch Int32(storage.ss_family) {
        case AF_INET:
            let raw = unsafe withUnsafeBytes(of: &storage) { unsafe $0.load(as: sockaddr_in.self) }
            self = .ip(
                IPAddress(ipv4: UInt32(bigEndian: raw.sin_addr.s_addr)),
                port: UInt16(bigEndian: raw.sin_port))
        case AF_INET6:
            var raw = unsafe withUnsafeBytes(of: &storage) {
                unsafe $0.load(as: sockaddr_in6.self)
            }
            let port = UInt16(bigEndian: raw.sin6_port)
            let (high, low) = unsafe withUnsafeBytes(of: &raw.sin6_addr) { bytes in
                unsafe (
                    UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self)),
                    UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
                )
            }
            self = .ip(IPAddress(high: high, low: low), port: port)
        default:
            self = .unix("")
        }
    }
}
