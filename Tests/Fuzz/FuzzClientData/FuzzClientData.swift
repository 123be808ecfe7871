import AppAttestWire
import GateBytes

/// Client data out of any bytes: never a trap; and what was parsed, written and parsed again is the
/// same.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzClientData(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let bytes = Array(UnsafeBufferPointer(start: data, count: count))
    guard let parsed = try? ClientData.parse(bytes) else { return 0 }
    guard let challenge = Bytes32(parsed.challenge), let digest = Bytes32(parsed.bodySHA256) else {
        return 0
    }
    // A device signs what a request can carry: visible ASCII. The writer escapes all else bytewise.
    let texts = [parsed.challengeID, parsed.method, parsed.path]
    guard texts.allSatisfy({ $0.allSatisfy { (0x20...0x7e).contains($0) } }) else { return 0 }
    let written = ClientData.encode(
        challengeID: parsed.challengeID, challenge: challenge, method: parsed.method,
        path: parsed.path, bodySHA256: digest)
    guard let again = try? ClientData.parse(written) else {
        preconditionFailure("not parsed again")
    }
    precondition(again.method == parsed.method && again.path == parsed.path)
    precondition(again.challengeID == parsed.challengeID && again.challenge == parsed.challenge)
    return 0
}
