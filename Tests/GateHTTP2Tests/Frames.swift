import GateBytes
import GateHTTP
import GateHTTP2

/// Frames made by hand (RFC 9113 §4.1), and what a session sends taken apart.
enum Frames {
    static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + frame(4)

    static func frame(
        _ type: UInt8, flags: UInt8 = 0, stream: Int = 0, _ payload: [UInt8] = []
    ) -> [UInt8] {
        let length = payload.count
        return [UInt8(length >> 16), UInt8(length >> 8 & 255), UInt8(length & 255), type, flags]
            + word(stream) + payload
    }

    static func word(_ value: Int) -> [UInt8] {
        [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: value >> $0) }
    }

    /// A header block of literals without indexing (RFC 7541 §6.2.2).
    static func block(_ fields: [(String, String)]) -> [UInt8] {
        fields.flatMap { name, value in
            [0] + string(name) + string(value)
        }
    }

    private static func string(_ text: String) -> [UInt8] {
        let octets = Array(text.utf8)
        guard octets.count >= 127 else { return [UInt8(octets.count)] + octets }
        var left = octets.count - 127
        var length: [UInt8] = [127]
        while left >= 128 {
            length.append(UInt8(left & 127) | 128)
            left >>= 7
        }
        return length + [UInt8(left)] + octets
    }

    static func request(
        _ stream: Int, method: String = "GET", path: String = "/", isEnd: Bool = true,
        isWhole: Bool = true, _ more: [(String, String)] = []
    ) -> [UInt8] {
        let fields = [
            (":method", method), (":scheme", "http"), (":authority", "a.test"), (":path", path),
        ]
        let flags: UInt8 = (isEnd ? 1 : 0) | (isWhole ? 4 : 0)
        return frame(1, flags: flags, stream: stream, block(fields + more))
    }

    static func data(_ stream: Int, _ payload: [UInt8], isEnd: Bool = false) -> [UInt8] {
        frame(0, flags: isEnd ? 1 : 0, stream: stream, payload)
    }

    static func reset(_ stream: Int, _ code: Int = 8) -> [UInt8] {
        frame(3, stream: stream, word(code))
    }

    static func windowUpdate(_ stream: Int, _ size: Int) -> [UInt8] {
        frame(8, stream: stream, word(size))
    }
}

/// One frame of a session's output.
struct SentFrame: Equatable {
    let type: UInt8
    let flags: UInt8
    let stream: Int
    let payload: [UInt8]

    var isEnd: Bool { flags & 1 != 0 }

    /// The error code of RST_STREAM or GOAWAY.
    var code: Int? {
        switch type {
        case 3: return Frames.number(payload[0..<4])
        case 7: return Frames.number(payload[4..<8])
        default: return nil
        }
    }
}

extension Frames {
    static func number(_ octets: ArraySlice<UInt8>) -> Int {
        octets.reduce(0) { $0 << 8 | Int($1) }
    }

    static func parse(_ octets: [UInt8]) -> [SentFrame] {
        var frames: [SentFrame] = []
        var start = 0
        while start + 9 <= octets.count {
            let end = start + 9 + number(octets[start..<(start + 3)])
            frames.append(
                SentFrame(
                    type: octets[start + 3], flags: octets[start + 4],
                    stream: number(octets[(start + 5)..<(start + 9)]),
                    payload: Array(octets[(start + 9)..<end])))
            start = end
        }
        return frames
    }
}

/// A session that is driven by hand.
final class Side {
    let session: HTTP2Session
    var now: UInt64 = 0

    init(_ role: HTTP2Session.Role, limits: HTTP2Limits = HTTP2Limits()) {
        session = HTTP2Session(role, limits: limits)
    }

    /// What a session that is given `octets` says, body octets as text.
    @discardableResult
    func receive(_ octets: [UInt8]) -> [String] {
        var said: [String] = []
        var start = 0
        repeat {
            let taken = session.receive(octets, start..<octets.count, now: now)
            said += session.takeEvents().map { text($0, octets) }
            start += taken
        } while start < octets.count || session.needsTurn
        return said
    }

    func events() -> [String] { session.takeEvents().map { text($0, []) } }

    /// All that the session has to send.
    func send() -> [UInt8] {
        var octets: [UInt8] = []
        repeat {
            session.produce(now: now)
            octets += session.output.storage[session.output.readable]
            let count = session.output.count
            session.output.consume(count)
            if count == 0 { break }
        } while true
        return octets
    }

    func frames() -> [SentFrame] { Frames.parse(send()) }

    private func text(_ event: HTTP2Event, _ octets: [UInt8]) -> String {
        func lines(_ block: FieldBlock) -> String {
            if let fault = block.fault { return "\(fault)" }
            return block.lines.map { "\(block.text($0.name))=\(block.text($0.value))" }
                .joined(separator: " ")
        }
        switch event {
        case .data(let id, let range):
            return "data \(id) \(String(decoding: octets[range], as: UTF8.self))"
        case .closed(let id, let code): return "closed \(id) \(code)"
        case .end(let id): return "end \(id)"
        case .goAway(let last, let code): return "goaway \(last) \(code)"
        case .head(let id, let block, let isEnd):
            return "head \(id) \(lines(block))\(isEnd ? " end" : "")"
        case .malformed(let id): return "malformed \(id)"
        case .interim(let id, let block): return "interim \(id) \(lines(block))"
        case .trailers(let id, let block): return "trailers \(id) \(lines(block))"
        }
    }
}

/// A section from parts.
func block(status: Int, _ fields: [(String, String)] = []) throws -> FieldBlock {
    var writer = FieldBlockWriter(status: status)
    for (name, value) in fields { writer.field(Array(name.utf8), Array(value.utf8)) }
    return try writer.finish()
}

func trailers(_ fields: [(String, String)]) throws -> FieldBlock {
    var writer = FieldBlockWriter()
    for (name, value) in fields { writer.field(Array(name.utf8), Array(value.utf8)) }
    return try writer.finish()
}

func request(_ method: String = "GET", _ path: String = "/") throws -> FieldBlock {
    let source = Array((method + path + "a.test").utf8)
    let middle = method.utf8.count
    let end = middle + path.utf8.count
    var writer = FieldBlockWriter(
        source, method: 0..<middle, scheme: "http", authority: end..<source.count,
        path: middle..<end)
    return try writer.finish()
}

extension HTTP2Session {
    func send(_ text: String, on stream: Int32) {
        let octets = Array(text.utf8)
        send(octets, 0..<octets.count, on: stream)
    }
}
