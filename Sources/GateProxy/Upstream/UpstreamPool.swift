internal import GateBytes
internal import GateConfig
internal import GateLock
package import GateRuntime

/// The connections of one loop to one upstream: round robin over its addresses, idle connections
/// kept newest first.
final class UpstreamPool {
    /// The upstream's settings.
    let upstream: Upstream
    /// Its `set_field` lines, prepared.
    let setFields: SetFields

    private let loop: EventLoop
    private let memory: SpareMemory
    private let addresses: UpstreamAddresses
    private var turn = 0
    /// Idle connections by address, the most recently used last.
    private var idle: [SocketAddress: [UpstreamConnection]] = [:]
    private let sweep = Deadline()
    private let idleMax: Int

    /// - Parameter idleMax: The most idle connections this loop keeps, over all servers.
    init(
        _ upstream: Upstream, addresses: UpstreamAddresses, idleMax: Int,
        memory: SpareMemory, on loop: EventLoop
    ) {
        self.upstream = upstream
        setFields = SetFields(upstream.setFields)
        self.addresses = addresses
        self.idleMax = idleMax
        self.loop = loop
        self.memory = memory
        // A random start, so that loops and restarts do not all begin with the first server.
        turn = Int.random(in: 0..<max(1, addresses.current.count))
        sweep.onPassed = { [weak self] in self?.closeExpired() }
    }

    /// The next server in turn; nil while no address is known.
    func nextServer() -> SocketAddress? {
        let current = addresses.current
        guard !current.isEmpty else { return nil }
        turn = (turn + 1) % current.count
        return current[turn]
    }

    /// An idle connection to `server` that is still good, or nil.
    ///
    /// The event of a close or of stray bytes may not have been seen yet, so the socket is asked
    /// once more: what a server says unasked must never be taken for the answer to the next request
    /// (threat T16).
    func takeIdle(
        _ server: SocketAddress, for user: any UpstreamChannelUser
    ) -> UpstreamConnection? {
        while let connection = idle[server]?.popLast() {
            let isFresh = connection.idleSince + upstream.keepaliveIdle > loop.now
            guard isFresh, connection.isQuiet else {
                connection.close()
                continue
            }
            connection.onIdleEnd = nil
            connection.reuse(for: user)
            return connection
        }
        return nil
    }

    /// Starts a new connection to `server`.
    func connect(
        _ server: SocketAddress, for user: any UpstreamChannelUser
    ) throws(SystemError) -> UpstreamConnection {
        try UpstreamConnection(
            to: server, security: nil, memory: memory, on: loop, user: user)
    }

    /// Takes back a connection whose exchange ended cleanly; keeps it or closes it.
    func giveBack(_ channel: any UpstreamChannel) {
        guard let connection = channel as? UpstreamConnection, connection.isIdle else { return }
        let count = idle.values.reduce(0) { $0 + $1.count }
        guard idleMax > 0, connection.requests < upstream.keepaliveRequests else {
            return connection.close()
        }
        if count >= idleMax { closeOldest() }
        connection.onIdleEnd = { [weak self, weak connection] in
            guard let self, let connection else { return }
            self.idle[connection.server]?.removeAll { $0 === connection }
        }
        idle[connection.server, default: []].append(connection)
        if !sweep.isSet { loop.set(sweep, after: upstream.keepaliveIdle) }
    }

    /// Closes every idle connection: the pool is going.
    func closeAll() {
        sweep.cancel()
        for connections in idle.values { connections.forEach { $0.close() } }
        idle = [:]
    }

    private func closeOldest() {
        let oldest = idle.min { left, right in
            (left.value.first?.idleSince ?? .distantFuture)
                < (right.value.first?.idleSince ?? .distantFuture)
        }
        guard let server = oldest?.key, idle[server]?.isEmpty == false else { return }
        idle[server]?.removeFirst().close()
    }

    private func closeExpired() {
        var next: Moment?
        for server in idle.keys {
            while let first = idle[server]?.first {
                let end = first.idleSince + upstream.keepaliveIdle
                guard end <= loop.now else {
                    next = min(next ?? end, end)
                    break
                }
                idle[server]?.removeFirst().close()
            }
        }
        if let next { loop.set(sweep, at: next) }
    }
}

/// The addresses of one upstream's servers, shared by all loops and refreshed by the resolver.
package final class UpstreamAddresses: Sendable {
    private let addresses: Lock<[SocketAddress]>

    package init(_ addresses: [SocketAddress]) {
        self.addresses = Lock(addresses)
    }

    /// The addresses in server order; a name with several gives several.
    package var current: [SocketAddress] { addresses.withLock { $0 } }

    /// Replaces the addresses. An empty list is ignored: a resolver's bad moment must not take a
    /// service away.
    package func replace(with fresh: [SocketAddress]) {
        guard !fresh.isEmpty else { return }
        addresses.withLock { $0 = fresh }
    }
}
