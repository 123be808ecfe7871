// Routes, and the stand-in for requests that none takes.
extension Builder {
    /// The blocks that a route's directives come from, the nearest first.
    static func chain(_ route: ParsedBlock?, _ host: ParsedBlock, _ top: ParsedBlock)
        -> [ParsedBlock]
    {
        [route, host.first("defaults")?.body, top.first("defaults")?.body].compactMap { $0 }
    }

    mutating func buildRoute(
        _ line: ParsedLine, _ host: ParsedBlock, _ built: Host
    ) -> Route? {
        guard let body = line.body else { return nil }
        let chain = Self.chain(body, host, top)
        var route = route(chain, line.place)
        if resolver.setting("mode", .route, in: chain).isFaulty || line.isFaulty {
            places.unclear.insert(line.place)
        }
        guard line.arguments.count == 2, case .methods(let methods) = line.arguments[0].value,
            case .path(let path, let isPrefix) = line.arguments[1].value
        else { return nil }
        route.methods = methods
        route.path = path
        route.isPrefix = isPrefix
        route.name =
            ([built.names.first ?? ""] + line.arguments.map(\.text)).joined(separator: " ")
        let upstream = resolver.setting("upstream", .route, in: chain)
        if let argument = upstream.words.first {
            let defined = top.all("upstream").compactMap(\.words.first)
            if check(argument, names: "upstream", among: defined) {
                route.upstream = argument.text
            }
        } else if upstream.place == nil {
            route.upstream = built.upstream
        }
        if upstream.place != nil, route.upstream.isEmpty { places.unclear.insert(line.place) }
        checkUpgrade(body, methods)
        checkRequirements(body, route)
        checkSetBits(body, route)
        checkShare(route, chain, host, built)
        if case .deny = route.mode, upstream.words.first == nil { route.upstream = "" }
        return route
    }

    /// The policy of a host's unmatched requests: what `defaults` say.
    mutating func buildUnmatched(_ host: ParsedBlock, _ line: ParsedLine) -> Route {
        route(Self.chain(nil, host, top), line.place)
    }

    /// What the blocks of `chain` say, without method, path and upstream.
    private mutating func route(_ chain: [ParsedBlock], _ place: Place) -> Route {
        func setting(_ name: String) -> Setting { resolver.setting(name, .route, in: chain) }
        let body = setting("body")
        let timeouts = setting("timeouts")
        let bytesMax = body.size("max")
        return Route(
            name: "", methods: [], path: "", isPrefix: true, mode: mode(setting("mode")),
            share: share(setting("mode")), fallback: fallback(setting("fallback")),
            setBits: setBits(setting("set_bits")),
            requirements: requirements(chain), binding: binding(setting("bind")),
            purpose: setting("purpose").text,
            isInlineEnrolment: setting("inline_enroll").text == "on", bodyBytesMax: bytesMax,
            bodyMemoryBytes: min(body.size("memory"), bytesMax), upstream: "",
            bodyTimeout: timeouts.optionalDuration("body"),
            bodyMinRate: timeouts.optionalSize("body_min_rate"),
            writeTimeout: timeouts.optionalDuration("write"),
            tunnelTimeout: timeouts.optionalDuration("tunnel"),
            tunnelMax: timeouts.optionalDuration("tunnel_max"),
            connectTimeout: timeouts.optionalDuration("connect"),
            firstByteTimeout: timeouts.optionalDuration("first_byte"),
            idleTimeout: timeouts.optionalDuration("idle"),
            isWebSocket: setting("upgrade").text == "websocket",
            isProofPassed: setting("pass_proof").text == "on",
            place: "\(faults.files[place.file].name):\(place.line)")
    }

    /// A WebSocket begins with GET and nothing else.
    private mutating func checkUpgrade(_ body: ParsedBlock, _ methods: [String]) {
        guard let line = body.first("upgrade"), !methods.isEmpty, !methods.contains("GET") else {
            return
        }
        faults.error(
            line.place, "\"upgrade websocket\" on a route that does not take GET",
            "write GET among its methods, or delete the line")
    }

    private func mode(_ setting: Setting) -> Route.Mode {
        switch setting.text {
        case "off": return .off
        case "monitor": return .monitor
        case "deny":
            if case .count(let status)? = setting.words.last?.value { return .deny(status) }
            return .deny(404)
        default: return .enforce
        }
    }
}
