internal import GateBytes
internal import GateHTTP

/// The client's side of one exchange: the current request of an HTTP/1.1 connection. The exchange
/// sees this and no socket, so that another protocol's stream can stand in its place.
protocol DownstreamStream: AnyObject {
    /// Sends `100 Continue`.
    func sendContinue()
    /// Passes an interim answer of the upstream on, where the client's version knows such.
    func relay(interim head: ResponseHead)
    /// Begins the upstream's answer: its end-to-end fields and the gate's.
    func relay(head: ResponseHead, adding additions: ResponseAdditions)
    /// Sends bytes of the answer's body, valid during the call.
    func send(body bytes: [UInt8], _ range: Range<Int>)
    /// Ends the answer that ``relay(head:adding:)`` began, with those of its trailers that are not
    /// marked, where the client takes trailers.
    func endAnswer(trailers: ResponseTrailers?)
    /// Sends an answer of the gate's own, whole.
    func answer(_ answer: GateAnswer, requestID: [UInt8])
    /// Breaks off an answer that has begun, so that the client cannot take it for whole.
    func abort()
    /// Whether the connection can become a tunnel: HTTP/1.1 alone.
    var canSwitchProtocols: Bool { get }
    /// Writes a 101 and gives the connection away; nil where that cannot be.
    func switchProtocols(
        _ head: ResponseHead, adding additions: ResponseAdditions
    ) -> TunnelEnd?
    /// Goes on delivering the request's body after the exchange could not take more.
    func resumeBody()
    /// Lets queued bytes leave.
    func flush()
    /// Whether the client cannot take more at the moment.
    var isCongested: Bool { get }
    /// Bytes queued for the client so far in this exchange.
    var bytesSent: Int { get }
}

extension DownstreamStream {
    var canSwitchProtocols: Bool { false }

    func switchProtocols(
        _ head: ResponseHead, adding additions: ResponseAdditions
    ) -> TunnelEnd? { nil }
}

/// What the gate adds to an answer of the upstream.
struct ResponseAdditions {
    /// The request's ID, sent as `X-Request-Id`.
    var requestID: [UInt8]
    /// Sent as `App-Attest-Next-Challenge`; nil for none.
    var nextChallenge: [UInt8]?
}
