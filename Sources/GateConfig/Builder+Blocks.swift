internal import GateBytes

// Listeners and apps.
extension Builder {
    /// Reports a second block of one name; answers the name where it is the first. What stands in a
    /// block is checked whatever its name.
    mutating func define(
        _ line: ParsedLine, in places: WritableKeyPath<BlockPlaces, [String: Place]>
    ) -> String? {
        guard let name = line.words.first else { return nil }
        if let earlier = self.places[keyPath: places][name] {
            faults.fault(
                .error, line.place, "", and: earlier, "",
                "\(line.directive.name) \(name.quoted) is already defined at "
                    + faults.text(earlier),
                "rename one or delete it")
            return nil
        }
        self.places[keyPath: places][name] = line.place
        return name
    }

    mutating func buildListener(_ line: ParsedLine) -> Listener? {
        guard let body = line.body else { return nil }
        let name = define(line, in: \.listeners)
        let limits = resolver.setting("limits", .listener, in: [body])
        let timeouts = resolver.setting("timeouts", .listener, in: [body])
        checkHeadSizes(limits)
        let listener = Listener(
            name: name ?? "", addresses: buildAddresses(line, body),
            tls: body.first("tls").flatMap { buildTLS($0) },
            proxySources: buildProxySources(
                resolver.setting("proxy_protocol", .listener, in: [body])),
            trustedProxies: buildTrusted(
                resolver.setting("trusted_proxies", .listener, in: [body])),
            http: buildProtocols(
                resolver.setting("http", .listener, in: [body]),
                hasTLS: body.first("tls") != nil),
            limits: ListenerLimits(
                connections: limits.count("connections"), perAddress: limits.count("per_address"),
                headerFields: limits.count("header_fields"), headerSize: limits.size("header_size"),
                fieldSize: limits.size("field_size"), targetSize: limits.size("target_size"),
                requests: limits.count("requests"), h2Streams: limits.count("h2_streams"),
                h2Resets: limits.rate("h2_resets") ?? .none,
                h2Control: limits.rate("h2_control") ?? .none),
            timeouts: ListenerTimeouts(
                handshake: timeouts.duration("handshake"), header: timeouts.duration("header"),
                body: timeouts.duration("body"), bodyMinRate: timeouts.size("body_min_rate"),
                keepalive: timeouts.duration("keepalive"), write: timeouts.duration("write"),
                tunnel: timeouts.duration("tunnel"), tunnelMax: timeouts.duration("tunnel_max")))
        return name == nil ? nil : listener
    }

    /// What a listener speaks: as written, else HTTP/1.1, and HTTP/2 where there is TLS to choose
    /// it in.
    private mutating func buildProtocols(_ setting: Setting, hasTLS: Bool) -> HTTPProtocols {
        guard setting.isGiven else { return hasTLS ? [.h1, .h2] : .h1 }
        var protocols: HTTPProtocols = []
        for word in setting.words {
            let one: HTTPProtocols
            switch word.text {
            case "h2": one = .h2
            case "h2c": one = .h2c
            default: one = .h1
            }
            guard let place = word.place else { continue }
            if protocols.contains(one) {
                faults.error(place, "\(word.text.quoted) is named twice", "delete one")
            } else if one == .h2, !hasTLS {
                faults.error(
                    place, "\"h2\" needs tls in the same listener",
                    "in clear text it is called h2c")
            } else if one == .h2c, hasTLS {
                faults.error(
                    place, "\"h2c\" is HTTP/2 in clear text, and this listener has tls",
                    "write h2, or give clear text a listener of its own")
            }
            protocols.insert(one)
        }
        return protocols
    }

    /// A field or a target that may be larger than the whole head says something that cannot be.
    /// One that nobody wrote is only a bound that the head's comes before.
    private mutating func checkHeadSizes(_ limits: Setting) {
        let whole = limits.size("header_size")
        for key in ["field_size", "target_size"] where limits.size(key) > whole {
            guard let argument = limits.argument(key), let place = argument.place else { continue }
            faults.warning(
                place,
                "\(key)=\(argument.text) is more than the whole head, "
                    + "header_size=\(limits.argument("header_size")?.text ?? "")",
                "lower the one or raise the other")
        }
    }

    private mutating func buildProxySources(_ setting: Setting) -> [Network] {
        for word in setting.words where word.isEveryNetwork {
            guard let place = word.place else { continue }
            faults.warning(
                place, "proxy_protocol from \(word.text) lets every client say who it is",
                "name the addresses of your own balancers")
        }
        return setting.words.compactMap(\.network)
    }

    private mutating func buildTrusted(_ setting: Setting) -> [Network] {
        let networks = setting.words.compactMap(\.network)
        let isNone = setting.words.contains { $0.value == .keyword("none") }
        if isNone, setting.words.count > 1, let place = setting.place {
            faults.error(place, "\"none\" beside networks", "write none, or the networks")
        }
        for word in setting.words where word.isEveryNetwork {
            guard let place = word.place else { continue }
            faults.warning(
                place, "trusted_proxies \(word.text) trusts every client",
                "name the addresses of your own proxies")
        }
        return networks
    }

    mutating func buildApp(_ line: ParsedLine) -> App? {
        guard let body = line.body else { return nil }
        let name = define(line, in: \.apps)
        requireGiven(line, body)
        func setting(_ name: String) -> Setting { resolver.setting(name, .app, in: [body]) }
        var appIDs: [String] = []
        for argument in body.all("app_id").flatMap(\.arguments) {
            if appIDs.contains(argument.text), let place = argument.place {
                faults.error(place, "app_id \(argument.text.quoted) is named twice", "delete one")
            }
            appIDs.append(argument.text)
            if argument.text.prefix(while: { $0 != "." }).count != 10, let place = argument.place {
                faults.warning(
                    place, "the prefix of \(argument.text.quoted) has not ten characters",
                    "it is the team ID or the App ID prefix of the developer account")
            }
        }
        let app = App(
            name: name ?? "", appIDs: appIDs,
            environment: App.Environment(rawValue: setting("environment").text) ?? .production,
            root: buildRoot(setting("root")),
            receipts: App.Receipts(rawValue: setting("receipts").text) ?? .verify,
            keysPerAccount: setting("keys_per_account").count(),
            challengeHash: App.ChallengeHash(rawValue: setting("challenge_hash").text) ?? .bytes)
        return name == nil ? nil : app
    }

    private mutating func buildRoot(_ setting: Setting) -> [UInt8]? {
        guard let argument = setting.words.first, let place = argument.place,
            case .reference(let reference) = argument.value
        else { return nil }
        faults.warning(
            place, "root \(argument.text) replaces Apple's root",
            "attestations of devices that chain to it pass; meant for tests")
        guard let bytes = contents(of: reference, "certificate", at: place) else { return nil }
        switch CertificateText.decode(bytes) {
        case .one(let der): return der
        case .several(let count):
            faults.error(
                place, "\(argument.text) holds \(count) certificates", "leave the root only")
        case .unreadable:
            faults.error(place, "\(argument.text) is no certificate", "write PEM or DER into it")
        }
        return nil
    }
}

extension ParsedArgument {
    /// The network it is; nil where it is none.
    fileprivate var network: Network? {
        if case .network(let network) = value { network } else { nil }
    }

    /// Whether it is a network that every address is in.
    fileprivate var isEveryNetwork: Bool {
        guard let network else { return false }
        return network.prefixLength == 0 || network.address.isIPv4 && network.prefixLength == 96
    }
}

/// Which field names may be configured, and how names are compared: case folded, `_` and `.` as
/// `-`.
enum FieldNames {
    /// The name as it is compared.
    static func fold(_ name: String) -> String {
        String(
            decoding: name.utf8.map { byte in
                byte == UInt8(ascii: "_") || byte == UInt8(ascii: ".")
                    ? UInt8(ascii: "-") : ASCII.lowercased(byte)
            }, as: UTF8.self)
    }

    /// Fields that frame or route a message, or that say who sends it.
    private static let messageFields: Set<String> = [
        "authorization", "connection", "content-encoding", "content-length", "content-type",
        "cookie",
        "expect", "host", "keep-alive", "proxy", "proxy-authorization", "proxy-connection", "te",
        "trailer", "transfer-encoding", "upgrade",
    ]

    /// Why the gate cannot set this field for an upstream; nil where it can.
    static func reasonNotToSet(_ name: String) -> String? {
        let name = fold(name)
        if name == "authorization" || name == "cookie" || name == "content-type" { return nil }
        if messageFields.contains(name) { return "it belongs to the message itself" }
        if name.hasPrefix("app-attest-") || name.hasPrefix("x-forwarded-") || name == "x-request-id"
            || name == "via" || name == "idempotency-key"
        {
            return "the gate sets it"
        }
        return nil
    }

    /// Whether a field says how a message is framed or whom it is for.
    static func isOfMessage(_ name: String) -> Bool {
        let name = fold(name)
        return messageFields.contains(name) && name != "authorization" && name != "cookie"
    }

    /// Why a proof or an account cannot be read from this field; nil where it can.
    static func reasonNotToRead(_ name: String) -> String? {
        let name = fold(name)
        if messageFields.contains(name) { return "it belongs to the message itself" }
        if name.hasPrefix("x-forwarded-") || name == "x-request-id" || name == "via"
            || name == "forwarded"
        {
            return "proxies set it"
        }
        return nil
    }

    /// Why a part of a proof cannot be read from this field; nil where it can.
    static func reasonNotToProve(_ name: String) -> String? {
        gateFields.contains(fold(name)) ? "the gate sets it" : reasonNotToRead(name)
    }

    /// Fields that the gate alone writes: from a client none of them is read.
    private static let gateFields: Set<String> = [
        "app-attest-account", "app-attest-app", "app-attest-counter", "app-attest-next-challenge",
        "app-attest-risk", "app-attest-verdict", "app-attest-verified-key",
    ]
}

/// Addresses as text, compared as addresses.
enum IPText {
    static func isSame(_ left: String, _ right: String) -> Bool {
        IPAddress(left) == IPAddress(right)
    }

    /// Whether an address can be reached from outside: none of loopback, private, link-local.
    static func isPublic(_ text: String) -> Bool {
        guard let address = IPAddress(text) else { return false }
        return !privateNetworks.contains { $0.contains(address) }
    }

    private static let privateNetworks: [Network] = [
        "127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16",
        "100.64.0.0/10", "::1/128", "fc00::/7", "fe80::/10",
    ].compactMap { text in
        do throws(ValueError) {
            return try AddressText.network(text)
        } catch {
            return nil
        }
    }
}
