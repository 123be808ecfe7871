// One HTTP/1.1 connection of a client, on one loop for life.
//
//              head                        answer and request ended
//   waiting ─────────► exchanging ───────────────────────────────────► waiting
//      │                   │ answer ended, body unread or message malformed
//      │ end, timeout      ▼
//      └──────────────► lingering (half-closed; reads and drops ≤ 64 KiB for ≤ 1 s) ──► closed
//
// At most one exchange at a time; pipelined requests wait in the buffer and are judged one by one.

internal import GateBytes
internal import GateConfig
internal import GateHTTP
internal import GateRuntime

/// A client's HTTP/1.1 connection.
final class DownstreamConnection: EventHandler, ClientConnection {
    private enum Phase {
        case closed
        case exchanging
        case lingering
        case waiting
    }

    let client: ClientFacts

    private let worker: Worker
    private let transport: any Transport
    private var phase = Phase.waiting
    private var decoder: RequestDecoder
    private var input: ByteBuffer
    private var output = ByteBuffer()
    private var isReadable = false
    private var isPeerEnded = false
    private var isPumping = false
    /// Whether ``pumpLater()`` has been asked for and not yet come.
    private var isPumpDue = false
    /// Bytes of bodies taken in this turn, and what their pieces cost.
    private var bytesInTurn = 0

    // The current exchange.
    private var exchange: Exchange?
    private var isRequestEnded = false
    private var isAnswerBegun = false
    private var isAnswerEnded = false
    private var isPersistent = false
    /// Whether the request in work, or the one that has come already, is the last.
    private var isDraining = false
    private var isAnswerChunked = false
    /// Whether the exchange was told to pause, and is owed a word once the output has left.
    private var wasCongested = false
    private var isClosingAfterOutput = false
    private var isLingeringAfterOutput = false
    private var requestVersion = HTTPVersion.http11
    private(set) var bytesSent = 0
    private var requests = 0

    // Deadlines.
    private let deadline = Deadline()
    private let writeDeadline = Deadline()
    private let rateDeadline = Deadline()
    private var bodyBytesInWindow = 0
    /// Whether the gate itself held the body up: then its rate says nothing of the client.
    private var wasBodyPaused = false
    private var lingerBytes = 0

    private static let outputHighWater = 64 * 1024
    private static let lingerBytesMax = 64 * 1024
    private static let requestsInTurnMax = 16
    /// Bytes of a body taken before the loop looks at everyone else.
    private static let turnBytesMax = 256 * 1024
    /// Bytes that a piece of a body counts besides its own: chunks of one octet are dear.
    private static let pieceCost = 64
    private static let lingerTime = Duration.seconds(1)

    /// - Parameter input: Octets that an ``Intake`` read and left; nil for a new socket.
    init(
        _ transport: any Transport, client: ClientFacts, input: ByteBuffer? = nil, worker: Worker
    ) {
        self.transport = transport
        self.client = client
        self.input = input ?? ByteBuffer()
        // What was ready for the handler before is not reported again.
        isReadable = input != nil
        self.worker = worker
        decoder = RequestDecoder(limits: client.listener.headLimits)
        deadline.onPassed = { [weak self] in self?.deadlinePassed() }
        writeDeadline.onPassed = { [weak self] in self?.writeTimedOut() }
        rateDeadline.onPassed = { [weak self] in self?.checkBodyRate() }
    }

    /// Registers with the loop and waits for the first request.
    func start() throws(SystemError) {
        try transport.register(self)
        waitingSince = worker.loop.now
        worker.loop.set(deadline, after: listener.timeouts.header)
        isHeadStarted = !input.isEmpty
        pump()
    }

    private var listener: ListenerRuntime { client.listener }

    var idleSince: Moment? {
        phase == .waiting && decoder.isIdle && input.isEmpty && output.isEmpty ? waitingSince : nil
    }

    private var waitingSince = Moment.distantFuture

    /// Closes after the exchange in work, at once when there is none: the gate is stopping.
    func drain() {
        isDraining = true
        isPersistent = false
        guard phase == .waiting, decoder.isIdle, input.isEmpty else { return }
        // A request that has come already is answered, and then told that the connection closes.
        guard transport.isQuiet else {
            isReadable = true
            return pump()
        }
        endAfterOutput()
    }

    // MARK: Events

    func ready(_ readiness: Readiness) {
        if readiness.contains(.readable) { isReadable = true }
        if readiness.contains(.ended) { isPeerEnded = true }
        if readiness.contains(.writable), !output.isEmpty { flush() }
        if readiness.contains(.failed), phase == .exchanging, !isAnswerEnded {
            // Reset, not half-closed: nobody is there to answer.
            return hangUp()
        }
        if readiness.contains(.ended), isRequestEnded, exchange?.isQueued == true {
            return hangUp()
        }
        pump()
    }

    private func pump() {
        guard !isPumping else { return }
        isPumping = true
        bytesInTurn = 0
        takeAll()
        isPumping = false
        if exchange?.wantsBody == true { exchange?.bodyPaused() }
    }

    private func takeAll() {
        let requestsBefore = requests
        while true {
            switch phase {
            case .closed:
                return
            case .lingering:
                return dropInput()
            case .waiting:
                // A client that sends requests and reads no answers must not fill the memory; one
                // that sends many at once must not keep the loop from the others.
                guard !isClosingAfterOutput, !isCongested else { return }
                guard requests - requestsBefore < DownstreamConnection.requestsInTurnMax else {
                    return pumpLater()
                }
                guard takeNext() else { return }
            case .exchanging:
                guard !isRequestEnded else { return }
                if exchange?.wantsBody != true {
                    // If all of it leaves now, no event will say so.
                    exchange?.bodyPaused()
                    guard exchange?.wantsBody == true else { return }
                }
                guard bytesInTurn < DownstreamConnection.turnBytesMax else { return pumpLater() }
                guard takeNext() else { return }
            }
        }
    }

    /// Goes on with what is left once the loop has looked at everyone else.
    private func pumpLater() {
        guard !isPumpDue else { return }
        isPumpDue = true
        let bound = LoopBound(self, on: worker.loop)
        worker.loop.handle.submit {
            let connection = bound.open()
            connection.isPumpDue = false
            connection.pump()
        }
    }

    /// Ends the connection once what is queued has left.
    private func endAfterOutput() {
        guard !output.isEmpty else { return close() }
        isClosingAfterOutput = true
        armWriteDeadline()
    }

    /// Decodes one event, reading first where needed.
    /// - Returns: Whether there may be more.
    private func takeNext() -> Bool {
        do throws(MessageError) {
            switch try decoder.next(&input) {
            case .needMore:
                return readMore()
            case .head(let head):
                begin(head)
            case .body(let range):
                bodyBytesInWindow += range.count
                bytesInTurn += range.count + DownstreamConnection.pieceCost
                worker.loop.set(deadline, after: bodyTimeout)
                if !rateDeadline.isSet { worker.loop.set(rateDeadline, after: bodyTimeout) }
                exchange?.receive(body: input.storage, range)
            case .end:
                isRequestEnded = true
                deadline.cancel()
                rateDeadline.cancel()
                exchange?.receiveEnd()
            }
            return phase != .closed
        } catch {
            malformed(error)
            // What is readable already brings no event of its own: it is to be dropped now.
            return phase == .lingering
        }
    }

    private func readMore() -> Bool {
        guard isReadable else {
            waitForMore()
            return false
        }
        let transfer: Transfer
        worker.memory.lend(to: &input)
        do throws(SystemError) {
            transfer = try transport.read(into: &input)
        } catch {
            hangUp()
            return false
        }
        switch transfer {
        case .bytes:
            // An end of stream that was reported already brings no event of its own.
            if transport.isExhausted, !isPeerEnded { isReadable = false }
            if phase == .waiting, !isHeadStarted {
                isHeadStarted = true
                worker.loop.set(deadline, after: listener.timeouts.header)
            }
            return true
        case .wouldBlock:
            isReadable = false
            waitForMore()
            return false
        case .end:
            isReadable = false
            // A client that sends no more may still be reading the last answer (RFC 9112 §9.6).
            if phase == .waiting, decoder.isIdle { endAfterOutput() } else { hangUp() }
            return false
        }
    }

    private var isHeadStarted = false

    /// Nothing can be read now: an idle connection gives its buffer back.
    private func waitForMore() {
        guard phase == .waiting, input.isEmpty, decoder.isIdle else { return }
        worker.memory.take(from: &input)
        if output.isEmpty { worker.memory.take(from: &output) }
    }

    private func begin(_ head: RequestHead) {
        phase = .exchanging
        isHeadStarted = false
        isRequestEnded = false
        isAnswerBegun = false
        isAnswerEnded = false
        isAnswerChunked = false
        bytesSent = 0
        requests += 1
        requestVersion = head.version
        isPersistent =
            head.isPersistent && requests < listener.limits.requests && !isDraining
            && !worker.isDraining
        bodyBytesInWindow = 0
        let exchange = Exchange(
            head, stream: self, client: client, worker: worker)
        self.exchange = exchange
        deadline.cancel()
        exchange.begin()
        guard phase == .exchanging, head.framing != .none, !isAnswerEnded else { return }
        // A client that was told to wait is waited for by the upstream's deadline.
        if !exchange.isExpectForwarded { startBodyDeadlines() }
    }

    private func startBodyDeadlines() {
        worker.loop.set(deadline, after: bodyTimeout)
        worker.loop.set(rateDeadline, after: bodyTimeout)
    }

    private func malformed(_ error: MessageError) {
        isPersistent = false
        deadline.cancel()
        rateDeadline.cancel()
        if let exchange, phase == .exchanging {
            isRequestEnded = false
            exchange.fail(error)
        } else {
            beginWithoutHead().answerMalformed(error)
        }
    }

    /// An exchange for what is no request: it can only be answered.
    private func beginWithoutHead() -> Exchange {
        phase = .exchanging
        isRequestEnded = false
        isAnswerBegun = false
        isAnswerEnded = false
        isAnswerChunked = false
        bytesSent = 0
        let exchange = Exchange(
            withoutHead: self, client: client, worker: worker)
        self.exchange = exchange
        return exchange
    }

    // MARK: Deadlines

    private var bodyTimeout: Duration { exchange?.bodyTimeout ?? listener.timeouts.body }

    private func deadlinePassed() {
        switch phase {
        case .closed: return
        case .lingering: close()
        case .waiting:
            // A head that was begun is owed an answer; an idle connection just closes.
            guard isHeadStarted || !decoder.isIdle else { return close() }
            isPersistent = false
            beginWithoutHead().answerTimeout()
        case .exchanging:
            guard !isRequestEnded, let exchange else { return }
            guard exchange.wantsBody, !exchange.isBodyUnasked else {
                return worker.loop.set(deadline, after: bodyTimeout)
            }
            isPersistent = false
            exchange.bodyTimedOut()
        }
    }

    private func checkBodyRate() {
        guard phase == .exchanging, !isRequestEnded, let exchange else { return }
        let window = bodyTimeout
        let (product, overflow) = exchange.bodyMinRate.multipliedReportingOverflow(
            by: max(1, Int(window.wholeSeconds)))
        let least = overflow ? Int.max : product
        let isHeldUp = !exchange.wantsBody || exchange.isBodyUnasked || wasBodyPaused
        if !isHeldUp, bodyBytesInWindow < least {
            isPersistent = false
            return exchange.bodyTimedOut()
        }
        bodyBytesInWindow = 0
        wasBodyPaused = false
        worker.loop.set(rateDeadline, after: window)
    }

    private func writeTimedOut() {
        guard !output.isEmpty else { return }
        transport.resetOnClose()
        hangUp()
    }

    // MARK: Output

    /// Queues a head. One that cannot be written ends the connection: nothing half-said goes out.
    private func queue(_ write: () throws(HeadWriterError) -> [UInt8]) {
        do throws(HeadWriterError) {
            let bytes = try write()
            bytesSent += bytes.count
            worker.memory.lend(to: &output)
            output.append(bytes)
        } catch {
            worker.context.errorLog.write(.error, "answer: \(error)")
            abort()
        }
    }

    func flush() {
        guard phase != .closed else { return }
        while !output.isEmpty {
            do throws(SystemError) {
                guard case .bytes(let count) = try transport.write(output.storage, output.readable)
                else {
                    if !writeDeadline.isSet { armWriteDeadline() }
                    return reportDrained()
                }
                output.consume(count)
                if !output.isEmpty { armWriteDeadline() }
            } catch {
                output.removeAll()
                return hangUp()
            }
        }
        writeDeadline.cancel()
        if isAnswerEnded { afterAnswer() }
        if phase == .waiting, !isHeadStarted {
            waitingSince = worker.loop.now
            // What was sent behind the last request is a head that has begun.
            isHeadStarted = !input.isEmpty
            let timeouts = listener.timeouts
            worker.loop.set(
                deadline, after: isHeadStarted ? timeouts.header : timeouts.keepalive)
        }
        reportDrained()
    }

    /// Tells the exchange, if it was told to pause, that the client takes more again.
    private func reportDrained() {
        guard wasCongested, output.count < DownstreamConnection.outputHighWater / 2 else { return }
        wasCongested = false
        exchange?.clientDrained()
    }

    private func armWriteDeadline() {
        worker.loop.set(writeDeadline, after: exchange?.writeTimeout ?? listener.timeouts.write)
    }

    /// The answer has left: the next request, a lingering close or a plain one.
    private func afterAnswer() {
        if isLingeringAfterOutput {
            isLingeringAfterOutput = false
            linger()
        } else if isClosingAfterOutput {
            // What has come and will not be read would turn the close into a reset.
            if isReadable || !input.isEmpty { return linger() }
            transport.shutdownWrites()
            close()
        }
    }

    private func answerEnded() {
        isAnswerEnded = true
        if !isRequestEnded { takeBufferedRest() }
        guard phase == .exchanging else { return }
        let ended = exchange
        exchange = nil
        deadline.cancel()
        rateDeadline.cancel()
        ended?.answerLeft()
        if !isRequestEnded {
            isLingeringAfterOutput = true
        } else if !isPersistent {
            isClosingAfterOutput = true
        }
        if !isLingeringAfterOutput, !isClosingAfterOutput { phase = .waiting }
        flush()
        if phase != .closed { pump() }
    }

    /// A refused request whose whole body has come already need not cost the connection.
    private func takeBufferedRest() {
        while !isRequestEnded {
            do throws(MessageError) {
                switch try decoder.next(&input) {
                case .needMore, .head: return
                case .body: continue
                case .end: isRequestEnded = true
                }
            } catch {
                return
            }
        }
    }

    // MARK: Closing

    /// Half-closes and reads on for a moment, so that a client still sending can read the answer
    /// (RFC 9112 §9.6).
    private func linger() {
        phase = .lingering
        lingerBytes = input.count
        input.removeAll()
        transport.shutdownWrites()
        worker.loop.set(deadline, after: DownstreamConnection.lingerTime)
        pump()
    }

    private func dropInput() {
        while isReadable {
            guard lingerBytes < DownstreamConnection.lingerBytesMax else { return close() }
            do throws(SystemError) {
                switch try transport.read(into: &input) {
                case .bytes(let count):
                    lingerBytes += count
                    input.removeAll()
                case .end:
                    return close()
                case .wouldBlock:
                    isReadable = false
                }
            } catch {
                return close()
            }
        }
    }

    /// The client has gone.
    private func hangUp() {
        let abandoned = exchange
        exchange = nil
        close()
        abandoned?.clientGone()
    }

    private func close() {
        guard phase != .closed else { return }
        phase = .closed
        worker.loop.remove(deadline)
        worker.loop.remove(writeDeadline)
        worker.loop.remove(rateDeadline)
        transport.close()
        worker.closed(self)
    }
}

extension DownstreamConnection: DownstreamStream {
    /// Whoever is told so is owed a word once the output has left.
    var isCongested: Bool {
        let isFull = output.count >= DownstreamConnection.outputHighWater
        if isFull { wasCongested = true }
        return isFull
    }

    func sendContinue() {
        guard requestVersion == .http11, !isAnswerBegun else { return }
        output.append(Array("HTTP/1.1 100 Continue\r\n\r\n".utf8))
        // One that had to wait has the whole time of a body from here on.
        if deadline.isSet, !isRequestEnded { startBodyDeadlines() }
        flush()
    }

    func relay(interim head: ResponseHead) {
        guard requestVersion == .http11, !isAnswerBegun else { return }
        queue { () throws(HeadWriterError) in try DownstreamHead.interimBytes(head) }
        flush()
        if head.status == 100, !isRequestEnded { startBodyDeadlines() }
    }

    func relay(head: ResponseHead, adding additions: ResponseAdditions) {
        isAnswerBegun = true
        // An answer that comes before the request has ended leaves the rest of it unread.
        if !isRequestEnded { isPersistent = false }
        let body = DownstreamBody(head, to: requestVersion)
        isAnswerChunked = body == .chunked
        if body == .untilClose { isPersistent = false }
        let note = ConnectionNote(requestVersion, isPersistent: isPersistent)
        queue { () throws(HeadWriterError) in
            try DownstreamHead.bytes(
                head, date: worker.dateText(), requestID: additions.requestID,
                nextChallenge: additions.nextChallenge, body: body, connection: note,
                announcesTrailers: exchange?.head?.acceptsTrailers == true)
        }
    }

    func send(body bytes: [UInt8], _ range: Range<Int>) {
        guard phase == .exchanging, !range.isEmpty else { return }
        bytesSent += range.count
        if isAnswerChunked {
            var framed: [UInt8] = []
            ChunkedWriter.append(bytes, range, to: &framed)
            output.append(framed)
        } else {
            output.append(bytes, range)
        }
        if isCongested { flush() }
    }

    func endAnswer(trailers: ResponseTrailers?) {
        guard phase == .exchanging, !isAnswerEnded else { return }
        if isAnswerChunked {
            var end: [UInt8] = []
            if let trailers, exchange?.head?.acceptsTrailers == true {
                ChunkedWriter.appendLast(trailers, to: &end)
            } else {
                ChunkedWriter.appendLast(to: &end)
            }
            output.append(end)
        }
        answerEnded()
    }

    func answer(_ answer: GateAnswer, requestID: [UInt8]) {
        guard phase == .exchanging, !isAnswerBegun else { return }
        isAnswerBegun = true
        if !isRequestEnded {
            takeBufferedRest()
            if !isRequestEnded { isPersistent = false }
        }
        let isHead = exchange?.isHeadRequest == true
        let note = ConnectionNote(requestVersion, isPersistent: isPersistent)
        let date = worker.dateText()
        queue { () throws(HeadWriterError) in
            try answer.bytes(requestID: requestID, date: date, isHead: isHead, connection: note)
        }
        answerEnded()
    }

    func abort() {
        guard phase != .closed else { return }
        // A chunked answer lacks its end and one with a length its bytes; only one that ends with
        // the connection needs the reset to be told from a whole one.
        transport.resetOnClose()
        hangUp()
    }

    var canSwitchProtocols: Bool { requestVersion == .http11 }

    func switchProtocols(
        _ head: ResponseHead, adding additions: ResponseAdditions
    ) -> TunnelEnd? {
        guard phase == .exchanging, !isAnswerBegun, isRequestEnded else { return nil }
        isAnswerBegun = true
        queue { () throws(HeadWriterError) in
            try DownstreamHead.bytes(
                head, date: worker.dateText(), requestID: additions.requestID,
                nextChallenge: additions.nextChallenge, body: .none, connection: .webSocket)
        }
        guard phase == .exchanging else { return nil }
        // From here on the transport is the tunnel's; this connection is over without closing it.
        phase = .closed
        exchange = nil
        worker.loop.remove(deadline)
        worker.loop.remove(writeDeadline)
        worker.loop.remove(rateDeadline)
        return TunnelEnd(transport: transport, input: input, output: output)
    }

    func resumeBody() {
        guard phase == .exchanging, !isRequestEnded else { return }
        wasBodyPaused = true
        if deadline.isSet { worker.loop.set(deadline, after: bodyTimeout) }
        pump()
    }
}

extension DownstreamBody {
    /// How the body of an upstream's answer goes to a client of `version` (RFC 9112 §6.3).
    fileprivate init(_ head: ResponseHead, to version: HTTPVersion) {
        switch head.framing {
        // Not even a length of zero has a place in a 204 (RFC 9110 §8.6).
        case .none:
            self = head.status == 204 ? .none : head.contentLength.map { .length($0) } ?? .none
        case .length(let count): self = .length(count)
        case .chunked, .untilClose: self = version == .http11 ? .chunked : .untilClose
        }
    }
}
