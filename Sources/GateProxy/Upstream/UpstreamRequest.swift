internal import GateBytes
internal import GateConfig
internal import GateHTTP
internal import GateRuntime

/// What a request to an upstream tells the exchange it belongs to.
protocol UpstreamRequestOwner: AnyObject {
    /// An interim answer (1xx) that the client may be given.
    func upstream(interim head: ResponseHead)
    /// The final answer's head.
    func upstream(head: ResponseHead)
    /// Bytes of the answer's body, valid during the call.
    func upstream(body bytes: [UInt8], _ range: Range<Int>)
    /// The answer is complete.
    func upstreamEnded()
    /// No whole answer will come.
    func upstream(failed failure: UpstreamFailure)
    /// More of a streamed body can be taken.
    func upstreamDrained()
    /// A batch of events has been delivered: what was queued downstream should leave now.
    func upstreamPaused()
    /// Whether the client cannot take more of the answer at the moment.
    var isDownstreamCongested: Bool { get }
}

/// One request on its way to an upstream: finds or makes a connection, writes the head and the
/// body, and tries again where that is safe.
///
/// Tried again (design decision 8): on another server while no connection stood, so nothing was
/// sent; on a fresh connection when a *reused* one closed before any answer and the request is
/// idempotent with its body still whole. Never otherwise, whatever the proof: it is spent once
/// either way.
final class UpstreamRequest: UpstreamConnectionUser {
    /// How the body goes up.
    enum Body {
        /// All of it is held.
        case held(HeldBody)
        /// There is none.
        case none
        /// It comes piece by piece through ``sendBody(_:_:)``, after what was held, if anything
        /// was.
        case streamed(isChunked: Bool, held: HeldBody?)
    }

    /// What the request consists of; made by ``UpstreamRequest/open(_:permit:pool:owner:)``'s
    /// caller.
    struct Message {
        /// The head's bytes, empty line included.
        var head: [UInt8]
        var body: Body
        var isHead: Bool
        var isIdempotent: Bool
        var timeouts: Timeouts
        var limits: HeadLimits
    }

    /// Deadlines of this request, the route's or the upstream's.
    struct Timeouts {
        var connect: Duration
        var firstByte: Duration
        var idle: Duration
    }

    private enum Phase {
        case connecting
        case ended
        case waitingForHead
        case receiving
    }

    /// The server that was tried last, for the log.
    private(set) var server: SocketAddress?

    private let message: Message
    private let pool: UpstreamPool
    private weak var owner: (any UpstreamRequestOwner)?
    private var connection: UpstreamConnection?
    private var phase = Phase.connecting
    private var retriesLeft: Int

    /// Bytes of a streamed body, framed, that came before the connection stood.
    private var waiting: [UInt8] = []
    /// All of a streamed body so far, framed, while it is small enough to be sent again; else nil.
    private var replay: [UInt8]?
    private var heldOffset = 0
    private var isHeldSent = false
    private var isStreamEnded = false
    private var isRequestSent = false

    private static let pieceBytes = 32 * 1024
    /// The longest streamed body that is kept so that an idempotent request can be sent again.
    private static let replayBytesMax = 16 * 1024

    /// Opens a request: the only way upstream, at the price of a permit.
    static func open(
        _ message: Message, permit: consuming Permit, pool: UpstreamPool,
        owner: any UpstreamRequestOwner
    ) -> UpstreamRequest {
        _ = consume permit
        return UpstreamRequest(message, pool: pool, owner: owner)
    }

    private init(
        _ message: Message, pool: UpstreamPool, owner: any UpstreamRequestOwner
    ) {
        self.message = message
        self.pool = pool
        self.owner = owner
        retriesLeft = pool.upstream.retries
        if case .streamed(_, held: nil) = message.body, message.isIdempotent { replay = [] }
    }

    /// Begins. The owner may hear of a failure before this returns.
    func start() {
        attempt(mayReuse: true)
    }

    /// Whether a streamed body should pause.
    var isCongested: Bool {
        // What waits for a connection counts as well: while one is being made, its output is empty.
        waiting.count >= UpstreamConnection.outputHighWater || connection?.isCongested == true
    }

    /// Takes the next bytes of a streamed body.
    func sendBody(_ bytes: [UInt8], _ range: Range<Int>) {
        guard phase != .ended, !range.isEmpty else { return }
        var framed: [UInt8] = []
        if isChunked { ChunkedWriter.append(bytes, range, to: &framed) }
        keepForReplay(isChunked ? framed[...] : bytes[range])
        guard let connection, phase != .connecting, isHeldSent else {
            waiting.append(contentsOf: isChunked ? framed[...] : bytes[range])
            return
        }
        if isChunked {
            connection.write(framed, 0..<framed.count)
        } else {
            connection.write(bytes, range)
        }
        progressed()
        connection.flush()
    }

    private func keepForReplay(_ framed: ArraySlice<UInt8>) {
        guard let count = replay?.count else { return }
        if count + framed.count <= UpstreamRequest.replayBytesMax {
            replay?.append(contentsOf: framed)
        } else {
            replay = nil
        }
    }

    /// Ends a streamed body.
    func endBody() {
        guard phase != .ended, !isStreamEnded, isStreamed else { return }
        isStreamEnded = true
        if isChunked {
            var last: [UInt8] = []
            ChunkedWriter.appendLast(to: &last)
            keepForReplay(last[...])
            waiting += last
        }
        sendRest()
    }

    /// Goes on reading the answer after the client has taken what it was given.
    func resume() {
        progressed()
        connection?.resumeReading()
    }

    /// Gives up: the client has gone, or the exchange failed elsewhere. The owner hears nothing
    /// more.
    func cancel() {
        guard phase != .ended else { return }
        finish()
        connection?.close()
        connection = nil
    }

    // MARK: Attempts

    private func attempt(mayReuse: Bool) {
        guard let server = pool.nextServer() else { return fail(.noAddress) }
        self.server = server
        heldOffset = 0
        isHeldSent = false
        isRequestSent = false
        // A request that could be sent twice need not ask whether the server has just closed.
        let mustBeQuiet = !(isRepeatable && message.isIdempotent)
        if mayReuse, let idle = pool.takeIdle(server, mustBeQuiet: mustBeQuiet, for: self) {
            connection = idle
            return send(on: idle)
        }
        phase = .connecting
        do throws(SystemError) {
            connection = try pool.connect(server, for: self)
            connection?.setDeadline(after: message.timeouts.connect)
        } catch {
            connection = nil
            connectFailed(.connect(error))
        }
    }

    private func connectFailed(_ failure: UpstreamFailure) {
        guard retriesLeft > 0 else { return fail(failure) }
        retriesLeft -= 1
        attempt(mayReuse: true)
    }

    private var isChunked: Bool {
        if case .streamed(let isChunked, _) = message.body { return isChunked }
        return false
    }

    private var isStreamed: Bool {
        if case .streamed = message.body { return true }
        return false
    }

    /// Whether every byte of the request so far is still here to be sent again.
    private var isRepeatable: Bool {
        switch message.body {
        case .held, .none: return true
        case .streamed(_, let held): return held == nil && replay != nil
        }
    }

    private func send(on connection: UpstreamConnection) {
        phase = .waitingForHead
        connection.begin(isHead: message.isHead, limits: message.limits)
        connection.write(message.head, 0..<message.head.count)
        connection.setDeadline(after: message.timeouts.idle)
        sendRest()
    }

    /// Queues what can be queued of the body and flushes.
    private func sendRest() {
        guard let connection, phase != .connecting, phase != .ended else { return }
        do throws(SystemError) {
            try sendHeld(on: connection)
        } catch {
            connection.close()
            self.connection = nil
            return fail(.spool(error))
        }
        if isHeldSent, !isRequestSent {
            if !waiting.isEmpty {
                connection.write(waiting, 0..<waiting.count)
                waiting = []
            }
            if isStreamEnded || !isStreamed {
                isRequestSent = true
                connection.endRequest()
            }
        }
        let isFlushed = connection.flush()
        // The connection may have failed and this request ended while it was written.
        guard phase == .waitingForHead, isFlushed, isRequestSent else { return }
        connection.setDeadline(after: message.timeouts.firstByte)
    }

    private func sendHeld(on connection: UpstreamConnection) throws(SystemError) {
        guard !isHeldSent else { return }
        let held: HeldBody?
        var isChunked = false
        switch message.body {
        case .held(let body): held = body
        case .none: held = nil
        case .streamed(let chunked, let body):
            held = body
            isChunked = chunked
        }
        guard let held, held.count > 0 else {
            isHeldSent = true
            return
        }
        while heldOffset < held.count {
            guard !connection.isCongested || connection.flush() else { return }
            let limit = min(UpstreamRequest.pieceBytes, held.count - heldOffset)
            let offset = heldOffset
            if isChunked {
                var piece = ByteBuffer()
                let count = try held.read(at: offset, limit: limit, into: &piece)
                var framed: [UInt8] = []
                ChunkedWriter.append(
                    piece.storage, piece.readable.lowerBound..<piece.readable.lowerBound + count,
                    to: &framed)
                connection.write(framed, 0..<framed.count)
                heldOffset += count
            } else {
                heldOffset += try connection.write {
                    (output: inout ByteBuffer) throws(SystemError) in
                    try held.read(at: offset, limit: limit, into: &output)
                }
            }
        }
        isHeldSent = true
    }

    private func progressed() {
        guard phase == .receiving || (phase == .waitingForHead && !isRequestSent) else { return }
        connection?.setDeadline(after: message.timeouts.idle)
    }

    func deadlinePassed() {
        switch phase {
        case .connecting:
            connection?.close()
            connection = nil
            connectFailed(.connectTimeout)
        case .ended:
            return
        case .waitingForHead where isRequestSent:
            connection?.close()
            connection = nil
            fail(.firstByteTimeout)
        case .receiving, .waitingForHead:
            // A client that takes nothing is the downstream side's to time out.
            if owner?.isDownstreamCongested == true {
                connection?.setDeadline(after: message.timeouts.idle)
                return
            }
            connection?.close()
            connection = nil
            fail(.idleTimeout)
        }
    }

    private func finish() {
        phase = .ended
    }

    private func fail(_ failure: UpstreamFailure) {
        finish()
        owner?.upstream(failed: failure)
    }

    // MARK: UpstreamConnectionUser

    var isDownstreamCongested: Bool {
        guard let owner, owner.isDownstreamCongested else { return false }
        return true
    }

    func connected() {
        guard let connection, phase == .connecting else { return }
        send(on: connection)
        if !isCongested { owner?.upstreamDrained() }
    }

    func received(interim head: ResponseHead) {
        progressed()
        owner?.upstream(interim: head)
    }

    func received(head: ResponseHead) {
        phase = .receiving
        progressed()
        owner?.upstream(head: head)
    }

    func received(body bytes: [UInt8], _ range: Range<Int>) {
        progressed()
        owner?.upstream(body: bytes, range)
    }

    func receivedEnd() {
        guard phase != .ended else { return }
        finish()
        if let connection { pool.giveBack(connection) }
        connection = nil
        owner?.upstreamEnded()
    }

    func drained() {
        progressed()
        sendRest()
        if phase != .ended, !isCongested { owner?.upstreamDrained() }
    }

    func paused() {
        owner?.upstreamPaused()
    }

    func failed(_ failure: UpstreamFailure) {
        let wasReused = connection?.isReused ?? false
        connection = nil
        switch failure {
        case .connect:
            connectFailed(failure)
        case .closed(afterBytes: false)
        where wasReused && phase == .waitingForHead && isRepeatable && message.isIdempotent
            && retriesLeft > 0:
            retriesLeft -= 1
            waiting = replay ?? []
            attempt(mayReuse: false)
        default:
            fail(failure)
        }
    }
}
