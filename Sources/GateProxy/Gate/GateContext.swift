package import GateConfig
internal import GateLock
package import GateRuntime
package import GateStore
internal import GateTLS

/// What all loops of a gate share: immutable, or safe to use from any of them. A reload makes the
/// next one, which shares with it whatever is not the configuration's.
package final class GateContext: Sendable {
    package let configuration: Configuration
    package let hosts: [HostRuntime]
    package let listeners: [ListenerRuntime]
    let upstreams: [UpstreamServers]
    /// How Apple's servers are asked; nil without `apple`.
    let apple: AppleServices?
    /// The apps whose receipts are exchanged.
    let refreshedApps: [AppRuntime]
    /// The index of each upstream by its name, the implicit ones' included.
    private let upstreamIndices: [String: Int]
    package let store: Store
    let challenges: Challenges
    package let spool: Spool
    let verification: VerificationPool
    let accessLog: LineWriter?
    package let errorLog: ErrorLog
    let metrics: Metrics
    let clock: any Clock
    /// How long a request waits for the store.
    let storeWaitMax: Duration
    let isDraining: Flag
    let descriptors: DescriptorBudget
    let tunnels: TunnelWatch

    package init(
        configuration: Configuration, hosts: [HostRuntime], listeners: [ListenerRuntime],
        upstreams: [UpstreamServers], apple: AppleServices? = nil, services: GateServices,
        clock: any Clock, previous: GateContext? = nil
    ) {
        self.configuration = configuration
        self.hosts = hosts
        self.listeners = listeners
        self.upstreams = upstreams
        self.apple = apple
        var refreshed: [AppRuntime] = []
        for app in hosts.compactMap(\.app) where app.app.receipts == .refresh {
            if !refreshed.contains(where: { $0 === app }) { refreshed.append(app) }
        }
        refreshedApps = refreshed
        var indices: [String: Int] = [:]
        for (index, servers) in upstreams.enumerated() { indices[servers.upstream.name] = index }
        upstreamIndices = indices
        store = services.store
        let secrets = store.secrets
        challenges = Challenges(
            current: secrets.current, previous: secrets.previous?.secret,
            previousUntil: Int64(secrets.previous?.until ?? 0) * 1000)
        spool = services.spool
        verification =
            previous?.verification
            ?? VerificationPool(
                width: max(1, SystemFacts.cores / 2),
                waitingMax: GateContext.attestationsWaitingMax)
        accessLog = services.accessLog
        errorLog = services.errorLog
        metrics = services.metrics
        self.clock = clock
        storeWaitMax = services.storeWaitMax
        isDraining = previous?.isDraining ?? Flag()
        descriptors = previous?.descriptors ?? DescriptorBudget()
        tunnels = previous?.tunnels ?? TunnelWatch()
    }

    /// The index of the upstream called `name`, that of its pool on each loop.
    func upstreamIndex(named name: String) -> Int? { upstreamIndices[name] }

    /// Attestations in line for the pool, a few milliseconds each; beyond it: `retry_later`.
    private static let attestationsWaitingMax = 1024

    /// This configuration's listener of the same name; nil where it has none.
    func listener(like other: ListenerRuntime) -> ListenerRuntime? {
        listeners.first { $0 === other }
            ?? listeners.first {
                $0.isAdmin == other.isAdmin && $0.listener.name == other.listener.name
            }
    }

    /// `client` with this configuration's listener; with its own where that has gone.
    func current(_ client: ClientFacts) -> ClientFacts {
        guard let listener = listener(like: client.listener) else { return client }
        var client = client
        // A certificate was checked against the authorities of its time.
        if listener.listener.tls?.clientCA != client.listener.listener.tls?.clientCA {
            client.tls?.isPeerVerified = false
            client.tls?.peerNames = nil
        }
        client.listener = listener
        return client
    }

    /// Whether traffic may be sent here: the store takes writes and nothing is stopping.
    package var isReady: Bool { store.isReady && !isDraining.isSet }

    /// Seconds of UTC since 1970.
    func unixSeconds() -> Int64 { clock.unixNanoseconds() / 1_000_000_000 }

    /// Milliseconds of UTC since 1970.
    func unixMilliseconds() -> Int64 { clock.unixNanoseconds() / 1_000_000 }
}
