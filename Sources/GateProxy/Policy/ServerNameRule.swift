internal import GateBytes
package import GateConfig

/// Which requests a connection may carry, by the name its client's hello asked for (T18).
///
/// A client checked one certificate, and showed its own to one set of authorities; a request for a
/// host with another certificate or other authorities does not belong there and is answered 421, so
/// that an honest client opens a connection of its own. Names that no host has say nothing.
package struct ServerNameRule: Sendable {
    /// The host of every configured name.
    private var hosts: [String: Int] = [:]
    /// The hosts that are served only where certificates, authorities or another setting differ.
    private var strangers: Set<Int> = []

    /// The rule of one listener.
    package init(_ configuration: Configuration, listener: Listener) {
        let alike = configuration.listeners.filter { $0.tls == listener.tls }.map(\.name)
        for (index, host) in configuration.hosts.enumerated() {
            for name in host.names { hosts[name] = index }
            if !host.listeners.contains(where: alike.contains) { strangers.insert(index) }
        }
    }

    /// Whether a request for the host at `index`, asked for as `name`, does not belong on a
    /// connection whose hello asked for `serverName`, in lower case.
    /// - Parameter certificates: Which certificates answer for a name, as a number.
    package func isMisdirected(
        serverName: String, host index: Int, name: ArraySlice<UInt8>,
        certificates: (String) -> Int
    ) -> Bool {
        guard let other = hosts[serverName], other != index else { return false }
        guard !strangers.contains(other) else { return true }
        let asked = String(decoding: name.map(ASCII.lowercased), as: UTF8.self)
        return certificates(serverName) != certificates(asked)
    }
}
