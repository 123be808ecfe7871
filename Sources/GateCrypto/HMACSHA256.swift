package import GateBytes

/// HMAC-SHA-256 (RFC 2104) under one key.
///
/// Holds the key already mixed with the two pads, so that a message costs two hashes and no key
/// schedule. Compare a result with `==` of ``Bytes32``, which takes the same time wherever two
/// differ.
package struct HMACSHA256: Sendable {
    private let inner: [UInt8]
    private let outer: [UInt8]

    private static let blockBytes = 64

    /// A code under `key`, of any length; one longer than a block is hashed first, as the RFC says.
    package init(key: [UInt8]) {
        var block = key.count > HMACSHA256.blockBytes ? SHA256.hash(key).array : key
        block.append(contentsOf: repeatElement(0, count: HMACSHA256.blockBytes - block.count))
        inner = block.map { $0 ^ 0x36 }
        outer = block.map { $0 ^ 0x5c }
    }

    /// The code of `message`.
    package func authenticate(_ message: [UInt8]) -> Bytes32 {
        var hasher = SHA256Hasher()
        hasher.update(inner)
        hasher.update(message)
        let digest = hasher.finish()
        var finisher = SHA256Hasher()
        finisher.update(outer)
        finisher.update(digest)
        return finisher.finish()
    }
}
