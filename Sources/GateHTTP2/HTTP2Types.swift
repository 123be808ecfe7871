package import GateHTTP

/// The error codes of HTTP/2 (RFC 9113 §7).
package struct HTTP2ErrorCode: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    package let rawValue: UInt32

    package init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    package static let noError = HTTP2ErrorCode(rawValue: 0x0)
    package static let protocolError = HTTP2ErrorCode(rawValue: 0x1)
    package static let internalError = HTTP2ErrorCode(rawValue: 0x2)
    package static let flowControlError = HTTP2ErrorCode(rawValue: 0x3)
    package static let settingsTimeout = HTTP2ErrorCode(rawValue: 0x4)
    package static let streamClosed = HTTP2ErrorCode(rawValue: 0x5)
    package static let frameSizeError = HTTP2ErrorCode(rawValue: 0x6)
    package static let refusedStream = HTTP2ErrorCode(rawValue: 0x7)
    package static let cancel = HTTP2ErrorCode(rawValue: 0x8)
    package static let compressionError = HTTP2ErrorCode(rawValue: 0x9)
    package static let connectError = HTTP2ErrorCode(rawValue: 0xa)
    package static let enhanceYourCalm = HTTP2ErrorCode(rawValue: 0xb)
    package static let inadequateSecurity = HTTP2ErrorCode(rawValue: 0xc)
    package static let http11Required = HTTP2ErrorCode(rawValue: 0xd)

    private static let names = [
        "NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT",
        "STREAM_CLOSED", "FRAME_SIZE_ERROR", "REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR",
        "CONNECT_ERROR", "ENHANCE_YOUR_CALM", "INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED",
    ]

    package var description: String {
        let index = Int(rawValue)
        return index < HTTP2ErrorCode.names.count ? HTTP2ErrorCode.names[index] : "\(rawValue)"
    }
}

/// What a session found in the octets it was given. Within a batch the order is the peer's.
package enum HTTP2Event: Sendable {
    /// Octets of a body: a range of the storage that was given. They count against the windows
    /// until ``HTTP2Session/consume(_:of:)``.
    case data(Int32, Range<Int>)
    /// The stream is gone: both sides have ended, or one has reset it. Always the last of a stream
    /// whose head was given or that was opened here.
    case closed(Int32, HTTP2ErrorCode)
    /// The peer's side of the stream has ended.
    case end(Int32)
    /// The peer takes no stream above the last one.
    case goAway(last: Int32, HTTP2ErrorCode)
    /// The head of a request, or of a final response. `isEnd`: nothing follows, and ``end(_:)``
    /// comes next.
    case head(Int32, FieldBlock, isEnd: Bool)
    /// The head of an interim response.
    case interim(Int32, FieldBlock)
    /// A head that was no head, or a body that was not what its head said: the library has reset
    /// the stream before its head could be given. Server only.
    case malformed(Int32)
    /// A trailer section; ``end(_:)`` comes next.
    case trailers(Int32, FieldBlock)
}

/// Why a session has to end. Where the protocol allows, a GOAWAY that says so is queued.
package enum HTTP2Fault: Error, Equatable, Sendable {
    /// More decoded octets of fields in one section, or in a second, than anyone needs.
    case headerBudgetSpent
    /// More PING, SETTINGS, PRIORITY, WINDOW_UPDATE, empty and tiny DATA, and unknown frames.
    case controlBudgetSpent
    /// libnghttp2 gave up: its words.
    case library(String)
    /// The third section over the limits.
    case oversizedHeadsRepeated
    /// More resets, the peer's and ours for its faults.
    case resetBudgetSpent
    /// HEADERS for a stream that was passed over (RFC 9113 §5.1.1).
    case streamIDNotNew

    /// The fault in words, one clause.
    package var words: String {
        switch self {
        case .controlBudgetSpent: return "too many control frames"
        case .headerBudgetSpent: return "too many octets of fields"
        case .library(let words): return words
        case .oversizedHeadsRepeated: return "too many heads over the limits"
        case .resetBudgetSpent: return "too many resets"
        case .streamIDNotNew: return "a stream identifier that was passed over"
        }
    }

    /// What GOAWAY says.
    package var code: HTTP2ErrorCode {
        switch self {
        case .controlBudgetSpent, .headerBudgetSpent, .oversizedHeadsRepeated,
            .resetBudgetSpent:
            return .enhanceYourCalm
        case .library: return .internalError
        case .streamIDNotNew: return .protocolError
        }
    }
}

/// What a session announces and allows.
package struct HTTP2Limits: Sendable {
    /// Streams that the peer may have open at once.
    package var streamsMax: Int
    /// Limits of a head; its size is announced as SETTINGS_MAX_HEADER_LIST_SIZE.
    package var head: HeadLimits
    /// Octets of a body that the peer may send ahead of what is consumed.
    package var streamWindow: Int
    /// The same for all streams of the connection.
    package var connectionWindow: Int
    /// Resets; nil for no limit.
    package var resets: HTTP2Budget?
    /// Control frames; nil for no limit.
    package var control: HTTP2Budget?

    /// Limits with the defaults of `proxy.conf`, for a server.
    package init(
        streamsMax: Int = 100, head: HeadLimits = HeadLimits(),
        streamWindow: Int = 256 * 1024, connectionWindow: Int = 1024 * 1024,
        resets: HTTP2Budget? = HTTP2Budget(countMax: 200, window: 30_000_000_000),
        control: HTTP2Budget? = HTTP2Budget(countMax: 1000, window: 10_000_000_000)
    ) {
        self.streamsMax = streamsMax
        self.head = head
        self.streamWindow = streamWindow
        self.connectionWindow = connectionWindow
        self.resets = resets
        self.control = control
    }
}

/// How often something may happen: at most `countMax` times in a window, which begins with the
/// first of them. Moments are nanoseconds of any one clock that does not go back.
package struct HTTP2Budget: Equatable, Sendable {
    private let countMax: Int
    private let window: UInt64
    private var start: UInt64 = 0
    private var count = 0

    /// A budget of which nothing is spent; `window` in nanoseconds.
    package init(countMax: Int, window: UInt64) {
        self.countMax = countMax
        self.window = window
    }

    /// Spends `amount`, not negative; false once more than all of it is spent.
    package mutating func spend(_ amount: Int = 1, at now: UInt64) -> Bool {
        if count == 0 || now &- start >= window {
            start = now
            count = 0
        }
        let (sum, overflow) = count.addingReportingOverflow(amount)
        count = overflow ? Int.max : sum
        return count <= countMax
    }
}
