import GateBytes
import GateHTTP
import Testing

/// What a decoder made of a stream, in a form that tests compare: body parts joined, heads as text.
struct Trace: Equatable {
    struct Message: Equatable {
        var head: String
        var body: [UInt8] = []
        var isComplete = false
    }

    var messages: [Message] = []
    var error: MessageError?
    /// Bytes given before the error.
    var bytesAtError: Int?
    /// Bytes left in the buffer.
    var left: [UInt8] = []

    /// The only message's head.
    var head: String? { messages.count == 1 ? messages[0].head : nil }

    /// Whether every message has ended.
    var areComplete: Bool { messages.allSatisfy { $0.isComplete } }

    var bodies: [String] { messages.map { String(decoding: $0.body, as: UTF8.self) } }
}

/// Runs a request decoder over `pieces`, one append each.
func decodeRequests(_ pieces: [[UInt8]], limits: HeadLimits = HeadLimits()) -> Trace {
    var decoder = RequestDecoder(limits: limits)
    var buffer = ByteBuffer()
    var trace = Trace()
    var given = 0
    for piece in pieces {
        buffer.append(piece)
        given += piece.count
        do {
            try drain(&decoder, &buffer, &trace)
        } catch {
            trace.error = error
            trace.bytesAtError = given
            return trace
        }
    }
    trace.left = Array(buffer.storage[buffer.readable])
    return trace
}

func decodeRequests(_ text: String, limits: HeadLimits = HeadLimits()) -> Trace {
    decodeRequests([latin1(text)], limits: limits)
}

private func drain(
    _ decoder: inout RequestDecoder, _ buffer: inout ByteBuffer, _ trace: inout Trace
) throws(MessageError) {
    while true {
        switch try decoder.next(&buffer) {
        case .needMore: return
        case .head(let head): trace.messages.append(.init(head: describe(head)))
        case .body(let range):
            trace.messages[trace.messages.count - 1].body += buffer.storage[range]
        case .end: trace.messages[trace.messages.count - 1].isComplete = true
        }
    }
}

/// Runs a response decoder over `pieces`; `isClosed`: the connection ends behind them.
func decodeResponse(
    _ pieces: [[UInt8]], isHead: Bool = false, isClosed: Bool = false, expectsUpgrade: Bool = false,
    limits: HeadLimits = HeadLimits()
) -> Trace {
    var decoder = ResponseDecoder(
        requestMethodIsHead: isHead, limits: limits, expectsUpgrade: expectsUpgrade)
    var buffer = ByteBuffer()
    var trace = Trace()
    var given = 0
    do throws(MessageError) {
        for piece in pieces {
            buffer.append(piece)
            given += piece.count
            try drain(&decoder, &buffer, &trace)
        }
        if isClosed, try decoder.close(), let last = trace.messages.indices.last {
            trace.messages[last].isComplete = true
        }
    } catch {
        trace.error = error
        trace.bytesAtError = given
        return trace
    }
    trace.left = Array(buffer.storage[buffer.readable])
    return trace
}

func decodeResponse(
    _ text: String, isHead: Bool = false, isClosed: Bool = false, expectsUpgrade: Bool = false,
    limits: HeadLimits = HeadLimits()
) -> Trace {
    decodeResponse(
        [latin1(text)], isHead: isHead, isClosed: isClosed, expectsUpgrade: expectsUpgrade,
        limits: limits)
}

private func drain(
    _ decoder: inout ResponseDecoder, _ buffer: inout ByteBuffer, _ trace: inout Trace
) throws(MessageError) {
    while true {
        switch try decoder.next(&buffer) {
        case .needMore: return
        case .head(let head), .interim(let head):
            trace.messages.append(.init(head: describe(head)))
        case .body(let range):
            trace.messages[trace.messages.count - 1].body += buffer.storage[range]
        case .end:
            trace.messages[trace.messages.count - 1].isComplete = true
            return
        }
    }
}

/// All that a request head says, on one line.
func describe(_ head: RequestHead) -> String {
    let fields = head.fields.map { "\(head.text($0.name))=\(head.text($0.value))" }
    return [
        head.methodText, head.text(head.pathAndQuery), head.text(head.path),
        head.query.map(head.text) ?? "-", "\(head.form)", head.text(head.authority), head.hostName,
        "\(head.version)", "\(head.framing)", head.isPersistent ? "keep" : "close",
        head.expectsContinue ? "100" : "", head.wantsUpgrade ? "upgrade" : "",
        fields.joined(separator: "&"),
    ].joined(separator: "|")
}

/// All that a response head says, on one line.
func describe(_ head: ResponseHead) -> String {
    let fields = head.fields.map { "\(head.text($0.name))=\(head.text($0.value))" }
    return [
        "\(head.status)", head.text(head.reason), "\(head.version)", "\(head.framing)",
        head.isPersistent ? "keep" : "close", head.contentLength.map(String.init) ?? "-",
        fields.joined(separator: "&"),
    ].joined(separator: "|")
}

/// The bytes of `text`, one for each of its scalars, which are below U+0100.
func latin1(_ text: String) -> [UInt8] {
    text.unicodeScalars.map { UInt8($0.value) }
}

/// `text` one byte at a time.
func bytewise(_ text: String) -> [[UInt8]] {
    latin1(text).map { [$0] }
}

/// A request without a body: first line, `Host: h`, then `lines`.
func request(_ firstLine: String, _ lines: String..., body: String = "") -> String {
    ([firstLine, "Host: h"] + lines + ["", body]).joined(separator: "\r\n")
}

/// The head of the one request in `text`.
func head(_ text: String, limits: HeadLimits = HeadLimits()) throws -> RequestHead {
    try #require(try RequestHead.parse(latin1(text), limits: limits))
}

/// The error of `text`, which must come with its very last byte: none without it.
func errorAtLastByte(_ text: String, limits: HeadLimits = HeadLimits()) -> MessageError? {
    let trace = decodeRequests(bytewise(text), limits: limits)
    guard trace.bytesAtError == text.unicodeScalars.count else { return nil }
    return trace.error
}
