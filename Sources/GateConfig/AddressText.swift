internal import GateBytes

/// Addresses, servers and networks.
enum AddressText {
    /// `1.2.3.4:443`, `[::1]:443`, `unix:/path` or `systemd:NAME`.
    static func listen(_ text: String) throws(ValueError) -> ListenAddress {
        if let path = text.dropping("unix:") { return .unix(try unixPath(path), mode: 0o660) }
        if let name = text.dropping("systemd:") { return .systemd(try NameText.name(name)) }
        let (host, port) = try split(text, portMin: 0)
        guard IPAddress(host) != nil else {
            let asked = host.isEmpty || host == "*"
            throw ValueError(
                message: "\(text.quoted) is no numeric address",
                remedy: asked
                    ? "write [::]:\(port) or 0.0.0.0:\(port)"
                    : "write 127.0.0.1:\(port) or [::1]:\(port)")
        }
        return .ip(host, port: port)
    }

    /// An address as above, without systemd, or `name:port`.
    static func server(_ text: String) throws(ValueError) -> Upstream.Server.Endpoint {
        if let path = text.dropping("unix:") { return .unix(try unixPath(path)) }
        if text.cut(at: "://").after != nil {
            throw ValueError(
                message: "\(text.quoted) is a URL", remedy: "write \(ValueKind.server.example)")
        }
        let (host, port) = try split(text, portMin: 1)
        if IPAddress(host) == nil {
            guard !text.hasPrefix("["), NameText.isHostName(host) else {
                throw ValueError(
                    message: "\(host.quoted) is no address and no name",
                    remedy: "write \(ValueKind.server.example)")
            }
        }
        return .host(host, port: port)
    }

    /// `10.0.0.0/8`, `::1/128`; the bits after the prefix must be zero.
    static func network(_ text: String) throws(ValueError) -> Network {
        let parts = text.cut(at: "/")
        guard let address = IPAddress(String(parts.before)) else {
            throw ValueError(
                message: "\(text.quoted) is no network",
                remedy: "write \(ValueKind.network.example)")
        }
        let bits = address.isIPv4 ? 32 : 128
        guard let after = parts.after else {
            throw ValueError(
                message: "\(text.quoted) needs a prefix length", remedy: "write \(text)/\(bits)")
        }
        guard after.utf8.allSatisfy(ASCII.isDigit), let length = Int(after), length <= bits else {
            throw ValueError(
                message: "\(String(after).quoted) is no prefix length",
                remedy: "write a number from 0 to \(bits)")
        }
        let mapped = address.isIPv4 ? length + 96 : length
        let masked = address.masked(mapped)
        guard masked == address else {
            throw ValueError(
                message: "\(text.quoted) has bits set after its prefix",
                remedy: "write \(masked)/\(length) or \(address)/\(bits)")
        }
        return Network(address: address, prefixLength: mapped)
    }

    private static func unixPath(_ path: String) throws(ValueError) -> String {
        guard path.hasPrefix("/"), !path.utf8.contains(0) else {
            throw ValueError(
                message: "\(path.quoted) is not an absolute path", remedy: "write unix:/path")
        }
        guard path.utf8.count <= Limits.unixPathBytesMax else {
            throw ValueError(
                message: "the socket path is longer than \(Limits.unixPathBytesMax) bytes",
                remedy: "choose a shorter one")
        }
        return path
    }

    /// The host and port of `text`; the brackets of an IPv6 address are dropped.
    private static func split(
        _ text: String, portMin: UInt16
    ) throws(ValueError) -> (host: String, port: UInt16) {
        if IPAddress(text) != nil {
            let host = text.contains(":") ? "[\(text)]" : text
            throw ValueError(message: "\(text.quoted) needs a port", remedy: "write \(host):8080")
        }
        guard let colon = text.lastIndex(of: ":") else {
            throw ValueError(message: "\(text.quoted) needs a port", remedy: "write \(text):8080")
        }
        let digits = text[text.index(after: colon)...]
        guard digits.utf8.allSatisfy(ASCII.isDigit), let port = UInt16(digits), port >= portMin
        else {
            throw ValueError(
                message: "\(String(digits).quoted) is no port",
                remedy: "write a number from \(portMin) to 65535")
        }
        let host = text[..<colon]
        if host.hasPrefix("["), host.hasSuffix("]") {
            let inside = String(host.dropFirst().dropLast())
            guard inside.contains(":"), IPAddress(inside) != nil else {
                throw ValueError(
                    message: "\(inside.quoted) is no IPv6 address", remedy: "write [::1]:\(port)")
            }
            return (inside, port)
        }
        guard !host.contains(":") else {
            throw ValueError(
                message: "an IPv6 address needs brackets before its port",
                remedy: "write [\(host)]:\(port)")
        }
        return (String(host), port)
    }
}

extension String {
    /// The text after `prefix`; nil when it does not begin with it.
    func dropping(_ prefix: String) -> String? {
        hasPrefix(prefix) ? String(dropFirst(prefix.count)) : nil
    }
}
