import GateBytes
import GateHTTP

/// What a stream that begins with `bytes` says, to be compared.
private func outcome(_ bytes: [UInt8], step: Int) -> String {
    var buffer = ByteBuffer()
    var at = 0
    while true {
        do {
            if let header = try ProxyHeaderDecoder.next(&buffer) {
                return "\(header), \(at - buffer.count) octets"
            }
        } catch {
            return "\(error)"
        }
        guard at < bytes.count else { return "incomplete" }
        let end = min(bytes.count, at + step)
        buffer.append(bytes, at..<end)
        at = end
    }
}

/// A PROXY header out of any bytes: never a trap, and the same one however the bytes are cut.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzPROXY(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let bytes = Array(UnsafeBufferPointer(start: data, count: count))
    guard let first = bytes.first else { return 0 }
    let whole = outcome(bytes, step: max(1, bytes.count))
    precondition(outcome(bytes, step: 1) == whole)
    precondition(outcome(bytes, step: 1 + Int(first) % 17) == whole)
    return 0
}
