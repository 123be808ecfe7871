internal import GateBytes
internal import GateConfig
internal import GateHTTP
internal import GateRuntime

/// The connections of one loop to one upstream; idle ones are kept, the newest used first.
final class UpstreamPool {
    /// The upstream's settings.
    let upstream: Upstream
    /// Its `set_field` lines, prepared.
    let setFields: SetFields

    /// Closes an idle connection of this loop; answers whether there was one.
    var makeRoom: (() -> Bool)?

    private let loop: EventLoop
    private let memory: SpareMemory
    /// The servers, shared by all loops.
    let servers: UpstreamServers
    private let log: ErrorLog
    /// Idle connections by address, the most recently used last; no address without one.
    private var idle: [SocketAddress: [UpstreamConnection]] = [:]
    private var idleCount = 0
    private let sweep = Deadline()
    private var idleMax: Int
    /// Where the connections are where the service speaks HTTP/2.
    private let http2: HTTP2UpstreamPool?

    /// - Parameter idleMax: The most idle connections this loop keeps, over all servers.
    init(
        _ servers: UpstreamServers, idleMax: Int, memory: SpareMemory, log: ErrorLog,
        on loop: EventLoop
    ) {
        self.servers = servers
        self.log = log
        upstream = servers.upstream
        setFields = SetFields(upstream.setFields)
        self.idleMax = idleMax
        self.loop = loop
        self.memory = memory
        http2 = upstream.protocol == .http1 ? nil : HTTP2UpstreamPool(upstream, on: loop)
        sweep.onPassed = { [weak self] in self?.closeExpired() }
    }

    /// Chooses the server of an attempt, which is active there until ``release(_:)``.
    func choose(
        for request: BalancerRequest
    ) throws(UpstreamFailure) -> UpstreamServers.Choice {
        try servers.choose(for: request, at: loop.now)
    }

    /// Ends an attempt.
    func release(_ choice: UpstreamServers.Choice) {
        servers.release(choice)
    }

    /// Notes a failure that is the server's own.
    func noteFailure(of choice: UpstreamServers.Choice) {
        guard let terms = upstream.ejection, servers.noteFailure(of: choice, at: loop.now) else {
            return
        }
        log.write(
            .warn,
            "upstream \(upstream.name): \(choice.address) is left out for \(terms.duration): "
                + "\(terms.failures) failures within \(terms.within)")
    }

    /// The servers' addresses and what is known of them.
    var targets: [UpstreamTarget] { servers.targets }

    /// Notes a health check.
    /// - Returns: Whether the target has turned.
    func noteCheck(of id: Int, isPassed: Bool) -> Bool {
        servers.noteCheck(of: id, isPassed: isPassed)
    }

    /// Connections of this loop that are idle.
    var idleConnections: Int { idleCount }

    /// A place within `max_active`, to be taken; nil where there is no such limit.
    func makeSlot() -> UpstreamSlot? {
        servers.slots.map { UpstreamSlot($0, on: loop) }
    }

    /// An idle connection to `server` that is still good, or nil.
    ///
    /// The event of a close or of stray bytes may not have been seen yet, so the socket is asked
    /// once more: what a server says unasked must never be taken for the answer to the next request
    /// (threat T16).
    func takeIdle(
        _ server: SocketAddress, for user: any UpstreamChannelUser
    ) -> (any UpstreamChannel)? {
        if let http2 { return http2.take(server, for: user) }
        while let connection = popIdle(server) {
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

    private func popIdle(_ server: SocketAddress) -> UpstreamConnection? {
        guard let connection = idle[server]?.popLast() else { return nil }
        forgetEmpty(server)
        idleCount -= 1
        return connection
    }

    /// Addresses come and go with the names; what is known of them must not stay for ever.
    private func forgetEmpty(_ server: SocketAddress) {
        if idle[server]?.isEmpty == true { idle[server] = nil }
    }

    /// Starts a new connection to `server`, or joins one that is being made. Where no descriptor is
    /// left, an idle connection of whatever pool makes room.
    func connect(
        _ server: SocketAddress, for user: any UpstreamChannelUser
    ) throws(SystemError) -> any UpstreamChannel {
        do throws(SystemError) {
            return try open(server, for: user)
        } catch {
            guard error.isDescriptorLimit, makeRoom?() == true else { throw error }
        }
        return try open(server, for: user)
    }

    private func open(
        _ server: SocketAddress, for user: any UpstreamChannelUser
    ) throws(SystemError) -> any UpstreamChannel {
        let security = servers.security(for: server)
        if let http2 { return try http2.connect(server, security: security, for: user) }
        return try UpstreamConnection(
            to: server, security: security, memory: memory, on: loop, user: user)
    }

    /// The head of a request as this upstream is sent it.
    func write(
        _ head: RequestHead, _ fields: HostFields, _ context: UpstreamContext
    ) throws(HeadWriterError) -> UpstreamRequestHead.Form {
        guard let scheme = http2Scheme else {
            return .http1(
                try UpstreamHead.bytes(head, fields, context, setFields: setFields))
        }
        return .http2(
            try UpstreamHead.block(
                head, fields, context, setFields: setFields, scheme: scheme))
    }

    /// The scheme of requests to a service that speaks HTTP/2; nil for another.
    var http2Scheme: Scheme? {
        http2 == nil ? nil : upstream.tls == nil ? .http : .https
    }

    /// Takes back a connection whose exchange ended cleanly; keeps it or closes it.
    func giveBack(_ channel: any UpstreamChannel) {
        guard let connection = channel as? UpstreamConnection, connection.isIdle else { return }
        guard idleMax > 0, connection.requests < upstream.keepaliveRequests else {
            return connection.close()
        }
        if idleCount >= idleMax { closeOldest() }
        connection.onIdleEnd = { [weak self, weak connection] in
            guard let self, let connection else { return }
            self.idle[connection.server]?.removeAll { $0 === connection }
            self.forgetEmpty(connection.server)
            self.idleCount -= 1
        }
        idle[connection.server, default: []].append(connection)
        idleCount += 1
        if !sweep.isSet { loop.set(sweep, after: upstream.keepaliveIdle) }
    }

    /// Keeps no connection from now on: a reload has taken the upstream away. What is in work is
    /// finished.
    func retire() {
        idleMax = 0
        closeIdle()
        http2?.leaveAll()
    }

    /// Closes every connection that is not in an exchange of its own: the pool is going.
    func closeAll() {
        closeIdle()
        http2?.closeAll()
    }

    private func closeIdle() {
        sweep.cancel()
        for connections in idle.values { connections.forEach { $0.close() } }
        idle = [:]
        idleCount = 0
    }

    /// Closes the connection that has been idle longest.
    /// - Returns: Whether there was one.
    func closeOldestIdle() -> Bool {
        guard idleCount > 0 else { return false }
        closeOldest()
        return true
    }

    private func closeOldest() {
        let oldest = idle.min { left, right in
            (left.value.first?.idleSince ?? .distantFuture)
                < (right.value.first?.idleSince ?? .distantFuture)
        }
        if let server = oldest?.key { closeFirst(server) }
    }

    private func closeFirst(_ server: SocketAddress) {
        guard idle[server]?.isEmpty == false else { return }
        idle[server]?.removeFirst().close()
        forgetEmpty(server)
        idleCount -= 1
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
                closeFirst(server)
            }
        }
        if let next { loop.set(sweep, at: next) }
    }
}
