internal import GateBytes
internal import GateConfig
internal import GateRuntime

/// Binds the addresses of listeners for all loops.
struct ListenerBinder {
    private let passed: [(name: String, descriptor: Int32)]

    /// - Parameter passed: The sockets that systemd passed.
    init(passed: [(name: String, descriptor: Int32)]) {
        self.passed = passed
    }

    /// One listening socket for each loop.
    func bind(
        _ address: ListenAddress, of listener: String, on loops: [EventLoop]
    ) throws(StartError) -> [ListeningSocket] {
        do throws(SystemError) {
            switch address {
            case .ip(let text, let port):
                if let ip = IPAddress(text) { return try bind(.ip(ip, port: port), on: loops) }
            case .unix(let path, let mode):
                let shared = try ListenerDescriptor.open(.unix(path), mode: UInt32(mode))
                return try share(shared, on: loops)
            case .systemd(let name):
                if let socket = passed.first(where: { $0.name == name }) {
                    return try share(try ListenerDescriptor.passed(socket.descriptor), on: loops)
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
        _ address: SocketAddress, on loops: [EventLoop]
    ) throws(SystemError) -> [ListeningSocket] {
        // Sockets that share a port are one group for the kernel, whoever holds them. Only one that
        // does not share tells whether another process, a second gate, is there already.
        _ = try ListenerDescriptor.open(address)
        var sockets: [ListeningSocket] = []
        for loop in loops { sockets.append(try ListeningSocket.bind(address, on: loop)) }
        return sockets
    }

    private func share(
        _ descriptor: ListenerDescriptor, on loops: [EventLoop]
    ) throws(SystemError) -> [ListeningSocket] {
        var sockets: [ListeningSocket] = []
        for loop in loops { sockets.append(try ListeningSocket.share(descriptor, on: loop)) }
        return sockets
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
