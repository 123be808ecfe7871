internal import GateBytes
package import GateConfig
internal import GateLock
internal import GateRuntime
internal import GateStore
internal import GateTLS

/// A running gate: loops, listeners and what they share.
package final class Gate: Sendable {
    package let context: GateContext
    private let workers: [LoopBound<Worker>]
    private let handles: [LoopHandle]

    private init(
        context: GateContext, workers: [LoopBound<Worker>], handles: [LoopHandle]
    ) {
        self.context = context
        self.workers = workers
        self.handles = handles
    }

    /// Binds every listener and starts serving.
    /// - Parameter passedSockets: Listening sockets that systemd passed, by name.
    /// - Throws: What keeps it from starting; then nothing is left bound.
    package static func start(
        _ configuration: Configuration, services: GateServices,
        passedSockets: [(name: String, descriptor: Int32)] = []
    ) throws(StartError) -> Gate {
        let clock = SystemClock()
        let context = try makeContext(configuration, services: services, clock: clock)
        let count = configuration.loops ?? SystemFacts.cores
        var loops: [EventLoop] = []
        var workers: [Worker] = []
        do throws(SystemError) {
            for index in 0..<count {
                let loop = try EventLoop(name: "\(index + 1)", clock: clock)
                loops.append(loop)
                workers.append(Worker(context: context, loop: loop, loops: count))
            }
        } catch {
            throw StartError("event loop: \(error)")
        }
        let binder = ListenerBinder(passed: passedSockets)
        for listener in context.listeners {
            for address in listener.listener.addresses {
                let sockets = try binder.bind(address, of: listener.listener.name, on: loops)
                for (worker, socket) in zip(workers, sockets) {
                    worker.loop.run { worker.listen(socket, for: listener) }
                }
            }
        }
        context.tunnels.watch(workers)
        let gate = Gate(
            context: context,
            workers: workers.map { LoopBound($0, on: $0.loop) }, handles: loops.map(\.handle))
        shareDescriptors(context)
        if let first = workers.first { keepHouse(context, on: first) }
        loops.forEach { $0.start() }
        return gate
    }

    /// What is open by now is what a gate always has; of the rest, connections get their share.
    private static func shareDescriptors(_ context: GateContext) {
        let (limit, used) = SystemFacts.descriptors
        context.descriptors.share(limit: limit, used: used)
        let most = context.descriptors.most
        for listener in context.listeners
        where !listener.isAdmin && listener.limits.connections > most {
            context.errorLog.write(
                .info,
                "listener \(listener.listener.name): RLIMIT_NOFILE \(limit) allows \(most) of "
                    + "connections=\(listener.limits.connections)")
        }
    }

    private static func makeContext(
        _ configuration: Configuration, services: GateServices, clock: any Clock
    ) throws(StartError) -> GateContext {
        var apps: [String: AppRuntime] = [:]
        for app in configuration.apps { apps[app.name] = try AppRuntime(app) }
        var upstreamIndices: [String: Int] = [:]
        for (index, upstream) in configuration.upstreams.enumerated() {
            upstreamIndices[upstream.name] = index
        }
        var listeners: [ListenerRuntime] = []
        for listener in configuration.listeners {
            listeners.append(
                try ListenerRuntime(listener, configuration: configuration, clock: clock))
        }
        if !configuration.admin.isEmpty {
            listeners.append(
                try ListenerRuntime(
                    .admin(configuration.admin), configuration: configuration, isAdmin: true,
                    clock: clock))
        }
        let hosts = configuration.hosts.map { host in
            HostRuntime(
                host, app: apps[host.app], table: RouteTable(host: host),
                upstreams: upstreamIndices)
        }
        var upstreams: [UpstreamServers] = []
        for upstream in configuration.upstreams {
            let servers = UpstreamServers(upstream, tls: try UpstreamServers.makeTLS(upstream))
            UpstreamRefresh.resolve(servers, log: services.errorLog)
            upstreams.append(servers)
        }
        return GateContext(
            configuration: configuration, hosts: hosts,
            listeners: listeners,
            upstreams: upstreams, store: services.store, spool: services.spool,
            verification: VerificationPool(
                width: max(1, SystemFacts.cores / 2), waitingMax: Gate.attestationsWaitingMax),
            accessLog: services.accessLog, errorLog: services.errorLog, clock: clock,
            storeWaitMax: services.storeWaitMax)
    }

    /// Attestations in line for the pool, a few milliseconds each; beyond it: `retry_later`.
    private static let attestationsWaitingMax = 1024

    /// What has to be done now and then: names resolved anew, and ticket keys and spent challenges
    /// whose life is over let go (the store does so by itself while it admits). By a loop's
    /// deadlines and not by Dispatch's timers: those make their descriptor when the first is armed,
    /// perhaps just when none is left.
    private static func keepHouse(_ context: GateContext, on worker: Worker) {
        worker.loop.run {
            worker.startHealthChecks()
            UpstreamRefresh.start(context, on: worker) { [weak worker] index in
                worker?.healthChecks[index]?.refresh()
            }
            worker.every(.seconds(60)) {
                context.store.forgetExpired(now: UInt32(clamping: context.unixSeconds()))
                context.listeners.forEach { $0.tls?.rotateTicketKeys() }
            }
        }
    }

    /// Stops: no new connections, requests in work may finish within `drain_timeout`.
    /// Calls `done` once nothing is left or the time is over.
    package func stop(then done: @escaping @Sendable () -> Void) {
        guard context.isDraining.set() else { return }
        let left = Lock(workers.count)
        let finished = Flag()
        let finish: @Sendable () -> Void = { [workers, handles] in
            guard finished.set() else { return }
            let open = Lock(workers.count)
            for (worker, handle) in zip(workers, handles) {
                handle.submit {
                    worker.open().stop()
                    if open.withLock({ open in
                        open -= 1; return open == 0
                    }) {
                        done()
                    }
                }
            }
        }
        for (worker, handle) in zip(workers, handles) {
            handle.submit {
                let worker = worker.open()
                worker.onDrained = {
                    if left.withLock({ left in
                        left -= 1; return left == 0
                    }) {
                        finish()
                    }
                }
                worker.drain()
            }
        }
        guard let first = workers.first, let handle = handles.first else { return }
        let time = context.configuration.drainTimeout
        handle.submit { first.open().after(time) { finish() } }
    }
}
