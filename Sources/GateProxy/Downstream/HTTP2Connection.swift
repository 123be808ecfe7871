// One HTTP/2 connection of a client (RFC 9113), on one loop for life.
//
//           GOAWAY, ours or theirs, and the last stream closed
//   open ──────────────────────────────────────────────────────► lingering ──► closed
//     │ reset, end of stream, write timeout                                      ▲
//     └──────────────────────────────────────────────────────────────────────────┘
//
// The session turns octets into events and queues what is to be sent; each request is an
// `HTTP2Stream` with an exchange of its own. Nothing is sent while events are taken: what a turn
// brings about leaves together at its end, `Worker` says when.
//
// A client is bounded by its turn (octets, then the others), by the session's budgets, and by its
// own reading: while it does not take what is queued, nothing of it is read.

internal import GateBytes
internal import GateConfig
internal import GateHTTP
internal import GateHTTP2
internal import GateRuntime

/// A client's HTTP/2 connection.
final class HTTP2Connection: EventHandler, ClientConnection {
    private enum Phase {
        case closed
        case lingering
        case open
    }

    let client: ClientFacts
    let worker: Worker
    let session: HTTP2Session

    private let transport: any Transport
    private var input: ByteBuffer
    private var streams: [Int32: HTTP2Stream] = [:]
    private var phase = Phase.open
    private var isReadable: Bool
    private var isPeerEnded = false
    private var isPumping = false
    private var isPumpDue = false
    private var isFlushDue = false
    /// Whether reading waits for what is queued to leave.
    private var isReadingPaused = false
    private var isSending = false
    private var requests = 0
    private var requestsInTurn = 0
    /// What the session found and nobody has looked at; its ranges are of ``input``.
    private var events: ArraySlice<HTTP2Event> = []
    /// Octets of ``input`` that ``events`` are about.
    private var inputTaken = 0
    /// How far saying good-bye is.
    private var farewell = Farewell.none
    private var lingerBytes = 0

    private enum Farewell {
        /// The client was told to open no more streams; those under way still count.
        case announced
        case none
        /// The last stream was named.
        case said
    }

    /// The preface, a head in work, or the next request.
    private let deadline = Deadline()
    private var deadlineReason = Reason.preface
    private var sectionsSeen = 0
    private let writeDeadline = Deadline()
    /// When streams are looked at whose octets do not leave.
    private let stallDeadline = Deadline()

    private enum Reason {
        case head
        case idle
        case preface
        case stopping
    }

    /// Octets taken before the loop looks at everyone else.
    private static let turnBytesMax = 256 * 1024
    /// Octets that an event counts besides its own: heads and small frames are dear.
    private static let eventCost = 512
    private static let requestsInTurnMax = 16
    private static let lingerBytesMax = 64 * 1024
    private static let lingerTime = Duration.seconds(1)
    /// From the first GOAWAY to the one that names the last stream: a round trip and more.
    private static let farewellTime = Duration.seconds(1)

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
        session = HTTP2Session(.server, limits: client.listener.http2Limits)
        deadline.onPassed = { [weak self] in self?.deadlinePassed() }
        writeDeadline.onPassed = { [weak self] in self?.writeTimedOut() }
        stallDeadline.onPassed = { [weak self] in self?.checkStalls() }
    }

    private var listener: ListenerRuntime { client.listener }
    var now: UInt64 { UInt64(clamping: worker.loop.now.nanoseconds) }

    var idleSince: Moment? {
        let isIdle = phase == .open && streams.isEmpty && !session.isInHeaders && events.isEmpty
        return isIdle && farewell == .none ? waitingSince : nil
    }

    private var waitingSince = Moment.distantFuture

    func start() throws(SystemError) {
        waitingSince = worker.loop.now
        try transport.register(self)
        worker.loop.set(deadline, after: listener.timeouts.header)
        pump()
        send()
    }

    func drain() {
        guard phase == .open, farewell == .none else { return }
        sayFarewell()
    }

    /// Tells the client to go elsewhere: at once where nothing is in work, else in two steps, so
    /// that what is on its way here still counts (RFC 9113 §6.8).
    private func sayFarewell() {
        guard !streams.isEmpty else {
            farewell = .said
            session.terminate()
            return send()
        }
        farewell = .announced
        session.announceShutdown()
        setDeadline(.stopping, after: HTTP2Connection.farewellTime)
        send()
    }

    func abort() {
        guard phase != .closed else { return }
        transport.resetOnClose()
        close()
    }

    // MARK: Events

    func ready(_ readiness: Readiness) {
        if readiness.contains(.readable) { isReadable = true }
        if readiness.contains(.ended) { isPeerEnded = true }
        if readiness.contains(.failed) { return close() }
        if readiness.contains(.writable), phase == .open { send() }
        pump()
    }

    private func pump() {
        guard !isPumping else { return }
        isPumping = true
        switch phase {
        case .closed: break
        case .lingering: dropInput()
        case .open: takeAll()
        }
        isPumping = false
        guard phase == .open else { return }
        watch()
        flush(nil)
    }

    private func takeAll() {
        var left = HTTP2Connection.turnBytesMax
        requestsInTurn = 0
        while phase == .open {
            guard takeEvents() else { return pumpLater() }
            guard phase == .open, session.fault == nil else { return }
            // A client that reads no answers must not fill the memory with acknowledgements.
            guard session.output.count < HTTP2Session.outputBytesMax else {
                isReadingPaused = true
                return
            }
            guard left > 0 else { return pumpLater() }
            if input.isEmpty, !session.needsTurn {
                guard readMore() else { return }
            }
            let taken = session.receive(input.storage, input.readable, now: now)
            inputTaken = taken
            // Resets that the library has in mind count once they are in the output.
            session.produce(now: now)
            noteEvents()
            left -= taken + events.count * HTTP2Connection.eventCost
            if session.needsTurn { return pumpLater() }
        }
    }

    private func readMore() -> Bool {
        guard isReadable else {
            rest()
            return false
        }
        worker.memory.lend(to: &input)
        let transfer: Transfer
        do throws(SystemError) {
            transfer = try transport.read(into: &input)
        } catch {
            close()
            return false
        }
        switch transfer {
        case .bytes:
            // An end of stream that was reported already brings no event of its own.
            if transport.isExhausted, !isPeerEnded { isReadable = false }
            return true
        case .wouldBlock:
            isReadable = false
            rest()
            return false
        case .end:
            close()
            return false
        }
    }

    /// Nothing can be read now: an idle connection gives its buffers back.
    private func rest() {
        guard streams.isEmpty, input.isEmpty else { return }
        worker.memory.take(from: &input)
        if session.output.isEmpty { worker.memory.take(from: &session.output) }
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

    // MARK: Streams

    /// Adds what the session found to what waits for its turn.
    private func noteEvents() {
        let found = session.takeEvents()
        if events.isEmpty { events = found[...] } else { events += found }
    }

    /// Does what the events say, as far as the turn goes; then their octets are done with.
    /// - Returns: Whether none is left.
    private func takeEvents() -> Bool {
        var fed: [HTTP2Stream] = []
        defer { for stream in fed { stream.bodyPaused() } }
        while let event = events.first {
            guard phase == .open, requestsInTurn < HTTP2Connection.requestsInTurnMax else {
                return phase != .open
            }
            events.removeFirst()
            switch event {
            case .head(let id, let block, let isEnd): begin(id, block, isEnd: isEnd)
            case .data(let id, let range):
                guard let stream = streams[id] else { continue }
                stream.receive(input.storage, range)
                if fed.last !== stream { fed.append(stream) }
            case .end(let id): streams[id]?.receiveEnd()
            case .closed(let id, _): closed(id)
            case .malformed(let id): HTTP2Stream(id, of: self).noteMalformed()
            // Trailers of a request mean nothing here (threat T17); a client that says GOAWAY
            // pushes nothing that we would have to stop.
            case .trailers, .goAway, .interim: continue
            }
        }
        events = []
        input.consume(inputTaken)
        inputTaken = 0
        return true
    }

    private func begin(_ id: Int32, _ block: FieldBlock, isEnd: Bool) {
        // What was reset meanwhile costs nothing more (threat T22).
        guard session.isOpen(id) else { return }
        requests += 1
        requestsInTurn += 1
        let stream = HTTP2Stream(id, of: self)
        streams[id] = stream
        do throws(MessageError) {
            let head = try RequestHead(block, isEnd: isEnd, limits: listener.headLimits)
            stream.begin(head, isEnd: isEnd)
        } catch {
            stream.refuse(error, isHead: block.isHead)
        }
        if requests == listener.limits.requests, farewell == .none {
            farewell = .said
            session.sendGoAway()
        }
    }

    private func closed(_ id: Int32) {
        guard let stream = streams.removeValue(forKey: id) else { return }
        waitingSince = worker.loop.now
        stream.close()
    }

    /// Lets the client send `count` octets more.
    func consume(_ count: Int, of id: Int32) {
        session.consume(count, of: id)
        flush(nil)
    }

    /// Whether so much waits for services that the connection's window may be closed.
    var isInputFull: Bool {
        let waiting = streams.values.reduce(0) { $0 + $1.pending.count }
        return waiting >= listener.http2Limits.connectionWindow / 2
    }

    // MARK: Deadlines

    private func setDeadline(_ reason: Reason, after duration: Duration) {
        deadlineReason = reason
        worker.loop.set(deadline, after: duration)
    }

    /// Chooses what is waited for: a head that has begun, else the next request.
    private func watch() {
        guard farewell != .announced else { return }
        if session.isInHeaders {
            guard deadlineReason != .head || sectionsSeen != session.sections else { return }
            sectionsSeen = session.sections
            setDeadline(.head, after: listener.timeouts.header)
        } else if !session.isEstablished {
            return
        } else if !streams.isEmpty {
            deadline.cancel()
            deadlineReason = .idle
        } else if deadlineReason != .idle || !deadline.isSet {
            setDeadline(.idle, after: listener.timeouts.keepalive)
        }
    }

    private func deadlinePassed() {
        switch phase {
        case .closed: return
        case .lingering: return close()
        case .open: break
        }
        switch deadlineReason {
        case .preface: return close()
        case .head: session.terminate(.enhanceYourCalm)
        case .idle: session.terminate()
        case .stopping:
            farewell = .said
            session.sendGoAway()
            deadlineReason = .idle
        }
        send()
        if phase == .open { watch() }
    }

    private func writeTimedOut() {
        guard !session.output.isEmpty else { return }
        transport.resetOnClose()
        close()
    }

    /// Looks for streams whose octets wait for the client to open a window (threat T25).
    private func checkStalls() {
        var next = Duration.seconds(3600)
        var isAnyWaiting = false
        for (id, stream) in streams {
            guard let since = session.stalledSince(id) else { continue }
            let limit = stream.writeTimeout
            let waited = worker.loop.now.duration(
                since: Moment(nanoseconds: Int64(clamping: since)))
            guard waited >= limit else {
                isAnyWaiting = true
                next = min(next, limit - waited)
                continue
            }
            if session.isConnectionWindowClosed {
                transport.resetOnClose()
                return close()
            }
            session.reset(id, .cancel)
        }
        if isAnyWaiting { worker.loop.set(stallDeadline, after: next) }
        send()
    }

    // MARK: Sending

    /// Lets what is queued leave at the end of the turn.
    func flush(_ stream: HTTP2Stream?) {
        guard !isFlushDue, phase == .open else { return }
        isFlushDue = true
        worker.flushAtTurnEnd(self)
    }

    /// Called at the end of the turn.
    func turnEnded() {
        isFlushDue = false
        send()
    }

    private func send() {
        guard phase == .open, !isSending else { return }
        isSending = true
        var left = HTTP2Connection.turnBytesMax
        var isBlocked = false
        while phase == .open, !isBlocked {
            worker.memory.lend(to: &session.output)
            session.produce(now: now)
            noteEvents()
            // Those before them come first, in their turn.
            if !isPumping, inputTaken == 0, !takeEvents() { pumpLater() }
            guard phase == .open, !session.output.isEmpty else { break }
            guard left > 0 else {
                flushLater()
                break
            }
            let count = session.output.count
            isBlocked = !write()
            left -= count - session.output.count
            for id in session.drainedStreams() { streams[id]?.drained() }
        }
        isSending = false
        guard phase == .open else { return }
        if !stallDeadline.isSet, session.isAnythingQueued {
            worker.loop.set(stallDeadline, after: listener.timeouts.write)
        }
        guard !session.isFinished || !session.output.isEmpty else { return finish() }
        if streams.isEmpty { watch() }
        if isReadingPaused, session.output.count < HTTP2Session.outputBytesMax {
            isReadingPaused = false
            pumpLater()
        }
    }

    /// Writes what has been produced; false where the client takes no more.
    private func write() -> Bool {
        while !session.output.isEmpty {
            do throws(SystemError) {
                let output = session.output
                guard
                    case .bytes(let count) = try transport.write(output.storage, output.readable)
                else {
                    if !writeDeadline.isSet { armWriteDeadline() }
                    return false
                }
                session.output.consume(count)
                if !session.output.isEmpty { armWriteDeadline() }
            } catch {
                close()
                return false
            }
        }
        writeDeadline.cancel()
        return true
    }

    private func armWriteDeadline() {
        worker.loop.set(writeDeadline, after: listener.timeouts.write)
    }

    private func flushLater() {
        let bound = LoopBound(self, on: worker.loop)
        worker.loop.handle.submit { bound.open().send() }
    }

    // MARK: Closing

    /// Everything is said: half-closes and reads on for a moment, so that a client still sending
    /// can read the GOAWAY.
    private func finish() {
        if let fault = session.fault {
            worker.context.errorLog.write(
                .info, "listener \(listener.listener.name): HTTP/2: \(fault.words)")
        }
        phase = .lingering
        closeStreams()
        transport.shutdownWrites()
        // What has come and will not be read would turn the close into a reset.
        guard session.fault != nil || isReadable || !input.isEmpty else { return close() }
        input.removeAll()
        writeDeadline.cancel()
        worker.loop.set(deadline, after: HTTP2Connection.lingerTime)
        if !isPumping { pump() } else { pumpLater() }
    }

    private func dropInput() {
        while isReadable {
            guard lingerBytes < HTTP2Connection.lingerBytesMax else { return close() }
            do throws(SystemError) {
                switch try transport.read(into: &input) {
                case .bytes(let count):
                    lingerBytes += count
                    input.removeAll()
                case .end: return close()
                case .wouldBlock: isReadable = false
                }
            } catch {
                return close()
            }
        }
    }

    private func closeStreams() {
        let abandoned = streams
        streams = [:]
        for stream in abandoned.values { stream.close() }
    }

    private func close() {
        guard phase != .closed else { return }
        phase = .closed
        events = []
        worker.loop.remove(deadline)
        worker.loop.remove(writeDeadline)
        worker.loop.remove(stallDeadline)
        transport.close()
        closeStreams()
        worker.closed(self)
    }
}
