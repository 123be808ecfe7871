// One HTTP/2 connection to one server, on one loop for life; requests share it as streams.
//
//   connecting ──► open ──GOAWAY, or the last of its requests──► leaving ──no stream left──► closed
//        │          │ no stream for `idle`
//        └──────────┴── failed, ended ──► closed
//
// Flow control: what a stream has not passed on is not consumed, so its server stops by itself. The
// window of the connection holds that of every stream, so that one slow client holds up no other.

internal import GateBytes
internal import GateHTTP
internal import GateHTTP2
internal import GateRuntime

/// An HTTP/2 connection to a server.
final class HTTP2UpstreamConnection: EventHandler {
    private enum Phase {
        case closed
        case connecting
        case leaving
        case open
    }

    /// How long it may stay and what it may carry.
    struct Terms {
        /// Time without a stream after which it is closed.
        var idle: Duration
        /// Requests after which it takes no more.
        var requestsMax: Int
    }

    /// The server it leads to.
    let server: SocketAddress
    /// Called once it takes no more requests: it has closed or will.
    var onLeave: (() -> Void)?
    /// Requests sent on it so far.
    private(set) var requests = 0

    private let loop: EventLoop
    private let terms: Terms
    private let session: HTTP2Session
    private var dial: UpstreamDial?
    private var transport: (any Transport)?
    private var phase = Phase.connecting
    private var input = ByteBuffer()
    private var isReadable = false
    private var isPeerEnded = false
    private var isPumping = false
    private var isPumpDue = false
    /// When octets last came.
    private var heardAt: Moment
    /// Streams by number; those that wait to begin their request are in `reserved`, first come,
    /// first served.
    private var streams: [Int32: HTTP2UpstreamStream] = [:]
    private var reserved: [HTTP2UpstreamStream] = []
    private let idleDeadline = Deadline()

    /// Streams that share the connection, whatever more its server would take.
    static let streamsMax = 100
    /// Octets of an answer that a server may send ahead of what its client has taken.
    static let streamWindow = 128 * 1024
    private static let turnBytesMax = 256 * 1024

    init(
        to server: SocketAddress, security: UpstreamSecurity?, terms: Terms, limits: HeadLimits,
        on loop: EventLoop
    ) throws(SystemError) {
        self.server = server
        self.loop = loop
        self.terms = terms
        heardAt = loop.now
        session = HTTP2Session(
            .client,
            limits: HTTP2Limits(
                head: limits, streamWindow: HTTP2UpstreamConnection.streamWindow,
                connectionWindow: HTTP2UpstreamConnection.streamWindow
                    * HTTP2UpstreamConnection.streamsMax,
                resets: nil, control: nil))
        idleDeadline.onPassed = { [weak self] in self?.idleTimeIsOver() }
        dial = try UpstreamDial(to: server, security: security, on: loop, owner: self)
    }

    /// Whether the connection stands and takes another request.
    var isOpenForMore: Bool {
        phase == .open && session.isPeerKnown && reserved.isEmpty && hasRoom && session.canRequest
    }

    /// Whether the connection is being made and will take another request.
    var isComingForMore: Bool {
        (phase == .connecting || phase == .open && !session.isPeerKnown) && hasRoom
    }

    private var hasRoom: Bool {
        streams.count + reserved.count < HTTP2UpstreamConnection.streamsMax
            && requests + reserved.count < terms.requestsMax
    }

    /// A stream for `user`; it opens with its request.
    func makeStream(for user: any UpstreamChannelUser) -> HTTP2UpstreamStream {
        idleDeadline.cancel()
        let stream = HTTP2UpstreamStream(on: self, loop: loop, user: user)
        reserved.append(stream)
        return stream
    }

    // MARK: What streams ask for

    /// Sends the head of a request.
    /// - Returns: The number of its stream; nil where the server takes no more.
    func open(_ stream: HTTP2UpstreamStream, _ block: FieldBlock, isEnd: Bool) -> Int32? {
        reserved.removeAll { $0 === stream }
        guard phase == .open, let id = session.request(block, isEnd: isEnd) else { return nil }
        requests += 1
        streams[id] = stream
        if requests >= terms.requestsMax { leave() }
        return id
    }

    func send(_ bytes: [UInt8], _ range: Range<Int>, on id: Int32) {
        session.send(bytes, range, on: id)
    }

    func end(_ id: Int32) {
        session.end(id)
    }

    func isCongested(_ id: Int32) -> Bool { session.isCongested(id) }

    /// Whether everything of the stream's request has left.
    func hasLeft(_ id: Int32) -> Bool {
        session.stalledSince(id) == nil && session.output.isEmpty
    }

    /// Notes that octets of an answer have been passed on.
    func consume(_ count: Int, of id: Int32) {
        session.consume(count, of: id)
    }

    /// Takes no more requests where nothing has come since `moment`: a request has waited in vain
    /// since then, and the next ones would as well on a connection whose server is gone.
    func leaveIfSilent(since moment: Moment) {
        if heardAt < moment { leave() }
    }

    /// Lets a stream go: its exchange is over, or given up.
    func release(_ stream: HTTP2UpstreamStream, _ id: Int32?, reset: HTTP2ErrorCode?) {
        reserved.removeAll { $0 === stream }
        // A dial that nobody waits for any more would hold up the next who does.
        if phase == .connecting, reserved.isEmpty { return close() }
        if let id {
            streams[id] = nil
            if let reset { session.reset(id, reset) }
        }
        // Its owner may be in the middle of a batch of events: what follows comes after it.
        pumpLater()
    }

    /// Writes what can be written, for a stream.
    func flush() {
        write()
        // If that made room or ended a stream, no event of the socket will say so.
        if session.hasCongestedStreams || session.hasEvents { pumpLater() }
    }

    private func write() {
        guard phase == .open || phase == .leaving, let transport else { return }
        while true {
            session.produce(now: now)
            guard !session.output.isEmpty else { return }
            do throws(SystemError) {
                let output = session.output
                guard case .bytes(let count) = try transport.write(output.storage, output.readable)
                else { return }
                session.output.consume(count)
            } catch {
                // The server may have said why before it closed: that is read first.
                isReadable = true
                return pumpLater()
            }
        }
    }

    private var now: UInt64 { UInt64(clamping: loop.now.nanoseconds) }

    // MARK: Events

    func ready(_ readiness: Readiness) {
        if readiness.contains(.readable) { isReadable = true }
        if readiness.contains(.ended) { isPeerEnded = true }
        pump()
    }

    private func pumpLater() {
        guard !isPumpDue, phase != .closed else { return }
        isPumpDue = true
        let bound = LoopBound(self, on: loop)
        loop.handle.submit {
            let connection = bound.open()
            connection.isPumpDue = false
            connection.pump()
        }
    }

    private func pump() {
        guard !isPumping, phase == .open || phase == .leaving else { return }
        isPumping = true
        var bytesLeft = HTTP2UpstreamConnection.turnBytesMax
        while phase != .closed, session.fault == nil, bytesLeft > 0, take(&bytesLeft) {}
        isPumping = false
        guard phase != .closed else { return }
        startReserved()
        write()
        // The library resets a stream whose answer is malformed when it sends, not when it reads.
        for event in session.takeEvents() { deliver(event) }
        guard phase != .closed else { return }
        reportDrained()
        if let fault = session.fault { return fail(.http2(fault.words)) }
        if session.isFinished { return fail(.closed(afterBytes: true)) }
        if bytesLeft <= 0 || session.hasEvents { return pumpLater() }
        settle()
    }

    /// Takes one batch; false when nothing is left to read.
    private func take(_ bytesLeft: inout Int) -> Bool {
        if input.isEmpty, !session.needsTurn {
            guard isReadable, readMore() else { return false }
        }
        let range = input.readable
        let count = session.receive(input.storage, range, now: now)
        bytesLeft -= count + 1
        for event in session.takeEvents() { deliver(event) }
        input.consume(min(count, input.count))
        return true
    }

    private func readMore() -> Bool {
        guard let transport else { return false }
        do throws(SystemError) {
            switch try transport.read(into: &input) {
            case .bytes:
                heardAt = loop.now
                if transport.isExhausted, !isPeerEnded { isReadable = false }
                return true
            case .wouldBlock:
                isReadable = false
            case .end:
                fail(.closed(afterBytes: false))
            }
        } catch {
            fail(.closed(afterBytes: false))
        }
        return false
    }

    private func deliver(_ event: HTTP2Event) {
        switch event {
        case .closed(let id, let code): streams[id]?.closed(code)
        case .data(let id, let range): deliverData(id, range)
        case .end(let id): streams[id]?.ended()
        case .goAway: leave()
        case .head(let id, let block, let isEnd): streams[id]?.received(block, isEnd: isEnd)
        case .interim(let id, let block): streams[id]?.received(interim: block)
        // Of requests alone.
        case .malformed: return
        case .trailers(let id, let block): streams[id]?.received(trailers: block)
        }
    }

    private func deliverData(_ id: Int32, _ range: Range<Int>) {
        guard let stream = streams[id] else { return session.consume(range.count, of: id) }
        stream.received(body: input.storage, range)
    }

    /// Lets those that wait begin, as far as the server takes them.
    private func startReserved() {
        while phase == .open, session.isPeerKnown, session.canRequest, let next = reserved.first {
            reserved.removeFirst()
            next.connectionStands()
        }
    }

    private func reportDrained() {
        for id in session.drainedStreams() { streams[id]?.drained() }
    }

    /// Sees to a connection that has nothing in work.
    private func settle() {
        guard streams.isEmpty, reserved.isEmpty else { return }
        switch phase {
        case .leaving: end()
        case .open where !idleDeadline.isSet: loop.set(idleDeadline, after: terms.idle)
        case .closed, .connecting, .open: break
        }
    }

    // MARK: Ending

    private func idleTimeIsOver() {
        guard streams.isEmpty, reserved.isEmpty else { return }
        leave()
        end()
    }

    /// Takes no more requests; the last stream ends the connection.
    func leave() {
        if phase == .open { phase = .leaving }
        let report = onLeave
        onLeave = nil
        report?()
        pumpLater()
    }

    /// Says good-bye and closes.
    private func end() {
        session.terminate()
        write()
        close()
    }

    /// Closes: the pool is going, or nothing more is to come.
    func close() {
        guard phase != .closed else { return }
        phase = .closed
        loop.remove(idleDeadline)
        dial?.close()
        dial = nil
        transport?.close()
        let report = onLeave
        onLeave = nil
        report?()
    }

    private func fail(_ failure: UpstreamFailure) {
        let open = Array(streams.values) + reserved
        streams = [:]
        reserved = []
        write()
        close()
        for stream in open { stream.connectionFailed(failure) }
    }
}

extension HTTP2UpstreamConnection: UpstreamDialOwner {
    func dialled(_ transport: any Transport, isPeerEnded: Bool) {
        dial = nil
        self.transport = transport
        phase = .open
        do throws(SystemError) {
            try transport.register(self)
        } catch {
            return fail(.connect(error))
        }
        // What was ready for the dial is not reported again.
        self.isPeerEnded = isPeerEnded
        isReadable = true
        pump()
    }

    func dialFailed(_ failure: UpstreamFailure) {
        dial = nil
        fail(failure)
    }
}
