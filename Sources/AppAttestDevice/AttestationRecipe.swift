internal import GateBytes
package import GateCrypto

/// An attestation object before it is put together. Tests change one thing and encode.
package struct AttestationRecipe: Sendable {
    /// `fmt`.
    package var format: String
    /// The authenticator data.
    package var authenticatorData: [UInt8]
    /// The leaf before its signature, nonce included.
    package var leaf: CertificateRecipe
    /// The key that signs the leaf.
    package var issuerKey: ECPrivateKey
    /// The certificates behind the leaf.
    package var issuers: [[UInt8]]
    /// The unsigned member between `fmt` and `attStmt`, where there is one.
    package var codeDirectory: CBORValue?
    /// The receipt; nil lets ``encoded(receipt:)`` ask for one.
    package var receipt: [UInt8]?

    /// Puts the nonce of the authenticator data and `clientDataHash` into the leaf, in place of
    /// what is there.
    package mutating func bind(_ clientDataHash: [UInt8]) {
        let nonce = SHA256.hash(authenticatorData + clientDataHash)
        setNonce(DER.sequence(DER.tagged(1, DER.octetString(nonce.array))))
    }

    /// Sets the value of the leaf's nonce extension; nil takes the extension out.
    package mutating func setNonce(_ value: [UInt8]?) {
        let oid = DER.oid(1, 2, 840, 113635, 100, 8, 2)
        let index = leaf.extensions.firstIndex { $0.oid == oid } ?? leaf.extensions.count
        leaf.extensions.removeAll { $0.oid == oid }
        if let value {
            leaf.extensions.insert(.apple(8, 2, value), at: index)
        }
    }

    /// The object; `receipt` makes one for the signed leaf where the recipe has none.
    package func encoded(receipt makeReceipt: (_ leaf: [UInt8]) -> [UInt8]) -> [UInt8] {
        let signed = leaf.signed(by: issuerKey)
        let certificates = [signed] + issuers
        var members: [(key: CBORValue, value: CBORValue)] = [(.text("fmt"), .text(format))]
        if let codeDirectory { members.append((.text("cdHash"), codeDirectory)) }
        members.append(
            (
                .text("attStmt"),
                .map([
                    (.text("x5c"), .array(certificates.map { .bytes($0) })),
                    (.text("receipt"), .bytes(receipt ?? makeReceipt(signed))),
                ])
            ))
        members.append((.text("authData"), .bytes(authenticatorData)))
        return CBORValue.map(members).encoded
    }
}
