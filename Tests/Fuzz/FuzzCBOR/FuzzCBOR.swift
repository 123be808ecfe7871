import AppAttest
import GateBytes

/// Attestation objects and assertions out of any bytes: never a trap, and no attestation is
/// verified, since nobody but Apple can make one.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzCBOR(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let bytes = Array(UnsafeBufferPointer(start: data, count: count))
    if let object = try? AssertionObject.parse(bytes) {
        _ = try? object.check(relyingPartyIDHash: Bytes32(), previousCounter: 0)
    }
    let verified = try? Attestation.verify(
        object: bytes, clientDataHash: [1, 2, 3], keyID: KeyID(Bytes32()), appIDs: ["A.b"],
        environment: .production, at: 1_700_000_000)
    precondition(verified == nil)
    return 0
}
