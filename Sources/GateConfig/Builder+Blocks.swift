internal import GateBytes

// Listeners, apps and upstreams.
extension Builder {
    /// Reports a second block of one name; answers the name where it is the first. What stands in a
    /// block is checked whatever its name.
    private mutating func define(
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
            trustedProxies: buildTrusted(
                resolver.setting("trusted_proxies", .listener, in: [body])),
            limits: ListenerLimits(
                connections: limits.count("connections"), perAddress: limits.count("per_address"),
                headerFields: limits.count("header_fields"), headerSize: limits.size("header_size"),
                fieldSize: limits.size("field_size"), targetSize: limits.size("target_size"),
                requests: limits.count("requests")),
            timeouts: ListenerTimeouts(
                handshake: timeouts.duration("handshake"), header: timeouts.duration("header"),
                body: timeouts.duration("body"), bodyMinRate: timeouts.size("body_min_rate"),
                keepalive: timeouts.duration("keepalive"), write: timeouts.duration("write")))
        return name == nil ? nil : listener
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

    private mutating func buildTrusted(_ setting: Setting) -> [Network] {
        let networks = setting.words.compactMap { word -> Network? in
            if case .network(let network) = word.value { network } else { nil }
        }
        let isNone = setting.words.contains { $0.value == .keyword("none") }
        if isNone, setting.words.count > 1, let place = setting.place {
            faults.error(place, "\"none\" beside networks", "write none, or the networks")
        }
        for word in setting.words {
            guard case .network(let network) = word.value, let place = word.place,
                network.prefixLength == 0 || network.address.isIPv4 && network.prefixLength == 96
            else { continue }
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

    mutating func buildUpstream(_ line: ParsedLine) -> Upstream? {
        guard let body = line.body else { return nil }
        let name = define(line, in: \.upstreams)
        requireGiven(line, body)
        func setting(_ name: String) -> Setting { resolver.setting(name, .upstream, in: [body]) }
        let keepalive = setting("keepalive")
        checkIdle(keepalive)
        let upstream = Upstream(
            name: name ?? "", servers: buildServers(body), keepaliveConnections: keepalive.count(),
            keepaliveIdle: keepalive.duration("idle"),
            keepaliveRequests: keepalive.count("requests"),
            resolveEvery: setting("resolve").duration("every"), retries: setting("retry").count(),
            timeouts: Upstream.Timeouts(
                connect: setting("timeouts").duration("connect"),
                firstByte: setting("timeouts").duration("first_byte"),
                idle: setting("timeouts").duration("idle")),
            setFields: body.all("set_field").compactMap { buildField($0, body) })
        return name == nil ? nil : upstream
    }

    private mutating func checkIdle(_ keepalive: Setting) {
        guard let place = keepalive.place, let idle = keepalive.argument("idle"), idle.place != nil,
            keepalive.duration("idle") > .seconds(Defaults.serviceIdleSeconds),
            keepalive.count() > 0
        else { return }
        faults.warning(
            place,
            "idle=\(idle.text) is longer than the \(Defaults.serviceIdleSeconds) s some "
                + "upstreams keep connections; expect 502 on reuse")
    }

    private mutating func buildServers(_ body: ParsedBlock) -> [Upstream.Server] {
        var servers: [Upstream.Server] = []
        for argument in body.all("server").compactMap(\.arguments.first) {
            guard case .server(let endpoint) = argument.value, let place = argument.place else {
                continue
            }
            if servers.contains(where: { $0.endpoint == endpoint }) {
                faults.error(place, "server \(argument.text.quoted) is named twice", "delete one")
            }
            if case .host(let host, _) = endpoint, IPAddress(host) == nil {
                do throws(SourceError) {
                    try source.resolve(host)
                } catch {
                    // No fault: a gate must start before the machine's resolver does, and asks
                    // again.
                    faults.warning(
                        place, "\(host.quoted) does not resolve: \(error.reason)",
                        "correct the name, or let it be: the gate asks again while it runs")
                }
            }
            servers.append(Upstream.Server(endpoint: endpoint, text: argument.text))
        }
        return servers
    }

    private mutating func buildField(_ line: ParsedLine, _ body: ParsedBlock) -> Upstream.SetField?
    {
        guard line.arguments.count == 2, let place = line.arguments[1].place,
            let namePlace = line.arguments[0].place,
            case .reference(let reference) = line.arguments[1].value
        else { return nil }
        let name = line.arguments[0].text
        if let reason = FieldNames.reasonNotToSet(name) {
            faults.error(
                namePlace, "field \(name.quoted) cannot be set: \(reason)", "choose another")
        }
        let earlier = body.all("set_field").first {
            $0.words.first.map { FieldNames.fold($0) == FieldNames.fold(name) } ?? false
        }
        if let earlier, earlier.place != line.place {
            faults.fault(
                .error, line.place, "", and: earlier.place, "",
                "field \(name.quoted) is already set at \(faults.text(earlier.place))", "delete one"
            )
        }
        guard var value = contents(of: reference, "value", at: place) else { return nil }
        while value.last == UInt8(ascii: "\n") || value.last == UInt8(ascii: "\r") {
            value.removeLast()
        }
        let isText = value.allSatisfy { (0x20...0x7e).contains($0) }
        if value.isEmpty || value.first == 0x20 || value.last == 0x20 || !isText
            || value.count > Limits.secretBytesMax
        {
            faults.error(
                place, "\(reference.text) is no field value",
                "it must be 1 to \(Limits.secretBytesMax) bytes of visible ASCII on one line")
        }
        return Upstream.SetField(name: name, value: value)
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
