internal import GateBytes
internal import GateHTTP
internal import GateRuntime

/// One HTTP/1.1 connection to one server, on one loop for life: connecting, in use by one request,
/// or idle in the pool.
final class UpstreamConnection: EventHandler, UpstreamChannel {
    private enum Phase {
        case closed
        case connecting
        case idle
        case inUse
    }

    /// The server this connection goes to.
    let server: SocketAddress
    /// When it was given back to the pool.
    private(set) var idleSince: Moment
    /// Requests written on it so far.
    private(set) var requests = 0
    /// Called when an idle connection closes or says something unasked.
    var onIdleEnd: (() -> Void)?

    private var dial: UpstreamDial?
    /// What carries the connection once it stands.
    private var transport: (any Transport)?
    private let loop: EventLoop
    private let memory: SpareMemory
    private var phase = Phase.connecting
    private weak var user: (any UpstreamChannelUser)?
    private var decoder: ResponseDecoder?
    private var input = ByteBuffer()
    private var output = ByteBuffer()
    private var isReadable = false
    private var isPeerEnded = false
    /// Whether the socket refused a write, so that the user is owed a word once all has left: also
    /// where a later call of ``flush()`` met no refusal any more.
    private var isBlocked = false
    private let deadline = Deadline()
    private var hasReceived = false
    private var isPersistent = false
    private var isRequestWhole = false
    private var isChunked = false
    private var isPumping = false
    /// Whether reading has to go on although nothing more is reported.
    private var mustPumpAgain = false

    /// Bytes that may wait to be written before the writer should pause.
    static let outputHighWater = 64 * 1024
    /// Bytes of answers relayed before the loop looks at everyone else.
    private static let turnBytesMax = 256 * 1024
    /// Bytes that a piece of a body counts besides its own: chunks of one octet are dear.
    private static let pieceCost = 64

    init(
        to server: SocketAddress, security: UpstreamSecurity?, memory: SpareMemory,
        on loop: EventLoop, user: any UpstreamChannelUser
    ) throws(SystemError) {
        self.server = server
        self.loop = loop
        self.memory = memory
        self.user = user
        idleSince = loop.now
        deadline.onPassed = { [weak self] in self?.user?.deadlinePassed() }
        dial = try UpstreamDial(to: server, security: security, on: loop, owner: self)
    }

    func setDeadline(after duration: Duration) {
        loop.set(deadline, after: duration)
    }

    var isReused: Bool { requests > 1 }

    var isCongested: Bool { output.count >= UpstreamConnection.outputHighWater }

    /// Whether an idle connection is still quiet.
    var isQuiet: Bool { phase == .idle && transport?.isQuiet == true }

    /// Takes an idle connection out of the pool for `user`.
    func reuse(for user: any UpstreamChannelUser) {
        precondition(phase == .idle)
        phase = .inUse
        self.user = user
    }

    func begin(_ head: UpstreamRequestHead) {
        guard phase == .inUse, case .http1(let bytes) = head.form else {
            preconditionFailure("a head of HTTP/2 on an HTTP/1.1 connection")
        }
        decoder = ResponseDecoder(
            requestMethodIsHead: head.isHead, limits: head.limits,
            expectsUpgrade: head.webSocketAccept != nil)
        requests += 1
        hasReceived = false
        isPersistent = false
        isRequestWhole = false
        isBlocked = false
        isChunked = head.body == .chunked
        output.append(bytes)
    }

    func write(body bytes: [UInt8], _ range: Range<Int>) {
        guard isChunked else { return output.append(bytes, range) }
        var framed: [UInt8] = []
        ChunkedWriter.append(bytes, range, to: &framed)
        output.append(framed)
    }

    func endRequest() {
        isRequestWhole = true
        guard isChunked else { return }
        var last: [UInt8] = []
        ChunkedWriter.appendLast(to: &last)
        output.append(last)
    }

    @discardableResult
    func flush() -> Bool {
        guard phase == .inUse, let transport else { return output.isEmpty }
        while !output.isEmpty {
            do throws(SystemError) {
                guard case .bytes(let count) = try transport.write(output.storage, output.readable)
                else {
                    isBlocked = true
                    return false
                }
                output.consume(count)
            } catch {
                // The event of the failure follows. The server may have answered before it closed,
                // so what it said is read first.
                output.removeAll()
                isReadable = true
                return false
            }
        }
        return true
    }

    func resumeReading() {
        pump()
    }

    func handOver() -> TunnelEnd? {
        guard let transport else { return nil }
        // It is no connection of the pool's any more: nobody's request comes here again.
        phase = .closed
        user = nil
        decoder = nil
        loop.remove(deadline)
        self.transport = nil
        return TunnelEnd(transport: transport, input: input, output: output)
    }

    func close() {
        phase = .closed
        user = nil
        onIdleEnd = nil
        loop.remove(deadline)
        dial?.close()
        dial = nil
        transport?.close()
    }

    func expire() {
        close()
    }

    func ready(_ readiness: Readiness) {
        if readiness.contains(.ended) { isPeerEnded = true }
        if readiness.contains(.readable) { isReadable = true }
        switch phase {
        case .closed, .connecting:
            return
        case .idle:
            // Neither a close nor a byte has a place here; the pool drops the connection. TLS has
            // words of its own, tickets for one, that are neither.
            guard readiness.contains(.readable), transport?.isQuiet != true else { return }
            let ended = onIdleEnd
            close()
            ended?()
        case .inUse:
            if readiness.contains(.writable), isBlocked, flush() {
                isBlocked = false
                user?.drained()
            }
            pump()
        }
    }

    /// Reads and decodes until nothing is left, the answer ends, the downstream side is full or the
    /// others are due.
    private func pump() {
        mustPumpAgain = true
        guard !isPumping else { return }
        isPumping = true
        defer { isPumping = false }
        var bytesLeft = UpstreamConnection.turnBytesMax
        while mustPumpAgain {
            mustPumpAgain = false
            let user = user
            deliver(&bytesLeft)
            // What this lets the client take may ask for more at once.
            user?.paused()
            if bytesLeft <= 0, phase == .inUse { return pumpLater() }
        }
    }

    private func pumpLater() {
        let bound = LoopBound(self, on: loop)
        loop.handle.submit {
            let connection = bound.open()
            if connection.phase == .inUse { connection.pump() }
        }
    }

    private func deliver(_ bytesLeft: inout Int) {
        while phase == .inUse, let user = self.user, decoder != nil, bytesLeft > 0 {
            guard !user.isDownstreamCongested else { return }
            do throws(MessageError) {
                guard let event = try decoder?.next(&input) else { return }
                if case .needMore = event {
                    guard isReadable, try readMore() else { return }
                } else {
                    if case .body(let range) = event {
                        bytesLeft -= range.count + UpstreamConnection.pieceCost
                    }
                    deliver(event, to: user)
                }
            } catch {
                return fail(.malformed(error))
            }
        }
    }

    /// - Returns: Whether decoding can go on.
    private func readMore() throws(MessageError) -> Bool {
        guard let transport else { return false }
        let transfer: Transfer
        do throws(SystemError) {
            memory.lend(to: &input)
            transfer = try transport.read(into: &input)
        } catch {
            fail(.closed(afterBytes: hasReceived))
            return false
        }
        switch transfer {
        case .bytes:
            hasReceived = true
            // An end of stream that was reported already brings no event of its own.
            if transport.isExhausted, !isPeerEnded { isReadable = false }
            return true
        case .wouldBlock:
            isReadable = false
            return false
        case .end:
            isReadable = false
            if hasReceived, try decoder?.close() == true, let user {
                deliver(.end, to: user)
            } else {
                fail(.closed(afterBytes: hasReceived))
            }
            return false
        }
    }

    private func deliver(_ event: ResponseEvent, to user: any UpstreamChannelUser) {
        switch event {
        case .needMore:
            break
        case .interim(let head):
            user.received(interim: head)
        case .head(let head):
            isPersistent = head.isPersistent
            user.received(head: head)
        case .body(let range):
            user.received(body: input.storage, range)
        case .end:
            end(user)
        }
    }

    private func end(_ user: any UpstreamChannelUser) {
        let isReusable =
            isPersistent && isRequestWhole && output.isEmpty && input.isEmpty
        let trailers = decoder?.trailers
        decoder = nil
        self.user = nil
        if isReusable {
            phase = .idle
            idleSince = loop.now
            deadline.cancel()
            memory.take(from: &input)
        } else {
            close()
        }
        user.receivedEnd(trailers: trailers)
    }

    /// Whether the connection can go back to the pool.
    var isIdle: Bool { phase == .idle }

    private func fail(_ failure: UpstreamFailure) {
        let user = user
        close()
        user?.failed(failure)
    }
}

extension UpstreamConnection: UpstreamDialOwner {
    func dialled(_ transport: any Transport, isPeerEnded: Bool) {
        dial = nil
        self.transport = transport
        phase = .inUse
        do throws(SystemError) {
            try transport.register(self)
        } catch {
            return fail(.connect(error))
        }
        // What was ready for the dial is not reported again.
        self.isPeerEnded = isPeerEnded
        isReadable = true
        user?.connected()
        pump()
    }

    func dialFailed(_ failure: UpstreamFailure) {
        dial = nil
        fail(failure)
    }
}
