package import GateBytes

/// A signing key on either curve: the simulated device's authorities.
package struct ECPrivateKey: Sendable {
    private let key: ECKey

    private init(_ key: ECKey) {
        self.key = key
    }

    /// A new random key.
    package static func generate(_ curve: ECCurve) -> ECPrivateKey {
        ECPrivateKey(ECKey.generate(curve))
    }

    /// The key whose two halves an earlier run exported; nil when they are no pair of this curve.
    package init?(_ curve: ECCurve, point: [UInt8], scalar: [UInt8]) {
        guard let key = ECKey.privateKey(curve, point: point, scalar: scalar) else { return nil }
        self.key = key
    }

    /// The curve.
    package var curve: ECCurve { key.curve }

    /// The uncompressed public point, `04 ‖ x ‖ y`.
    package var point: [UInt8] { key.point }

    /// The private scalar, big endian, of the curve's size.
    package var scalar: [UInt8] {
        guard let scalar = key.scalar else { preconditionFailure("a private key has a scalar") }
        return scalar
    }

    /// A DER signature over `message`, hashed with `digest`.
    package func sign(_ message: [UInt8], digest: ECDigest) -> [UInt8] {
        key.sign(message, digest: digest)
    }
}

/// A P-256 signing key: what a device keeps in its Secure Enclave, here in memory.
package struct P256PrivateKey: Sendable {
    private let key: ECPrivateKey
    /// The public point.
    package let point: P256Point

    /// A new random key.
    package init() {
        let key = ECPrivateKey.generate(.p256)
        guard let point = P256Point(x963: key.point) else {
            preconditionFailure("a P-256 key has a P-256 point")
        }
        self.key = key
        self.point = point
    }

    /// The key whose two halves an earlier run exported; nil when they are no pair.
    package init?(point: P256Point, scalar: [UInt8]) {
        guard let key = ECPrivateKey(.p256, point: point.x963, scalar: scalar) else { return nil }
        self.key = key
        self.point = point
    }

    /// The private scalar, 32 bytes, big endian.
    package var scalar: [UInt8] { key.scalar }

    /// A DER signature, ECDSA with SHA-256, over `message`.
    package func sign(_ message: [UInt8]) -> [UInt8] {
        key.sign(message, digest: .sha256)
    }
}
