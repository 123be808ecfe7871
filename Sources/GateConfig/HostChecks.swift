// What cannot be right in one host (conf.md §1, §5).
extension Builder {
    /// One route with the lines it came from.
    struct PlacedRoute {
        let route: Route
        let line: ParsedLine
        let key: [UInt8]

        var place: Place { line.place }
        /// `enforce`, `deny 404`.
        var modeText: String {
            switch route.mode {
            case .deny(let status): "deny \(status)"
            case .enforce: "enforce"
            case .monitor: "monitor"
            case .off: "off"
            }
        }
    }

    mutating func checkHost(_ host: Host, _ line: ParsedLine, _ body: ParsedBlock) {
        let lines = body.all("route").filter {
            $0.arguments.count == 2 && $0.body != nil
        }
        let routes = zip(host.routes, lines).map { route, line in
            PlacedRoute(
                route: route, line: line, key: RoutePattern.wideKey(Array(route.path.utf8)))
        }
        let clear = routes.filter { !places.unclear.contains($0.place) }
        checkNeeds(host, line, body, clear)
        checkUnderEnroll(host, body, routes)
        checkOverlaps(clear)
        checkShadows(clear)
        checkMethods(host, clear)
    }

    /// What is enforced or enrolled needs an app; what is forwarded needs an upstream.
    private mutating func checkNeeds(
        _ host: Host, _ line: ParsedLine, _ body: ParsedBlock, _ routes: [PlacedRoute]
    ) {
        let unmatched = body.first("unmatched")
        if body.first("app") == nil {
            let needing = routes.first { $0.route.mode == .enforce || $0.route.mode == .monitor }
            if let needing {
                faults.fault(
                    .error, line.place, "", and: needing.place, needing.modeText,
                    "\"app\" is missing in \(body.title)",
                    "\(needing.line.title) checks proofs; write app NAME")
            } else if host.unmatched == .enforce, let unmatched {
                faults.fault(
                    .error, line.place, "", and: unmatched.place, "",
                    "\"app\" is missing in \(body.title)",
                    "\"unmatched enforce\" checks proofs; write app NAME")
            } else if let enroll = body.first("enroll") {
                faults.fault(
                    .error, line.place, "", and: enroll.place, "",
                    "\"app\" is missing in \(body.title)",
                    "\"enroll\" enrols its keys; write app NAME")
            }
        }
        guard body.first("upstream") == nil else { return }
        let forwarding = routes.first { !$0.route.mode.isDeny && $0.route.upstream.isEmpty }
        if let forwarding {
            faults.fault(
                .error, line.place, "", and: forwarding.place, "",
                "\"upstream\" is missing in \(body.title)",
                "\(forwarding.line.title) forwards; write upstream NAME")
        } else if host.unmatched != .deny, let unmatched {
            faults.fault(
                .error, line.place, "", and: unmatched.place, "",
                "\"upstream\" is missing in \(body.title)",
                "\"unmatched \(host.unmatched.rawValue)\" forwards; write upstream NAME")
        }
    }

    /// `enroll` comes before all, so a route at or below it never matches.
    private mutating func checkUnderEnroll(
        _ host: Host, _ body: ParsedBlock, _ routes: [PlacedRoute]
    ) {
        guard let enroll = body.first("enroll"), !host.enroll.isEmpty else { return }
        let prefix = RoutePattern.wideKey(Array(host.enroll.utf8))
        guard !prefix.isEmpty else { return }
        for route in routes where route.key.isAtOrBelow(prefix) {
            faults.fault(
                .error, route.place, "", and: enroll.place, "",
                "\(route.line.title) can never match", "\"enroll\" takes all of \(host.enroll)")
        }
    }

    /// Two routes of equal rank that one request fits: their wide keys are the same, so only such
    /// are compared.
    private mutating func checkOverlaps(_ routes: [PlacedRoute]) {
        var seen: [[UInt8]: [PlacedRoute]] = [:]
        for later in routes {
            let same = seen[later.key] ?? []
            if let earlier = same.first(where: { $0.route.ties(with: later.route) }) {
                failOverlap(earlier, later)
            }
            seen[later.key, default: []].append(later)
        }
    }

    private mutating func failOverlap(_ earlier: PlacedRoute, _ later: PlacedRoute) {
        let modes = [earlier.route.mode, later.route.mode].filter(\.isProtected)
        let word =
            modes.contains(.enforce)
            ? "enforced" : modes.contains(.monitor) ? "monitored" : "denied"
        let isSpelling = earlier.route.path != later.route.path && !modes.isEmpty
        let difference = earlier.route.difference(from: later.route)
        faults.fault(
            .error, earlier.place, earlier.modeText, and: later.place, later.modeText,
            "routes overlap: one request could match both",
            isSpelling ? "\(word) routes ignore \(difference); delete one" : "delete one")
    }

    /// An off or monitored route inside what a denied or enforced one takes.
    private mutating func checkShadows(_ routes: [PlacedRoute]) {
        let exclusive = routes.filter(\.route.mode.isExclusive)
        for open in routes where open.route.mode == .off || open.route.mode == .monitor {
            let shadowed = exclusive.filter { closed in
                open.isMoreSpecific(than: closed) && closed.route.methodsMeet(open.route)
            }.max { $0.key.count < $1.key.count }
            guard let shadowed else { continue }
            faults.fault(
                .warning, open.place, open.modeText, and: shadowed.place, shadowed.modeText,
                "\(open.line.title) takes requests out of \(shadowed.line.title)",
                "they pass without what \"\(shadowed.modeText)\" asks for")
        }
    }

    /// Under `unmatched off` the other methods of a protected path are not open, they are 405.
    private mutating func checkMethods(_ host: Host, _ routes: [PlacedRoute]) {
        guard host.unmatched == .off else { return }
        for closed in routes where closed.route.mode.isExclusive && !closed.route.methods.isEmpty {
            let isCovered = routes.contains { other in
                other.route.methods.isEmpty && other.takesPaths(of: closed)
            }
            guard !isCovered else { continue }
            let path = closed.line.arguments[1].text
            faults.warning(
                closed.place, "other methods on \(path) are answered 405, not forwarded",
                "\"unmatched off\" does not open them; write route * \(path) for that")
        }
    }
}

extension Builder.PlacedRoute {
    /// Whether everything `other` takes by path is taken by this one too.
    func takesPaths(of other: Self) -> Bool {
        if route.isPrefix { return other.key.isAtOrBelow(key) }
        return !other.route.isPrefix && other.key == key
    }

    /// Whether this route wins where both take a request.
    func isMoreSpecific(than other: Self) -> Bool {
        guard other.takesPaths(of: self) else { return false }
        if other.route.isPrefix != route.isPrefix || other.key.count != key.count { return true }
        return other.route.methods.isEmpty && !route.methods.isEmpty
    }
}

extension Route {
    /// Whether one request may have a method of both, by name or by both taking any.
    fileprivate func ties(with other: Route) -> Bool {
        guard isPrefix == other.isPrefix, methods.isEmpty == other.methods.isEmpty,
            methodsMeet(other)
        else { return false }
        if mode.isProtected || other.mode.isProtected { return true }
        return path == other.path
    }

    /// Whether a method is taken by both; GET implies HEAD.
    fileprivate func methodsMeet(_ other: Route) -> Bool {
        if methods.isEmpty || other.methods.isEmpty { return true }
        return !methodSet.isDisjoint(with: other.methodSet)
    }

    private var methodSet: Set<String> {
        Set(methods).union(methods.contains("GET") ? ["HEAD"] : [])
    }

    /// What one spelling differs from the other in.
    fileprivate func difference(from other: Route) -> String {
        path.lowercased() == other.path.lowercased() ? "case" : "case and a final \"/\" or \".\""
    }
}

extension [UInt8] {
    /// Whether a wide key is `prefix` or below it.
    func isAtOrBelow(_ prefix: [UInt8]) -> Bool {
        starts(with: prefix)
            && (count == prefix.count || self[prefix.count] == UInt8(ascii: "/"))
    }
}
