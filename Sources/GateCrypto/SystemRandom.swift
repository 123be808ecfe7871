internal import CGateOpenSSL
package import GateBytes

/// Randomness of OpenSSL's generator, which the kernel seeds. Fit for keys, nonces and secrets.
package struct SystemRandom: RandomNumberGenerator {
    /// The generator; there is one for the process, this value holds nothing.
    package init() {}

    /// Eight random bytes.
    package mutating func next() -> UInt64 {
        var value: UInt64 = 0
        unsafe withUnsafeMutableBytes(of: &value) { unsafe SystemRandom.fill($0) }
        return value
    }

    /// `count` random bytes.
    package static func bytes(_ count: Int) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        fill(&bytes)
        return bytes
    }

    /// Overwrites all of `bytes` with random ones.
    package static func fill(_ bytes: inout [UInt8]) {
        unsafe bytes.withUnsafeMutableBytes { unsafe fill($0) }
    }

    /// Thirty-two random bytes.
    package static func bytes32() -> Bytes32 {
        var generator = SystemRandom()
        var bytes = Bytes32()
        for index in 0..<4 { bytes[word: index] = generator.next() }
        return bytes
    }

    /// A gate without randomness must not go on: the failure is a trap, and no peer can cause it.
    private static func fill(_ buffer: UnsafeMutableRawBufferPointer) {
        var rest = unsafe buffer
        while let base = rest.baseAddress, rest.count > 0 {
            let count = min(rest.count, Int(Int32.max))
            let result = unsafe RAND_bytes(
                base.assumingMemoryBound(to: UInt8.self), Int32(truncatingIfNeeded: count))
            precondition(result == 1, "the random generator failed")
            unsafe rest = UnsafeMutableRawBufferPointer(rebasing: rest[count...])
        }
    }
}
