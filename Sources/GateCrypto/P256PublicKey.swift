internal import CGateOpenSSL
package import GateBytes
private import Synchronization

/// A P-256 public key ready to verify: the stored point turned into what libcrypto works with.
///
/// Making one costs about a quarter of a verification, so a caller that meets a key again keeps it.
/// Any thread may use one; the first to come takes the kept context, and one that finds it taken
/// makes its own.
@safe package final class P256PublicKey: Sendable {
    /// The point this key was made of.
    package let point: P256Point
    private let key: ECKey
    nonisolated(unsafe) private let context: OpaquePointer
    private let isTaken = Atomic<Bool>(false)

    /// The key of `point`; nil when the point is not on the curve.
    package init?(_ point: P256Point) {
        guard let key = ECKey.publicKey(.p256, point: point.x963),
            let context = unsafe P256PublicKey.makeContext(key)
        else { return nil }
        self.point = point
        self.key = key
        unsafe self.context = context
    }

    deinit {
        unsafe EVP_PKEY_CTX_free(context)
    }

    /// Whether `der[range]` is a signature, ECDSA with SHA-256, over the 32-byte `message`: the
    /// message is hashed here, once.
    ///
    /// The encoding must be DER (X.690 §10, §11); both (r, s) and (r, n−s) pass, as ECDSA has it.
    package func isValidSignature(_ der: [UInt8], _ range: Range<Int>, message: Bytes32) -> Bool {
        var hasher = SHA256Hasher()
        hasher.update(message)
        let digest = hasher.finish()
        let (wasFree, _) = isTaken.compareExchange(
            expected: false, desired: true, ordering: .acquiring)
        if wasFree {
            defer { isTaken.store(false, ordering: .releasing) }
            return unsafe P256PublicKey.verify(context, der, range, digest)
        }
        guard let context = unsafe P256PublicKey.makeContext(key) else { return false }
        defer { unsafe EVP_PKEY_CTX_free(context) }
        return unsafe P256PublicKey.verify(context, der, range, digest)
    }

    private static func makeContext(_ key: ECKey) -> OpaquePointer? {
        guard let context = unsafe EVP_PKEY_CTX_new_from_pkey(nil, key.pointer, nil) else {
            return nil
        }
        guard unsafe EVP_PKEY_verify_init(context) == 1 else {
            unsafe EVP_PKEY_CTX_free(context)
            ERR_clear_error()
            return nil
        }
        return unsafe context
    }

    private static func verify(
        _ context: OpaquePointer, _ der: [UInt8], _ range: Range<Int>, _ digest: Bytes32
    ) -> Bool {
        let result = unsafe withUnsafeTemporaryAllocation(of: UInt64.self, capacity: 4) { words in
            for index in 0..<4 {
                unsafe words.initializeElement(at: index, to: digest[word: index].bigEndian)
            }
            return unsafe words.withMemoryRebound(to: UInt8.self) { digest in
                unsafe der.withUnsafeBufferPointer { der in
                    let signature = unsafe UnsafeBufferPointer(rebasing: der[range])
                    return unsafe EVP_PKEY_verify(
                        context, signature.baseAddress, signature.count, digest.baseAddress,
                        digest.count)
                }
            }
        }
        if result != 1 { ERR_clear_error() }
        return result == 1
    }
}
