package import GateConfig
internal import GateLock
package import GateRuntime
package import GateStore

/// What all loops of a gate share: immutable, or safe to use from any of them.
package final class GateContext: Sendable {
    package let configuration: Configuration
    package let hosts: [HostRuntime]
    package let listeners: [ListenerRuntime]
    let upstreams: [UpstreamServers]
    package let store: Store
    let challenges: Challenges
    package let spool: Spool
    let verification: VerificationPool
    let accessLog: LineWriter?
    package let errorLog: ErrorLog
    let clock: any Clock
    /// How long a request waits for the store.
    let storeWaitMax: Duration
    let isDraining = Flag()
    let descriptors = DescriptorBudget()
    let tunnels = TunnelWatch()

    package init(
        configuration: Configuration, hosts: [HostRuntime], listeners: [ListenerRuntime],
        upstreams: [UpstreamServers], store: Store, spool: Spool,
        verification: VerificationPool, accessLog: LineWriter?, errorLog: ErrorLog,
        clock: any Clock, storeWaitMax: Duration
    ) {
        self.configuration = configuration
        self.hosts = hosts
        self.listeners = listeners
        self.upstreams = upstreams
        self.store = store
        let secrets = store.secrets
        challenges = Challenges(
            current: secrets.current, previous: secrets.previous?.secret,
            previousUntil: Int64(secrets.previous?.until ?? 0) * 1000)
        self.spool = spool
        self.verification = verification
        self.accessLog = accessLog
        self.errorLog = errorLog
        self.clock = clock
        self.storeWaitMax = storeWaitMax
    }

    /// Whether traffic may be sent here: the store takes writes and nothing is stopping.
    package var isReady: Bool { store.isReady && !isDraining.isSet }

    /// Seconds of UTC since 1970.
    func unixSeconds() -> Int64 { clock.unixNanoseconds() / 1_000_000_000 }

    /// Milliseconds of UTC since 1970.
    func unixMilliseconds() -> Int64 { clock.unixNanoseconds() / 1_000_000 }
}
