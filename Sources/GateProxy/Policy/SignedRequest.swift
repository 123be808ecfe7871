package import AppAttestWire
package import GateBytes
package import GateHTTP

/// The checks of what client data says about its request, in the order of `protocol.md` §4.
package enum SignedRequest {
    /// Why `clientData` is not of this request: its method, then its target, both byte for byte as
    /// sent; nil when both agree. The target of an absolute-form request is its path and query.
    package static func mismatch(_ clientData: ClientData, _ head: RequestHead) -> Reason? {
        guard equal(clientData.method, head.bytes, head.method) else { return .methodMismatch }
        guard equal(clientData.path, head.bytes, head.pathAndQuery) else { return .targetMismatch }
        return nil
    }

    /// The signed `operationID`, which goes upstream as `Idempotency-Key`; nil without one. Throws
    /// when it is there and is not 1 to 128 visible ASCII characters: to be asked after the
    /// signature.
    package static func operationID(_ clientData: ClientData) throws(Refusal) -> [UInt8]? {
        switch clientData.operationID {
        case .none: return nil
        case .some(nil): throw Refusal(.clientDataMalformed, at: .checks)
        case .some(let text): return text
        }
    }

    /// The signed `contentType`, which goes up with the body of an envelope; JSON without one.
    /// Throws when it is there and no value that a field can have: to be asked after the signature.
    package static func contentType(_ clientData: ClientData) throws(Refusal) -> [UInt8] {
        switch clientData.contentType {
        case .none: return Array("application/json".utf8)
        case .some(nil): throw Refusal(.clientDataMalformed, at: .checks)
        case .some(let text?): return text
        }
    }

    /// Whether `hash`, of the body as received, is the one that was signed. A signed value of
    /// another length is no hash of any body.
    package static func isBody(_ hash: Bytes32, of clientData: ClientData) -> Bool {
        Bytes32(clientData.bodySHA256) == hash
    }

    private static func equal(_ text: [UInt8], _ bytes: [UInt8], _ range: Range<Int>) -> Bool {
        text.elementsEqual(bytes[range])
    }
}
