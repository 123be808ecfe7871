internal import GateBytes

/// Reads DER (X.690 §10): definite lengths in their shortest form, tag numbers in their shortest
/// form.
struct DERReader {
    /// The identifier octets this module names; all others are compared by ``DERElement/number``.
    enum Tag {
        static let boolean: UInt8 = 0x01
        static let integer: UInt8 = 0x02
        static let bitString: UInt8 = 0x03
        static let octetString: UInt8 = 0x04
        static let objectIdentifier: UInt8 = 0x06
        static let utf8String: UInt8 = 0x0c
        static let sequence: UInt8 = 0x30
        static let set: UInt8 = 0x31
        static let utcTime: UInt8 = 0x17
        static let generalizedTime: UInt8 = 0x18

        /// The explicit context tag `number`, 0 to 30.
        static func explicit(_ number: UInt8) -> UInt8 { 0xa0 | number }
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

    /// The first identifier octet of the next element, without taking it.
    var nextIdentifier: UInt8? { reader.peek }

    /// Refuses bytes that are left.
    func finish() throws(DERError) {
        guard reader.isAtEnd else { throw .trailingBytes(offset: reader.position) }
    }

    /// Takes one element of any tag.
    mutating func next() throws(DERError) -> DERElement {
        let start = reader.position
        guard let identifier = reader.readByte() else { throw .truncated(offset: start) }
        var number = UInt32(identifier & 0x1f)
        if number == 0x1f { number = try readTagNumber(start) }
        let count = try readLength(start)
        guard let contents = reader.readRange(count) else { throw .truncated(offset: start) }
        return DERElement(
            identifier: identifier, number: number, contents: contents,
            whole: start..<contents.upperBound)
    }

    /// Takes the element that must have the identifier octet `identifier`.
    mutating func read(_ identifier: UInt8) throws(DERError) -> DERElement {
        let start = reader.position
        guard let found = reader.peek else { throw .truncated(offset: start) }
        guard found == identifier else {
            throw .tagMismatch(expected: identifier, found: found, offset: start)
        }
        return try next()
    }

    /// Takes the element `identifier` if it comes next.
    mutating func readOptional(_ identifier: UInt8) throws(DERError) -> DERElement? {
        reader.peek == identifier ? try next() : nil
    }

    /// Takes the constructed element `identifier`: a reader of its contents.
    mutating func enter(_ identifier: UInt8) throws(DERError) -> DERReader {
        DERReader(reader.bytes, try read(identifier).contents)
    }

    /// Takes a BOOLEAN, `00` or `ff`.
    mutating func readBoolean() throws(DERError) -> Bool {
        let element = try read(Tag.boolean)
        guard element.contents.count == 1 else {
            throw .valueMalformed(offset: element.whole.lowerBound)
        }
        switch reader.bytes[element.contents.lowerBound] {
        case 0x00: return false
        case 0xff: return true
        default: throw .valueMalformed(offset: element.whole.lowerBound)
        }
    }

    /// Takes an INTEGER: its two's complement bytes, in the shortest form.
    mutating func readInteger() throws(DERError) -> Range<Int> {
        let element = try read(Tag.integer)
        let contents = element.contents
        guard let first = contents.first.map({ reader.bytes[$0] }) else {
            throw .valueMalformed(offset: element.whole.lowerBound)
        }
        if contents.count > 1 {
            let isPadded = first == 0x00 || first == 0xff
            let second = reader.bytes[contents.lowerBound + 1]
            guard !isPadded || (first ^ second) & 0x80 != 0 else {
                throw .valueMalformed(offset: element.whole.lowerBound)
            }
        }
        return contents
    }

    /// Takes a BIT STRING of whole octets: where they are.
    mutating func readOctetsOfBits() throws(DERError) -> Range<Int> {
        let element = try read(Tag.bitString)
        guard let first = element.contents.first, reader.bytes[first] == 0 else {
            throw .valueMalformed(offset: element.whole.lowerBound)
        }
        return (first + 1)..<element.contents.upperBound
    }

    /// Takes an OBJECT IDENTIFIER.
    mutating func readObjectIdentifier() throws(DERError) -> OID {
        let element = try read(Tag.objectIdentifier)
        guard let oid = OID(reader.bytes[element.contents]) else {
            throw .valueMalformed(offset: element.whole.lowerBound)
        }
        return oid
    }

    private mutating func readTagNumber(_ start: Int) throws(DERError) -> UInt32 {
        var number: UInt32 = 0
        for index in 0..<4 {
            guard let octet = reader.readByte() else { throw .truncated(offset: start) }
            guard index > 0 || octet != 0x80 else { throw .tagNotShortest(offset: start) }
            number = number << 7 | UInt32(octet & 0x7f)
            if octet & 0x80 == 0 {
                guard number >= 0x1f else { throw .tagNotShortest(offset: start) }
                return number
            }
        }
        throw .tagNotShortest(offset: start)
    }

    private mutating func readLength(_ start: Int) throws(DERError) -> Int {
        guard let first = reader.readByte() else { throw .truncated(offset: start) }
        if first < 0x80 { return Int(first) }
        guard first != 0x80 else { throw .lengthIndefinite(offset: start) }
        let octets = Int(first & 0x7f)
        guard octets <= 4 else { throw .truncated(offset: start) }
        var count = 0
        for index in 0..<octets {
            guard let octet = reader.readByte() else { throw .truncated(offset: start) }
            guard index > 0 || octet != 0 else { throw .lengthNotShortest(offset: start) }
            count = count << 8 | Int(octet)
        }
        guard count >= 0x80 else { throw .lengthNotShortest(offset: start) }
        return count
    }
}

/// One element of DER.
struct DERElement {
    /// The first identifier octet: class, form and, below 31, number.
    let identifier: UInt8
    /// The tag number, also where it is above 30.
    let number: UInt32
    /// Where the contents are.
    let contents: Range<Int>
    /// Where the whole element is.
    let whole: Range<Int>
}

/// What is wrong with bytes that should be DER; `offset` counts from the start of what was parsed.
@nonexhaustive
public enum DERError: Error, Equatable, Sendable {
    /// A length is left open, which only BER allows.
    case lengthIndefinite(offset: Int)
    /// A length takes more octets than it needs.
    case lengthNotShortest(offset: Int)
    /// An element of another kind than its place asks for.
    case tagMismatch(expected: UInt8, found: UInt8, offset: Int)
    /// A tag number takes more octets than it needs, or more than four.
    case tagNotShortest(offset: Int)
    /// Bytes follow the last element.
    case trailingBytes(offset: Int)
    /// The bytes end inside an element.
    case truncated(offset: Int)
    /// The contents are not what DER writes for this kind of value.
    case valueMalformed(offset: Int)
}

extension DERError: CustomStringConvertible {
    /// The fault and its place as a clause.
    public var description: String {
        switch self {
        case .lengthIndefinite(let offset): return "indefinite length at byte \(offset)"
        case .lengthNotShortest(let offset): return "length not in shortest form at byte \(offset)"
        case .tagMismatch(let expected, let found, let offset):
            return "expected tag 0x\(hex(expected)), got 0x\(hex(found)) at byte \(offset)"
        case .tagNotShortest(let offset): return "tag not in shortest form at byte \(offset)"
        case .trailingBytes(let offset): return "bytes after the end at byte \(offset)"
        case .truncated(let offset): return "cut off in the element at byte \(offset)"
        case .valueMalformed(let offset): return "malformed value at byte \(offset)"
        }
    }

    private func hex(_ octet: UInt8) -> String { Hex.encode([octet]) }
}
