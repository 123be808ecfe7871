internal import GateBytes
internal import GateConfig
internal import GateLock
internal import GateRuntime

/// Resolves the names of upstreams: at the start, then every `resolve every`, never on a loop.
enum UpstreamRefresh {
    /// Looks every server of an upstream up. A name that does not resolve is a warning: the gate
    /// starts, and the next round may find it. Said once, and once when it resolves again.
    static func resolve(_ servers: UpstreamServers, log: ErrorLog) {
        let name = servers.upstream.name
        for (index, server) in servers.upstream.servers.enumerated() {
            switch server.endpoint {
            case .unix(let path):
                servers.replace(index, with: [.unix(path)])
            case .host(let host, let port):
                do throws(ResolverError) {
                    let addresses = try Resolver.addresses(of: host)
                    let wasUnresolved = servers.replace(
                        index, with: addresses.map { .ip($0, port: port) })
                    if wasUnresolved {
                        log.write(.warn, "upstream \(name): name \"\(host)\" resolves again")
                    }
                } catch {
                    guard servers.noteUnresolved(index) else { continue }
                    log.write(.warn, "upstream \(name): \(error)")
                }
            }
        }
    }

    /// Begins to refresh the upstreams that have names; `worker`'s loop keeps the time, the
    /// resolver's queue does the waiting. `then` runs on the loop after each round, with the
    /// upstream's index.
    /// - Returns: What keeps the time, to be ended with ``Worker/end(_:)``.
    static func start(
        _ context: GateContext, on worker: Worker, then: @escaping (Int) -> Void
    ) -> [Deadline] {
        var rounds: [Deadline] = []
        let bound = LoopBound(then, on: worker.loop)
        let handle = worker.loop.handle
        for (index, servers) in context.upstreams.enumerated() where hasNames(servers.upstream) {
            let isAsking = Flag()
            let round = worker.every(servers.upstream.resolveEvery) {
                // A resolver that is slower than the interval is not asked the same twice at once.
                guard isAsking.set() else { return }
                Resolver.run {
                    defer { isAsking.clear() }
                    resolve(servers, log: context.errorLog)
                    handle.submit { bound.open()(index) }
                }
            }
            rounds.append(round)
        }
        return rounds
    }

    private static func hasNames(_ upstream: Upstream) -> Bool {
        upstream.servers.contains { server in
            guard case .host(let name, _) = server.endpoint else { return false }
            return IPAddress(name) == nil
        }
    }
}
