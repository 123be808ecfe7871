/// Swift source with comments and the contents of string literals blanked out, lines kept.
///
/// Enough of Swift's lexical rules for searching: line and nested block comments, plain,
/// multi-line and raw strings. An interpolation counts as part of its literal.
struct SwiftText {
    private(set) var code: [String] = []

    private enum State {
        case blockComment(depth: Int)
        case code
        case lineComment
        case string(pounds: Int, isMultiline: Bool)
    }

    private var state = State.code
    private var line: [UInt8] = []
    private var input: [UInt8] = []
    private var index = 0

    init(_ lines: [String]) {
        input = Array(lines.joined(separator: "\n").utf8)
        while index < input.count {
            if input[index] == Byte.newline {
                endLine()
                index += 1
                continue
            }
            switch state {
            case .blockComment(let depth): readComment(depth)
            case .code: readCode()
            case .lineComment: skipLine()
            case .string(let pounds, let isMultiline): readString(pounds, isMultiline)
            }
        }
        code.append(String(decoding: line, as: UTF8.self))
    }

    /// Text that was blanked before.
    init(code: [String]) {
        self.code = code
    }

    private enum Byte {
        static let backslash = UInt8(ascii: "\\")
        static let close = UInt8(ascii: ")")
        static let newline = UInt8(ascii: "\n")
        static let open = UInt8(ascii: "(")
        static let pound = UInt8(ascii: "#")
        static let quote = UInt8(ascii: "\"")
        static let slash = UInt8(ascii: "/")
        static let star = UInt8(ascii: "*")
    }

    private mutating func endLine() {
        code.append(String(decoding: line, as: UTF8.self))
        line.removeAll(keepingCapacity: true)
        switch state {
        case .lineComment: state = .code
        case .string(_, isMultiline: false): state = .code
        default: break
        }
    }

    private func byte(_ at: Int) -> UInt8 { at < input.count ? input[at] : 0 }

    private func isQuote(at start: Int, count: Int, pounds: Int = 0) -> Bool {
        for offset in 0..<count where byte(start + offset) != Byte.quote { return false }
        for offset in 0..<pounds where byte(start + count + offset) != Byte.pound { return false }
        return true
    }

    private mutating func skipLine() {
        while index < input.count, input[index] != Byte.newline { index += 1 }
    }

    private mutating func readCode() {
        let first = input[index]
        if first == Byte.slash, byte(index + 1) == Byte.slash {
            state = .lineComment
            return
        }
        if first == Byte.slash, byte(index + 1) == Byte.star {
            state = .blockComment(depth: 1)
            index += 2
            return
        }
        if first == Byte.pound || first == Byte.quote {
            var pounds = 0
            while byte(index + pounds) == Byte.pound { pounds += 1 }
            if isQuote(at: index + pounds, count: 1) {
                let isMultiline = isQuote(at: index + pounds, count: 3)
                state = .string(pounds: pounds, isMultiline: isMultiline)
                line.append(Byte.quote)
                index += pounds + (isMultiline ? 3 : 1)
                return
            }
        }
        line.append(first)
        index += 1
    }

    private mutating func readComment(_ depth: Int) {
        if input[index] == Byte.slash, byte(index + 1) == Byte.star {
            state = .blockComment(depth: depth + 1)
            index += 2
        } else if input[index] == Byte.star, byte(index + 1) == Byte.slash {
            state = depth == 1 ? .code : .blockComment(depth: depth - 1)
            index += 2
        } else {
            index += 1
        }
    }

    private mutating func readString(_ pounds: Int, _ isMultiline: Bool) {
        if input[index] == Byte.backslash {
            var found = 0
            while found < pounds, byte(index + 1 + found) == Byte.pound { found += 1 }
            if found == pounds {
                if byte(index + 1 + pounds) == Byte.open {
                    skipInterpolation(from: index + 2 + pounds)
                } else {
                    index += 2 + pounds
                }
                return
            }
        }
        let width = isMultiline ? 3 : 1
        if isQuote(at: index, count: width, pounds: pounds) {
            line.append(Byte.quote)
            index += width + pounds
            state = .code
        } else {
            index += 1
        }
    }

    /// Goes past an interpolation, literals inside it included.
    private mutating func skipInterpolation(from start: Int) {
        var depth = 1
        var isQuoted = false
        index = start
        while index < input.count, depth > 0, input[index] != Byte.newline {
            switch input[index] {
            case Byte.quote: isQuoted.toggle()
            case Byte.open where !isQuoted: depth += 1
            case Byte.close where !isQuoted: depth -= 1
            default: break
            }
            index += 1
        }
    }
}

extension SwiftText {
    /// A function, initializer, deinitializer or subscript with a body.
    struct Function: Equatable {
        let line: Int
        let lineCount: Int
    }

    /// The functions with a body, with the number of lines from keyword to closing brace.
    func functions() -> [Function] {
        var found: [Function] = []
        for (number, text) in code.enumerated() where Self.isDeclaration(text) {
            if let last = endOfBody(from: number) {
                found.append(Function(line: number + 1, lineCount: last - number + 1))
            }
        }
        return found
    }

    /// Whether a line begins a declaration that may have a body.
    private static func isDeclaration(_ text: String) -> Bool {
        guard
            text.contains("func ") || text.contains("init") || text.contains("deinit")
                || text.contains("subscript")
        else { return false }
        return text.firstMatch(of: keyword) != nil
    }

    /// A declaration that may have a body, behind its attributes and modifiers.
    private static var keyword: Regex<Substring> {
        /^ *(?:@[A-Za-z_]+(?:\([^)]*\))? +|[a-z]+(?:\([a-z]+\))? +)*(?:func |init[?(<]|deinit\b|subscript[(<])/
    }

    /// The line of the brace that closes the body which opens at or after `start`; nil without
    /// body.
    private func endOfBody(from start: Int) -> Int? {
        var depth = 0
        var parentheses = 0
        for number in start..<code.count {
            // A requirement of a protocol has no body: the next declaration or brace ends it.
            if depth == 0, parentheses == 0, number > start {
                let text = code[number].drop { $0 == " " }
                if text.isEmpty || text.hasPrefix("}") { return nil }
                if Self.isDeclaration(code[number]) { return nil }
            }
            for character in code[number].utf8 {
                switch character {
                case Byte.open: parentheses += 1
                case Byte.close: parentheses -= 1
                case UInt8(ascii: "{") where parentheses == 0: depth += 1
                case UInt8(ascii: "}") where parentheses == 0:
                    depth -= 1
                    if depth == 0 { return number }
                    if depth < 0 { return nil }
                default: break
                }
            }
        }
        return nil
    }
}
