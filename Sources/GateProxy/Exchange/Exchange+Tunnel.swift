// WebSockets (`upgrade websocket`). The handshake is a request like any other: routed, judged, and
// sent up at the price of a permit. Only where it is whole does an `Upgrade` go on, and only a 101
// that answers just this handshake makes a tunnel of it; whatever the client has sent behind its
// head waits until then, and is the next request after any other answer (threat T09).

internal import GateBytes
internal import GateConfig
internal import GateCrypto
internal import GateHTTP
internal import GateRuntime

extension Exchange {
    /// What `Sec-WebSocket-Accept` has to be where the request opens a WebSocket; nil where it does
    /// not, or where the route, the client's protocol or the service's knows none.
    func webSocketAccept(_ head: RequestHead, _ route: Route) -> [UInt8]? {
        guard route.isWebSocket, stream.canSwitchProtocols,
            let key = WebSocketHandshake.key(of: head),
            let hash = SHA1.hash(WebSocketHandshake.accepted(key: head.bytes[key]))
        else { return nil }
        return Array(Base64.encode(hash).utf8)
    }

    func upstream(switched head: ResponseHead, _ serviceEnd: TunnelEnd) {
        var head = head
        HopByHop.mark(&head)
        let additions = ResponseAdditions(
            requestID: log.requestID, nextChallenge: challengeOfVerified())
        guard !isOver, let clientEnd = stream.switchProtocols(head, adding: additions) else {
            return serviceEnd.transport.close()
        }
        isAnswered = true
        log.status = head.status
        log.upstreamEnded = worker.loop.now
        let timeouts = Tunnel.Timeouts(
            idle: route?.tunnelTimeout ?? listener.timeouts.tunnel, halfClosed: writeTimeout,
            whole: route?.tunnelMax ?? listener.timeouts.tunnelMax)
        let keyID = verifiedKeyID
        // The closure keeps the exchange and its stream, whose connection has gone from the worker.
        let tunnel = Tunnel(
            client: client, clientEnd: clientEnd, serviceEnd: serviceEnd, timeouts: timeouts,
            worker: worker
        ) { [self, stream] tunnel, ending in
            _ = stream
            if let keyID { worker.ended(tunnel, keyID: keyID) }
            tunnelEnded(tunnel, ending)
        }
        worker.begin(tunnel, inPlaceOf: stream, keyID: keyID)
    }

    private var verifiedKeyID: Bytes32? {
        if case .verified(let key) = log.verdict { return key.keyID }
        return nil
    }

    private func tunnelEnded(_ tunnel: Tunnel, _ ending: Tunnel.Ending) {
        switch ending {
        case .clientFailed, .closed, .stopped: break
        case .idle, .tooLong: log.reason = .timeout
        case .keyRevoked: log.reason = .keyRevoked
        case .serviceFailed(let error):
            log.reason = .upstream
            logUpstream("\(error)")
        }
        log.bytesIn += tunnel.bytesIn
        tunnelBytesOut = tunnel.bytesOut
        clientGone()
    }
}
