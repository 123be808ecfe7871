/// Thirty-two bytes by value: a SHA-256, a key ID, a relying party ID hash, one coordinate of a
/// point.
///
/// Kept as four words in memory order, so comparing, hashing and copying allocate nothing.
package struct Bytes32: Hashable, Sendable {
    private var words: (UInt64, UInt64, UInt64, UInt64)

    /// The number of bytes.
    package static let count = 32

    /// Thirty-two zero bytes.
    package init() {
        words = (0, 0, 0, 0)
    }

    /// The bytes of `bytes`; nil unless there are exactly thirty-two.
    package init?(_ bytes: [UInt8]) {
        self.init(bytes, 0..<bytes.count)
    }

    /// The bytes of `bytes[range]`; nil unless there are exactly thirty-two.
    package init?(_ bytes: [UInt8], _ range: Range<Int>) {
        guard range.count == Bytes32.count else { return nil }
        self.init()
        for index in 0..<4 {
            var word: UInt64 = 0
            for offset in 0..<8 {
                word = word << 8 | UInt64(bytes[range.lowerBound + index * 8 + offset])
            }
            self[word: index] = word
        }
    }

    /// The byte at `index`, 0 to 31; traps outside.
    package subscript(index: Int) -> UInt8 {
        get {
            let shift = UInt64(56 - 8 * (index & 7))
            return UInt8(truncatingIfNeeded: self[word: index >> 3] >> shift)
        }
        set {
            let shift = UInt64(56 - 8 * (index & 7))
            let cleared = self[word: index >> 3] & ~(0xff << shift)
            self[word: index >> 3] = cleared | UInt64(newValue) << shift
        }
    }

    /// The big-endian word at `word`, 0 to 3; traps outside.
    package subscript(word index: Int) -> UInt64 {
        get {
            switch index {
            case 0: return words.0
            case 1: return words.1
            case 2: return words.2
            case 3: return words.3
            default: preconditionFailure("word index out of range")
            }
        }
        set {
            switch index {
            case 0: words.0 = newValue
            case 1: words.1 = newValue
            case 2: words.2 = newValue
            case 3: words.3 = newValue
            default: preconditionFailure("word index out of range")
            }
        }
    }

    /// The bytes as an array of thirty-two.
    package var array: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Bytes32.count)
        bytes.append(self)
        return bytes
    }

    /// Equality that takes the same time wherever two values differ.
    package static func == (left: Bytes32, right: Bytes32) -> Bool {
        let difference =
            (left.words.0 ^ right.words.0) | (left.words.1 ^ right.words.1)
            | (left.words.2 ^ right.words.2) | (left.words.3 ^ right.words.3)
        return difference == 0
    }

    /// Feeds the four words to `hasher`.
    package func hash(into hasher: inout Hasher) {
        hasher.combine(words.0)
        hasher.combine(words.1)
        hasher.combine(words.2)
        hasher.combine(words.3)
    }
}

/// A P-256 package key without its leading 0x04: the big-endian coordinates, 32 bytes each.
package struct P256Point: Hashable, Sendable {
    /// The first coordinate.
    package var x: Bytes32
    /// The second coordinate.
    package var y: Bytes32

    /// A point from its coordinates; nothing is checked against the curve.
    package init(x: Bytes32, y: Bytes32) {
        self.x = x
        self.y = y
    }

    /// The point of an uncompressed X9.62 encoding, `04 ‖ x ‖ y`; nil unless it is 65 bytes of that
    /// form.
    package init?(x963 bytes: [UInt8]) {
        guard bytes.count == 65, bytes[0] == 0x04 else { return nil }
        guard let x = Bytes32(bytes, 1..<33), let y = Bytes32(bytes, 33..<65) else { return nil }
        self.init(x: x, y: y)
    }

    /// The uncompressed X9.62 encoding, 65 bytes.
    package var x963: [UInt8] {
        var bytes: [UInt8] = [0x04]
        bytes.reserveCapacity(65)
        bytes.append(x)
        bytes.append(y)
        return bytes
    }
}
