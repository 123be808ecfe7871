internal import GateBytes

/// An https URL of a service that the gate itself asks, in its parts.
package struct ServiceURL: Sendable, Equatable {
    /// The name in lower case, or the address without brackets.
    package let host: String
    package let port: UInt16
    /// Path and query as they stand in a request line; at least `/`.
    package let target: String

    private static let portDefault: UInt16 = 443

    /// The URL `text`; nil unless it is `https`, with a host and with nothing but visible ASCII,
    /// without user information and fragment.
    package init?(_ text: String) {
        let scheme = "https://"
        guard text.hasPrefix(scheme), text.utf8.allSatisfy({ (0x21...0x7e).contains($0) }) else {
            return nil
        }
        let rest = text.dropFirst(scheme.count)
        guard !rest.contains(where: { "#\\\"<>^`{|}".contains($0) }) else { return nil }
        let end = rest.firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
        let tail = String(rest[end...])
        target = tail.hasPrefix("/") ? tail : "/" + tail
        guard let (host, port) = ServiceURL.split(rest[..<end]) else { return nil }
        self.host = host
        self.port = port
    }

    /// Host and port of an authority without user information.
    private static func split(_ authority: Substring) -> (String, UInt16)? {
        var name = authority
        var port = portDefault
        let nameEnd = authority.lastIndex(of: "]") ?? authority.startIndex
        if let colon = authority[nameEnd...].lastIndex(of: ":") {
            let digits = authority[authority.index(after: colon)...]
            guard digits.utf8.allSatisfy(ASCII.isDigit), let number = UInt16(digits), number > 0
            else { return nil }
            port = number
            name = authority[..<colon]
        }
        if name.hasPrefix("["), name.hasSuffix("]") {
            let address = String(name.dropFirst().dropLast())
            guard address.contains(":"), IPAddress(address) != nil else { return nil }
            return (address, port)
        }
        let host = name.lowercased()
        guard NameText.isHostName(host) else { return nil }
        return (host, port)
    }

    /// What `Host` says: the port is left out where it is that of the scheme.
    package var authority: String {
        let name = host.contains(":") ? "[\(host)]" : host
        return port == ServiceURL.portDefault ? name : "\(name):\(port)"
    }

    /// The same host and port with `target`.
    package func with(target: String) -> ServiceURL {
        ServiceURL(host: host, port: port, target: target)
    }

    private init(host: String, port: UInt16, target: String) {
        self.host = host
        self.port = port
        self.target = target
    }
}

extension Upstream {
    /// An upstream that no block names: the service of a URL that the gate itself asks. It goes
    /// into ``Configuration/implicitUpstreams`` and so is resolved, pooled and reloaded as any.
    /// - Parameters:
    ///   - name: What it is asked for, for logs; with the service it becomes the upstream's name,
    ///     which no block can have, since it holds a space.
    ///   - authorities: PEM of what its certificate may chain to; nil for the system's.
    package static func implicit(
        _ name: String, _ url: ServiceURL, authorities: [UInt8]? = nil
    ) -> Upstream {
        Upstream(
            name: "\(name) https://\(url.authority)",
            servers: [
                Server(endpoint: .host(url.host, port: url.port), text: url.authority)
            ],
            keepaliveConnections: Implicit.keepaliveConnections,
            keepaliveIdle: Implicit.keepaliveIdle, keepaliveRequests: Implicit.keepaliveRequests,
            protocol: .http1, resolveEvery: Implicit.resolveEvery, retries: Implicit.retries,
            timeouts: Timeouts(
                connect: Implicit.connect, firstByte: Implicit.answer, idle: Implicit.answer),
            setFields: [],
            tls: UpstreamTLS(
                isVerified: true, name: "", authorities: authorities, certificate: nil),
            balance: .roundRobin, health: nil, ejection: nil, activeLimit: Implicit.activeLimit,
            isLengthRequired: false)
    }

    /// What holds for services that the gate itself asks over the internet.
    private enum Implicit {
        /// One or two a loop: these are few calls.
        static let keepaliveConnections = 16
        /// Public services keep connections for a minute or more.
        static let keepaliveIdle = Duration.seconds(30)
        static let keepaliveRequests = 1000
        static let resolveEvery = Duration.seconds(60)
        /// Another address of the name, where one takes no connection.
        static let retries = 2
        static let connect = Duration.seconds(3)
        /// Connections of one gate to a service of others, however slow that is.
        static let activeLimit = ActiveLimit(requests: 128, waiting: 512, wait: .seconds(2))
        /// Each call has a deadline of its own, which is shorter.
        static let answer = Duration.seconds(60)
    }
}

extension Builder {
    /// An upstream for `url`, named at `place`; a name that does not resolve is warned about.
    mutating func buildImplicitUpstream(
        _ name: String, _ url: ServiceURL, authorities: [UInt8]? = nil, at place: Place
    ) -> Upstream {
        if IPAddress(url.host) == nil { checkResolution(of: url.host, at: place) }
        return .implicit(name, url, authorities: authorities)
    }
}
