// One HTTP/2 connection as libnghttp2 sees it (RFC 9113), either side of it: octets in, events out,
// octets to send in `output`. It knows no socket and no clock; moments are the caller's
// nanoseconds.
//
//   receive ─► events                      respond, request, send, end, reset ─► produce ─► output
//
// Nothing of the caller's runs inside libnghttp2: its callbacks note events and change this object
// alone, so that a session can be closed in answer to any event.
//
// What is held is bounded: of a body that came nothing (its octets stay where they were given, and
// the windows bound them until `consume`); of heads `limits.head`; of bodies to send
// `outgoingBytesMax` a stream and `queuedBytesMax` in all before `isCongested` says so; of octets
// to send `outputBytesMax` and one frame.

internal import CGateNGHTTP2
package import GateBytes
package import GateHTTP

/// One HTTP/2 connection, on one loop for life.
@safe package final class HTTP2Session {
    /// Which side of the connection this is.
    package enum Role: Sendable {
        case client
        case server
    }

    /// What is to be sent; the caller consumes what has left.
    package var output = ByteBuffer()
    /// Why the session is at its end; nil while it is not.
    package internal(set) var fault: HTTP2Fault?

    /// Whether the peer's SETTINGS have come: before them nobody knows how many streams it takes.
    package internal(set) var isPeerKnown = false

    let role: Role
    let limits: HTTP2Limits
    /// The library's session; nil only while it is being made.
    private(set) var session: OpaquePointer?
    var streams: [Int32: StreamState] = [:]
    /// The moment of the call that is in work.
    var now: UInt64 = 0

    // What one call of `receive` finds.
    var events: [HTTP2Event] = []
    var inputBase = 0
    var inputCount = 0
    var decodedInCall = 0
    var pendingFault: HTTP2Fault?
    private var isPaused = false
    private var isDead = false
    /// Octets at the start of the next input that the scanner has seen already.
    private var scannedAhead = 0
    /// What the scanner found at the end of what the library may have.
    private var scanFault: HTTP2Fault?

    var scanner: FrameScanner
    private var resets: HTTP2Budget?
    private var control: HTTP2Budget?
    var headerBytes = HTTP2Budget(
        countMax: HTTP2Session.headerBytesPerSecondMax, window: 1_000_000_000)
    /// The third such head within it ends the connection.
    var oversizedHeads = HTTP2Budget(countMax: 2, window: 30_000_000_000)
    /// Streams whose RST_STREAM is our own wish, not the library's answer to a fault.
    var resetHere: Set<Int32> = []
    /// What the library last complained of.
    var complaint = ""

    /// Octets of bodies held for all streams.
    private(set) var queuedBytes = 0
    private var congested: Set<Int32> = []

    /// Octets of a body held to send on one stream before its sender is to wait.
    package static let outgoingBytesMax = 64 * 1024
    /// The same for all streams of a connection.
    package static let queuedBytesMax = 1024 * 1024
    /// Octets in ``output`` past which no more are produced.
    package static let outputBytesMax = 64 * 1024
    /// Decoded octets of fields past which ``receive(_:_:now:)`` returns: about half a
    /// millisecond of the library's checks.
    static let decodedBytesInCallMax = 256 * 1024
    /// Decoded octets past a head's limit that are still read in order to answer it.
    static let excessBytesMax = 256 * 1024
    /// Decoded octets of fields in a second: some 30 ms of a core.
    static let headerBytesPerSecondMax = 32 * 1024 * 1024

    /// A session at the start of a connection; its SETTINGS are queued.
    package init(_ role: Role, limits: HTTP2Limits) {
        self.role = role
        self.limits = limits
        scanner = FrameScanner(isServer: role == .server)
        resets = limits.resets
        control = limits.control
        unsafe session = HTTP2Session.make(
            role, limits, owner: Unmanaged.passUnretained(self).toOpaque())
        submitSettings()
    }

    deinit {
        unsafe nghttp2_session_del(session)
    }

    // MARK: Receiving

    /// Takes octets of the peer out of `bytes[range]`; ``takeEvents()`` says what was in them.
    ///
    /// Gives how many were taken: fewer than all where much was decoded from few octets. Then, and
    /// while ``needsTurn``, call again with the rest, once others have had their turn.
    package func receive(_ bytes: [UInt8], _ range: Range<Int>, now: UInt64) -> Int {
        guard fault == nil else { return range.count }
        self.now = now
        let end = scan(bytes, range)
        let taken = feed(bytes, range.lowerBound..<end)
        scannedAhead = max(0, end - range.lowerBound - taken)
        if let broken = pendingFault ?? (scannedAhead == 0 ? scanFault : nil) { terminate(broken) }
        return fault == nil ? taken : range.count
    }

    /// Whether ``takeEvents()`` has something to give.
    package var hasEvents: Bool { !events.isEmpty }

    /// What was found since the last call. Ranges of bodies are of the last ``receive(_:_:now:)``.
    package func takeEvents() -> [HTTP2Event] {
        let taken = events
        events = []
        return taken
    }

    /// Whether there is more to be had out of octets that were taken already.
    package var needsTurn: Bool { isPaused && fault == nil }

    /// Whether a header section has begun and is not complete.
    package var isInHeaders: Bool { scanner.isInHeaders }

    /// How many header sections have begun.
    package var sections: Int { scanner.sections }

    /// Whether the peer's preface and first frame have come.
    package var isEstablished: Bool { scanner.isEstablished }

    /// Reads the frame headers ahead of the library; gives the end of what it may have.
    private func scan(_ bytes: [UInt8], _ range: Range<Int>) -> Int {
        var index = min(range.lowerBound + scannedAhead, range.upperBound)
        guard scanFault == nil else { return index }
        while let found = scanner.next(bytes, &index, range.upperBound) {
            if found.isStreamIDPast {
                scanFault = .streamIDNotNew
            } else if found.cost == .control, control?.spend(at: now) == false {
                scanFault = .controlBudgetSpent
            } else if found.cost == .reset, !spendReset() {
                scanFault = .resetBudgetSpent
            }
            guard scanFault == nil else {
                // The frames before it count as usual.
                return max(range.lowerBound, found.index - FrameScanner.headerBytes)
            }
        }
        return range.upperBound
    }

    /// Whether one more reset may happen.
    func spendReset() -> Bool {
        resets?.spend(at: now) ?? true
    }

    private func feed(_ bytes: [UInt8], _ range: Range<Int>) -> Int {
        decodedInCall = 0
        isPaused = false
        let result = unsafe bytes.withUnsafeBufferPointer { buffer in
            inputBase = Int(bitPattern: buffer.baseAddress)
            inputCount = buffer.count
            let part = unsafe UnsafeBufferPointer(rebasing: buffer[range])
            return unsafe nghttp2_session_mem_recv(session, part.baseAddress, part.count)
        }
        guard result >= 0 else {
            die(Int32(result))
            return range.count
        }
        isPaused = decodedInCall >= HTTP2Session.decodedBytesInCallMax
        return result
    }

    /// Ends the session for a fault: GOAWAY is queued, nothing more is read.
    private func terminate(_ broken: HTTP2Fault) {
        fault = broken
        // Only memory can lack, and then the connection is closed all the same.
        _ = unsafe nghttp2_session_terminate_session(session, broken.code.rawValue)
    }

    /// The library has given up; it has nothing more to say.
    private func die(_ code: Int32) {
        isDead = true
        fault = fault ?? .library(unsafe String(cString: nghttp2_strerror(code)))
    }

    /// Notes that `count` octets of a body have gone on their way: the peer may send as many more.
    package func consume(_ count: Int, of streamID: Int32) {
        guard let stream = streams[streamID], fault == nil else { return }
        let consumed = min(count, stream.unconsumed)
        stream.unconsumed -= consumed
        _ = unsafe nghttp2_session_consume(session, streamID, consumed)
    }

    // MARK: Sending

    /// Moves what can be sent now into ``output``, as far as it has room.
    package func produce(now: UInt64) {
        self.now = now
        while !isDead, output.count < HTTP2Session.outputBytesMax {
            var pointer: UnsafePointer<UInt8>?
            let count = unsafe nghttp2_session_mem_send(session, &pointer)
            guard count >= 0 else { return die(Int32(count)) }
            if count == 0 {
                guard let broken = pendingFault, fault == nil else { return }
                terminate(broken)
                continue
            }
            unsafe output.append(UnsafeBufferPointer(start: pointer, count: count))
        }
    }

    /// Whether everything has been said and nothing more is to be heard: the connection can close
    /// once ``output`` is empty.
    package var isFinished: Bool {
        if isDead { return true }
        return unsafe nghttp2_session_want_read(session) == 0
            && nghttp2_session_want_write(session) == 0
    }

    /// Whether the stream can still be answered or written to.
    package func isOpen(_ streamID: Int32) -> Bool { streams[streamID] != nil }

    /// Opens a stream with the head of a request. Nil where the peer or the protocol allows no
    /// further stream; client only.
    package func request(_ block: FieldBlock, isEnd: Bool) -> Int32? {
        precondition(role == .client)
        guard canRequest else { return nil }
        let streamID = unsafe block.withLibraryFields { fields in
            unsafe HTTP2Session.withProvider(isEnd: isEnd) { provider in
                unsafe nghttp2_submit_request(
                    session, nil, fields.baseAddress, fields.count, provider, nil)
            }
        }
        guard streamID > 0 else { return nil }
        let stream = StreamState(startedAt: now)
        stream.isHeadSeen = true
        stream.isBodyOpen = !isEnd
        streams[streamID] = stream
        return streamID
    }

    /// Whether the peer takes another stream now.
    package var canRequest: Bool {
        guard fault == nil, !isDead else { return false }
        let allowed = unsafe nghttp2_session_check_request_allowed(session) != 0
        return allowed && streams.count < peerStreamsMax
    }

    /// How many streams the peer takes at once.
    package var peerStreamsMax: Int {
        Int(
            clamping: unsafe nghttp2_session_get_remote_settings(
                session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS))
    }

    /// Begins the answer to a request; `isEnd`: it has no body. False where the stream is gone.
    @discardableResult
    package func respond(_ streamID: Int32, _ block: FieldBlock, isEnd: Bool) -> Bool {
        guard let stream = streams[streamID], !stream.isBodyOpen, !stream.isEnding else {
            return false
        }
        let result = unsafe block.withLibraryFields { fields in
            unsafe HTTP2Session.withProvider(isEnd: isEnd) { provider in
                unsafe nghttp2_submit_response(
                    session, streamID, fields.baseAddress, fields.count, provider)
            }
        }
        stream.isBodyOpen = !isEnd
        stream.isEnding = isEnd
        return result == 0
    }

    /// Sends an interim answer.
    package func respond(_ streamID: Int32, interim block: FieldBlock) {
        guard let stream = streams[streamID], !stream.isBodyOpen, !stream.isEnding else { return }
        _ = unsafe block.withLibraryFields { fields in
            unsafe nghttp2_submit_headers(
                session, UInt8(NGHTTP2_FLAG_NONE.rawValue), streamID, nil, fields.baseAddress,
                fields.count, nil)
        }
    }

    /// Queues `bytes[range]` of the body that was begun; they wait from `now` on, by default from
    /// the last call that said what time it was.
    package func send(
        _ bytes: [UInt8], _ range: Range<Int>, on streamID: Int32, now: UInt64? = nil
    ) {
        guard let stream = streams[streamID], stream.isBodyOpen, !stream.isEnding,
            !range.isEmpty
        else { return }
        if stream.outgoing.isEmpty { stream.progressAt = now ?? self.now }
        stream.outgoing.append(bytes, range)
        queuedBytes += range.count
        resume(stream, streamID)
    }

    /// Ends the body that was begun, perhaps with trailers.
    package func end(_ streamID: Int32, trailers: FieldBlock? = nil) {
        guard let stream = streams[streamID], stream.isBodyOpen, !stream.isEnding else { return }
        stream.isEnding = true
        stream.trailers = trailers
        resume(stream, streamID)
    }

    private func resume(_ stream: StreamState, _ streamID: Int32) {
        guard stream.isDeferred else { return }
        stream.isDeferred = false
        _ = unsafe nghttp2_session_resume_data(session, streamID)
    }

    /// Resets a stream: neither side sends more on it.
    package func reset(_ streamID: Int32, _ code: HTTP2ErrorCode) {
        guard streams[streamID] != nil else { return }
        resetHere.insert(streamID)
        _ = unsafe nghttp2_submit_rst_stream(
            session, UInt8(NGHTTP2_FLAG_NONE.rawValue), streamID, code.rawValue)
    }

    // MARK: Back-pressure

    /// Whether the stream's sender is to wait; then ``drainedStreams()`` will name it.
    package func isCongested(_ streamID: Int32) -> Bool {
        guard let stream = streams[streamID] else { return false }
        let isFull =
            stream.outgoing.count >= HTTP2Session.outgoingBytesMax
            || (queuedBytes >= HTTP2Session.queuedBytesMax && !stream.outgoing.isEmpty)
        if isFull { congested.insert(streamID) }
        return isFull
    }

    /// Whether ``drainedStreams()`` will name some stream, now or later.
    package var hasCongestedStreams: Bool { !congested.isEmpty }

    /// The streams that were congested and can take more; each is named once.
    package func drainedStreams() -> [Int32] {
        guard !congested.isEmpty else { return [] }
        let drained = congested.filter { streamID in
            guard let stream = streams[streamID] else { return true }
            let isLow = stream.outgoing.count < HTTP2Session.outgoingBytesMax / 2
            return isLow
                && (queuedBytes < HTTP2Session.queuedBytesMax / 2 || stream.outgoing.isEmpty)
        }
        congested.subtract(drained)
        return drained.sorted()
    }

    /// Since when the stream has octets to send of which none could leave; nil where it has none.
    package func stalledSince(_ streamID: Int32) -> UInt64? {
        guard let stream = streams[streamID] else { return nil }
        return stream.outgoing.isEmpty ? nil : stream.progressAt
    }

    /// Whether octets of any body wait to be sent.
    package var isAnythingQueued: Bool { queuedBytes > 0 }

    /// Whether the peer's window for the whole connection is used up.
    package var isConnectionWindowClosed: Bool {
        unsafe nghttp2_session_get_remote_window_size(session) <= 0
    }

    // MARK: Ending

    /// Tells the peer to open no further stream, without saying which was the last: what is under
    /// way still counts (RFC 9113 §6.8). Server only.
    package func announceShutdown() {
        _ = unsafe nghttp2_submit_shutdown_notice(session)
    }

    /// Tells the peer that no further stream is taken; those that were go on.
    package func sendGoAway(_ code: HTTP2ErrorCode = .noError) {
        let last = unsafe nghttp2_session_get_last_proc_stream_id(session)
        _ = unsafe nghttp2_submit_goaway(
            session, UInt8(NGHTTP2_FLAG_NONE.rawValue), last, code.rawValue, nil, 0)
    }

    /// Ends the session, streams and all.
    package func terminate(_ code: HTTP2ErrorCode = .noError) {
        _ = unsafe nghttp2_session_terminate_session(session, code.rawValue)
    }
}

// MARK: - What the callbacks do

extension HTTP2Session {
    /// Hands up to `count` octets of the stream's body to a frame.
    func take(_ count: Int, of stream: StreamState) {
        stream.outgoing.consume(count)
        stream.progressAt = now
        queuedBytes -= count
        if count >= HTTP2Session.usefulDataBytes || stream.isEnding { scanner.noteDataSent() }
    }

    /// A smaller DATA frame gives no reason for a WINDOW_UPDATE: a peer that opens its window by
    /// single octets has a frame of ours for each of its own.
    private static let usefulDataBytes = 256

    /// Forgets a stream.
    func close(_ streamID: Int32, _ code: UInt32) {
        guard let stream = streams.removeValue(forKey: streamID) else { return }
        queuedBytes -= stream.outgoing.count
        resetHere.remove(streamID)
        if stream.unconsumed > 0 {
            _ = unsafe nghttp2_session_consume_connection(session, stream.unconsumed)
        }
        guard stream.isHeadSeen else {
            if stream.isMalformed { events.append(.malformed(streamID)) }
            return
        }
        events.append(.closed(streamID, HTTP2ErrorCode(rawValue: code)))
    }
}
