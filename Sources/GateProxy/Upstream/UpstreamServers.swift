internal import GateBytes
package import GateConfig
internal import GateLock
package import GateRuntime
package import GateTLS

/// The servers of one upstream with their addresses, and what is known of each: shared by all
/// loops, behind one lock.
///
/// Each `server` line keeps its own addresses: a name that does not resolve keeps its last good
/// ones and touches no other line. What is known of an address survives a resolution that finds it
/// again.
package final class UpstreamServers: Sendable {
    /// The upstream's settings.
    let upstream: Upstream
    /// Its places for requests at one time; nil without `max_active`.
    let slots: UpstreamSlots?
    private let tls: TLSClientContext?
    /// Its name's number in the metrics, and those of its server lines.
    let label: UInt16
    private let serverLabels: [UInt16]

    private struct State: Sendable {
        var targets: [UpstreamTarget] = []
        var lastID = 0
        /// The server lines whose names did not resolve the last time.
        var unresolved: Set<Int> = []
    }
    private let state = Lock(State())

    /// Addresses of one name: more than any service has.
    private static let addressesMax = 64

    /// - Parameter tls: How connections are encrypted; nil where they are not.
    package init(
        _ upstream: Upstream, tls: TLSClientContext? = nil, labels: MetricLabels = MetricLabels()
    ) {
        label = labels.number(of: upstream.name)
        serverLabels = upstream.servers.map { labels.number(of: $0.text) }
        self.upstream = upstream
        self.tls = tls
        slots = upstream.activeLimit.map { UpstreamSlots($0) }
    }

    /// A target that was chosen, to be given back once the attempt is over.
    package struct Choice: Sendable, Equatable {
        package let id: Int
        package let address: SocketAddress
        /// The index of its server line.
        package let server: Int
    }

    /// Chooses a target for a request and counts it as active there.
    /// - Throws: `noAddress` or `allDown`.
    func choose(
        for request: BalancerRequest, at now: Moment
    ) throws(UpstreamFailure) -> Choice {
        try state.withLock { state throws(UpstreamFailure) in
            guard !state.targets.isEmpty else { throw .noAddress }
            let index = Balancer.choose(
                from: &state.targets, upstream.balance, for: request, at: now)
            guard let index else { throw .allDown }
            state.targets[index].active += 1
            let target = state.targets[index]
            return Choice(id: target.id, address: target.address, server: target.server)
        }
    }

    /// The number of a server line in the metrics.
    func label(ofServer index: Int) -> UInt16 { serverLabels[index] }

    /// Ends what ``choose(for:at:)`` began.
    package func release(_ choice: Choice) {
        state.withLock { state in
            // An address that has left with the last resolution is counted no more.
            guard let index = state.targets.firstIndex(where: { $0.id == choice.id }) else {
                return
            }
            state.targets[index].active -= 1
        }
    }

    /// Notes a failure that counts for ejection.
    /// - Returns: Whether the target is left out from now on.
    package func noteFailure(of choice: Choice, at now: Moment) -> Bool {
        guard let terms = upstream.ejection else { return false }
        return state.withLock { state in
            guard let index = state.targets.firstIndex(where: { $0.id == choice.id }) else {
                return false
            }
            return state.targets[index].ejection.noteFailure(at: now, terms)
        }
    }

    /// Notes a health check.
    /// - Returns: Whether the target has turned.
    package func noteCheck(of id: Int, isPassed: Bool) -> Bool {
        guard let health = upstream.health else { return false }
        return state.withLock { state in
            guard let index = state.targets.firstIndex(where: { $0.id == id }) else {
                return false
            }
            return state.targets[index].health.note(
                isPassed: isPassed, rise: health.rise, fall: health.fall)
        }
    }

    /// How a new connection to `address` is encrypted, and the name its server must have; nil where
    /// it is not.
    func security(for address: SocketAddress) -> UpstreamSecurity? {
        guard let tls, let settings = upstream.tls else { return nil }
        func make(_ name: String) -> UpstreamSecurity {
            UpstreamSecurity(context: tls, name: name, isHTTP2: upstream.protocol == .http2)
        }
        guard settings.name.isEmpty else {
            return make(settings.name)
        }
        let line = targets.first { $0.address == address }.map { upstream.servers[$0.server] }
        guard case .host(let name, _)? = line?.endpoint else {
            // The address has left with a resolution; as a name it is at worst a wrong one.
            return make("\(address.ipAddress?.description ?? "?")")
        }
        return make(name)
    }

    /// What is known now.
    package var targets: [UpstreamTarget] { state.withLock { $0.targets } }

    /// Takes the addresses that the server line `server` resolved to. None at all is a resolver's
    /// bad moment and changes nothing.
    /// - Returns: Whether it did not resolve the last time.
    @discardableResult
    package func replace(_ server: Int, with addresses: [SocketAddress]) -> Bool {
        let line = upstream.servers[server]
        return state.withLock { state in
            guard !addresses.isEmpty else { return false }
            var kept = state.targets.filter { $0.server != server }
            for address in addresses.prefix(UpstreamServers.addressesMax) {
                let known = state.targets.first { $0.server == server && $0.address == address }
                if let known {
                    kept.append(known)
                    continue
                }
                state.lastID += 1
                kept.append(
                    UpstreamTarget(
                        id: state.lastID, server: server, address: address, weight: line.weight,
                        isBackup: line.isBackup))
            }
            // In the order of the lines, so that every gate begins its turns alike.
            state.targets = kept.sorted { ($0.server, $0.id) < ($1.server, $1.id) }
            return state.unresolved.remove(server) != nil
        }
    }

    /// Notes that a server line did not resolve; its addresses stay.
    /// - Returns: Whether it did the time before.
    package func noteUnresolved(_ server: Int) -> Bool {
        state.withLock { $0.unresolved.insert(server).inserted }
    }
}
