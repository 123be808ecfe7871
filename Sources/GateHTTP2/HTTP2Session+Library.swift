// Where libnghttp2 calls back. Each callback notes what it is told in the session and returns;
// nothing of the caller's runs here.

internal import CGateNGHTTP2
internal import GateBytes
internal import GateHTTP

extension HTTP2Session {
    /// A session of the library whose callbacks find `owner`.
    static func make(
        _ role: Role, _ limits: HTTP2Limits, owner: UnsafeMutableRawPointer
    ) -> OpaquePointer? {
        var callbacks: OpaquePointer?
        var option: OpaquePointer?
        guard unsafe nghttp2_session_callbacks_new(&callbacks) == 0,
            unsafe nghttp2_option_new(&option) == 0
        else { preconditionFailure("out of memory") }
        defer {
            unsafe nghttp2_session_callbacks_del(callbacks)
            unsafe nghttp2_option_del(option)
        }
        unsafe setReceivingCallbacks(callbacks)
        unsafe setSendingCallbacks(callbacks)
        unsafe nghttp2_option_set_no_auto_window_update(option, 1)
        unsafe nghttp2_option_set_no_closed_streams(option, 1)
        unsafe nghttp2_option_set_max_deflate_dynamic_table_size(option, tableBytesMax)
        // A section may be as large as the limits allow, on either side.
        let frames = limits.head.headerSize / frameBytesMax + 1
        unsafe nghttp2_option_set_max_continuations(option, max(continuationsMax, frames))
        unsafe nghttp2_option_set_max_send_header_block_length(
            option, 2 * limits.head.headerSize + frameBytesMax)
        var session: OpaquePointer?
        let result =
            switch role {
            case .client: unsafe nghttp2_session_client_new2(&session, callbacks, owner, option)
            case .server: unsafe nghttp2_session_server_new2(&session, callbacks, owner, option)
            }
        precondition(result == 0, "out of memory")
        return unsafe session
    }

    /// Octets of either side's HPACK table.
    private static let tableBytesMax = 4096
    /// The largest frame (RFC 9113 §6.5.2); nothing larger is announced.
    private static let frameBytesMax = 16384
    /// The library's own limit of CONTINUATION frames in one section.
    private static let continuationsMax = 8

    /// Queues SETTINGS and the connection's window.
    func submitSettings() {
        var settings: [nghttp2_settings_entry] = []
        func set(_ id: nghttp2_settings_id, _ value: Int) {
            settings.append(
                nghttp2_settings_entry(
                    settings_id: Int32(id.rawValue), value: UInt32(clamping: value)))
        }
        switch role {
        case .client: set(NGHTTP2_SETTINGS_ENABLE_PUSH, 0)
        case .server:
            set(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, limits.streamsMax)
            set(NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1)
        }
        set(NGHTTP2_SETTINGS_HEADER_TABLE_SIZE, HTTP2Session.tableBytesMax)
        set(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, limits.streamWindow)
        set(NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, limits.head.headerSize)
        let none = UInt8(NGHTTP2_FLAG_NONE.rawValue)
        let submitted = unsafe nghttp2_submit_settings(session, none, settings, settings.count)
        let widened = unsafe nghttp2_session_set_local_window_size(
            session, none, 0, Int32(clamping: limits.connectionWindow))
        precondition(submitted == 0 && widened == 0, "settings out of bounds")
    }

    private static func of(_ owner: UnsafeMutableRawPointer?) -> HTTP2Session? {
        guard let owner = unsafe owner else { return nil }
        return unsafe Unmanaged<HTTP2Session>.fromOpaque(owner).takeUnretainedValue()
    }

    private static func setReceivingCallbacks(_ callbacks: OpaquePointer?) {
        unsafe nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks) {
            _, frame, owner in
            guard let frame = unsafe frame else { return 0 }
            unsafe HTTP2Session.of(owner)?.beganHeaders(
                frame.pointee.hd.stream_id, frame.pointee.headers.cat)
            return 0
        }
        unsafe nghttp2_session_callbacks_set_on_header_callback(callbacks) {
            _, frame, name, nameCount, value, valueCount, _, owner in
            guard let frame = unsafe frame, let session = unsafe HTTP2Session.of(owner) else {
                return NGHTTP2_ERR_CALLBACK_FAILURE.rawValue
            }
            let isMore = unsafe session.tookField(
                frame.pointee.hd.stream_id,
                UnsafeBufferPointer(start: name, count: nameCount),
                UnsafeBufferPointer(start: value, count: valueCount))
            return isMore ? 0 : NGHTTP2_ERR_PAUSE.rawValue
        }
        // The library would drop such a field; a message with one is malformed (RFC 9113 §8.2.1).
        unsafe nghttp2_session_callbacks_set_on_invalid_header_callback(callbacks) {
            _, _, _, _, _, _, _, _ in NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue
        }
        unsafe nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks) {
            _, frame, _, owner in
            guard let frame = unsafe frame else { return 0 }
            let header = unsafe frame.pointee.hd
            if header.type == FrameType.headers {
                unsafe HTTP2Session.of(owner)?.streams[header.stream_id]?.isMalformed = true
            }
            return 0
        }
        unsafe nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks) {
            _, frame, owner in
            guard let frame = unsafe frame else { return 0 }
            unsafe HTTP2Session.of(owner)?.tookFrame(frame.pointee)
            return 0
        }
        unsafe nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks) {
            _, _, streamID, data, count, owner in
            unsafe HTTP2Session.of(owner)?.tookData(
                streamID, address: Int(bitPattern: data), count)
            return 0
        }
        unsafe nghttp2_session_callbacks_set_on_stream_close_callback(callbacks) {
            _, streamID, code, owner in
            unsafe HTTP2Session.of(owner)?.close(streamID, code)
            return 0
        }
        unsafe nghttp2_session_callbacks_set_error_callback2(callbacks) {
            _, _, text, count, owner in
            let words = unsafe UnsafeRawBufferPointer(start: text, count: count)
            unsafe HTTP2Session.of(owner)?.complaint = unsafe String(decoding: words, as: UTF8.self)
            return 0
        }
    }

    private static func setSendingCallbacks(_ callbacks: OpaquePointer?) {
        unsafe nghttp2_session_callbacks_set_send_data_callback(callbacks) {
            _, frame, header, count, _, owner in
            guard let frame = unsafe frame, let session = unsafe HTTP2Session.of(owner) else {
                return NGHTTP2_ERR_CALLBACK_FAILURE.rawValue
            }
            let head = unsafe UnsafeBufferPointer(start: header, count: 9)
            return unsafe session.sendData(frame.pointee.hd.stream_id, head, count)
        }
        unsafe nghttp2_session_callbacks_set_on_frame_send_callback(callbacks) {
            _, frame, owner in
            guard let frame = unsafe frame else { return 0 }
            unsafe HTTP2Session.of(owner)?.sentFrame(frame.pointee)
            return 0
        }
        unsafe nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks) {
            _, frame, _, owner in
            guard let frame = unsafe frame, let session = unsafe HTTP2Session.of(owner) else {
                return 0
            }
            let header = unsafe frame.pointee.hd
            // A request that can no longer be sent: the peer said GOAWAY in the meantime.
            if session.role == .client, header.type == FrameType.headers {
                session.close(header.stream_id, HTTP2ErrorCode.refusedStream.rawValue)
            }
            return 0
        }
    }

    /// Gives `body` where the library finds the octets of a message; nil where it has none.
    static func withProvider<Result>(
        isEnd: Bool, _ body: (UnsafePointer<nghttp2_data_provider>?) -> Result
    ) -> Result {
        guard !isEnd else { return body(nil) }
        return unsafe withUnsafePointer(to: provider) { unsafe body($0) }
    }

    /// Where the library finds a body: it asks by stream, and `sendData` does the copying.
    private static var provider: nghttp2_data_provider {
        var provider = unsafe nghttp2_data_provider()
        unsafe provider.read_callback = { _, streamID, _, count, flags, _, owner in
            guard let session = unsafe HTTP2Session.of(owner), let flags = unsafe flags else {
                return Int(NGHTTP2_ERR_CALLBACK_FAILURE.rawValue)
            }
            let body = session.offer(streamID, count)
            unsafe flags.pointee = body.flags
            return body.count
        }
        return unsafe provider
    }
}

// MARK: - Receiving

extension HTTP2Session {
    private func beganHeaders(_ streamID: Int32, _ category: nghttp2_headers_category) {
        if category == NGHTTP2_HCAT_REQUEST { streams[streamID] = StreamState(startedAt: now) }
        streams[streamID]?.block = FieldBlock()
    }

    /// Takes one field; false where it is time to pause, or to end.
    private func tookField(
        _ streamID: Int32, _ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>
    ) -> Bool {
        let size = name.count + value.count + FieldBlock.lineOverhead
        decodedInCall += size
        guard let stream = streams[streamID] else { return true }
        unsafe stream.block?.receive(name.span, value.span, limits: limits.head)
        let excess = (stream.block?.size ?? 0) - limits.head.headerSize
        if !headerBytes.spend(size, at: now) || excess > HTTP2Session.excessBytesMax {
            pendingFault = .headerBudgetSpent
        }
        return pendingFault == nil && decodedInCall < HTTP2Session.decodedBytesInCallMax
    }

    private func tookFrame(_ frame: nghttp2_frame) {
        let header = unsafe frame.hd
        switch header.type {
        case FrameType.headers: tookHeaders(header.stream_id, isEnd: header.isEndStream)
        case FrameType.data where header.isEndStream: ended(header.stream_id)
        case FrameType.settings: isPeerKnown = true
        case FrameType.goAway:
            let goAway = unsafe frame.goaway
            events.append(
                .goAway(
                    last: unsafe goAway.last_stream_id,
                    HTTP2ErrorCode(rawValue: unsafe goAway.error_code)))
        default: break
        }
    }

    private func tookHeaders(_ streamID: Int32, isEnd: Bool) {
        guard let stream = streams[streamID], let block = stream.block else { return }
        stream.block = nil
        if block.fault != nil, !oversizedHeads.spend(at: now) {
            pendingFault = .oversizedHeadsRepeated
            return
        }
        if stream.isFinalHeadSeen {
            events.append(.trailers(streamID, block))
        } else if role == .client, isInterim(block) {
            events.append(.interim(streamID, block))
        } else {
            stream.isHeadSeen = true
            stream.isFinalHeadSeen = true
            if role == .server { shareEvenly(streamID) }
            events.append(.head(streamID, block, isEnd: isEnd))
        }
        if isEnd { ended(streamID) }
    }

    private func isInterim(_ block: FieldBlock) -> Bool {
        guard let status = block.firstValue(of: ":status"), !status.isEmpty else { return false }
        return block.bytes[status.lowerBound] == UInt8(ascii: "1")
    }

    /// Gives the stream its turn among the others whatever it asked for: by default (RFC 9218 §4.2)
    /// a large answer would hold up all that were asked for after it.
    private func shareEvenly(_ streamID: Int32) {
        var priority = nghttp2_extpri(urgency: 3, inc: 1)
        _ = unsafe nghttp2_session_change_extpri_stream_priority(session, streamID, &priority, 1)
    }

    private func ended(_ streamID: Int32) {
        guard let stream = streams[streamID], !stream.isPeerEnded else { return }
        stream.isPeerEnded = true
        events.append(.end(streamID))
    }

    private func tookData(_ streamID: Int32, address: Int, _ count: Int) {
        guard let stream = streams[streamID] else { return }
        let start = address - inputBase
        // The library gives payloads where they are; a copy of its own would be a new library.
        precondition(start >= 0 && start + count <= inputCount, "a payload outside the input")
        stream.unconsumed += count
        events.append(.data(streamID, start..<(start + count)))
    }
}

// MARK: - Sending

extension HTTP2Session {
    /// How many octets of the stream's body a frame of at most `count` gets.
    private func offer(_ streamID: Int32, _ count: Int) -> (count: Int, flags: UInt32) {
        guard let stream = streams[streamID] else {
            return (Int(NGHTTP2_ERR_DEFERRED.rawValue), 0)
        }
        let size = min(count, stream.outgoing.count)
        let isLast = stream.isEnding && size == stream.outgoing.count
        guard size > 0 || isLast else {
            stream.isDeferred = true
            return (Int(NGHTTP2_ERR_DEFERRED.rawValue), 0)
        }
        var flags = NGHTTP2_DATA_FLAG_NO_COPY.rawValue
        if isLast {
            flags |= NGHTTP2_DATA_FLAG_EOF.rawValue
            if let trailers = stream.trailers {
                stream.trailers = nil
                flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM.rawValue
                _ = unsafe trailers.withLibraryFields { fields in
                    unsafe nghttp2_submit_trailer(
                        session, streamID, fields.baseAddress, fields.count)
                }
            }
        }
        return (size, flags)
    }

    /// Writes a DATA frame, or makes the library wait until there is room.
    private func sendData(
        _ streamID: Int32, _ header: UnsafeBufferPointer<UInt8>, _ count: Int
    ) -> Int32 {
        guard output.count < HTTP2Session.outputBytesMax else {
            return NGHTTP2_ERR_WOULDBLOCK.rawValue
        }
        guard let stream = streams[streamID], stream.outgoing.count >= count else {
            return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue
        }
        unsafe output.append(header)
        let start = stream.outgoing.readable.lowerBound
        output.append(stream.outgoing.storage, start..<(start + count))
        take(count, of: stream)
        return 0
    }

    private func sentFrame(_ frame: nghttp2_frame) {
        let header = unsafe frame.hd
        switch header.type {
        case FrameType.data, FrameType.headers: sentPart(header)
        case FrameType.resetStream:
            guard resetHere.remove(header.stream_id) == nil else { return }
            // The library's answer to a fault of the peer (MadeYouReset, threat T22).
            if !spendReset() { pendingFault = pendingFault ?? .resetBudgetSpent }
        case FrameType.goAway:
            guard fault == nil, unsafe frame.goaway.error_code != 0 else { return }
            fault = .library(complaint)
        default: break
        }
    }

    /// Tells the peer of an answer that has ended to stop sending its request (RFC 9113 §8.1).
    private func sentPart(_ header: nghttp2_frame_hd) {
        guard role == .server, header.isEndStream, let stream = streams[header.stream_id],
            !stream.isPeerEnded
        else { return }
        reset(header.stream_id, .noError)
    }
}

extension nghttp2_frame_hd {
    /// Whether the frame ends its sender's side of the stream.
    fileprivate var isEndStream: Bool {
        flags & UInt8(NGHTTP2_FLAG_END_STREAM.rawValue) != 0
    }
}

extension FieldBlock {
    /// Gives `body` the fields as the library takes them; it copies what it is given.
    func withLibraryFields<Result>(
        _ body: (UnsafeBufferPointer<nghttp2_nv>) -> Result
    ) -> Result {
        unsafe bytes.withUnsafeBufferPointer { buffer in
            let base = unsafe UnsafeMutablePointer(mutating: buffer.baseAddress)
            let fields = unsafe lines.map { line in
                unsafe nghttp2_nv(
                    name: base.map { unsafe $0 + line.name.lowerBound },
                    value: base.map { unsafe $0 + line.value.lowerBound },
                    namelen: line.name.count, valuelen: line.value.count,
                    flags: UInt8(
                        line.isNeverIndexed
                            ? NGHTTP2_NV_FLAG_NO_INDEX.rawValue : NGHTTP2_NV_FLAG_NONE.rawValue))
            }
            return unsafe fields.withUnsafeBufferPointer { unsafe body($0) }
        }
    }
}
