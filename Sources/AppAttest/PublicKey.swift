internal import GateBytes
package import GateCrypto

/// An attested public key, ready to verify assertions.
public struct PublicKey: Sendable {
    /// The key as the crypto module has it.
    package let key: P256PublicKey

    /// Wraps a key.
    package init(_ key: P256PublicKey) {
        self.key = key
    }

    /// The key of an uncompressed point, `04 ‖ x ‖ y`, 65 bytes; nil unless it is on P-256.
    public init?(x963 bytes: [UInt8]) {
        guard let point = P256Point(x963: bytes), let key = P256PublicKey(point) else { return nil }
        self.key = key
    }

    /// The uncompressed point, 65 bytes.
    public var x963: [UInt8] { key.point.x963 }
}
