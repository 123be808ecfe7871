internal import CGateOpenSSL
package import GateBytes

/// SHA-256 (FIPS 180-4) of bytes that are already there.
package enum SHA256 {
    /// The hash of all of `bytes`.
    package static func hash(_ bytes: [UInt8]) -> Bytes32 {
        hash(bytes, 0..<bytes.count)
    }

    /// The hash of `bytes[range]`.
    package static func hash(_ bytes: [UInt8], _ range: Range<Int>) -> Bytes32 {
        var hasher = SHA256Hasher()
        hasher.update(bytes, range)
        return hasher.finish()
    }

    /// The algorithm, fetched once: a fetch for each hash would cost more than a short hash does.
    /// It is never freed and OpenSSL reads it from any thread.
    nonisolated(unsafe) static let algorithm: OpaquePointer = {
        guard let algorithm = unsafe EVP_MD_fetch(nil, "SHA256", nil) else {
            preconditionFailure("libcrypto has no SHA-256")
        }
        return unsafe algorithm
    }()
}

/// SHA-256 of bytes that arrive in pieces. Owned by one thread at a time.
@safe package struct SHA256Hasher: ~Copyable {
    private let context: OpaquePointer

    /// A hash of nothing yet.
    package init() {
        guard let context = unsafe EVP_MD_CTX_new() else { preconditionFailure("out of memory") }
        unsafe self.context = context
        let result = unsafe EVP_DigestInit_ex2(context, SHA256.algorithm, nil)
        precondition(result == 1, "SHA-256 cannot start")
    }

    deinit {
        unsafe EVP_MD_CTX_free(context)
    }

    /// Adds all of `bytes`.
    package mutating func update(_ bytes: [UInt8]) {
        update(bytes, 0..<bytes.count)
    }

    /// Adds `bytes[range]`.
    package mutating func update(_ bytes: [UInt8], _ range: Range<Int>) {
        let result = unsafe bytes.withUnsafeBufferPointer { buffer in
            let part = unsafe UnsafeBufferPointer(rebasing: buffer[range])
            return unsafe EVP_DigestUpdate(context, part.baseAddress, part.count)
        }
        precondition(result == 1, "SHA-256 cannot go on")
    }

    /// Adds thirty-two bytes.
    package mutating func update(_ bytes: Bytes32) {
        let result = unsafe withUnsafeTemporaryAllocation(of: UInt64.self, capacity: 4) { words in
            for index in 0..<4 {
                unsafe words.initializeElement(at: index, to: bytes[word: index].bigEndian)
            }
            return unsafe EVP_DigestUpdate(context, words.baseAddress, Bytes32.count)
        }
        precondition(result == 1, "SHA-256 cannot go on")
    }

    /// The hash of everything added.
    package consuming func finish() -> Bytes32 {
        unsafe withUnsafeTemporaryAllocation(of: UInt64.self, capacity: 4) { words in
            unsafe words.initialize(repeating: 0)
            let result = unsafe words.withMemoryRebound(to: UInt8.self) { bytes in
                unsafe EVP_DigestFinal_ex(context, bytes.baseAddress, nil)
            }
            precondition(result == 1, "SHA-256 cannot finish")
            var hash = Bytes32()
            for index in 0..<4 { unsafe hash[word: index] = UInt64(bigEndian: words[index]) }
            return hash
        }
    }
}
