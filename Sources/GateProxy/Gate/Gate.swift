internal import GateBytes
package import GateConfig
internal import GateLock
internal import GateRuntime
internal import GateStore
internal import GateTLS

/// A running gate: loops, listeners and what they share.
package final class Gate: Sendable {
    private let current: Lock<GateContext>
    private let services: GateServices
    private let binder: ListenerBinder
    private let workers: [LoopBound<Worker>]
    private let handles: [LoopHandle]

    private init(
        context: GateContext, services: GateServices, binder: ListenerBinder,
        workers: [LoopBound<Worker>], handles: [LoopHandle]
    ) {
        current = Lock(context)
        self.services = services
        self.binder = binder
        self.workers = workers
        self.handles = handles
    }

    /// The configuration in force, prepared, and what the loops share.
    package var context: GateContext { current.withLock { $0 } }

    /// Whether ``stop(then:)`` has been called.
    package var isStopping: Bool { context.isDraining.isSet }

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
        let bound = try binder.bind(context.listeners, but: [], loops: count)
        for (index, worker) in workers.enumerated() { try listen(bound, index, worker) }
        context.tunnels.watch(workers)
        context.metrics.watch(workers)
        let gate = Gate(
            context: context, services: services, binder: binder,
            workers: workers.map { LoopBound($0, on: $0.loop) }, handles: loops.map(\.handle))
        shareDescriptors(context)
        if let first = workers.first { first.loop.run { first.keepHouse() } }
        loops.forEach { $0.start() }
        return gate
    }

    private static func listen(
        _ bound: [BoundAddress], _ index: Int, _ worker: Worker
    ) throws(StartError) {
        for address in bound {
            let failure: SystemError? = worker.loop.run {
                do throws(SystemError) {
                    try worker.listen(address, index)
                    return nil
                } catch {
                    return error
                }
            }
            if let failure {
                throw StartError("listener \"\(address.listener)\": \(failure)")
            }
        }
    }

    private static func makeContext(
        _ configuration: Configuration, services: GateServices, clock: any Clock,
        previous: GateContext? = nil
    ) throws(StartError) -> GateContext {
        var apps: [String: AppRuntime] = [:]
        let labels = services.metrics.labels
        for app in configuration.apps {
            apps[app.name] = try AppRuntime(app, label: labels.number(of: app.name))
        }
        var upstreamIndices: [String: Int] = [:]
        for (index, upstream) in configuration.allUpstreams.enumerated() {
            upstreamIndices[upstream.name] = index
        }
        let hosts = configuration.hosts.map { host in
            HostRuntime(
                host, app: apps[host.app], table: RouteTable(host: host),
                upstreams: upstreamIndices, labels: labels,
                previous: previous?.hosts.first { $0.host.names[0] == host.names[0] })
        }
        var upstreams: [UpstreamServers] = []
        for upstream in configuration.allUpstreams {
            // What is known of servers is kept where nothing about them has changed.
            if let known = previous?.upstreams.first(where: { $0.upstream == upstream }) {
                upstreams.append(known)
                continue
            }
            let servers = UpstreamServers(
                upstream, tls: try UpstreamServers.makeTLS(upstream), labels: labels)
            UpstreamRefresh.resolve(servers, log: services.errorLog)
            upstreams.append(servers)
        }
        return GateContext(
            configuration: configuration, hosts: hosts,
            listeners: try makeListeners(
                configuration, labels: labels, clock: clock, previous: previous),
            upstreams: upstreams, apple: try makeApple(configuration, previous: previous),
            services: services, clock: clock, previous: previous)
    }

    /// What is known of Apple's servers, and the token, are kept while their block is the same.
    private static func makeApple(
        _ configuration: Configuration, previous: GateContext?
    ) throws(StartError) -> AppleServices? {
        guard let settings = configuration.apple else { return nil }
        if let known = previous?.apple, known.settings == settings { return known }
        return try AppleServices(settings)
    }

    private static func makeListeners(
        _ configuration: Configuration, labels: MetricLabels, clock: any Clock,
        previous: GateContext?
    ) throws(StartError) -> [ListenerRuntime] {
        var listeners: [ListenerRuntime] = []
        for listener in configuration.listeners {
            listeners.append(
                try ListenerRuntime(
                    listener, configuration: configuration,
                    label: labels.number(of: listener.name),
                    previous: previous?.listeners.first {
                        !$0.isAdmin && $0.listener.name == listener.name
                    }, clock: clock))
        }
        if !configuration.admin.isEmpty {
            listeners.append(
                try ListenerRuntime(
                    .admin(configuration.admin), configuration: configuration, isAdmin: true,
                    previous: previous?.listeners.first(where: \.isAdmin), clock: clock))
        }
        return listeners
    }

    /// Goes over to `configuration`: everything is prepared and bound first, then each loop swaps.
    /// Requests in work finish with what they began with; no connection is closed but those of a
    /// listener that has gone, which are drained.
    ///
    /// One at a time; what ``Configuration/needingRestart(in:)`` names stays as it is.
    /// - Parameter done: Called once every loop has gone over.
    /// - Throws: What keeps it from being done; then nothing has changed.
    package func reload(
        _ configuration: Configuration, then done: @escaping @Sendable () -> Void
    ) throws(StartError) {
        let previous = context
        // What has been closed must not be opened again.
        guard !isStopping else { throw StartError("the gate is stopping") }
        let next = try Gate.makeContext(
            configuration, services: services, clock: previous.clock, previous: previous)
        let added = try binder.bind(
            next.listeners, but: previous.listeners.flatMap(\.listener.addresses),
            loops: workers.count)
        current.withLock { $0 = next }
        let left = Lock(workers.count)
        for (index, (worker, handle)) in zip(workers, handles).enumerated() {
            handle.submit {
                worker.open().adopt(next, added, index)
                let isLast = left.withLock { left in
                    left -= 1
                    return left == 0
                }
                if isLast { done() }
            }
        }
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
