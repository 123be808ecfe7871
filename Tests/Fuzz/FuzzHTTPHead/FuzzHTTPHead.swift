import GateBytes
import GateHTTP

/// What a decoder found, to be compared.
private func events(_ bytes: [UInt8], step: Int) -> [String] {
    var decoder = RequestDecoder(limits: HeadLimits(headerFields: 10, headerSize: 1024))
    var buffer = ByteBuffer()
    var found: [String] = []
    var body: [UInt8] = []
    var at = 0
    while true {
        do {
            switch try decoder.next(&buffer) {
            case .body(let range): body += buffer.storage[range]
            case .end:
                found.append("body \(body)")
                body = []
            case .head(let head):
                found.append("\(head.methodText) \(head.targetText) \(head.framing)")
            case .needMore:
                guard at < bytes.count else { return found }
                let end = min(bytes.count, at + step)
                buffer.append(bytes, at..<end)
                at = end
            }
            if decoder.isFinished { return found }
        } catch {
            return found + ["\(error)"]
        }
    }
}

/// Requests out of any bytes: never a trap, and the same requests and the same fault however the
/// bytes are cut.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzHTTPHead(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let bytes = Array(UnsafeBufferPointer(start: data, count: count))
    guard let first = bytes.first else { return 0 }
    let whole = events(bytes, step: max(1, bytes.count))
    precondition(events(bytes, step: 1) == whole)
    precondition(events(bytes, step: 1 + Int(first) % 17) == whole)
    return 0
}
