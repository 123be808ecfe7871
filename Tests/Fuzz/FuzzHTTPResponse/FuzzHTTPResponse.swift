import GateBytes
import GateHTTP

/// What a decoder found, to be compared.
private func events(_ bytes: [UInt8], step: Int, isHead: Bool, expectsUpgrade: Bool) -> [String] {
    var decoder = ResponseDecoder(
        requestMethodIsHead: isHead, limits: HeadLimits(headerFields: 10, headerSize: 1024),
        expectsUpgrade: expectsUpgrade)
    var buffer = ByteBuffer()
    var found: [String] = []
    var body: [UInt8] = []
    var at = 0
    while true {
        do throws(MessageError) {
            switch try decoder.next(&buffer) {
            case .body(let range): body += buffer.storage[range]
            case .interim(let head): found.append("interim \(head.status)")
            case .head(let head):
                found.append("\(head.status) \(head.framing) \(head.fields.count)")
            case .end:
                return found + ["end \(body) and \(buffer.count + bytes.count - at) more"]
            case .needMore:
                guard at < bytes.count else {
                    return found + ["\(body), closed: \(try decoder.close())"]
                }
                let end = min(bytes.count, at + step)
                buffer.append(bytes, at..<end)
                at = end
            }
        } catch {
            return found + ["\(error)"]
        }
    }
}

/// Responses out of any bytes: never a trap, and the same answer and the same fault however the
/// bytes are cut; no answer to HEAD has a body.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzHTTPResponse(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let input = Array(UnsafeBufferPointer(start: data, count: count))
    guard let first = input.first else { return 0 }
    let bytes = Array(input[1...])
    let isHead = first & 1 != 0
    let expectsUpgrade = first & 2 != 0
    func read(_ step: Int) -> [String] {
        events(bytes, step: step, isHead: isHead, expectsUpgrade: expectsUpgrade)
    }
    let whole = read(max(1, bytes.count))
    precondition(read(1) == whole)
    precondition(read(1 + Int(first >> 2) % 17) == whole)
    if isHead { precondition(!whole.contains { $0.hasPrefix("end [") && !$0.hasPrefix("end []") }) }
    return 0
}
