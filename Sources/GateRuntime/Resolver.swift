internal import CGateLinux
internal import Dispatch
package import GateBytes
internal import Glibc

/// Resolves names with `getaddrinfo` on a queue of its own; a loop never waits for it.
package enum Resolver {
    private static let queue = DispatchQueue(label: "attestgate.resolver")

    /// The addresses of `name`, in the system's order, without repeats. Blocks.
    package static func addresses(of name: String) throws(ResolverError) -> [IPAddress] {
        if let literal = IPAddress(name) { return [literal] }
        var hints = unsafe addrinfo()
        unsafe hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        let result = unsafe getaddrinfo(name, nil, &hints, &list)
        guard result == 0 else {
            let text = unsafe gai_strerror(result).map { unsafe String(cString: $0) }
            throw ResolverError(name: name, reason: text ?? "error \(result)")
        }
        defer { unsafe freeaddrinfo(list) }
        var addresses: [IPAddress] = []
        var entry = unsafe list
        while let current = unsafe entry {
            unsafe entry = current.pointee.ai_next
            guard let raw = unsafe current.pointee.ai_addr else { continue }
            var storage = sockaddr_storage()
            unsafe withUnsafeMutableBytes(of: &storage) { bytes in
                unsafe bytes.copyMemory(
                    from: UnsafeRawBufferPointer(
                        start: raw, count: Int(current.pointee.ai_addrlen)))
            }
            if let address = SocketAddress(&storage).ipAddress, !addresses.contains(address) {
                addresses.append(address)
            }
        }
        return addresses
    }

    /// Runs `work`, which may wait for names, on the resolver's queue.
    package static func run(_ work: @escaping @Sendable () -> Void) {
        queue.async(execute: work)
    }
}

/// A name that could not be resolved.
package struct ResolverError: Error, Equatable, CustomStringConvertible {
    /// The name.
    package let name: String
    /// The resolver's words.
    package let reason: String

    /// `name "orders.internal" does not resolve: Name or service not known`.
    package var description: String { "name \"\(name)\" does not resolve: \(reason)" }
}
