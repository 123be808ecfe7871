// What concerns more than one block: warnings of conf.md §5, and blocks that nothing uses.
extension Builder {
    mutating func checkWhole(_ configuration: Configuration) {
        checkUnused()
        checkSharedUpstreams(configuration)
        checkClearListeners(configuration)
        checkSpool(configuration)
        checkUpgrades(configuration)
        checkBindings()
    }

    /// Blocks that nothing names. Where a name is wrong, it may have meant any of them.
    private mutating func checkUnused() {
        for kind in ["listener", "app", "upstream"] where !places.misnamed.contains(kind) {
            let used = Set(namings(of: kind))
            for line in top.all(kind) {
                guard let name = line.words.first, !used.contains(name) else { continue }
                faults.warning(
                    line.place, "\(kind) \(name.quoted) is not used by any host",
                    "delete it, or name it in a host")
            }
        }
    }

    /// What hosts, routes and defaults name.
    private func namings(of kind: String) -> [String] {
        let hosts = top.all("host").compactMap(\.body)
        let inner = (hosts + [top]).flatMap { $0.all("defaults") + $0.all("route") }
        let asked =
            kind == "upstream"
            ? hosts.flatMap { $0.all("account") }.map(\.words).filter { $0.first == "subrequest" }
                .compactMap { $0.dropFirst().first } : []
        return (hosts + inner.compactMap(\.body)).flatMap { $0.all(kind) }.flatMap(\.words) + asked
    }

    /// A host that forwards to a service without proof which another host protects.
    private mutating func checkSharedUpstreams(_ configuration: Configuration) {
        func endpoints(_ name: String) -> [Upstream.Server.Endpoint] {
            configuration.upstreams.first { $0.name == name }?.servers.map(\.endpoint) ?? []
        }
        func servers(_ host: Host, _ isMeant: (Route) -> Bool) -> [Upstream.Server.Endpoint] {
            var routes = host.routes
            if host.unmatched != .deny { routes.append(host.unmatchedRoute) }
            return routes.filter(isMeant).flatMap { endpoints($0.upstream) }
        }
        for open in configuration.hosts {
            let protected = servers(open) { $0.mode == .enforce }
            let unprotected = servers(open) { $0.mode == .off || $0.mode == .monitor }
                .filter { !protected.contains($0) }
            guard !unprotected.isEmpty,
                let openPlace = open.names.first.flatMap({ places.hosts[$0] })
            else { continue }
            let other = configuration.hosts.first { host in
                host.names != open.names
                    && servers(host) { $0.mode == .enforce }.contains { unprotected.contains($0) }
            }
            guard let other, let name = other.names.first, let place = places.hosts[name] else {
                continue
            }
            faults.fault(
                .warning, openPlace, "", and: place, "",
                "host \(open.names[0].quoted) serves without proof what host \(name.quoted) "
                    + "protects",
                "both reach the same server; protect both, or move one")
        }
    }

    /// A listener without TLS that others than this machine and its network can reach.
    private mutating func checkClearListeners(_ configuration: Configuration) {
        for host in configuration.hosts {
            let isProtected =
                host.unmatched == .enforce
                || host.routes.contains { $0.mode == .enforce || $0.mode == .monitor }
            guard isProtected else { continue }
            for listener in configuration.listeners
            where listener.tls == nil && host.listeners.contains(listener.name) {
                for case .ip(let address, let port) in listener.addresses
                where IPText.isPublic(address) {
                    guard
                        let found = places.addresses.first(where: {
                            $0.value == .ip(address, port: port)
                        }), places.warnedAddresses.insert(found.place).inserted
                    else { continue }
                    faults.warning(
                        found.place,
                        "listener \(listener.name.quoted) is clear on a public address and serves "
                            + "protected routes of host \((host.names.first ?? "").quoted)",
                        "give it a tls block, or listen on a loopback or private address")
                }
            }
        }
    }

    /// A WebSocket towards a service that speaks HTTP/2, where the gate opens none.
    private mutating func checkUpgrades(_ configuration: Configuration) {
        for host in top.all("host").compactMap(\.body) {
            for route in host.all("route").compactMap(\.body) {
                guard let place = route.first("upgrade")?.place else { continue }
                let own = resolver.setting(
                    "upstream", .route, in: Self.chain(route, host, top))
                let name = own.words.first?.text ?? host.first("upstream")?.words.first ?? ""
                guard configuration.upstreams.contains(where: { $0.name == name && $0.isHTTP2 })
                else { continue }
                faults.warning(
                    place, "upstream \(name.quoted) speaks HTTP/2, which opens no WebSocket",
                    "give the route an upstream with \"protocol h1\", or delete the line")
            }
        }
    }

    /// A body that no spool can hold.
    private mutating func checkSpool(_ configuration: Configuration) {
        let bytesMax = configuration.spool.bytesMax
        for host in top.all("host") {
            guard let body = host.body else { continue }
            for line in body.all("route") {
                guard let route = line.body else { continue }
                let chain = Self.chain(route, body, top)
                let most = resolver.setting("body", .route, in: chain).argument("max")
                guard case .size(let size)? = most?.value, let place = most?.place, size > bytesMax
                else { continue }
                faults.warning(
                    place, "max=\(most?.text ?? "") is more than the whole spool holds",
                    "such a body is answered 503; raise \"max\" in block spool")
            }
        }
    }
}

extension Upstream {
    /// Whether its service speaks HTTP/2.
    fileprivate var isHTTP2: Bool { self.protocol != .http1 }
}
