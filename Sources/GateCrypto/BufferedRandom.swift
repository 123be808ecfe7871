/// Randomness of ``SystemRandom``, taken in larger pieces: a call of OpenSSL's generator costs a
/// microsecond whatever its size. Each byte is given once. Owned by one thread at a time.
package struct BufferedRandom: RandomNumberGenerator {
    private var bytes: [UInt8] = []
    private var position = 0

    private static let bytesCount = 1024

    /// A generator that has taken nothing yet.
    package init() {}

    /// Eight random bytes.
    package mutating func next() -> UInt64 {
        if position == bytes.count {
            bytes = SystemRandom.bytes(BufferedRandom.bytesCount)
            position = 0
        }
        var value: UInt64 = 0
        for index in position..<(position + 8) {
            value = value << 8 | UInt64(bytes[index])
            bytes[index] = 0
        }
        position += 8
        return value
    }
}
