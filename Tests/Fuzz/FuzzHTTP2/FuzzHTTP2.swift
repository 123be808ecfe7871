import GateBytes
import GateHTTP
import GateHTTP2

/// A session that is given `bytes` in pieces.
private func run(
    _ role: HTTP2Session.Role, _ bytes: [UInt8], step: Int, isProducing: Bool
) {
    let session = HTTP2Session(
        role, limits: HTTP2Limits(streamsMax: 8, head: HeadLimits(headerFields: 20)))
    if role == .client {
        for _ in 0..<3 { _ = session.request(requestHead, isEnd: true) }
    }
    var at = 0
    while at < bytes.count {
        let end = min(bytes.count, at + step)
        let taken = session.receive(bytes, at..<end, now: 1)
        precondition((0...(end - at)).contains(taken))
        let isStuck = taken == 0 && !session.needsTurn && session.fault == nil
        for event in session.takeEvents() {
            guard case .data(let stream, let range) = event else { continue }
            precondition(at <= range.lowerBound && range.upperBound <= end)
            session.consume(range.count, of: stream)
        }
        if isProducing {
            session.produce(now: 1)
            precondition(session.output.count <= HTTP2Session.outputBytesMax + (1 << 14) + 64)
            session.output.removeAll()
        }
        guard !isStuck else { break }
        at += taken
    }
    session.produce(now: 1)
}

private let requestHead: FieldBlock = {
    let parts = Array("GET a /".utf8)
    var writer = FieldBlockWriter(
        parts, method: 0..<3, scheme: "http", authority: 4..<5, path: 6..<7)
    guard let block = try? writer.finish() else { preconditionFailure("a head that is none") }
    return block
}()

/// HTTP/2 out of any frames, either side, however they are cut: never a trap, what is taken and
/// found lies within what was given, and the output stays bounded.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzHTTP2(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let input = Array(UnsafeBufferPointer(start: data, count: count))
    guard let first = input.first else { return 0 }
    let isServer = first & 1 == 0
    // The preface is given, so that what is tried is frames.
    let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)
    let settings: [UInt8] = [0, 0, 0, 4, 0, 0, 0, 0, 0]
    let bytes = (isServer ? preface + settings : []) + input[1...]
    let role: HTTP2Session.Role = isServer ? .server : .client
    run(role, bytes, step: max(1, bytes.count), isProducing: false)
    run(role, bytes, step: 1, isProducing: false)
    run(role, bytes, step: 1 + Int(first >> 1), isProducing: true)
    return 0
}
