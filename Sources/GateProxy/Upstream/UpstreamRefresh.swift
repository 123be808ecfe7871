internal import GateBytes
internal import GateConfig
internal import GateLock
internal import GateRuntime

/// Resolves the names of upstreams: at the start, then every `resolve every`, never on a loop.
enum UpstreamRefresh {
    /// The addresses of `upstream` now. A name that does not resolve is a warning: the gate starts,
    /// and the next round may find it.
    static func resolve(_ upstream: Upstream, log: ErrorLog) -> [SocketAddress] {
        var addresses: [SocketAddress] = []
        for server in upstream.servers {
            switch server.endpoint {
            case .unix(let path):
                addresses.append(.unix(path))
            case .host(let name, let port):
                do throws(ResolverError) {
                    addresses += try Resolver.addresses(of: name).map { .ip($0, port: port) }
                } catch {
                    log.write(.warn, "upstream \"\(upstream.name)\": \(error)")
                }
            }
        }
        return addresses
    }

    /// Begins to refresh the upstreams that have names; `worker`'s loop keeps the time, the
    /// resolver's queue does the waiting.
    static func start(_ context: GateContext, on worker: Worker) {
        for (upstream, addresses) in zip(context.configuration.upstreams, context.upstreams)
        where hasNames(upstream) {
            let isAsking = Flag()
            worker.every(upstream.resolveEvery) {
                // A resolver that is slower than the interval is not asked the same twice at once.
                guard isAsking.set() else { return }
                Resolver.run {
                    defer { isAsking.clear() }
                    addresses.replace(with: resolve(upstream, log: context.errorLog))
                }
            }
        }
    }

    private static func hasNames(_ upstream: Upstream) -> Bool {
        upstream.servers.contains { server in
            guard case .host(let name, _) = server.endpoint else { return false }
            return IPAddress(name) == nil
        }
    }
}
