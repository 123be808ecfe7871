// One request to an upstream, on one loop for life: that of its exchange and of the connection it
// takes.

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
    /// The server has switched to the protocol that was asked for; its connection goes with it.
    func upstream(switched head: ResponseHead, _ end: TunnelEnd)
    /// Bytes of the answer's body, valid during the call.
    func upstream(body bytes: [UInt8], _ range: Range<Int>)
    /// The answer is complete, with its trailers if it had any.
    func upstreamEnded(trailers: ResponseTrailers?)
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
/// Tried again (design decision 8): while no connection stood, so nothing was sent; on a fresh
/// connection when a *reused* one closed before any answer and the request is idempotent with its
/// body still whole; when the server says that it took nothing of it; each time on another server
/// where there is one. Never otherwise, whatever the proof: it is spent once either way.
///
/// Under `max_active` it first waits for its place, which it holds over all attempts.
final class UpstreamRequest: UpstreamChannelUser {
    /// How the body goes up.
    enum Body {
        /// All of it is held.
        case held(HeldBody)
        /// There is none.
        case none
        /// It comes piece by piece through ``sendBody(_:_:)``, after what was held, if anything
        /// was.
        case streamed(held: HeldBody?)
    }

    /// What the request consists of; made by ``UpstreamRequest/open(_:permit:pool:owner:)``'s
    /// caller.
    struct Message {
        var head: UpstreamRequestHead
        var body: Body
        var isIdempotent: Bool
        var timeouts: Timeouts
        /// The verified key ID, for `balance hash key_id`.
        var key: Bytes32?
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
        case queued
        case receiving
        /// The connection is a tunnel's, which counts as its request until it has ended.
        case tunnelled
        case waitingForHead
    }

    /// The server that was tried last, for the log.
    private(set) var server: SocketAddress?
    /// The index of its server line.
    private(set) var serverLine: Int?

    private let message: Message
    private let pool: UpstreamPool
    private weak var owner: (any UpstreamRequestOwner)?
    private var channel: (any UpstreamChannel)?
    private var phase = Phase.queued
    private var retriesLeft: Int
    private let slot: UpstreamSlot?
    /// The target of the attempt in work.
    private var choice: UpstreamServers.Choice?
    private var wanted: BalancerRequest

    /// Bytes of a streamed body that came before the connection stood.
    private var waiting: [UInt8] = []
    /// All of a streamed body so far, while it is small enough to be sent again; else nil.
    private var replay: [UInt8]?
    private var heldOffset = 0
    private var isHeldSent = false
    private var isStreamEnded = false
    private var isRequestSent = false

    private static let pieceBytes = 32 * 1024
    /// The longest streamed body that is kept so that an idempotent request can be sent again.
    private static let replayBytesMax = 16 * 1024

    /// Opens a request: the only way upstream, at the price of a permit.
    /// - Parameter slot: Its place within `max_active`, where it was taken before the commit.
    static func open(
        _ message: Message, permit: consuming Permit, pool: UpstreamPool, slot: UpstreamSlot?,
        owner: any UpstreamRequestOwner
    ) -> UpstreamRequest {
        _ = consume permit
        return UpstreamRequest(message, pool: pool, slot: slot, owner: owner)
    }

    private init(
        _ message: Message, pool: UpstreamPool, slot: UpstreamSlot?,
        owner: any UpstreamRequestOwner
    ) {
        self.message = message
        self.pool = pool
        self.owner = owner
        self.slot = slot ?? pool.makeSlot()
        wanted = BalancerRequest(key: message.key)
        retriesLeft = pool.upstream.retries
        if case .streamed(held: nil) = message.body, isWorthKeeping { replay = [] }
    }

    /// Begins. The owner may hear of a failure before this returns.
    func start() {
        guard let slot else { return attempt(mayReuse: true) }
        slot.take { [weak self] isTaken in self?.begin(isPlaceTaken: isTaken) }
    }

    /// Whether it stands in line for its place.
    var isQueued: Bool { slot?.isWaiting == true }

    private func begin(isPlaceTaken: Bool) {
        guard phase == .queued else { return }
        guard isPlaceTaken else { return fail(.noSlot) }
        let hasWaited = !waiting.isEmpty
        attempt(mayReuse: true)
        // The client was told to pause while its body waited here.
        if hasWaited, phase != .ended, phase != .connecting, !isCongested {
            owner?.upstreamDrained()
        }
    }

    /// Whether a streamed body should pause.
    var isCongested: Bool {
        // What waits for a connection counts as well: while one is being made, its output is empty.
        waiting.count >= UpstreamConnection.outputHighWater || channel?.isCongested == true
    }

    /// Takes the next bytes of a streamed body; what they are too few to fill up leaves with
    /// ``flushBody()``.
    func sendBody(_ bytes: [UInt8], _ range: Range<Int>) {
        guard phase != .ended, !range.isEmpty else { return }
        keepForReplay(bytes, range)
        guard let channel, phase != .connecting, isHeldSent else {
            waiting.append(contentsOf: bytes[range])
            return
        }
        channel.write(body: bytes, range)
        progressed()
        if channel.isCongested { channel.flush() }
    }

    /// Lets what was queued of a streamed body leave: no more of it is here at the moment.
    func flushBody() {
        guard phase != .ended, phase != .connecting, isStreamed, !isRequestSent else { return }
        channel?.flush()
    }

    /// Whether there is a case in which the body would be sent again.
    private var isWorthKeeping: Bool {
        if case .http2 = message.head.form { return true }
        return message.isIdempotent
    }

    private func keepForReplay(_ bytes: [UInt8], _ range: Range<Int>) {
        guard let count = replay?.count else { return }
        if count + range.count <= UpstreamRequest.replayBytesMax {
            replay?.append(contentsOf: bytes[range])
        } else {
            replay = nil
        }
    }

    /// Ends a streamed body.
    func endBody() {
        guard phase != .ended, !isStreamEnded, isStreamed else { return }
        isStreamEnded = true
        sendRest()
    }

    /// Goes on reading the answer after the client has taken what it was given.
    func resume() {
        progressed()
        channel?.resumeReading()
    }

    /// Gives up: the client has gone, or the exchange failed elsewhere. The owner hears nothing
    /// more.
    func cancel() {
        guard phase != .ended else { return }
        finish()
        channel?.close()
        channel = nil
    }

    /// Whether the server has been sent the request, or part of it, and has not begun to answer.
    var isAnswerAwaited: Bool { phase == .waitingForHead }

    /// Tells another of what comes of it.
    func handOver(to owner: any UpstreamRequestOwner) {
        self.owner = owner
        resume()
    }

    deinit { leaveServer() }

    // MARK: Attempts

    private func attempt(mayReuse: Bool) {
        leaveServer()
        let server: SocketAddress
        do throws(UpstreamFailure) {
            let choice = try pool.choose(for: wanted)
            self.choice = choice
            server = choice.address
            serverLine = choice.server
        } catch {
            return fail(error)
        }
        self.server = server
        heldOffset = 0
        isHeldSent = false
        isRequestSent = false
        if mayReuse, let idle = pool.takeIdle(server, for: self) {
            channel = idle
            return send(on: idle)
        }
        phase = .connecting
        do throws(SystemError) {
            channel = try pool.connect(server, for: self)
            channel?.setDeadline(after: message.timeouts.connect)
        } catch {
            channel = nil
            connectFailed(.connect(error))
        }
    }

    private func connectFailed(_ failure: UpstreamFailure) {
        if !failure.isOwn { noteFailure() }
        if let choice { wanted.failed.append(choice.id) }
        guard retriesLeft > 0 else { return fail(failure) }
        retriesLeft -= 1
        attempt(mayReuse: true)
    }

    private func noteFailure() {
        if let choice { pool.noteFailure(of: choice) }
    }

    private func leaveServer() {
        if let choice { pool.release(choice) }
        choice = nil
    }

    private var isStreamed: Bool {
        if case .streamed = message.body { return true }
        return false
    }

    /// Whether every byte of the request so far is still here to be sent again.
    private var isRepeatable: Bool {
        switch message.body {
        case .held, .none: return true
        case .streamed(let held): return held == nil && replay != nil
        }
    }

    private func send(on channel: any UpstreamChannel) {
        phase = .waitingForHead
        channel.begin(message.head)
        channel.setDeadline(after: message.timeouts.idle)
        sendRest()
    }

    /// Queues what can be queued of the body and flushes.
    private func sendRest() {
        guard let channel, phase != .connecting, phase != .ended else { return }
        do throws(SystemError) {
            try sendHeld(on: channel)
        } catch {
            channel.close()
            self.channel = nil
            return fail(.spool(error))
        }
        if isHeldSent, !isRequestSent {
            if !waiting.isEmpty {
                channel.write(body: waiting, 0..<waiting.count)
                waiting = []
            }
            if isStreamEnded || !isStreamed {
                isRequestSent = true
                channel.endRequest()
            }
        }
        let isFlushed = channel.flush()
        // The channel may have failed and this request ended while it was written.
        guard phase == .waitingForHead, isFlushed, isRequestSent else { return }
        channel.setDeadline(after: message.timeouts.firstByte)
    }

    private func sendHeld(on channel: any UpstreamChannel) throws(SystemError) {
        guard !isHeldSent else { return }
        let held: HeldBody?
        switch message.body {
        case .held(let body): held = body
        case .none: held = nil
        case .streamed(let body): held = body
        }
        guard let held else {
            isHeldSent = true
            return
        }
        var piece = ByteBuffer()
        while heldOffset < held.count {
            guard !channel.isCongested || channel.flush() else { return }
            let limit = min(UpstreamRequest.pieceBytes, held.count - heldOffset)
            piece.removeAll()
            heldOffset += try held.read(at: heldOffset, limit: limit, into: &piece)
            channel.write(body: piece.storage, piece.readable)
        }
        isHeldSent = true
    }

    private func progressed() {
        guard phase == .receiving || (phase == .waitingForHead && !isRequestSent) else { return }
        channel?.setDeadline(after: message.timeouts.idle)
    }

    func deadlinePassed() {
        switch phase {
        case .connecting:
            channel?.close()
            channel = nil
            connectFailed(.connectTimeout)
        case .ended, .queued, .tunnelled:
            return
        case .waitingForHead where isRequestSent:
            noteFailure()
            channel?.expire()
            channel = nil
            fail(.firstByteTimeout)
        case .receiving, .waitingForHead:
            // A client that takes nothing is the downstream side's to time out.
            if owner?.isDownstreamCongested == true {
                channel?.setDeadline(after: message.timeouts.idle)
                return
            }
            // A server that takes all it is given waits for the client.
            if phase == .receiving || channel?.isCongested == true { noteFailure() }
            channel?.expire()
            channel = nil
            fail(.idleTimeout)
        }
    }

    private func finish() {
        phase = .ended
        leaveServer()
        slot?.giveBack()
    }

    private func fail(_ failure: UpstreamFailure) {
        finish()
        owner?.upstream(failed: failure)
    }

    // MARK: UpstreamChannelUser

    var isDownstreamCongested: Bool {
        guard let owner, owner.isDownstreamCongested else { return false }
        return true
    }

    func connected() {
        guard let channel, phase == .connecting else { return }
        send(on: channel)
        if !isCongested { owner?.upstreamDrained() }
    }

    func received(interim head: ResponseHead) {
        progressed()
        owner?.upstream(interim: head)
    }

    func received(head: ResponseHead) {
        guard head.status != 101 else { return switched(head) }
        phase = .receiving
        progressed()
        owner?.upstream(head: head)
    }

    /// A 101 that is not the answer to just this handshake is a fault of the server's.
    private func switched(_ head: ResponseHead) {
        guard let channel else { return }
        self.channel = nil
        guard let accept = message.head.webSocketAccept,
            WebSocketHandshake.isAccepted(head, accept: accept), let end = channel.handOver()
        else {
            channel.close()
            return fail(.malformed(.upgradeUnexpected))
        }
        phase = .tunnelled
        owner?.upstream(switched: head, end)
    }

    func received(body bytes: [UInt8], _ range: Range<Int>) {
        progressed()
        owner?.upstream(body: bytes, range)
    }

    func receivedEnd(trailers: ResponseTrailers?) {
        guard phase != .ended else { return }
        finish()
        if let channel { pool.giveBack(channel) }
        channel = nil
        owner?.upstreamEnded(trailers: trailers)
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
        let wasReused = channel?.isReused ?? false
        channel = nil
        switch failure {
        case .connect, .handshake:
            connectFailed(failure)
        case .closed(afterBytes: false)
        where wasReused && phase == .waitingForHead && isRepeatable && message.isIdempotent
            && retriesLeft > 0:
            retriesLeft -= 1
            waiting = replay ?? []
            wanted.avoided = choice?.id
            attempt(mayReuse: false)
        case .refused where phase == .waitingForHead && isRepeatable && retriesLeft > 0:
            // Nothing of it was taken (RFC 9113 §8.7): the same as if nothing had been sent.
            retriesLeft -= 1
            waiting = replay ?? []
            wanted.avoided = choice?.id
            attempt(mayReuse: true)
        default:
            // One that was idle says nothing of the server: it may close those when it likes. Nor
            // does one that is going in good order.
            let isQuiet = failure == .closed(afterBytes: false) && wasReused || failure == .refused
            if !isQuiet { noteFailure() }
            fail(failure)
        }
    }
}
