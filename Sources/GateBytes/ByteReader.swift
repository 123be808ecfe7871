/// A bounded, forward-only reader over bytes that a peer chose.
///
/// Every read either gives exactly what was asked or nil and leaves the position alone; no index
/// leaves `position...end`.
package struct ByteReader: Sendable {
    /// What is read.
    package let bytes: [UInt8]
    /// The index of the next byte.
    package private(set) var position: Int
    /// One past the last byte this reader may see.
    package let end: Int

    /// A reader of all of `bytes`.
    package init(_ bytes: [UInt8]) {
        self.bytes = bytes
        position = 0
        end = bytes.count
    }

    /// A reader of `bytes[range]`; traps when `range` is not inside `bytes`.
    package init(_ bytes: [UInt8], _ range: Range<Int>) {
        precondition(range.lowerBound >= 0 && range.upperBound <= bytes.count)
        self.bytes = bytes
        position = range.lowerBound
        end = range.upperBound
    }

    /// Bytes left to read.
    package var remaining: Int { end - position }

    /// Whether everything has been read.
    package var isAtEnd: Bool { position == end }

    /// The next byte without taking it.
    package var peek: UInt8? { position < end ? bytes[position] : nil }

    /// Takes one byte.
    package mutating func readByte() -> UInt8? {
        guard position < end else { return nil }
        defer { position += 1 }
        return bytes[position]
    }

    /// Takes `count` bytes as a range of ``bytes``; nil when fewer are left or `count` is negative.
    package mutating func readRange(_ count: Int) -> Range<Int>? {
        guard count >= 0, count <= remaining else { return nil }
        defer { position += count }
        return position..<(position + count)
    }

    /// Takes `count` bytes as an array.
    package mutating func readBytes(_ count: Int) -> [UInt8]? {
        guard let range = readRange(count) else { return nil }
        return Array(bytes[range])
    }

    /// Takes thirty-two bytes.
    package mutating func readBytes32() -> Bytes32? {
        guard let range = readRange(Bytes32.count) else { return nil }
        return Bytes32(bytes, range)
    }

    /// Takes a big-endian integer of two bytes.
    package mutating func readUInt16() -> UInt16? {
        guard let range = readRange(2) else { return nil }
        return UInt16(bytes[range.lowerBound]) << 8 | UInt16(bytes[range.lowerBound + 1])
    }

    /// Takes a big-endian integer of four bytes.
    package mutating func readUInt32() -> UInt32? {
        guard let range = readRange(4) else { return nil }
        var value: UInt32 = 0
        for index in range { value = value << 8 | UInt32(bytes[index]) }
        return value
    }

    /// Takes a big-endian integer of eight bytes.
    package mutating func readUInt64() -> UInt64? {
        guard let range = readRange(8) else { return nil }
        var value: UInt64 = 0
        for index in range { value = value << 8 | UInt64(bytes[index]) }
        return value
    }
}
