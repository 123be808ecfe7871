/// The public key of a certificate authority: verifies certificates' signatures.
package struct ECPublicKey: Sendable {
    private let key: ECKey

    /// The key of the uncompressed `point` (`04 ‖ x ‖ y`); nil unless it is of the curve's size and
    /// on it.
    package init?(_ curve: ECCurve, point: [UInt8]) {
        guard let key = ECKey.publicKey(curve, point: point) else { return nil }
        self.key = key
    }

    /// The curve.
    package var curve: ECCurve { key.curve }

    /// Whether `signature[signatureRange]`, in DER, is this key's over `message[messageRange]`.
    package func isValidSignature(
        _ signature: [UInt8], _ signatureRange: Range<Int>,
        message: [UInt8], _ messageRange: Range<Int>, digest: ECDigest
    ) -> Bool {
        key.isValidSignature(
            signature, signatureRange, message: message, messageRange, digest: digest)
    }
}
