/// A field name to look for, prepared once.
///
/// Two comparisons: as HTTP does, ASCII case ignored; and *folded*, where `_` and `.` also read as
/// `-`, since CGI, WSGI and their kin give the upstream one name for all three spellings.
package struct FieldName: Hashable, Sendable {
    /// The name in lower case.
    package let text: [UInt8]
    /// The name folded.
    private let foldedText: [UInt8]
    /// What every spelling of the folded name shares: its length and three of its octets.
    let signature: UInt32

    /// A name from configuration; nil unless it is a token.
    package init?(parsing name: String) {
        self.init(parsing: Array(name.utf8))
    }

    /// A name from a peer; nil unless it is a token.
    package init?(parsing name: [UInt8]) {
        guard !name.isEmpty, name.allSatisfy(Octet.isToken) else { return nil }
        self.init(token: name)
    }

    /// A name written in the source; traps unless it is a token.
    package init(_ name: StaticString) {
        let bytes = name.withUTF8Buffer { unsafe Array($0) }
        precondition(!bytes.isEmpty && bytes.allSatisfy(Octet.isToken))
        self.init(token: bytes)
    }

    private init(token: [UInt8]) {
        text = token.map(Octet.lowercased)
        foldedText = token.map(FieldName.folded)
        signature = FieldName.signature(token, 0..<token.count)
    }

    /// Whether `bytes[range]` is this name, case ignored.
    package func matches(_ bytes: [UInt8], _ range: Range<Int>) -> Bool {
        guard range.count == text.count else { return false }
        for index in 0..<text.count
        where Octet.lowercased(bytes[range.lowerBound + index]) != text[index] {
            return false
        }
        return true
    }

    /// Whether `bytes[range]` is this name when folded.
    package func matchesFolded(_ bytes: [UInt8], _ range: Range<Int>) -> Bool {
        range.count == foldedText.count && matchesFoldedPrefix(bytes, range)
    }

    /// Whether `bytes[range]`, folded, starts with this name.
    package func matchesFoldedPrefix(_ bytes: [UInt8], _ range: Range<Int>) -> Bool {
        guard range.count >= foldedText.count else { return false }
        for index in 0..<foldedText.count
        where FieldName.folded(bytes[range.lowerBound + index]) != foldedText[index] {
            return false
        }
        return true
    }

    /// Whether both are one name when folded.
    package func equalsFolded(_ other: FieldName) -> Bool {
        foldedText == other.foldedText
    }

    /// The signature of the name in `bytes[range]`; names that fold alike have one.
    static func signature(_ bytes: [UInt8], _ range: Range<Int>) -> UInt32 {
        guard !range.isEmpty else { return 0 }
        let first = UInt32(folded(bytes[range.lowerBound]))
        let middle = UInt32(folded(bytes[range.lowerBound + range.count / 2]))
        let last = UInt32(folded(bytes[range.upperBound - 1]))
        return UInt32(truncatingIfNeeded: range.count) << 24 | first << 16 | middle << 8 | last
    }

    @inline(__always)
    private static func folded(_ byte: UInt8) -> UInt8 {
        byte == 0x5f || byte == 0x2e ? 0x2d : Octet.lowercased(byte)
    }
}
