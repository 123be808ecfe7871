internal import GateBytes

/// The recursive descent behind ``JSONMembers``; its depth is bounded, so its stack is.
struct JSONScanner {
    private let text: [UInt8]
    private let names: [[UInt8]]
    private var index = 0
    private var openNames = JSONNameTable()
    /// The string scanned last, unescaped.
    private var string: [UInt8] = []
    /// What was found for each of the names asked for.
    private(set) var members: [JSONMember?]
    /// Where each of them stands in the text.
    private(set) var ranges: [Range<Int>]
    /// The reference tokens of the pointer to follow; empty for none.
    private let path: [[UInt8]]
    /// What was found at ``path``.
    private(set) var pointed: JSONMember?

    init(_ text: [UInt8], capturing names: [[UInt8]]) {
        self.text = text
        self.names = names
        members = Array(repeating: nil, count: names.count)
        ranges = Array(repeating: 0..<0, count: names.count)
        path = []
    }

    init(_ text: [UInt8], pointing path: [[UInt8]]) {
        self.text = text
        self.path = path
        names = []
        members = []
        ranges = []
    }

    /// Scans a text that is an array, its values, each with its place.
    mutating func scanElements() throws(JSONError) -> [JSONElement] {
        skipWhiteSpace()
        guard let first = peek else { throw .endOfText }
        guard first == UInt8(ascii: "[") else { throw .notAnArray }
        index += 1
        var elements: [JSONElement] = []
        skipWhiteSpace()
        if try !takeEnd(UInt8(ascii: "]")) {
            repeat {
                let start = index
                let value = try scanValue(depth: 1, keep: true, isOnPath: false)
                elements.append(JSONElement(value: value, range: start..<index))
            } while try takeComma(orEnd: UInt8(ascii: "]"))
        }
        skipWhiteSpace()
        guard index == text.count else { throw .trailingBytes }
        return elements
    }

    /// Scans the whole text.
    mutating func scanText() throws(JSONError) {
        skipWhiteSpace()
        guard let first = peek else { throw .endOfText }
        if !path.isEmpty, first == UInt8(ascii: "[") {
            try scanArray(depth: 1, isOnPath: true)
        } else {
            guard first == UInt8(ascii: "{") else { throw .notAnObject }
            try scanObject(depth: 1, isOnPath: !path.isEmpty)
        }
        skipWhiteSpace()
        guard index == text.count else { throw .trailingBytes }
    }

    // MARK: Values

    /// `isOnPath`: the pointer leads to this value, or through it.
    private mutating func scanValue(
        depth: Int, keep: Bool, isOnPath: Bool
    ) throws(JSONError) -> JSONMember {
        guard let byte = peek else { throw .endOfText }
        switch byte {
        case UInt8(ascii: "{"):
            try scanObject(depth: depth + 1, isOnPath: isOnPath)
            return .other
        case UInt8(ascii: "["):
            try scanArray(depth: depth + 1, isOnPath: isOnPath)
            return .other
        case UInt8(ascii: "\""):
            try scanString()
            return keep ? .string(string) : .other
        case UInt8(ascii: "t"): return try scanWord("true")
        case UInt8(ascii: "f"): return try scanWord("false")
        case UInt8(ascii: "n"): return try scanWord("null")
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return try scanNumber()
        default: throw .unexpectedByte
        }
    }

    /// Scans the value that the pointer's first `depth` tokens lead to.
    private mutating func scanPointed(depth: Int) throws(JSONError) {
        let isEnd = depth == path.count
        let value = try scanValue(depth: depth, keep: isEnd, isOnPath: !isEnd)
        if isEnd { pointed = value }
    }

    private mutating func scanObject(depth: Int, isOnPath: Bool) throws(JSONError) {
        guard depth <= JSONMembers.depthMax else { throw .depthExceeded }
        index += 1
        openNames.openObject()
        defer { openNames.closeObject() }
        skipWhiteSpace()
        if try takeEnd(UInt8(ascii: "}")) { return }
        while true {
            guard let quote = peek else { throw .endOfText }
            guard quote == UInt8(ascii: "\"") else { throw .unexpectedByte }
            try scanString()
            guard openNames.insert(string) else { throw .duplicateName }
            let wanted = depth == 1 ? names.firstIndex(of: string) : nil
            let isPointed = isOnPath && string == path[depth - 1]
            skipWhiteSpace()
            try take(UInt8(ascii: ":"))
            skipWhiteSpace()
            if isPointed {
                try scanPointed(depth: depth)
            } else {
                let start = index
                let value = try scanValue(depth: depth, keep: wanted != nil, isOnPath: false)
                if let wanted { (members[wanted], ranges[wanted]) = (value, start..<index) }
            }
            if try !takeComma(orEnd: UInt8(ascii: "}")) { return }
        }
    }

    private mutating func scanArray(depth: Int, isOnPath: Bool) throws(JSONError) {
        guard depth <= JSONMembers.depthMax else { throw .depthExceeded }
        index += 1
        skipWhiteSpace()
        if try takeEnd(UInt8(ascii: "]")) { return }
        // The element that the pointer leads to; its token is written in one way.
        var elementsBefore = isOnPath ? JSONScanner.arrayIndex(path[depth - 1]) : nil
        while true {
            if elementsBefore == 0 {
                try scanPointed(depth: depth)
            } else {
                _ = try scanValue(depth: depth, keep: false, isOnPath: false)
            }
            elementsBefore = elementsBefore.map { $0 - 1 }
            if try !takeComma(orEnd: UInt8(ascii: "]")) { return }
        }
    }

    /// The array index that a reference token is: digits without a leading zero; nil for others.
    private static func arrayIndex(_ token: [UInt8]) -> Int? {
        guard let first = token.first, token.count == 1 || first != UInt8(ascii: "0"),
            token.allSatisfy({ ASCII.isDigit($0) })
        else { return nil }
        return Int(String(decoding: token, as: UTF8.self))
    }

    /// After a value: true for a comma, with the white space behind it; false for the end of the
    /// container.
    private mutating func takeComma(orEnd end: UInt8) throws(JSONError) -> Bool {
        skipWhiteSpace()
        if try takeEnd(end) { return false }
        try take(UInt8(ascii: ","))
        skipWhiteSpace()
        return true
    }

    private mutating func scanWord(_ word: StaticString) throws(JSONError) -> JSONMember {
        let expected = word.withUTF8Buffer { unsafe Array($0) }
        for byte in expected { try take(byte) }
        return .other
    }

    private mutating func scanNumber() throws(JSONError) -> JSONMember {
        let isNegative = peek == UInt8(ascii: "-")
        if isNegative { index += 1 }
        guard let first = peek else { throw .endOfText }
        guard isDigit(first) else { throw .numberInvalid }
        var number: Int? = 0
        repeat {
            guard let digit = peek, isDigit(digit) else { break }
            number = append(Int(digit) - 0x30, to: number, isNegative: isNegative)
            index += 1
        } while first != UInt8(ascii: "0")
        if let next = peek, isDigit(next) { throw .numberInvalid }
        var isInteger = true
        if peek == UInt8(ascii: ".") {
            index += 1
            isInteger = false
            try scanDigits()
        }
        if peek == UInt8(ascii: "e") || peek == UInt8(ascii: "E") {
            index += 1
            isInteger = false
            if peek == UInt8(ascii: "+") || peek == UInt8(ascii: "-") { index += 1 }
            try scanDigits()
        }
        guard isInteger, let number else { return .other }
        return .integer(number)
    }

    private mutating func scanDigits() throws(JSONError) {
        guard let first = peek else { throw .endOfText }
        guard isDigit(first) else { throw .numberInvalid }
        while let byte = peek, isDigit(byte) { index += 1 }
    }

    /// `number` with one more digit; nil once it does not fit.
    private func append(_ digit: Int, to number: Int?, isNegative: Bool) -> Int? {
        guard let number else { return nil }
        let (tenfold, isTooBig) = number.multipliedReportingOverflow(by: 10)
        guard !isTooBig else { return nil }
        let (sum, isOver) =
            isNegative
            ? tenfold.subtractingReportingOverflow(digit) : tenfold.addingReportingOverflow(digit)
        return isOver ? nil : sum
    }

    // MARK: Octets

    private var peek: UInt8? { index < text.count ? text[index] : nil }

    private func isDigit(_ byte: UInt8) -> Bool { byte &- 0x30 < 10 }

    private mutating func take(_ byte: UInt8) throws(JSONError) {
        guard let next = peek else { throw .endOfText }
        guard next == byte else { throw .unexpectedByte }
        index += 1
    }

    private mutating func takeEnd(_ byte: UInt8) throws(JSONError) -> Bool {
        guard let next = peek else { throw .endOfText }
        guard next == byte else { return false }
        index += 1
        return true
    }

    private mutating func skipWhiteSpace() {
        while let byte = peek, byte == 0x20 || byte == 0x0a || byte == 0x0d || byte == 0x09 {
            index += 1
        }
    }
}

// MARK: - Strings

extension JSONScanner {
    /// Scans the string at the quote under `index` into `string`.
    private mutating func scanString() throws(JSONError) {
        index += 1
        string.removeAll(keepingCapacity: true)
        while true {
            guard let byte = peek else { throw .endOfText }
            switch byte {
            case UInt8(ascii: "\""):
                index += 1
                return
            case UInt8(ascii: "\\"):
                index += 1
                try scanEscape()
            case 0..<0x20: throw .controlCharacter
            case 0x20..<0x80: takePlain()
            default: try scanMultibyte(byte)
            }
        }
    }

    /// Takes the run of plain ASCII that starts at `index`.
    private mutating func takePlain() {
        let start = index
        while index < text.count, text[index] &- 0x20 < 0x60, text[index] != UInt8(ascii: "\""),
            text[index] != UInt8(ascii: "\\")
        {
            index += 1
        }
        string.append(contentsOf: text[start..<index])
    }

    /// One scalar of two to four octets (Unicode 3.9, table 3-7: no overlong form, no surrogate,
    /// nothing past U+10FFFF).
    private mutating func scanMultibyte(_ first: UInt8) throws(JSONError) {
        let count: Int
        var second: ClosedRange<UInt8> = 0x80...0xbf
        switch first {
        case 0xc2...0xdf: count = 2
        case 0xe0: (count, second) = (3, 0xa0...0xbf)
        case 0xed: (count, second) = (3, 0x80...0x9f)
        case 0xe1...0xef: count = 3
        case 0xf0: (count, second) = (4, 0x90...0xbf)
        case 0xf1...0xf3: count = 4
        case 0xf4: (count, second) = (4, 0x80...0x8f)
        default: throw .utf8Invalid
        }
        string.append(first)
        for offset in 1..<count {
            guard index + offset < text.count else { throw .endOfText }
            let byte = text[index + offset]
            guard (offset == 1 ? second : 0x80...0xbf).contains(byte) else { throw .utf8Invalid }
            string.append(byte)
        }
        index += count
    }

    private mutating func scanEscape() throws(JSONError) {
        guard let letter = peek else { throw .endOfText }
        index += 1
        switch letter {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): string.append(letter)
        case UInt8(ascii: "b"): string.append(0x08)
        case UInt8(ascii: "f"): string.append(0x0c)
        case UInt8(ascii: "n"): string.append(0x0a)
        case UInt8(ascii: "r"): string.append(0x0d)
        case UInt8(ascii: "t"): string.append(0x09)
        case UInt8(ascii: "u"): try scanUnicodeEscape()
        default: throw .escapeInvalid
        }
    }

    private mutating func scanUnicodeEscape() throws(JSONError) {
        var value = try scanHexadecimal()
        if 0xd800..<0xdc00 ~= value {
            guard let backslash = peek else { throw .endOfText }
            guard backslash == UInt8(ascii: "\\") else { throw .loneSurrogate }
            index += 1
            guard let letter = peek else { throw .endOfText }
            guard letter == UInt8(ascii: "u") else { throw .loneSurrogate }
            index += 1
            let low = try scanHexadecimal()
            guard 0xdc00..<0xe000 ~= low else { throw .loneSurrogate }
            value = 0x10000 + (value - 0xd800) << 10 + (low - 0xdc00)
        }
        guard let scalar = Unicode.Scalar(value) else { throw .loneSurrogate }
        string.append(contentsOf: UTF8.encode(scalar).map { Array($0) } ?? [])
    }

    private mutating func scanHexadecimal() throws(JSONError) -> UInt32 {
        var value: UInt32 = 0
        for _ in 0..<4 {
            guard let byte = peek else { throw .endOfText }
            guard let digit = Hex.value(byte) else { throw .escapeInvalid }
            value = value << 4 | UInt32(digit)
            index += 1
        }
        return value
    }
}
