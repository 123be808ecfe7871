// Bindings: what `bind` comes to, and what cannot be right in it (protocol.md §3, conf.md §5).
extension Builder {
    /// What a `bind` line says.
    mutating func binding(_ setting: Setting) -> Route.Binding {
        switch setting.text {
        case "body":
            guard let challenge = setting.argument("challenge") else {
                if let place = setting.place, !setting.isFaulty {
                    faults.error(
                        place, "\"bind body\" does not say where the challenge is",
                        "write challenge=json:/pointer, or challenge=none")
                }
                return .body(.none)
            }
            if case .pointer(let tokens) = challenge.value { return .body(.pointer(tokens)) }
            return .body(.none)
        case "envelope": return .envelope
        case "request": return .request
        default: return .clientData
        }
    }

    /// The field that a key ID may stand in where none is named.
    static var keyIDFieldDefault: String {
        Defaults.keyIDField.split(separator: " ").last.map(String.init) ?? ""
    }

    /// `key_id account` looks keys up by the account, each of them by a signature.
    mutating func checkKeySearch(_ host: Host, _ body: ParsedBlock) {
        guard host.proof.isKeyIDOptional,
            let place = body.first("proof")?.body?.first("key_id")?.place
        else { return }
        let account = resolver.setting("account", .host, in: [body])
        if account.text == "none", !account.isFaulty {
            faults.error(
                place, "\"key_id account\" needs \"account\" in \(body.title)",
                "without accounts there is nothing to find keys by")
        }
        guard let app = top.all("app").first(where: { $0.words.first == host.app }),
            let block = app.body
        else { return }
        let keys = resolver.setting("keys_per_account", .app, in: [block])
        guard keys.count() > Limits.keysTriedMax, let other = keys.place else { return }
        faults.fault(
            .error, place, "", and: other, "",
            "\"key_id account\" tries every key, and app \(host.app.quoted) allows "
                + "\(keys.count()) of an account",
            "write keys_per_account \(Limits.keysTriedMax) or less")
    }

    /// A route that checks proofs, with the lines its binding came from.
    private struct BoundRoute {
        let app: String
        /// `host "api.example.com"`.
        let host: String
        /// Methods and path as written.
        let title: String
        let bind: Setting
        let purpose: String
        let body: Setting
        let inline: Setting
        let line: Place

        /// Where the binding is said, or else the route.
        var place: Place { bind.place ?? line }
        /// The words of the binding as written.
        var text: String { bind.text }
        var isPointed: Bool {
            if case .pointer? = bind.argument("challenge")?.value { return text == "body" }
            return false
        }
        var isUnchallenged: Bool {
            text == "body" && bind.argument("challenge")?.value == .keyword("none")
        }
    }

    mutating func checkBindings() {
        let routes = boundRoutes()
        for route in routes where route.text == "body" {
            faults.warning(
                route.place,
                "bind body does not sign the path: a proof for \(route.title) also fits other "
                    + "routes of app \(route.app.quoted)",
                route.isUnchallenged
                    ? "only the counter stops a replay"
                    : "its challenge's purpose is all that tells it from them")
        }
        checkPurposes(routes.filter(\.isPointed))
        checkFirstRequests(routes.filter { $0.isPointed && $0.inline.text == "on" })
        for route in routes where route.isPointed || route.text == "envelope" {
            checkReadable(route)
        }
        for route in routes where route.inline.text == "on" { checkInline(route) }
        for route in routes where route.isUnchallenged { checkDurability(route) }
    }

    private func boundRoutes() -> [BoundRoute] {
        var found: [BoundRoute] = []
        for host in top.all("host") {
            guard let body = host.body else { continue }
            func add(_ route: ParsedBlock?, _ title: String, _ line: Place) {
                let chain = Self.chain(route, body, top)
                func setting(_ name: String) -> Setting {
                    resolver.setting(name, .route, in: chain)
                }
                let mode = setting("mode").text
                let bind = setting("bind")
                guard route == nil || mode == "enforce" || mode == "monitor", !bind.isFaulty
                else { return }
                found.append(
                    BoundRoute(
                        app: body.first("app")?.words.first ?? "", host: body.title, title: title,
                        bind: bind, purpose: setting("purpose").text, body: setting("body"),
                        inline: setting("inline_enroll"), line: line))
            }
            for line in body.all("route") where line.body != nil {
                add(line.body, line.arguments.map(\.text).joined(separator: " "), line.place)
            }
            if let unmatched = body.first("unmatched"), unmatched.words.first == "enforce" {
                add(nil, "what no route takes", unmatched.place)
            }
        }
        return found
    }

    /// A body says which challenge it answers, and no more: the purpose must tell routes apart.
    private mutating func checkPurposes(_ routes: [BoundRoute]) {
        for (index, later) in routes.enumerated() {
            let earlier = routes[..<index].first {
                $0.app == later.app && $0.purpose == later.purpose
            }
            guard let earlier else { continue }
            faults.fault(
                .error, later.line, "", and: earlier.line, "",
                "two routes of app \(later.app.quoted) with \"bind body\" have the purpose "
                    + later.purpose.quoted,
                "a proof for one would pass on the other; give each a purpose of its own")
        }
    }

    /// A first request answers a challenge for attestations, whatever its route's purpose; that of
    /// another host is another.
    private mutating func checkFirstRequests(_ routes: [BoundRoute]) {
        for (index, later) in routes.enumerated() {
            guard let place = later.inline.place,
                let earlier = routes[..<index].first(where: { $0.host == later.host })
            else { continue }
            faults.fault(
                .error, place, "", and: earlier.line, "",
                "two routes of \(later.host) with \"bind body\" have \"inline_enroll on\"",
                "a first request for one would pass on the other; leave it to one of them, or to "
                    + "the enrolment endpoints")
        }
    }

    /// A body that is read as JSON is read whole.
    private mutating func checkReadable(_ route: BoundRoute) {
        guard route.body.size("max") > Limits.jsonBodyBytesMax,
            let argument = route.body.argument("max"), let place = argument.place
        else { return }
        faults.error(
            place,
            "max=\(argument.text) is more than is read as JSON: \(route.title) has "
                + "\"bind \(route.text)\"",
            "write at most max=\(Limits.jsonBodyBytesMax >> 20)m")
    }

    /// An attestation is over a challenge, and stands in a field.
    private mutating func checkInline(_ route: BoundRoute) {
        guard route.isUnchallenged || route.text == "envelope", let place = route.inline.place
        else { return }
        faults.fault(
            .error, place, "", and: route.place, "",
            "\"inline_enroll on\" does not go with \"bind \(route.text)\" of \(route.title)",
            route.isUnchallenged
                ? "an attestation is over a challenge; write challenge=json:/pointer"
                : "no field may stand beside an envelope; enrol at the endpoints")
    }

    /// Without a challenge nothing but the stored counter stops a replay: it must not be lost.
    private mutating func checkDurability(_ route: BoundRoute) {
        let store = top.first("store")?.body
        let durability = resolver.setting(
            "durability", .store, in: store.map { [$0] } ?? [])
        guard durability.text == "relaxed", let place = durability.place else { return }
        faults.fault(
            .error, route.place, "", and: place, "",
            "\"challenge=none\" needs \"durability strict\"",
            "only the counter stops a replay, and a relaxed one may be lost")
    }
}
