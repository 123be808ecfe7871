internal import GateBytes

/// Reads BER (X.690 §8) as CMS needs it: DER, and besides indefinite lengths, octet strings in
/// pieces and lengths in more octets than they need.
///
/// Every element is at least two bytes, and elements nest ``depthMax`` deep at most, so reading
/// takes time in proportion to the bytes whatever they are. Tag numbers above 30, which no CMS
/// structure has, are refused.
struct BERReader {
    /// The identifier octets this module names.
    enum Tag {
        static let endOfContents: UInt8 = 0x00
        static let integer: UInt8 = 0x02
        static let octetString: UInt8 = 0x04
        static let octetStringInPieces: UInt8 = 0x24
        static let objectIdentifier: UInt8 = 0x06
        static let sequence: UInt8 = 0x30
        static let set: UInt8 = 0x31

        /// The constructed context tag `number`, 0 to 30.
        static func context(_ number: UInt8) -> UInt8 { 0xa0 | number }
    }

    /// A receipt nests eight deep; what is deeper is none.
    static let depthMax = 16

    private var reader: ByteReader
    private let depth: Int

    /// A reader of `bytes[range]`.
    init(_ bytes: [UInt8], _ range: Range<Int>) {
        self.init(bytes, range, depth: 0)
    }

    private init(_ bytes: [UInt8], _ range: Range<Int>, depth: Int) {
        reader = ByteReader(bytes, range)
        self.depth = depth
    }

    /// Whether everything has been read.
    var isAtEnd: Bool { reader.isAtEnd }

    /// The identifier octet of the next element, without taking it.
    var nextIdentifier: UInt8? { reader.peek }

    /// The index of the next byte.
    var position: Int { reader.position }

    /// Refuses bytes that are left.
    func finish() throws(BERError) {
        guard reader.isAtEnd else { throw .trailingBytes(offset: reader.position) }
    }

    /// Takes one element of any tag.
    mutating func next() throws(BERError) -> BERElement {
        let start = reader.position
        guard depth < BERReader.depthMax else { throw .tooDeep(offset: start) }
        guard let identifier = reader.readByte() else { throw .truncated(offset: start) }
        guard identifier & 0x1f != 0x1f, identifier != Tag.endOfContents else {
            throw .tagUnsupported(offset: start)
        }
        if let count = try readLength(start) {
            guard let contents = reader.readRange(count) else { throw .truncated(offset: start) }
            return BERElement(
                identifier: identifier, contents: contents, whole: start..<contents.upperBound)
        }
        guard identifier & 0x20 != 0 else { throw .lengthIndefinite(offset: start) }
        let first = reader.position
        let last = try skipContents(start)
        return BERElement(
            identifier: identifier, contents: first..<last, whole: start..<reader.position)
    }

    /// Takes the elements of an indefinite length with the two zeros behind them; the index of
    /// those.
    private mutating func skipContents(_ start: Int) throws(BERError) -> Int {
        var inner = BERReader(reader.bytes, reader.position..<reader.end, depth: depth + 1)
        while inner.nextIdentifier != Tag.endOfContents {
            guard !inner.isAtEnd else { throw .truncated(offset: start) }
            _ = try inner.next()
        }
        let end = inner.position
        guard let rest = reader.readRange(end - reader.position + 2) else {
            throw .truncated(offset: start)
        }
        guard reader.bytes[rest.upperBound - 1] == 0 else {
            throw .valueMalformed(offset: end)
        }
        return end
    }

    /// Takes the element that must have the identifier octet `identifier`.
    mutating func read(_ identifier: UInt8) throws(BERError) -> BERElement {
        let start = reader.position
        guard let found = reader.peek else { throw .truncated(offset: start) }
        guard found == identifier else {
            throw .tagMismatch(expected: identifier, found: found, offset: start)
        }
        return try next()
    }

    /// Takes the constructed element `identifier`: a reader of its contents.
    mutating func enter(_ identifier: UInt8) throws(BERError) -> BERReader {
        let element = try read(identifier)
        return BERReader(reader.bytes, element.contents, depth: depth + 1)
    }

    /// Takes an INTEGER from 0 to 32767.
    mutating func readSmallInteger() throws(BERError) -> Int {
        let element = try read(Tag.integer)
        let octets = reader.bytes[element.contents]
        guard (1...2).contains(octets.count), octets.first.map({ $0 < 0x80 }) == true else {
            throw .valueMalformed(offset: element.whole.lowerBound)
        }
        return octets.reduce(0) { $0 << 8 | Int($1) }
    }

    /// Takes an OBJECT IDENTIFIER.
    mutating func readObjectIdentifier() throws(BERError) -> OID {
        let element = try read(Tag.objectIdentifier)
        guard let oid = OID(reader.bytes[element.contents]) else {
            throw .valueMalformed(offset: element.whole.lowerBound)
        }
        return oid
    }

    /// Takes an OCTET STRING, whole or in pieces of pieces: its bytes put together.
    mutating func readOctetString() throws(BERError) -> [UInt8] {
        guard nextIdentifier == Tag.octetStringInPieces else {
            return Array(reader.bytes[try read(Tag.octetString).contents])
        }
        var pieces = try enter(Tag.octetStringInPieces)
        var bytes: [UInt8] = []
        while !pieces.isAtEnd { bytes += try pieces.readOctetString() }
        return bytes
    }

    /// The length of the element that began at `start`; nil for an indefinite one.
    private mutating func readLength(_ start: Int) throws(BERError) -> Int? {
        guard let first = reader.readByte() else { throw .truncated(offset: start) }
        if first < 0x80 { return Int(first) }
        if first == 0x80 { return nil }
        let octets = Int(first & 0x7f)
        guard octets <= 4 else { throw .truncated(offset: start) }
        var count = 0
        for _ in 0..<octets {
            guard let octet = reader.readByte() else { throw .truncated(offset: start) }
            count = count << 8 | Int(octet)
        }
        return count
    }
}

/// One element of BER.
struct BERElement {
    /// The identifier octet: class, form and number.
    let identifier: UInt8
    /// Where the contents are, without the zeros that end an indefinite length.
    let contents: Range<Int>
    /// Where the whole element is.
    let whole: Range<Int>
}

/// What is wrong with bytes that should be BER; `offset` counts from the start of what was parsed.
@nonexhaustive
public enum BERError: Error, Equatable, Sendable {
    /// A length is left open where no elements follow.
    case lengthIndefinite(offset: Int)
    /// An element of another kind than its place asks for.
    case tagMismatch(expected: UInt8, found: UInt8, offset: Int)
    /// A tag that CMS has no use for.
    case tagUnsupported(offset: Int)
    /// Elements nest deeper than any receipt's.
    case tooDeep(offset: Int)
    /// Bytes follow the last element.
    case trailingBytes(offset: Int)
    /// The bytes end inside an element.
    case truncated(offset: Int)
    /// The contents are not what this kind of value has.
    case valueMalformed(offset: Int)
}

extension BERError: CustomStringConvertible {
    /// The fault and its place as a clause.
    public var description: String {
        switch self {
        case .lengthIndefinite(let offset): return "indefinite length at byte \(offset)"
        case .tagMismatch(let expected, let found, let offset):
            return "expected tag 0x\(Hex.encode([expected])), got 0x\(Hex.encode([found])) "
                + "at byte \(offset)"
        case .tagUnsupported(let offset): return "unsupported tag at byte \(offset)"
        case .tooDeep(let offset): return "nested too deep at byte \(offset)"
        case .trailingBytes(let offset): return "bytes after the end at byte \(offset)"
        case .truncated(let offset): return "cut off in the element at byte \(offset)"
        case .valueMalformed(let offset): return "malformed value at byte \(offset)"
        }
    }
}
