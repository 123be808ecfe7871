package import GateBytes
package import GateCrypto

/// An assertion taken apart: a CBOR map with nothing behind it, not yet believed.
///
/// ```
/// {"signature": bytes, "authenticatorData": bytes}
/// ```
/// Members may come in any order, none twice. Others are checked and skipped, as in an attestation.
///
/// A caller that has cheaper things to check between the steps goes through them: ``parse(_:)``
/// says that both members are byte strings, ``check(relyingPartyIDHash:previousCounter:)`` looks at
/// what needs no signature, and only ``CheckedAssertion/verify(clientDataHash:key:)`` makes a
/// proof.
package struct AssertionObject: Sendable {
    /// Real assertions take 140 to 258 bytes.
    static let bytesMax = 4096

    let bytes: [UInt8]
    let signature: Range<Int>
    let authenticatorData: Range<Int>

    /// The assertion that `bytes` are; says nothing of what its members hold.
    package static func parse(_ bytes: [UInt8]) throws(AssertionError) -> AssertionObject {
        guard bytes.count <= bytesMax else { throw .objectTooLarge(count: bytes.count) }
        var signature: Range<Int>?
        var authenticatorData: Range<Int>?
        do throws(CBORError) {
            var reader = CBORReader(bytes, 0..<bytes.count)
            var others = CBORKeys()
            for _ in 0..<(try reader.readMap()) {
                let name = try reader.readText()
                if bytes.equals(name, "signature") {
                    guard signature == nil else { throw .duplicateKey(offset: name.lowerBound) }
                    signature = try reader.readBytes()
                } else if bytes.equals(name, "authenticatorData") {
                    guard authenticatorData == nil else {
                        throw .duplicateKey(offset: name.lowerBound)
                    }
                    authenticatorData = try reader.readBytes()
                } else {
                    try others.insert(bytes, name)
                    try reader.skip(depth: 1)
                }
            }
            try reader.finish()
        } catch {
            throw .object(error)
        }
        guard let signature else { throw .memberMissing(.signature) }
        guard let authenticatorData else { throw .memberMissing(.authenticatorData) }
        return AssertionObject(
            bytes: bytes, signature: signature, authenticatorData: authenticatorData)
    }

    /// Checks what needs no signature: authenticator data of 37 bytes or more, the key's App ID,
    /// and a counter greater than the stored one (0 before a key's first assertion).
    package func check(
        relyingPartyIDHash: Bytes32, previousCounter: UInt32
    ) throws(AssertionError) -> CheckedAssertion {
        var log = StepLog<AssertionStep, AssertionError>.verdict
        return try check(
            &log, relyingPartyIDHash: relyingPartyIDHash, previousCounter: previousCounter)
    }

    /// The same, step by step.
    func check(
        _ log: inout StepLog<AssertionStep, AssertionError>, relyingPartyIDHash: Bytes32,
        previousCounter: UInt32
    ) throws(AssertionError) -> CheckedAssertion {
        let head = try log.require(.authenticatorData) { () throws(AssertionError) in
            guard let head = AuthenticatorDataHead(bytes, authenticatorData) else {
                throw .authenticatorDataTooShort(count: authenticatorData.count)
            }
            return head
        }
        try log.check(.relyingPartyID) { () throws(AssertionError) in
            guard head.relyingPartyIDHash == relyingPartyIDHash else {
                throw .relyingPartyIDMismatch
            }
        }
        try log.check(.counter) { () throws(AssertionError) in
            guard head.signCounter > previousCounter else {
                throw .counterNotGreater(stored: previousCounter, presented: head.signCounter)
            }
        }
        return CheckedAssertion(object: self, signCounter: head.signCounter)
    }
}

/// An assertion that is worth a signature check, and no more than that.
package struct CheckedAssertion: Sendable {
    private let object: AssertionObject
    /// The counter it presents: unsigned data until ``verify(clientDataHash:key:)`` has passed.
    package let signCounter: UInt32

    fileprivate init(object: AssertionObject, signCounter: UInt32) {
        self.object = object
        self.signCounter = signCounter
    }

    /// Checks the signature: ECDSA with SHA-256 over the message SHA-256(authenticator data ‖
    /// client data hash), so that the nonce is hashed once more by the signature algorithm.
    package func verify(
        clientDataHash: Bytes32, key: P256PublicKey
    ) throws(AssertionError) -> VerifiedAssertion {
        var hasher = SHA256Hasher()
        hasher.update(object.bytes, object.authenticatorData)
        hasher.update(clientDataHash)
        return try verify(nonce: hasher.finish(), key: key)
    }

    /// The same for a client data hash of any length, as a device takes one.
    package func verify(
        clientDataHash: [UInt8], key: P256PublicKey
    ) throws(AssertionError) -> VerifiedAssertion {
        var hasher = SHA256Hasher()
        hasher.update(object.bytes, object.authenticatorData)
        hasher.update(clientDataHash)
        return try verify(nonce: hasher.finish(), key: key)
    }

    private func verify(
        nonce: Bytes32, key: P256PublicKey
    ) throws(AssertionError) -> VerifiedAssertion {
        guard key.isValidSignature(object.bytes, object.signature, message: nonce) else {
            throw .signatureInvalid
        }
        let extensions =
            (object.authenticatorData.lowerBound
                + AuthenticatorDataHead.count)..<object.authenticatorData.upperBound
        return VerifiedAssertion(
            signCounter: signCounter, extensions: OSExtensions(object.bytes, extensions))
    }
}

/// The proof that a key signed one client data with a counter above the stored one. Made only where
/// the signature is checked, and used once.
public struct VerifiedAssertion: ~Copyable, Sendable {
    /// The counter to store, in one step with the spent challenge.
    public let signCounter: UInt32
    /// The signed extensions of OS 27.
    public let extensions: OSExtensions

    fileprivate init(signCounter: UInt32, extensions: OSExtensions) {
        self.signCounter = signCounter
        self.extensions = extensions
    }
}

/// The steps of an assertion's verification, in their order.
public enum AssertionStep: String, CaseIterable, Sendable {
    /// The object is the strict CBOR it should be.
    case object
    /// The authenticator data can be read.
    case authenticatorData = "authenticator_data"
    /// The relying party ID hash is that of the key's App ID.
    case relyingPartyID = "rp_id"
    /// The counter is greater than the stored one.
    case counter
    /// The signature is the key's.
    case signature
}
