internal import GateBytes
internal import GateConfig
internal import GateCrypto
internal import GateRuntime
internal import GateStore
internal import GateTLS

/// One loop's share of the gate: its listeners, connections, pools and caches. On its loop for
/// life.
final class Worker {
    /// The configuration in force; exchanges keep the one they began with.
    private(set) var context: GateContext
    let loop: EventLoop
    /// Read buffers to borrow.
    let memory = SpareMemory()
    /// One pool for each upstream of the configuration.
    private(set) var pools: [UpstreamPool] = []
    var keys = VerifyingKeys(countMax: Worker.readyKeysMax)
    var random = BufferedRandom()
    private(set) lazy var bitSetter = BitSetter(self)
    /// Whether the gate is stopping: connections close after the exchange in work.
    private(set) var isDraining = false
    /// Called once draining has left no connection.
    var onDrained: (() -> Void)?

    private struct Listening {
        let address: ListenAddress
        let socket: ListeningSocket
        let listener: ListenerRuntime
    }

    private let loops: Int
    private var listening: [Listening] = []
    private var connections: [ObjectIdentifier: any ClientConnection] = [:]
    /// Whom to close first, by listener; nil for all of them.
    private var oldestIdle: [ObjectIdentifier?: OldestIdle] = [:]
    /// Tunnels by the key whose proof opened them, as many as there are connections at most.
    private var tunnels: [Bytes32: [Tunnel]] = [:]
    private var flushing: [HTTP2Connection] = []
    private var dateSecond: Int64 = -1
    private var date: [UInt8] = []
    private var logLines: [UInt8] = []
    private var housekeeping: [Deadline] = []
    /// The health checks of each upstream that has some; on one loop only.
    private var healthChecks: [HealthChecks] = []
    /// What this loop has counted.
    var metrics = LoopMetrics()
    private var resolutions: [Deadline] = []
    /// What keeps the key sets of URLs fresh; on one loop only.
    private var keySets: [KeySetRefresh] = []
    /// Whether this is the loop that keeps house for all.
    private var isHousekeeper = false

    /// Ready keys of one loop; about 3 KB each in OpenSSL.
    static let readyKeysMax = 4096
    /// Times that a turn's end looks at connections that have something to send.
    private static let flushRoundsMax = 2

    init(context: GateContext, loop: EventLoop, loops: Int) {
        self.context = context
        self.loop = loop
        self.loops = loops
        pools = context.upstreams.map(makePool)
        loop.onTurnEnd = { [weak self] in self?.turnEnded() }
    }

    private func makePool(_ servers: UpstreamServers) -> UpstreamPool {
        // An even share for each loop, rounded up, so that a small number is not zero everywhere.
        let idleMax = (servers.upstream.keepaliveConnections + loops - 1) / loops
        let pool = UpstreamPool(
            servers, idleMax: idleMax, memory: memory, log: context.errorLog, on: loop)
        pool.makeRoom = { [weak self] in self?.pools.contains { $0.closeOldestIdle() } ?? false }
        return pool
    }

    /// The pool of the upstream called `name` in the configuration in force.
    func pool(named name: String) -> UpstreamPool? {
        context.upstreamIndex(named: name).map { pools[$0] }
    }

    // MARK: Keeping house

    /// Runs `action` on the loop every `interval`, for the first time after one.
    /// - Returns: What keeps the time, to be ended with ``end(_:)``.
    @discardableResult
    func every(_ interval: Duration, _ action: @escaping () -> Void) -> Deadline {
        let deadline = Deadline()
        deadline.onPassed = { [weak self, weak deadline] in
            guard let self, let deadline else { return }
            action()
            self.loop.set(deadline, after: interval)
        }
        housekeeping.append(deadline)
        loop.set(deadline, after: interval)
        return deadline
    }

    /// Ends what ``every(_:_:)`` began.
    func end(_ deadline: Deadline) {
        loop.remove(deadline)
        housekeeping.removeAll { $0 === deadline }
    }

    /// Runs `action` on the loop once, after `interval`.
    func after(_ interval: Duration, _ action: @escaping () -> Void) {
        let deadline = Deadline()
        deadline.onPassed = action
        housekeeping.append(deadline)
        loop.set(deadline, after: interval)
    }

    /// Takes on what has to be done now and then for all loops: names resolved anew, health
    /// checked, and ticket keys and spent challenges whose life is over let go (the store does so
    /// by itself while it admits). By a loop's deadlines and not by Dispatch's timers: those make
    /// their descriptor when the first is armed, perhaps just when none is left.
    func keepHouse() {
        isHousekeeper = true
        watchUpstreams()
        every(.seconds(60)) { [weak self] in
            guard let context = self?.context else { return }
            context.store.forgetExpired(now: UInt32(clamping: context.unixSeconds()))
            context.listeners.forEach { $0.tls?.rotateTicketKeys() }
        }
        let refresh = ReceiptRefresh(self)
        every(ReceiptRefresh.interval) { refresh.turn() }
    }

    /// Lets `connection` write what this turn brings about in one go.
    func flushAtTurnEnd(_ connection: HTTP2Connection) {
        flushing.append(connection)
    }

    private func turnEnded() {
        // What leaves may make room for more, and that should not wait; but others should not
        // either.
        for _ in 0..<Worker.flushRoundsMax where !flushing.isEmpty {
            let connections = flushing
            flushing = []
            for connection in connections { connection.turnEnded() }
        }
        if !flushing.isEmpty {
            // Wakes the loop, so that this runs again.
            loop.handle.submit {}
        }
        handOverLog()
    }

    /// Checks the health of the upstreams that ask for it and resolves the names of those that have
    /// some; what is known of a pool that stays is kept.
    private func watchUpstreams() {
        resolutions.forEach(end)
        let before = healthChecks
        healthChecks = pools.compactMap { pool in
            before.first { $0.pool === pool }
                ?? HealthChecks(of: pool, log: context.errorLog, on: loop)
        }
        for checks in before where !healthChecks.contains(where: { $0 === checks }) {
            checks.stop()
        }
        resolutions = UpstreamRefresh.start(context, on: self) { [weak self] index in
            guard let self, self.pools.indices.contains(index) else { return }
            let pool = self.pools[index]
            self.healthChecks.first { $0.pool === pool }?.refresh()
        }
        watchKeySets()
    }

    /// Fetches the key sets that hosts name by a URL, now and again; one that stays goes on.
    private func watchKeySets() {
        let wanted = context.hosts.compactMap(\.accounts.remoteKeySet)
        let before = keySets
        for refresh in before where !wanted.contains(where: { $0 === refresh.keySet }) {
            refresh.stop()
        }
        keySets = wanted.map { keySet in
            before.first { $0.keySet === keySet } ?? KeySetRefresh(keySet, on: self)
        }
    }

    // MARK: Listeners

    /// Starts accepting on an address that is bound; `index` is the number of this loop.
    func listen(_ bound: BoundAddress, _ index: Int) throws(SystemError) {
        guard let listener = context.listeners.first(where: { $0.has(bound) }) else { return }
        let socket = try bound.socket(index, on: loop)
        listening.append(Listening(address: bound.address, socket: socket, listener: listener))
        attach(socket, listener)
        socket.resume()
    }

    private func attach(_ socket: ListeningSocket, _ listener: ListenerRuntime) {
        socket.onConnection = { [weak self] connection, peer in
            self?.accept(connection, peer: peer, listener: listener)
        }
        socket.onError = { [weak self] error in
            self?.context.errorLog.write(.warn, "listener \(listener.listener.name): \(error)")
            if error.isDescriptorLimit { _ = self?.closeOldestIdle(of: nil) }
        }
    }

    /// Goes over to the next configuration. Exchanges finish with the one they began with; their
    /// connections go on with this one, those of a listener that has gone are drained.
    /// - Parameters:
    ///   - added: Addresses that are new.
    ///   - index: The number of this loop.
    func adopt(_ next: GateContext, _ added: [BoundAddress], _ index: Int) {
        context = next
        let before = pools
        pools = next.upstreams.map { servers in
            before.first { $0.servers === servers } ?? makePool(servers)
        }
        for pool in before where !pools.contains(where: { $0 === pool }) { pool.retire() }
        if isHousekeeper { watchUpstreams() }
        listening = listening.compactMap { entry in
            guard let listener = next.listeners.first(where: { $0.has(entry.address) }) else {
                entry.socket.close()
                return nil
            }
            attach(entry.socket, listener)
            return Listening(address: entry.address, socket: entry.socket, listener: listener)
        }
        for bound in added {
            do throws(SystemError) {
                try listen(bound, index)
            } catch {
                next.errorLog.write(.error, "listener \(bound.listener): \(error)")
            }
        }
        for connection in connections.values
        where next.listener(like: connection.client.listener) == nil {
            connection.drain()
        }
    }

    private func accept(_ socket: Socket, peer: SocketAddress, listener: ListenerRuntime) {
        var client = ClientFacts(peer: peer, listener: listener)
        client.isHTTP2 = listener.isHTTP2Alone
        client.limitKey = listener.isProxy(peer) ? nil : listener.limitKey(of: peer)
        do throws(ConnectionLimit) {
            try admit(client)
        } catch {
            refused(error, on: listener)
            return socket.close()
        }
        let steps = listener.makeIntakeSteps(for: peer)
        guard steps.isEmpty else {
            return start(Intake(socket, client: client, steps: steps, worker: self), socket)
        }
        start(makeConnection(socket, client, input: nil), socket)
    }

    /// The connection that speaks what the client speaks.
    private func makeConnection(
        _ transport: any Transport, _ client: ClientFacts, input: ByteBuffer?
    ) -> any ClientConnection {
        client.isHTTP2
            ? HTTP2Connection(transport, client: client, input: input, worker: self)
            : DownstreamConnection(transport, client: client, input: input, worker: self)
    }

    /// Counts a connection in.
    private func admit(_ client: ClientFacts) throws(ConnectionLimit) {
        let listener = client.listener
        try makingRoom(on: listener) { () throws(ConnectionLimit) in
            try listener.admit(client.limitKey)
        }
        guard !listener.isAdmin else { return }
        do throws(ConnectionLimit) {
            try makingRoom(on: nil, context.descriptors.take)
        } catch {
            listener.release(client.limitKey)
            throw error
        }
    }

    /// Runs `take`, and where it finds no room once more after whoever has been idle longest on
    /// this loop has made some.
    private func makingRoom(
        on listener: ListenerRuntime?, _ take: () throws(ConnectionLimit) -> Void
    ) throws(ConnectionLimit) {
        do throws(ConnectionLimit) {
            return try take()
        } catch {
            // Others must not make room for an address that has its fill.
            if case .perAddress = error { throw error }
            guard closeOldestIdle(of: listener) else { throw error }
        }
        try take()
    }

    /// Closes the connection that has been idle longest, of one listener or of all but the admin's.
    /// - Returns: Whether there was one.
    private func closeOldestIdle(of listener: ListenerRuntime?) -> Bool {
        let key = listener.map(ObjectIdentifier.init)
        let oldest = oldestIdle[key, default: OldestIdle()].next(
            among: connections.values.lazy.filter { connection in
                listener.map { connection.client.listener === $0 }
                    ?? !connection.client.listener.isAdmin
            }, at: loop.now)
        oldest?.drain()
        return oldest != nil
    }

    /// Says which limit has refused a connection.
    func refused(_ limit: ConnectionLimit, on listener: ListenerRuntime) {
        context.errorLog.write(
            .warn, "listener \(listener.listener.name): \(limit.text); a connection was refused")
    }

    /// Puts a tunnel in the place of the connection it was made of.
    func begin(_ tunnel: Tunnel, inPlaceOf connection: AnyObject, keyID: Bytes32?) {
        connections[ObjectIdentifier(connection)] = nil
        connections[ObjectIdentifier(tunnel)] = tunnel
        if let keyID { tunnels[keyID, default: []].append(tunnel) }
        do throws(SystemError) {
            try tunnel.start()
        } catch {
            context.errorLog.write(.warn, "websocket: \(error)")
            return tunnel.abort()
        }
        // Revoked on another loop since the proof was judged: whoever revokes asks this loop after
        // that, so either this look finds it or the loop is told.
        if let keyID, context.store.key(keyID)?.isRevoked == true { tunnel.revoke() }
    }

    /// Ends the tunnels that `keyID` has opened.
    func revoke(_ keyID: Bytes32) {
        tunnels[keyID]?.forEach { $0.revoke() }
    }

    /// Forgets a tunnel that has ended.
    func ended(_ tunnel: Tunnel, keyID: Bytes32) {
        tunnels[keyID]?.removeAll { $0 === tunnel }
        if tunnels[keyID]?.isEmpty == true { tunnels[keyID] = nil }
    }

    private func release(_ client: ClientFacts) {
        client.listener.release(client.limitKey)
        if !client.listener.isAdmin { context.descriptors.giveBack() }
    }

    /// What has to pass before the first request has passed: the connection begins.
    func begin(_ intake: Intake) {
        connections[ObjectIdentifier(intake)] = nil
        start(
            makeConnection(intake.transport, intake.client, input: intake.input), intake.transport)
    }

    private func start(_ connection: any ClientConnection, _ transport: any Transport) {
        connections[ObjectIdentifier(connection)] = connection
        do throws(SystemError) {
            try connection.start()
        } catch {
            connections[ObjectIdentifier(connection)] = nil
            release(connection.client)
            transport.close()
            let name = connection.client.listener.listener.name
            context.errorLog.write(.warn, "listener \(name): \(error)")
        }
    }

    /// A connection has closed.
    func closed(_ connection: any ClientConnection) {
        guard connections.removeValue(forKey: ObjectIdentifier(connection)) != nil else { return }
        release(connection.client)
        reportDrained()
    }

    /// Stops accepting, closes what is idle and lets the rest finish.
    func drain() {
        isDraining = true
        // The admin listener goes last: it is there to say that the gate is draining.
        for entry in listening where !entry.listener.isAdmin { entry.socket.close() }
        for connection in connections.values where !connection.client.listener.isAdmin {
            connection.drain()
        }
        reportDrained()
    }

    /// Tells once that draining has left no connection.
    private func reportDrained() {
        guard isDraining, let report = onDrained,
            !connections.values.contains(where: { !$0.client.listener.isAdmin })
        else { return }
        onDrained = nil
        report()
    }

    /// Ends what is left: the time to drain is over, or the gate has drained.
    func stop() {
        listening.forEach { $0.socket.close() }
        listening = []
        for connection in connections.values { connection.abort() }
        connections = [:]
        bitSetter.stop()
        pools.forEach { $0.closeAll() }
        handOverLog()
        loop.stop()
    }

    /// The value of `Date` now, made once a second.
    func dateText() -> [UInt8] {
        let second = context.unixSeconds()
        if second != dateSecond {
            dateSecond = second
            date = CivilTime.httpDate(second)
        }
        return date
    }

    /// A challenge for `account` on `host`.
    func issue(purpose: String, host: HostRuntime, account: [UInt8]) -> IssuedChallenge {
        metrics.noteChallenges(purpose: host.purposeLabels[purpose] ?? 0)
        return context.challenges.issue(
            host.scope(purpose), account: account,
            lifetime: host.host.challengeSeconds(purpose) * 1000, epoch: context.store.epoch,
            now: context.unixMilliseconds(), using: &random)
    }

    /// An exchange is over: it is counted and logged.
    func finished(_ exchange: Exchange) {
        exchange.count(in: &metrics)
        write(exchange)
    }

    /// What this loop has counted, with what its pools hold now.
    func figures() -> LoopMetrics {
        var figures = metrics
        for pool in pools {
            figures.upstreamIdle[pool.servers.label, default: 0] += UInt64(pool.idleConnections)
        }
        return figures
    }

    /// Queues a line of the access log; it leaves at the end of the turn. Of routes that are off,
    /// the configured share is kept.
    private func write(_ exchange: Exchange) {
        guard context.accessLog != nil else { return }
        let kept = UInt64(context.configuration.log.sampleOffPercent)
        if exchange.log.verdict == .off, kept < 100, random.next() % 100 >= kept { return }
        let line = exchange.logLine()
        line.append(to: &logLines, isQueryLogged: context.configuration.log.isQueryLogged)
    }

    private func handOverLog() {
        guard !logLines.isEmpty else { return }
        context.accessLog?.write(logLines)
        logLines.removeAll(keepingCapacity: true)
    }
}
