extension Listener {
    /// The listener behind the `admin` block: few connections, small heads, no bodies.
    package static func admin(_ addresses: [ListenAddress]) -> Listener {
        Listener(
            name: "admin", addresses: addresses, proxySources: [], trustedProxies: [], http: .h1,
            limits: ListenerLimits(
                connections: 256, perAddress: 256, headerFields: 64, headerSize: 16 * 1024,
                fieldSize: 8 * 1024, targetSize: 2 * 1024, requests: 1000,
                h2Streams: 1, h2Resets: Rate(count: 1, per: .seconds(1)),
                h2Control: Rate(count: 1, per: .seconds(1))),
            timeouts: ListenerTimeouts(
                handshake: .seconds(10), header: .seconds(10), body: .seconds(10), bodyMinRate: 0,
                keepalive: .seconds(75), write: .seconds(30), tunnel: .seconds(30),
                tunnelMax: .seconds(30)))
    }
}
