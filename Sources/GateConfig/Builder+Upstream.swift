internal import GateBytes

// Upstreams: servers, how they are chosen and watched, fields with secrets.
extension Builder {
    mutating func buildUpstream(_ line: ParsedLine) -> Upstream? {
        guard let body = line.body else { return nil }
        let name = define(line, in: \.upstreams)
        requireGiven(line, body)
        func setting(_ name: String) -> Setting { resolver.setting(name, .upstream, in: [body]) }
        let keepalive = setting("keepalive")
        checkIdle(keepalive)
        let servers = buildServers(body)
        let upstream = Upstream(
            name: name ?? "", servers: servers, keepaliveConnections: keepalive.count(),
            keepaliveIdle: keepalive.duration("idle"),
            keepaliveRequests: keepalive.count("requests"),
            protocol: Upstream.ServiceProtocol(rawValue: setting("protocol").text) ?? .http1,
            resolveEvery: setting("resolve").duration("every"), retries: setting("retry").count(),
            timeouts: Upstream.Timeouts(
                connect: setting("timeouts").duration("connect"),
                firstByte: setting("timeouts").duration("first_byte"),
                idle: setting("timeouts").duration("idle")),
            setFields: body.all("set_field").compactMap { buildField($0, body) },
            tls: body.first("tls").flatMap { buildTLS($0, servers: servers) },
            balance: Upstream.Balance(rawValue: setting("balance").text) ?? .roundRobin,
            health: buildHealth(setting("health")),
            ejection: buildEjection(setting("eject"), body),
            activeLimit: buildActiveLimit(setting("max_active")),
            isLengthRequired: setting("request").text == "length")
        checkProtocol(setting("protocol"), hasTLS: body.first("tls") != nil)
        return name == nil ? nil : upstream
    }

    /// `h2` is chosen in a handshake, `h2c` goes without one.
    private mutating func checkProtocol(_ setting: Setting, hasTLS: Bool) {
        guard let place = setting.words.first?.place, !setting.isFaulty else { return }
        if setting.text == "h2", !hasTLS {
            faults.error(
                place, "protocol h2 needs a tls block",
                "write h2c for HTTP/2 in clear, or add tls { }")
        } else if setting.text == "h2c", hasTLS {
            faults.error(place, "protocol h2c is HTTP/2 in clear", "write h2 beside a tls block")
        }
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
        for line in body.all("server") {
            guard let argument = line.arguments.first, let place = argument.place,
                case .server(let endpoint) = argument.value
            else { continue }
            if servers.contains(where: { $0.endpoint == endpoint }) {
                faults.error(place, "server \(argument.text.quoted) is named twice", "delete one")
            }
            if case .host(let host, _) = endpoint, IPAddress(host) == nil {
                checkResolution(of: host, at: place)
            }
            servers.append(
                Upstream.Server(
                    endpoint: endpoint, text: argument.text, weight: weight(of: line),
                    isBackup: line.arguments.contains { $0.value == .keyword("backup") }))
        }
        if servers.allSatisfy(\.isBackup), let last = body.all("server").last {
            faults.error(
                last.place, "\(body.title) has backup servers only",
                "delete \"backup\" from one of them")
        }
        return servers
    }

    /// Warns of a name that does not resolve. No fault: a gate must start before the machine's
    /// resolver does, and asks again.
    mutating func checkResolution(of host: String, at place: Place) {
        do throws(SourceError) {
            try source.resolve(host)
        } catch {
            faults.warning(
                place, "\(host.quoted) does not resolve: \(error.reason)",
                "correct the name, or let it be: the gate asks again while it runs")
        }
    }

    private func weight(of line: ParsedLine) -> Int {
        guard let argument = line.arguments.first(where: { $0.key == "weight" }),
            case .count(let weight) = argument.value
        else { return 1 }
        return weight
    }

    private mutating func buildHealth(_ setting: Setting) -> Upstream.Health? {
        guard setting.words.count == 2, let place = setting.words[1].place,
            case .path(let path, let isPrefix) = setting.words[1].value
        else { return nil }
        if isPrefix {
            faults.error(
                place, "health asks for one path, not for \(setting.words[1].text.quoted)",
                "write the path of the check, such as /healthz")
        }
        let health = Upstream.Health(
            path: path, status: setting.count("expect"), every: setting.duration("every"),
            timeout: setting.duration("timeout"), rise: setting.count("rise"),
            fall: setting.count("fall"))
        if health.timeout > health.every {
            faults.warning(
                place,
                "timeout=\(setting.argument("timeout")?.text ?? "") is longer than every="
                    + "\(setting.argument("every")?.text ?? ""): checks of a slow server come late",
                "lower the one or raise the other")
        }
        return health
    }

    private mutating func buildEjection(
        _ setting: Setting, _ body: ParsedBlock
    ) -> Upstream.Ejection? {
        guard setting.isGiven, !setting.isFaulty, setting.text != "off" else { return nil }
        if let place = setting.place, let only = body.all("server").first?.arguments.first,
            body.all("server").count == 1, case .server(let endpoint) = only.value,
            endpoint.isOneAddress
        {
            faults.warning(
                place, "eject has no effect: \(body.title) has one server",
                "the last server is never left out")
        }
        return Upstream.Ejection(
            failures: setting.count("after"), within: setting.duration("within"),
            duration: setting.duration("for"))
    }

    private func buildActiveLimit(_ setting: Setting) -> Upstream.ActiveLimit? {
        guard setting.text != "off", !setting.isFaulty else { return nil }
        return Upstream.ActiveLimit(
            requests: setting.count(), waiting: setting.count("queue"),
            wait: setting.duration("wait"))
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

extension Upstream.Server.Endpoint {
    /// Whether it stands for one address; a name may stand for several.
    fileprivate var isOneAddress: Bool {
        switch self {
        case .host(let host, _): IPAddress(host) != nil
        case .unix: true
        }
    }
}
