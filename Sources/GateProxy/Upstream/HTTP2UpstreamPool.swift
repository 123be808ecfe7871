internal import GateConfig
internal import GateHTTP
internal import GateRuntime

/// The HTTP/2 connections of one loop to the servers of one upstream: a request takes a stream of
/// the first that has room.
final class HTTP2UpstreamPool {
    private let terms: HTTP2UpstreamConnection.Terms
    private let loop: EventLoop
    private var connections: [SocketAddress: [HTTP2UpstreamConnection]] = [:]

    init(_ upstream: Upstream, on loop: EventLoop) {
        terms = HTTP2UpstreamConnection.Terms(
            idle: upstream.keepaliveIdle, requestsMax: max(1, upstream.keepaliveRequests))
        self.loop = loop
    }

    /// A stream on a connection that stands; nil where none has room.
    func take(
        _ server: SocketAddress, for user: any UpstreamChannelUser
    ) -> HTTP2UpstreamStream? {
        connections[server]?.first { $0.isOpenForMore }?.makeStream(for: user)
    }

    /// A stream on a connection that is being made, begun here where there is none to join.
    func connect(
        _ server: SocketAddress, security: UpstreamSecurity?, for user: any UpstreamChannelUser
    ) throws(SystemError) -> HTTP2UpstreamStream {
        if let coming = connections[server]?.first(where: { $0.isComingForMore }) {
            return coming.makeStream(for: user)
        }
        let connection = try HTTP2UpstreamConnection(
            to: server, security: security, terms: terms, limits: HeadLimits(), on: loop)
        connection.onLeave = { [weak self, weak connection] in
            guard let self, let connection else { return }
            self.forget(connection)
        }
        connections[server, default: []].append(connection)
        return connection.makeStream(for: user)
    }

    private func forget(_ connection: HTTP2UpstreamConnection) {
        connections[connection.server]?.removeAll { $0 === connection }
        if connections[connection.server]?.isEmpty == true { connections[connection.server] = nil }
    }

    /// Takes no more requests; connections end with their last stream.
    func leaveAll() {
        let all = connections.values.joined()
        connections = [:]
        for connection in Array(all) { connection.leave() }
    }

    /// Closes every connection: the pool is going.
    func closeAll() {
        let all = connections.values.joined()
        connections = [:]
        for connection in Array(all) { connection.close() }
    }
}
