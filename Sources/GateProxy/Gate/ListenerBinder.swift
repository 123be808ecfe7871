internal import GateBytes
internal import GateConfig
internal import GateRuntime

/// An address that is bound and on no loop yet.
struct BoundAddress: Sendable {
    let address: ListenAddress
    /// The listener's name.
    let listener: String
    private let descriptors: [ListenerDescriptor]

    /// - Parameter descriptors: One that loops share, or one for each.
    init(_ address: ListenAddress, of listener: String, _ descriptors: [ListenerDescriptor]) {
        self.address = address
        self.listener = listener
        self.descriptors = descriptors
    }

    /// The socket of the loop with this number.
    func socket(_ index: Int, on loop: EventLoop) throws(SystemError) -> ListeningSocket {
        guard descriptors.count > 1 else {
            return try ListeningSocket.share(descriptors[0], on: loop)
        }
        return try ListeningSocket.own(descriptors[index], on: loop)
    }
}

/// Binds the addresses of listeners for all loops.
struct ListenerBinder {
    private let passed: [(name: String, descriptor: Int32)]

    /// - Parameter passed: The sockets that systemd passed.
    init(passed: [(name: String, descriptor: Int32)]) {
        self.passed = passed
    }

    /// Binds what `listeners` listen on for so many loops, but for the addresses that are bound.
    func bind(
        _ listeners: [ListenerRuntime], but bound: [ListenAddress], loops: Int
    ) throws(StartError) -> [BoundAddress] {
        var added: [BoundAddress] = []
        for listener in listeners.map(\.listener) {
            for address in listener.addresses where !bound.contains(address) {
                added.append(try bind(address, of: listener.name, loops: loops))
            }
        }
        return added
    }

    private func bind(
        _ address: ListenAddress, of listener: String, loops: Int
    ) throws(StartError) -> BoundAddress {
        do throws(SystemError) {
            switch address {
            case .ip(let text, let port):
                if let ip = IPAddress(text) {
                    return BoundAddress(
                        address, of: listener, try bind(.ip(ip, port: port), loops: loops))
                }
            case .unix(let path, let mode):
                let shared = try ListenerDescriptor.open(.unix(path), mode: UInt32(mode))
                return BoundAddress(address, of: listener, [shared])
            case .systemd(let name):
                if let socket = passed.first(where: { $0.name == name }) {
                    return BoundAddress(
                        address, of: listener,
                        [try ListenerDescriptor.passed(socket.descriptor)])
                }
            }
        } catch {
            throw StartError(
                "listener \"\(listener)\", \(ListenerBinder.text(address)): \(error)"
                    + (error.bindRemedy.map { "; \($0)" } ?? ""))
        }
        let names = passed.map(\.name).joined(separator: ", ")
        throw StartError(
            "listener \"\(listener)\", \(ListenerBinder.text(address)): "
                + "systemd passed no such socket" + (names.isEmpty ? "" : "; passed: \(names)"))
    }

    private func bind(
        _ address: SocketAddress, loops: Int
    ) throws(SystemError) -> [ListenerDescriptor] {
        // Sockets that share a port are one group for the kernel, whoever holds them. Only one that
        // does not share tells whether another process, a second gate, is there already.
        _ = try ListenerDescriptor.open(address)
        var descriptors: [ListenerDescriptor] = []
        for _ in 0..<loops {
            descriptors.append(try ListenerDescriptor.open(address, isReusingPort: true))
        }
        return descriptors
    }

    private static func text(_ address: ListenAddress) -> String {
        switch address {
        case .ip(let text, let port):
            return text.contains(":") ? "[\(text)]:\(port)" : "\(text):\(port)"
        case .systemd(let name): return "systemd:\(name)"
        case .unix(let path, _): return "unix:\(path)"
        }
    }
}
