internal import GateBytes

/// Reads the part of CBOR (RFC 8949) that App Attest uses, in its one strict form.
///
/// Integers, byte strings, text, arrays, maps, `false`, `true` and `null`; definite lengths in
/// their shortest form; text in UTF-8; no key twice in a map; at most ``depthMax`` levels and
/// ``membersMax`` members a map. Tags, floating point, other simple values and indefinite lengths
/// are refused: no object has them, and each is one more way to read the same bytes differently.
///
/// A value has one encoding under these rules, so two keys are the same exactly when their bytes
/// are.
struct CBORReader {
    static let depthMax = 8
    static let membersMax = 16

    private enum Major {
        static let unsigned: UInt8 = 0
        static let negative: UInt8 = 1
        static let bytes: UInt8 = 2
        static let text: UInt8 = 3
        static let array: UInt8 = 4
        static let map: UInt8 = 5
        static let simple: UInt8 = 7
    }

    private struct Head {
        let major: UInt8
        let argument: UInt64
        let offset: Int
    }

    private var reader: ByteReader

    /// A reader of `bytes[range]`.
    init(_ bytes: [UInt8], _ range: Range<Int>) {
        reader = ByteReader(bytes, range)
    }

    /// The index of the next byte.
    var position: Int { reader.position }

    /// Whether everything has been read.
    var isAtEnd: Bool { reader.isAtEnd }

    /// Refuses bytes that are left.
    func finish() throws(CBORError) {
        guard reader.isAtEnd else { throw .trailingBytes(offset: reader.position) }
    }

    /// Takes the head of a map: the number of members that follow.
    mutating func readMap() throws(CBORError) -> Int {
        let head = try readHead(Major.map, .map)
        guard head.argument <= UInt64(CBORReader.membersMax) else {
            throw .membersExceeded(offset: head.offset)
        }
        return Int(head.argument)
    }

    /// Takes the head of an array: the number of items that follow.
    mutating func readArray() throws(CBORError) -> Int {
        try count(try readHead(Major.array, .array))
    }

    /// Takes a byte string: where its bytes are.
    mutating func readBytes() throws(CBORError) -> Range<Int> {
        try contents(try readHead(Major.bytes, .bytes))
    }

    /// Takes text: where its bytes are.
    mutating func readText() throws(CBORError) -> Range<Int> {
        let head = try readHead(Major.text, .text)
        let range = try contents(head)
        guard isUTF8(range) else { throw .textNotUTF8(offset: head.offset) }
        return range
    }

    /// Takes an integer of either sign.
    mutating func readInteger() throws(CBORError) -> Int64 {
        let head = try readHead()
        guard head.major <= Major.negative else {
            throw .typeMismatch(expected: .integer, offset: head.offset)
        }
        guard let value = Int64(exactly: head.argument) else {
            throw .integerOutOfRange(offset: head.offset)
        }
        return head.major == Major.unsigned ? value : -1 - value
    }

    /// The kind of the next item, without taking it.
    var nextType: CBORType? {
        switch reader.peek.map({ $0 >> 5 }) {
        case Major.unsigned, Major.negative: return .integer
        case Major.bytes: return .bytes
        case Major.text: return .text
        case Major.array: return .array
        case Major.map: return .map
        default: return nil
        }
    }

    /// Takes one item of any kind, `depth` levels below the outermost, and checks all of it.
    mutating func skip(depth: Int) throws(CBORError) {
        let head = try readHead()
        switch head.major {
        case Major.unsigned, Major.negative, Major.simple:
            return
        case Major.bytes:
            _ = try contents(head)
        case Major.text:
            let range = try contents(head)
            guard isUTF8(range) else { throw .textNotUTF8(offset: head.offset) }
        case Major.array:
            try descend(depth, head.offset)
            for _ in 0..<(try count(head)) { try skip(depth: depth + 1) }
        case Major.map:
            try descend(depth, head.offset)
            guard head.argument <= UInt64(CBORReader.membersMax) else {
                throw .membersExceeded(offset: head.offset)
            }
            var keys = CBORKeys()
            for _ in 0..<Int(head.argument) {
                let start = reader.position
                try skip(depth: depth + 1)
                try keys.insert(reader.bytes, start..<reader.position)
                try skip(depth: depth + 1)
            }
        default:
            throw .itemUnsupported(offset: head.offset)
        }
    }

    private func descend(_ depth: Int, _ offset: Int) throws(CBORError) {
        guard depth < CBORReader.depthMax else { throw .depthExceeded(offset: offset) }
    }

    private mutating func readHead(_ major: UInt8, _ type: CBORType) throws(CBORError) -> Head {
        let head = try readHead()
        guard head.major == major else {
            throw .typeMismatch(expected: type, offset: head.offset)
        }
        return head
    }

    private mutating func readHead() throws(CBORError) -> Head {
        let offset = reader.position
        guard let first = reader.readByte() else { throw .truncated(offset: offset) }
        let major = first >> 5
        let short = first & 0x1f
        if major == Major.simple {
            // 20 false, 21 true, 22 null
            guard (20...22).contains(short) else { throw .itemUnsupported(offset: offset) }
            return Head(major: major, argument: UInt64(short), offset: offset)
        }
        let argument: UInt64?
        let least: UInt64
        switch short {
        case 0..<24: (argument, least) = (UInt64(short), 0)
        case 24: (argument, least) = (reader.readByte().map(UInt64.init), 24)
        case 25: (argument, least) = (reader.readUInt16().map(UInt64.init), 1 << 8)
        case 26: (argument, least) = (reader.readUInt32().map(UInt64.init), 1 << 16)
        case 27: (argument, least) = (reader.readUInt64(), 1 << 32)
        default: throw .itemUnsupported(offset: offset)
        }
        guard let argument else { throw .truncated(offset: offset) }
        guard argument >= least else { throw .lengthNotShortest(offset: offset) }
        return Head(major: major, argument: argument, offset: offset)
    }

    private mutating func contents(_ head: Head) throws(CBORError) -> Range<Int> {
        guard let count = Int(exactly: head.argument), let range = reader.readRange(count) else {
            throw .truncated(offset: head.offset)
        }
        return range
    }

    /// The number of items of an array, each of which takes a byte at least.
    private func count(_ head: Head) throws(CBORError) -> Int {
        guard let count = Int(exactly: head.argument), count <= reader.remaining else {
            throw .truncated(offset: head.offset)
        }
        return count
    }

    private func isUTF8(_ range: Range<Int>) -> Bool {
        if reader.bytes[range].allSatisfy({ $0 < 0x80 }) { return true }
        return String(validating: reader.bytes[range], as: UTF8.self) != nil
    }
}

/// The keys of one map so far, by their bytes.
struct CBORKeys {
    private var ranges: [Range<Int>] = []

    /// Adds the key whose encoding is `bytes[range]`; refuses one that is there already.
    mutating func insert(_ bytes: [UInt8], _ range: Range<Int>) throws(CBORError) {
        for other in ranges where bytes[other].elementsEqual(bytes[range]) {
            throw .duplicateKey(offset: range.lowerBound)
        }
        ranges.append(range)
    }
}

/// The kinds of CBOR item that App Attest uses.
public enum CBORType: String, Sendable {
    case array
    case bytes
    case integer
    case map
    case text
}

/// What is wrong with bytes that should be CBOR; `offset` counts from the start of what was parsed.
@nonexhaustive
public enum CBORError: Error, Equatable, Sendable {
    /// Arrays and maps are nested deeper than eight levels.
    case depthExceeded(offset: Int)
    /// A map has a key twice.
    case duplicateKey(offset: Int)
    /// An integer does not fit 64 bits with a sign.
    case integerOutOfRange(offset: Int)
    /// A tag, a floating-point number, an indefinite length or a reserved value.
    case itemUnsupported(offset: Int)
    /// A length or an integer takes more bytes than it needs.
    case lengthNotShortest(offset: Int)
    /// A map has more than sixteen members.
    case membersExceeded(offset: Int)
    /// Text is not UTF-8.
    case textNotUTF8(offset: Int)
    /// Bytes follow the value.
    case trailingBytes(offset: Int)
    /// The bytes end inside a value.
    case truncated(offset: Int)
    /// A value is of another kind than its place asks for.
    case typeMismatch(expected: CBORType, offset: Int)
}

extension CBORError: CustomStringConvertible {
    /// The fault and its place as a clause.
    public var description: String {
        switch self {
        case .depthExceeded(let offset): return "nested too deeply at byte \(offset)"
        case .duplicateKey(let offset): return "duplicate key at byte \(offset)"
        case .integerOutOfRange(let offset): return "integer out of range at byte \(offset)"
        case .itemUnsupported(let offset): return "unsupported item at byte \(offset)"
        case .lengthNotShortest(let offset): return "length not in shortest form at byte \(offset)"
        case .membersExceeded(let offset): return "too many members at byte \(offset)"
        case .textNotUTF8(let offset): return "text not in UTF-8 at byte \(offset)"
        case .trailingBytes(let offset): return "bytes after the end at byte \(offset)"
        case .truncated(let offset): return "cut off in the item at byte \(offset)"
        case .typeMismatch(let expected, let offset):
            return "expected \(expected.rawValue) at byte \(offset)"
        }
    }
}
