// One request and its answer on an HTTP/2 connection to a server, on its loop for life. What has
// come and cannot be passed on waits here; the window bounds it, for it is not consumed before.

internal import GateBytes
internal import GateHTTP
internal import GateHTTP2
internal import GateRuntime

/// A stream of an HTTP/2 connection to a server.
final class HTTP2UpstreamStream: UpstreamChannel {
    private let connection: HTTP2UpstreamConnection
    private let loop: EventLoop
    private weak var user: (any UpstreamChannelUser)?
    private let deadline = Deadline()
    private var id: Int32?
    private var begunAt: Moment?
    private var isOver = false
    private var isRequestWhole = false
    private var isHead = false
    private var limits = HeadLimits()
    private var hasReceived = false
    private var interimAnswers = 0
    /// What could not be passed on yet: octets of the body, and whether the end stands behind them.
    private var held = ByteBuffer()
    private var trailers: ResponseTrailers?
    private var isEnded = false
    private var isDelivering = false

    private(set) var isReused = false

    init(
        on connection: HTTP2UpstreamConnection, loop: EventLoop, user: any UpstreamChannelUser
    ) {
        self.connection = connection
        self.loop = loop
        self.user = user
        deadline.onPassed = { [weak self] in self?.user?.deadlinePassed() }
    }

    // MARK: UpstreamChannel

    var server: SocketAddress { connection.server }

    var isCongested: Bool { id.map { connection.isCongested($0) } ?? false }

    func begin(_ head: UpstreamRequestHead) {
        guard case .http2(let block) = head.form else {
            preconditionFailure("a head of HTTP/1.1 on an HTTP/2 connection")
        }
        isHead = head.isHead
        limits = head.limits
        isReused = connection.requests > 0
        isRequestWhole = !head.hasBody
        begunAt = loop.now
        id = connection.open(self, block, isEnd: !head.hasBody)
        guard id == nil else { return }
        // The user hears of it once it has come to rest.
        let bound = LoopBound(self, on: loop)
        loop.handle.submit { bound.open().fail(.refused) }
    }

    func write(body bytes: [UInt8], _ range: Range<Int>) {
        if let id { connection.send(bytes, range, on: id) }
    }

    func endRequest() {
        guard let id, !isRequestWhole else { return }
        isRequestWhole = true
        connection.end(id)
    }

    @discardableResult
    func flush() -> Bool {
        connection.flush()
        return id.map { connection.hasLeft($0) } ?? false
    }

    func resumeReading() {
        passOn()
    }

    func setDeadline(after duration: Duration) {
        loop.set(deadline, after: duration)
    }

    func close() {
        release(reset: .cancel)
    }

    func expire() {
        if let begunAt { connection.leaveIfSilent(since: begunAt) }
        close()
    }

    // MARK: What the connection reports

    func connectionStands() {
        user?.connected()
    }

    func connectionFailed(_ failure: UpstreamFailure) {
        id = nil
        if case .closed = failure { return fail(.closed(afterBytes: hasReceived)) }
        fail(failure)
    }

    func received(interim block: FieldBlock) {
        hasReceived = true
        interimAnswers += 1
        guard interimAnswers <= Bounds.interimResponsesMax else {
            return fail(.malformed(.interimResponsesTooMany))
        }
        do throws(MessageError) {
            let head = try ResponseHead(
                block, isEnd: false, requestMethodIsHead: isHead, limits: limits)
            user?.received(interim: head)
        } catch {
            fail(.malformed(error))
        }
    }

    func received(_ block: FieldBlock, isEnd: Bool) {
        hasReceived = true
        do throws(MessageError) {
            let head = try ResponseHead(
                block, isEnd: isEnd, requestMethodIsHead: isHead, limits: limits)
            user?.received(head: head)
            if !isEnd { user?.paused() }
        } catch {
            fail(.malformed(error))
        }
    }

    func received(body bytes: [UInt8], _ range: Range<Int>) {
        guard let user, !isOver else { return }
        // The empty frame that ends a body, or none: there is nothing to pass on.
        guard !range.isEmpty else { return }
        guard held.isEmpty, !user.isDownstreamCongested else {
            return held.append(bytes, range)
        }
        user.received(body: bytes, range)
        if let id { connection.consume(range.count, of: id) }
        user.paused()
    }

    func received(trailers block: FieldBlock) {
        do throws(MessageError) {
            trailers = try ResponseTrailers(block, limits: limits)
        } catch {
            fail(.malformed(error))
        }
    }

    func ended() {
        isEnded = true
        passOn()
    }

    /// The stream is gone. After its end that is what had to come.
    func closed(_ code: HTTP2ErrorCode) {
        guard !isEnded else { return }
        fail(
            code == .refusedStream ? .refused : .reset("\(code)", afterBytes: hasReceived),
            reset: nil)
    }

    func drained() {
        user?.drained()
    }

    // MARK: Passing on

    private func passOn() {
        guard !isDelivering, let user, !isOver else { return }
        isDelivering = true
        defer { isDelivering = false }
        while !held.isEmpty, !user.isDownstreamCongested {
            let range = held.readable
            let piece =
                range
                .lowerBound..<min(
                    range.upperBound, range.lowerBound + HTTP2UpstreamStream.pieceBytes)
            user.received(body: held.storage, piece)
            guard !isOver else { return }
            held.consume(piece.count)
            if let id { connection.consume(piece.count, of: id) }
        }
        if held.isEmpty, isEnded {
            // An answer that came before the request was whole: the rest of it is not wanted.
            release(reset: isRequestWhole ? nil : .noError)
            user.receivedEnd(trailers: trailers)
        } else {
            connection.flush()
            user.paused()
        }
    }

    private static let pieceBytes = 16 * 1024

    private func release(reset: HTTP2ErrorCode?) {
        guard !isOver else { return }
        isOver = true
        loop.remove(deadline)
        connection.release(self, id, reset: reset)
    }

    private func fail(_ failure: UpstreamFailure, reset: HTTP2ErrorCode? = .protocolError) {
        guard !isOver else { return }
        let user = user
        release(reset: reset)
        user?.failed(failure)
    }
}
