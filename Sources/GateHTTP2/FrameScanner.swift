// The frame headers of what the peer sends, read beside libnghttp2, which tells nothing of frames
// that it drops (RFC 9113 §4.1):
//
//   length (24)  type (8)  flags (8)  R (1) stream identifier (31)  payload (length)
//
// A client's stream begins with the 24 octets of the preface (§3.4). The scanner counts what is
// cheap to send and dear to take (threats T22, T24), and sees identifiers that go back (§5.1.1).

/// Frame headers out of a stream of octets, and what they cost.
struct FrameScanner: Sendable {
    /// What a frame counts as.
    enum Cost: Sendable {
        case control
        case nothing
        case reset
    }

    private enum State: Sendable {
        /// So many octets to skip: the preface, or a payload.
        case skipping(Int)
        /// Inside a frame's header.
        case header
    }

    private var state: State
    private var header: [UInt8] = []
    /// Whether a header section has begun and not ended: from the frame header of its HEADERS to
    /// the last octet of the frame that has END_HEADERS.
    private(set) var isInHeaders = false
    /// How many header sections have begun.
    private(set) var sections = 0
    /// Whether a frame has come.
    private(set) var isEstablished = false
    private var isLastOfHeaders = false
    /// SETTINGS acknowledgements that are owed to us, with one to spare.
    private var acknowledgementsDue = 2
    private var isSettingsDue = true
    /// WINDOW_UPDATE frames that what was sent gives reason for.
    private var updatesDue = FrameScanner.updatesAtStart
    private let isServer: Bool
    private var lastStreamID: UInt32 = 0
    /// Identifiers that were passed over.
    private var gaps: [ClosedRange<UInt32>] = []

    /// Of a stream's identifiers passed over, so many runs are remembered; the oldest goes first.
    private static let gapsMax = 16
    /// Clients open their windows wide at the start, some in steps.
    private static let updatesAtStart = 16
    private static let updatesMax = 4096
    private static let prefaceBytes = 24
    /// Octets of a frame's header.
    static let headerBytes = 9
    /// A shorter DATA frame that is not the last counts.
    static let dataBytesMin = 16

    init(isServer: Bool) {
        self.isServer = isServer
        state = isServer ? .skipping(FrameScanner.prefaceBytes) : .header
    }

    /// A frame header that was found.
    struct Found: Sendable {
        /// Where the octet behind the header stands.
        let index: Int
        let cost: Cost
        /// Whether it opens a stream that was passed over.
        let isStreamIDPast: Bool
    }

    /// Goes on from `index` up to `end`, or to the end of the next frame header.
    mutating func next(_ bytes: [UInt8], _ index: inout Int, _ end: Int) -> Found? {
        while index < end {
            switch state {
            case .skipping(let left):
                let count = min(left, end - index)
                index += count
                if count == left { endFrame() } else { state = .skipping(left - count) }
            case .header:
                header.append(bytes[index])
                index += 1
                guard header.count == FrameScanner.headerBytes else { continue }
                return take(endingAt: index)
            }
        }
        return nil
    }

    /// Notes that a frame went out whose octets the peer will make room for again.
    mutating func noteDataSent() {
        updatesDue = min(updatesDue + 2, FrameScanner.updatesMax)
    }

    private mutating func endFrame() {
        state = .header
        if isLastOfHeaders {
            isInHeaders = false
            isLastOfHeaders = false
        }
    }

    private mutating func take(endingAt index: Int) -> Found {
        let length = Int(header[0]) << 16 | Int(header[1]) << 8 | Int(header[2])
        let type = header[3]
        let flags = header[4]
        let streamID =
            (UInt32(header[5]) << 24 | UInt32(header[6]) << 16 | UInt32(header[7]) << 8
                | UInt32(header[8])) & 0x7fff_ffff
        header.removeAll(keepingCapacity: true)
        isEstablished = true
        var isPast = false
        if type == FrameType.headers {
            isInHeaders = true
            sections &+= 1
            isPast = isServer && noteStream(streamID)
        }
        if type == FrameType.headers || type == FrameType.continuation, flags & 0x4 != 0 {
            isLastOfHeaders = true
        }
        let cost = cost(type, flags, length)
        state = .skipping(length)
        if length == 0 { endFrame() }
        return Found(index: index, cost: cost, isStreamIDPast: isPast)
    }

    private mutating func cost(_ type: UInt8, _ flags: UInt8, _ length: Int) -> Cost {
        switch type {
        case FrameType.headers, FrameType.continuation, FrameType.goAway:
            return .nothing
        case FrameType.data:
            let isLast = flags & 0x1 != 0
            return length < FrameScanner.dataBytesMin && !isLast ? .control : .nothing
        case FrameType.resetStream:
            return .reset
        case FrameType.settings where flags & 0x1 != 0 && acknowledgementsDue > 0:
            acknowledgementsDue -= 1
            return .nothing
        case FrameType.settings where flags & 0x1 == 0 && isSettingsDue:
            isSettingsDue = false
            return .nothing
        case FrameType.windowUpdate where updatesDue > 0:
            updatesDue -= 1
            return .nothing
        default:
            // PING, SETTINGS, PRIORITY, PRIORITY_UPDATE, PUSH_PROMISE and what no one knows.
            return .control
        }
    }

    /// Whether `streamID` was passed over by a later one. An identifier that was used before is not
    /// judged here: its stream may still be open, or a reset of ours be on its way.
    private mutating func noteStream(_ streamID: UInt32) -> Bool {
        guard streamID > lastStreamID else { return gaps.contains { $0.contains(streamID) } }
        updatesDue = min(updatesDue + 2, FrameScanner.updatesMax)
        let next = lastStreamID == 0 ? 1 : lastStreamID + 2
        if streamID > next {
            if gaps.count == FrameScanner.gapsMax { gaps.removeFirst() }
            gaps.append(next...(streamID - 1))
        }
        lastStreamID = streamID
        return false
    }
}

/// Types of frames (RFC 9113 §6).
enum FrameType {
    static let data: UInt8 = 0x0
    static let headers: UInt8 = 0x1
    static let resetStream: UInt8 = 0x3
    static let settings: UInt8 = 0x4
    static let goAway: UInt8 = 0x7
    static let windowUpdate: UInt8 = 0x8
    static let continuation: UInt8 = 0x9
}
