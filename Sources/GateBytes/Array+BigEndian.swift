// Appending fixed-width integers, always big endian: the order of App Attest, of the challenge MAC
// and of the log.
extension Array where Element == UInt8 {
    /// Appends two bytes.
    package mutating func append(bigEndian value: UInt16) {
        append(UInt8(truncatingIfNeeded: value >> 8))
        append(UInt8(truncatingIfNeeded: value))
    }

    /// Appends four bytes.
    package mutating func append(bigEndian value: UInt32) {
        append(bigEndian: UInt16(truncatingIfNeeded: value >> 16))
        append(bigEndian: UInt16(truncatingIfNeeded: value))
    }

    /// Appends eight bytes.
    package mutating func append(bigEndian value: UInt64) {
        append(bigEndian: UInt32(truncatingIfNeeded: value >> 32))
        append(bigEndian: UInt32(truncatingIfNeeded: value))
    }

    /// Appends thirty-two bytes.
    package mutating func append(_ value: Bytes32) {
        append(bigEndian: value[word: 0])
        append(bigEndian: value[word: 1])
        append(bigEndian: value[word: 2])
        append(bigEndian: value[word: 3])
    }

    /// The UTF-8 bytes of `text`.
    package init(_ text: String) {
        self = Array(text.utf8)
    }
}
