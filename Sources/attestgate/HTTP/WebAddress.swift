/// An `http` URL, split where a request needs it: whom to ask, and for what. The target's bytes are
/// left as they were written, since a gate judges and signs exactly those.
package struct WebAddress: Equatable, Sendable {
    /// Host and port as written, for the `Host` field.
    package let authority: String
    /// The host, without the brackets of an IPv6 address.
    package let host: String
    /// The port, 80 where none is written.
    package let port: UInt16
    /// Path and query, `/` where there is none.
    package let target: String

    /// Why a text is no such URL.
    package enum Fault: Error, Equatable, Sendable {
        /// Something else than `http://host[:port][/…]`.
        case malformed
        /// The scheme is `https`.
        case secure
    }

    /// The URL that `text` is. A fragment is dropped, as it never leaves a client.
    package init(_ text: String) throws(Fault) {
        let scheme = text.prefix { $0 != ":" }.lowercased()
        if scheme == "https" { throw .secure }
        guard scheme == "http", text.dropFirst(4).hasPrefix("://"),
            text.utf8.allSatisfy({ (0x21...0x7e).contains($0) })
        else { throw .malformed }
        let rest = text.dropFirst("http://".count).prefix { $0 != "#" }
        let authority = rest.prefix { $0 != "/" && $0 != "?" }
        let target = rest[authority.endIndex...]
        self.target = target.hasPrefix("/") ? String(target) : "/" + target
        self.authority = String(authority)
        guard let split = WebAddress.split(authority) else { throw .malformed }
        host = split.host
        port = split.port ?? 80
    }

    /// The path of ``target``, without its query.
    package var path: String { String(target.prefix { $0 != "?" }) }

    /// `http://host[:port]`.
    package var origin: String { "http://" + authority }

    /// Host and port of `host`, `host:port`, `[v6]` or `[v6]:port`.
    package static func split(_ authority: Substring) -> (host: String, port: UInt16?)? {
        guard !authority.contains("@") else { return nil }
        let host: Substring
        let rest: Substring
        if authority.hasPrefix("[") {
            guard let end = authority.firstIndex(of: "]") else { return nil }
            host = authority[authority.index(after: authority.startIndex)..<end]
            rest = authority[authority.index(after: end)...]
        } else {
            host = authority.prefix { $0 != ":" }
            rest = authority[host.endIndex...]
        }
        guard !host.isEmpty else { return nil }
        if rest.isEmpty { return (String(host), nil) }
        let digits = rest.dropFirst()
        guard rest.hasPrefix(":"), digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            let port = UInt16(digits), port > 0
        else { return nil }
        return (String(host), port)
    }
}
