// The configuration as the loops use it: names resolved to indices, tables prepared, secrets read.
// Immutable; a reload builds the next one and each loop swaps its reference.

internal import AppAttest
internal import GateBytes
package import GateConfig
internal import GateCrypto
internal import GateHTTP
internal import GateHTTP2
internal import GateLock
package import GateRuntime
internal import GateStore
internal import GateTLS

/// A fault that keeps a start from happening, beyond what the configuration's check finds.
package struct StartError: Error, CustomStringConvertible {
    /// What failed and where, one clause.
    package let description: String

    package init(_ description: String) {
        self.description = description
    }
}

/// One app with what a verification needs at hand.
package final class AppRuntime: Sendable {
    package let app: App
    let root: TrustRoot
    /// Where the chains of its receipts end: at the root that the app names, or at Apple's.
    let receiptRoot: TrustRoot
    /// SHA-256 of each App ID, in the configuration's order.
    let relyingPartyIDHashes: [Bytes32]
    /// Its name's number in the metrics.
    let label: UInt16

    package init(_ app: App, label: UInt16 = 0) throws(StartError) {
        self.app = app
        self.label = label
        if let der = app.root {
            do throws(TrustRootError) {
                root = try TrustRoot(der: der)
                receiptRoot = root
            } catch {
                throw StartError("root of app \"\(app.name)\": \(error)")
            }
        } else {
            root = .apple
            receiptRoot = .appleReceipts
        }
        relyingPartyIDHashes = app.appIDs.map { SHA256.hash(Array($0.utf8)) }
    }

    /// The relying party ID hash of one of the app's App IDs; nil when it is not one of them.
    func relyingPartyIDHash(of appID: String) -> Bytes32? {
        app.appIDs.firstIndex(of: appID).map { relyingPartyIDHashes[$0] }
    }

    /// Whether `key` is one of this app, of its environment and of `account`.
    func takes(_ key: KeyRecord, of account: [UInt8]) -> Bool {
        key.account == account && app.appIDs.contains(key.app) && key.environment == environmentCode
    }

    /// The environment as the store keeps it.
    var environmentCode: UInt8 { app.environment == .production ? 1 : 0 }

    /// The environment as the verifier takes it.
    var environment: Environment {
        app.environment == .production ? .production : .development
    }
}

/// One host, prepared.
package final class HostRuntime: Sendable {
    package let host: Host
    let app: AppRuntime?
    let table: RouteTable
    let fields: HostFields
    /// The index of each route's upstream; -1 where it has none. The last entry is the unmatched
    /// route's.
    private let upstreamIndices: [Int]
    /// The purposes that challenges may be issued for here.
    let purposes: EnrolmentPurposes
    let limits: HostLimits
    /// Where its accounts come from.
    let accounts: AccountSource
    /// The limit of each route's fallback; the last entry is the unmatched route's.
    private let fallbackLimits: [FallbackLimit?]
    /// The numbers of its routes' names in the metrics; the last is the unmatched one's.
    private let routeLabels: [UInt16]
    /// That of its enrolment endpoints.
    let enrollLabel: UInt16
    /// Those of its purposes.
    let purposeLabels: [String: UInt16]

    /// - Parameter previous: The same host in the configuration before: what was counted goes on
    ///   where the limits are the same.
    package init(
        _ host: Host, app: AppRuntime?, table: RouteTable, upstreams: [String: Int],
        labels: MetricLabels = MetricLabels(), previous: HostRuntime? = nil
    ) {
        self.host = host
        self.app = app
        self.table = table
        fields = HostFields(host, app: app?.app)
        upstreamIndices = (host.routes + [host.unmatchedRoute]).map { upstreams[$0.upstream] ?? -1 }
        purposes = EnrolmentPurposes(host)
        accounts = AccountSource(host.account, previous: previous?.accounts)
        routeLabels = (host.routes + [host.unmatchedRoute]).map { labels.number(of: $0.name) }
        enrollLabel = labels.number(of: "\(host.names[0]) enroll")
        purposeLabels = Dictionary(
            uniqueKeysWithValues: purposes.all.map { ($0, labels.number(of: $0)) })
        if let previous, previous.host.rates == host.rates {
            limits = previous.limits
        } else {
            var random = SystemRandom()
            limits = HostLimits(host.rates, seed: (random.next(), random.next()))
        }
        fallbackLimits = HostRuntime.fallbackLimits(host, previous)
    }

    private static func fallbackLimits(
        _ host: Host, _ previous: HostRuntime?
    ) -> [FallbackLimit?] {
        (host.routes + [host.unmatchedRoute]).map { route in
            guard case .deviceCheck(let terms) = route.fallback, let rate = terms.rate else {
                return nil
            }
            let index = previous.flatMap { previous in
                (previous.host.routes + [previous.host.unmatchedRoute])
                    .firstIndex { $0.name == route.name }
            }
            if let index, let known = previous?.fallbackLimits[index], known.rate == rate {
                return known
            }
            var random = SystemRandom()
            return FallbackLimit(rate, seed: (random.next(), random.next()))
        }
    }

    /// The limit of the fallback of the route with this index; nil without one.
    func fallbackLimit(_ index: Int) -> FallbackLimit? {
        index < 0 ? fallbackLimits[fallbackLimits.count - 1] : fallbackLimits[index]
    }

    /// The route with this index; -1 is the unmatched one.
    func route(_ index: Int) -> Route {
        index < 0 ? host.unmatchedRoute : host.routes[index]
    }

    /// The number of the name of the route with this index in the metrics.
    func label(_ index: Int) -> UInt16 {
        index < 0 ? routeLabels[routeLabels.count - 1] : routeLabels[index]
    }

    /// The pool of the route with this index; -1 where it has none.
    func upstream(of index: Int) -> Int {
        index < 0 ? upstreamIndices[upstreamIndices.count - 1] : upstreamIndices[index]
    }

    /// The scope of challenges for `purpose` on this host.
    func scope(_ purpose: String) -> ChallengeScope {
        ChallengeScope(host: host.names[0], app: app?.app.name ?? "", purpose: purpose)
    }
}

/// One listener, with what is counted on it.
package final class ListenerRuntime: Sendable {
    package let listener: Listener
    let hosts: HostTable
    let headLimits: HeadLimits
    let http2Limits: HTTP2Limits
    /// Whether this is the admin endpoint: health and readiness, nothing else.
    let isAdmin: Bool
    /// Its certificates and rules; nil where it is clear.
    let tls: TLSServerContext?
    private let serverNames: ServerNameRule
    private let connections: Lock<ConnectionCounts>
    /// Its name's number in the metrics.
    let label: UInt16

    /// - Parameter previous: The same listener in the configuration before, whose connections count
    ///   on.
    /// - Throws: What OpenSSL does not take of the listener's `tls` block.
    package init(
        _ listener: Listener, configuration: Configuration, isAdmin: Bool = false,
        label: UInt16 = 0, previous: ListenerRuntime? = nil, clock: any Clock
    ) throws(StartError) {
        self.listener = listener
        hosts = HostTable(configuration: configuration, listener: isAdmin ? "" : listener.name)
        self.isAdmin = isAdmin
        self.label = label
        connections = previous?.connections ?? Lock(ConnectionCounts())
        // Where nothing has changed the ticket keys stay as well.
        if let previous, previous.listener == listener {
            tls = previous.tls
        } else {
            tls = try ListenerRuntime.makeTLS(listener, clock: clock)
        }
        serverNames = ServerNameRule(configuration, listener: listener)
        headLimits = HeadLimits(
            headerFields: listener.limits.headerFields, headerSize: listener.limits.headerSize,
            fieldSize: listener.limits.fieldSize, targetSize: listener.limits.targetSize)
        http2Limits = HTTP2Limits(
            streamsMax: listener.limits.h2Streams, head: headLimits,
            resets: HTTP2Budget(listener.limits.h2Resets),
            control: HTTP2Budget(listener.limits.h2Control))
    }

    /// Whether the address is this listener's.
    func has(_ bound: BoundAddress) -> Bool {
        bound.listener == listener.name && has(bound.address)
    }

    /// Whether it listens on `address`; no two listeners do on the same.
    func has(_ address: ListenAddress) -> Bool { listener.addresses.contains(address) }

    /// Whether `context` has this listener; one that a reload has taken away answers nothing more.
    func isServed(by context: GateContext) -> Bool {
        context.listeners.contains { $0 === self }
    }

    var limits: ListenerLimits { listener.limits }
    var timeouts: ListenerTimeouts { listener.timeouts }

    /// Whether `peer` is a trusted proxy.
    func isTrusted(_ peer: SocketAddress) -> Bool {
        guard let address = peer.ipAddress else { return false }
        return listener.trustedProxies.contains { $0.contains(address) }
    }

    /// Whether every connection speaks HTTP/2 from its first octet on.
    var isHTTP2Alone: Bool { listener.http == .h2c }

    /// Whether a request for the host at `index`, called `name`, came on a connection that was made
    /// for another one, or lacks the certificate that the listener asks for (T18).
    func isMisdirected(_ client: ClientFacts, host index: Int, name: ArraySlice<UInt8>) -> Bool {
        guard let tls else { return false }
        // In clear on a listener with TLS: from before a reload that gave it some.
        guard let facts = client.tls else { return true }
        if case .require? = listener.tls?.clientCA, !facts.isPeerVerified { return true }
        guard let serverName = facts.serverName else { return false }
        return serverNames.isMisdirected(
            serverName: serverName, host: index, name: name, certificates: tls.certificates)
    }

    /// Whether `peer` has to begin with a PROXY header.
    func isProxy(_ peer: SocketAddress) -> Bool {
        guard !listener.proxySources.isEmpty, let address = peer.ipAddress else { return false }
        return listener.proxySources.contains { $0.contains(address) }
    }

    /// What a new connection of `peer` has to pass before its first request, made for each anew.
    func makeIntakeSteps(for peer: SocketAddress) -> [any IntakeStep] {
        var steps: [any IntakeStep] = isProxy(peer) ? [ProxyHeaderStep()] : []
        if let tls { steps.append(TLSStep(tls)) }
        if listener.http.isSuperset(of: [.h1, .h2c]) { steps.append(PrefaceStep()) }
        return steps
    }

    /// What `per_address` counts a client as; nil for a trusted proxy, behind which many clients
    /// share an address, and on a unix socket.
    func limitKey(of client: SocketAddress) -> IPAddress? {
        isTrusted(client) ? nil : client.ipAddress?.limitKey
    }

    /// Open connections.
    var connectionCount: Int { connections.withLock { $0.count } }

    /// Counts a new connection in. One that begins with a PROXY header is counted for its client
    /// once that is known.
    func admit(_ key: IPAddress?) throws(ConnectionLimit) {
        try connections.withLock { connections throws(ConnectionLimit) in
            try connections.admit(key, (limits.connections, limits.perAddress))
        }
    }

    /// Counts a connection for the client that its PROXY header names.
    func count(_ key: IPAddress) throws(ConnectionLimit) {
        try connections.withLock { connections throws(ConnectionLimit) in
            try connections.add(key, limits.perAddress)
        }
    }

    /// Counts a connection out.
    func release(_ key: IPAddress?) {
        connections.withLock { $0.release(key) }
    }
}

extension HTTP2Budget {
    /// The budget that a limit of the configuration is.
    fileprivate init(_ rate: Rate) {
        self.init(countMax: rate.count, window: UInt64(clamping: rate.per.nanoseconds))
    }
}
