// One request of an HTTP/2 connection and its answer: what the exchange sees of the client. On its
// connection's loop for life; from the request's head until both sides of the stream are closed.
//
// The body goes to the exchange as it comes. What the exchange cannot take waits here, no more than
// the stream's window lets the client send; the window opens again by what was handed on.

internal import GateBytes
internal import GateConfig
internal import GateHTTP
internal import GateHTTP2
internal import GateRuntime

/// One stream of a client's HTTP/2 connection.
final class HTTP2Stream {
    let id: Int32
    /// The request and its answer; nil once the answer is queued.
    private(set) var exchange: Exchange?
    private(set) var bytesSent = 0
    /// Octets of the body that wait for the exchange.
    private(set) var pending = ByteBuffer()

    private unowned let connection: HTTP2Connection
    /// Whether the question was HEAD: then no answer has a body.
    private var isHead = false
    private var isRequestEnded = false
    private var isEndDelivered = false
    private var isAnswerBegun = false
    private var isDelivering = false
    private var bodyBytesInWindow = 0
    /// Whether the gate itself held the body up: then its rate says nothing of the client.
    private var wasBodyPaused = false
    private var deadlines: BodyDeadlines?

    /// The deadlines of a body that is on its way; most requests have none.
    private struct BodyDeadlines {
        let progress = Deadline()
        let rate = Deadline()
    }

    init(_ id: Int32, of connection: HTTP2Connection) {
        self.id = id
        self.connection = connection
    }

    private var worker: Worker { connection.worker }

    // MARK: The request

    /// Begins with the head that came.
    func begin(_ head: RequestHead, isEnd: Bool) {
        isHead = head.knownMethod == .head
        let exchange = Exchange(head, stream: self, client: connection.client, worker: worker)
        self.exchange = exchange
        exchange.begin()
        guard !isEnd, self.exchange != nil, !exchange.isExpectForwarded else { return }
        startBodyDeadlines()
    }

    /// Answers what is no request. `isHead`: it would have been a HEAD.
    func refuse(_ error: MessageError, isHead: Bool) {
        self.isHead = isHead
        let exchange = Exchange(
            withoutHead: self, client: connection.client, worker: worker)
        self.exchange = exchange
        exchange.answerMalformed(error)
    }

    /// Writes the line of what was no request and could not even be answered.
    func noteMalformed() {
        let exchange = Exchange(
            withoutHead: self, client: connection.client, worker: worker)
        exchange.log.requestID = RequestID.make(using: &worker.random)
        exchange.log.reason = .malformed
        exchange.clientGone()
    }

    /// Takes octets of the body.
    func receive(_ bytes: [UInt8], _ range: Range<Int>) {
        guard let exchange else { return connection.consume(range.count, of: id) }
        bodyBytesInWindow += range.count
        if let deadlines {
            worker.loop.set(deadlines.progress, after: exchange.bodyTimeout)
            if !deadlines.rate.isSet {
                worker.loop.set(deadlines.rate, after: exchange.bodyTimeout)
            }
        }
        guard pending.isEmpty, exchange.wantsBody else { return pending.append(bytes, range) }
        exchange.receive(body: bytes, range)
        connection.consume(range.count, of: id)
    }

    /// The body is complete.
    func receiveEnd() {
        isRequestEnded = true
        stopBodyDeadlines()
        deliver()
    }

    /// What there was has been given: hands on what waited, and lets small pieces leave.
    func bodyPaused() {
        deliver()
        if exchange?.wantsBody == true { exchange?.bodyPaused() }
    }

    private func deliver() {
        guard !isDelivering else { return }
        isDelivering = true
        defer { isDelivering = false }
        while !pending.isEmpty, let exchange {
            if !exchange.wantsBody {
                // If all of it leaves now, no event will say so.
                exchange.bodyPaused()
                guard exchange.wantsBody else { return }
            }
            let start = pending.readable.lowerBound
            let count = min(pending.count, HTTP2Stream.pieceBytesMax)
            exchange.receive(body: pending.storage, start..<(start + count))
            pending.consume(count)
            connection.consume(count, of: id)
        }
        if pending.isEmpty { pending = ByteBuffer() }
        guard isRequestEnded, !isEndDelivered, pending.isEmpty else { return }
        isEndDelivered = true
        exchange?.receiveEnd()
    }

    /// Octets handed on at once of what waited.
    private static let pieceBytesMax = 16 * 1024

    // MARK: Deadlines

    private func startBodyDeadlines() {
        guard let exchange, !isRequestEnded else { return }
        let deadlines = self.deadlines ?? BodyDeadlines()
        self.deadlines = deadlines
        deadlines.progress.onPassed = { [weak self] in self?.bodyStopped() }
        deadlines.rate.onPassed = { [weak self] in self?.checkBodyRate() }
        worker.loop.set(deadlines.progress, after: exchange.bodyTimeout)
        worker.loop.set(deadlines.rate, after: exchange.bodyTimeout)
    }

    private func stopBodyDeadlines() {
        guard let deadlines else { return }
        worker.loop.remove(deadlines.progress)
        worker.loop.remove(deadlines.rate)
        self.deadlines = nil
    }

    /// Whether the client cannot send because of us.
    private var isHeldUp: Bool {
        exchange?.wantsBody != true || exchange?.isBodyUnasked == true || !pending.isEmpty
            || connection.isInputFull
    }

    private func bodyStopped() {
        guard let exchange, let deadlines else { return }
        guard !isHeldUp else {
            return worker.loop.set(deadlines.progress, after: exchange.bodyTimeout)
        }
        exchange.bodyTimedOut()
    }

    private func checkBodyRate() {
        guard let exchange, let deadlines else { return }
        let window = exchange.bodyTimeout
        let (product, overflow) = exchange.bodyMinRate.multipliedReportingOverflow(
            by: max(1, Int(window.wholeSeconds)))
        let least = overflow ? Int.max : product
        if !isHeldUp, !wasBodyPaused, bodyBytesInWindow < least { return exchange.bodyTimedOut() }
        bodyBytesInWindow = 0
        wasBodyPaused = false
        worker.loop.set(deadlines.rate, after: window)
    }

    /// How long octets of the answer may wait.
    var writeTimeout: Duration {
        exchange?.writeTimeout ?? connection.client.listener.timeouts.write
    }

    // MARK: The end

    /// The answer is queued: the exchange is over, the stream goes on until it has left.
    private func answerEnded() {
        let ended = exchange
        exchange = nil
        stopBodyDeadlines()
        drop()
        ended?.answerLeft()
        connection.flush(self)
    }

    /// The stream is gone, with or without its answer.
    func close() {
        let abandoned = exchange
        exchange = nil
        stopBodyDeadlines()
        drop()
        abandoned?.clientGone()
    }

    /// Nobody reads what waits.
    private func drop() {
        guard !pending.isEmpty else { return }
        connection.consume(pending.count, of: id)
        pending = ByteBuffer()
    }

    /// The client can take more of the answer.
    func drained() {
        exchange?.clientDrained()
    }
}

extension HTTP2Stream: DownstreamStream {
    var isCongested: Bool { connection.session.isCongested(id) }

    func sendContinue() {
        guard !isAnswerBegun else { return }
        write { () throws(HeadWriterError) in
            var writer = FieldBlockWriter(status: 100)
            return try writer.finish()
        } then: {
            connection.session.respond(id, interim: $0)
        }
        // One that had to wait has the whole time of a body from here on.
        if deadlines != nil { startBodyDeadlines() }
        connection.flush(self)
    }

    func relay(interim head: ResponseHead) {
        guard !isAnswerBegun else { return }
        write { () throws(HeadWriterError) in
            try DownstreamHead.interimBlock(head)
        } then: {
            connection.session.respond(id, interim: $0)
        }
        connection.flush(self)
        if head.status == 100 { startBodyDeadlines() }
    }

    func relay(head: ResponseHead, adding additions: ResponseAdditions) {
        guard !isAnswerBegun else { return }
        isAnswerBegun = true
        let isEnd = isHead || head.framing == .none || head.framing == .length(0)
        write { () throws(HeadWriterError) in
            try DownstreamHead.block(
                head, date: worker.dateText(), requestID: additions.requestID,
                nextChallenge: additions.nextChallenge)
        } then: {
            connection.session.respond(id, $0, isEnd: isEnd)
        }
    }

    func send(body bytes: [UInt8], _ range: Range<Int>) {
        bytesSent += range.count
        connection.session.send(bytes, range, on: id, now: connection.now)
        if isCongested { connection.flush(self) }
    }

    func endAnswer(trailers: ResponseTrailers?) {
        guard exchange != nil else { return }
        var block: FieldBlock?
        if let trailers {
            var writer = FieldBlockWriter()
            for line in trailers.fields where !line.isHopByHop {
                writer.field(trailers.bytes, line)
            }
            // What was parsed can be written.
            block = try? writer.finish()
        }
        connection.session.end(id, trailers: block?.lines.isEmpty == false ? block : nil)
        answerEnded()
    }

    func answer(_ answer: GateAnswer, requestID: [UInt8]) {
        guard exchange != nil, !isAnswerBegun else { return }
        isAnswerBegun = true
        let isEnd = isHead || answer.body.isEmpty
        write { () throws(HeadWriterError) in
            try answer.block(requestID: requestID, date: worker.dateText())
        } then: {
            connection.session.respond(id, $0, isEnd: isEnd)
        }
        if !isEnd {
            bytesSent += answer.body.count
            connection.session.send(
                answer.body, 0..<answer.body.count, on: id, now: connection.now)
            connection.session.end(id)
        }
        answerEnded()
    }

    func abort() {
        connection.session.reset(id, .internalError)
        close()
        connection.flush(self)
    }

    func resumeBody() {
        guard !isEndDelivered else { return }
        wasBodyPaused = true
        if let deadlines, let exchange {
            worker.loop.set(deadlines.progress, after: exchange.bodyTimeout)
        }
        deliver()
    }

    func flush() {
        connection.flush(self)
    }

    /// Sends a section. One that cannot be written ends the stream: nothing half-said goes out.
    private func write(
        _ make: () throws(HeadWriterError) -> FieldBlock, then send: (FieldBlock) -> Void
    ) {
        do throws(HeadWriterError) {
            let block = try make()
            bytesSent += block.size
            send(block)
        } catch {
            worker.context.errorLog.write(.error, "answer: \(error)")
            connection.session.reset(id, .internalError)
        }
    }
}
