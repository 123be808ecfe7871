import GateBytes
import GateHTTP

/// What is read of a body: its octets, and how it ended.
private struct Outcome: Equatable {
    var body: [UInt8] = []
    var end = ""
    /// Octets behind the end, left alone.
    var rest = 0
}

/// Gives `bytes` in pieces of `steps`, over and over; `next` takes what comes.
private func feed(
    _ bytes: [UInt8], _ steps: [Int],
    _ next: (inout ByteBuffer, inout Outcome) throws(MessageError) -> Bool
) -> Outcome {
    var outcome = Outcome()
    var buffer = ByteBuffer()
    var at = 0
    var count = 0
    while true {
        do throws(MessageError) {
            if try next(&buffer, &outcome) { continue }
        } catch {
            outcome.end = "\(error)"
            return outcome
        }
        if !outcome.end.isEmpty || at == bytes.count {
            outcome.rest = buffer.count + bytes.count - at
            return outcome
        }
        let end = min(bytes.count, at + steps[count % steps.count])
        buffer.append(bytes, at..<end)
        at = end
        count += 1
    }
}

private let limits = HeadLimits(headerFields: 10, headerSize: 1024)

private func request(_ body: [UInt8], _ steps: [Int]) -> Outcome {
    var decoder = RequestDecoder(limits: limits)
    let head = Array("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n".utf8)
    return feed(head + body, steps) { (buffer, outcome) throws(MessageError) in
        switch try decoder.next(&buffer) {
        case .head: return true
        case .body(let range):
            outcome.body += buffer.storage[range]
            return true
        case .end:
            outcome.end = "end"
            return false
        case .needMore: return false
        }
    }
}

private func response(_ body: [UInt8], _ steps: [Int]) -> Outcome {
    var decoder = ResponseDecoder(requestMethodIsHead: false, limits: limits)
    let head = Array("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".utf8)
    return feed(head + body, steps) { (buffer, outcome) throws(MessageError) in
        switch try decoder.next(&buffer) {
        case .head, .interim: return true
        case .body(let range):
            outcome.body += buffer.storage[range]
            return true
        case .end:
            outcome.end = "end"
            return false
        case .needMore: return false
        }
    }
}

/// Chunked bodies out of any bytes, by both decoders: never a trap; the same octets and the same
/// end however the bytes are cut; what is whole and is written again reads the same.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzHTTPBody(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let input = Array(UnsafeBufferPointer(start: data, count: count))
    guard input.count > 4 else { return 0 }
    // The first octets are where to cut.
    let steps = input[..<4].map { 1 + Int($0) % 61 }
    let body = Array(input[4...])
    let whole = request(body, [Int.max / 2])
    precondition(request(body, [1]) == whole && request(body, steps) == whole)
    let other = response(body, [Int.max / 2])
    precondition(response(body, [1]) == other && response(body, steps) == other)
    precondition(whole.body == other.body && (whole.end == "end") == (other.end == "end"))
    guard whole.end == "end" else { return 0 }
    precondition(whole.rest == other.rest)
    var written: [UInt8] = []
    if !whole.body.isEmpty { ChunkedWriter.append(whole.body, 0..<whole.body.count, to: &written) }
    ChunkedWriter.appendLast(to: &written)
    let again = request(written, steps)
    precondition(again.body == whole.body && again.end == "end" && again.rest == 0)
    return 0
}
