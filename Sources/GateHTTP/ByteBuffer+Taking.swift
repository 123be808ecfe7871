internal import GateBytes

extension ByteBuffer {
    /// The first readable byte.
    var first: UInt8? { isEmpty ? nil : storage[readable.lowerBound] }

    /// Consumes up to `count` bytes and says where they are in `storage`.
    mutating func takeFirst(_ count: Int) -> Range<Int> {
        let start = readable.lowerBound
        let taken = min(count, self.count)
        consume(taken)
        return start..<(start + taken)
    }
}
