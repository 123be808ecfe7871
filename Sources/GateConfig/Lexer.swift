// Text to lines of tokens.
//
//   file = { line } ;  line = [ directive | open | "}" ] [ comment ] NEWLINE ;
//   directive = name { SP arg } ;  open = name { SP arg } SP "{" ;  "}" stands alone
//   arg = word | key "=" word | '"' quoted '"' | ">=" | "<="
//
// A `\` at a line's end joins the next line. `#` begins a comment where a token could begin.
// `${NAME}` and `${NAME:-text}` are replaced in arguments, after the text has been cut into tokens:
// a value can never become two.

/// One word of a line.
struct Token: Sendable {
    /// With variables replaced; of `key=value` the value.
    var text: String
    /// Of `key=value` the key.
    var key: String?
    /// Where the word stands; of `key=value` the value.
    var place: Place
    /// Where the whole word stands.
    var wholePlace: Place
    /// Whether it stood in quotes.
    var isQuoted = false
    /// Whether a fault of it has been reported, so that its text means nothing.
    var isFaulty = false
}

/// One line of the grammar: a directive, the head of a block, or its end.
struct LexedLine: Sendable {
    /// The words, the name first; empty for `}`.
    var tokens: [Token]
    /// Where the line's `{` stands.
    var opening: Place?
    /// Where the line's `}` stands.
    var closing: Place?

    /// Whether the line begins a block.
    var opensBlock: Bool { opening != nil }
}

/// Cuts one file into lines of tokens.
struct Lexer {
    private let file: Int
    private let lines: [[Unicode.Scalar]]
    private let environment: (String) -> String?
    private var row = 0
    private var column = 0

    /// A lexer of file number `file`, with `environment` for its variables.
    init(file: Int, of files: [SourceFile], environment: @escaping (String) -> String?) {
        self.file = file
        lines = files[file].lines
        self.environment = environment
    }

    /// The next line that is not empty; nil at the end of the file.
    mutating func next(_ faults: inout Faults) -> LexedLine? {
        while row < lines.count {
            let line = readLine(&faults)
            row += 1
            column = 0
            if let line { return line }
        }
        return nil
    }

    private func place(_ column: Int, _ length: Int) -> Place {
        Place(file: file, line: row + 1, column: column + 1, length: max(1, length))
    }

    /// A `{` or `}` that stands alone.
    private struct Brace {
        let place: Place
        let isOpen: Bool
    }

    private mutating func readLine(_ faults: inout Faults) -> LexedLine? {
        var tokens: [Token] = []
        var braces: [Brace] = []
        while skipSpace() {
            if let isOpen = braceAtHand {
                braces.append(Brace(place: place(column, 1), isOpen: isOpen))
                column += 1
            } else {
                var token = readToken(isFirst: tokens.isEmpty, &faults)
                if !token.isQuoted, !token.isFaulty, lines[row][column - 1] == "{" {
                    let brace = place(column - 1, 1)
                    faults.error(brace, "\"{\" needs a space before it", "write \" {\"")
                    token.text.removeLast()
                    braces.append(Brace(place: brace, isOpen: true))
                }
                tokens.append(token)
            }
        }
        return assemble(tokens, braces, &faults)
    }

    /// Whether the word at hand is `{` (true) or `}` (false); nil for every other.
    private var braceAtHand: Bool? {
        let line = lines[row]
        guard line[column] == "{" || line[column] == "}" else { return nil }
        if column + 1 < line.count, line[column + 1] != " ", line[column + 1] != "\t" { return nil }
        return line[column] == "{"
    }

    /// Puts a line together: `{` ends its line, `}` stands alone. What a misplaced brace does to
    /// the nesting still counts.
    private func assemble(
        _ tokens: [Token], _ braces: [Brace], _ faults: inout Faults
    ) -> LexedLine? {
        guard let first = braces.first else {
            return tokens.isEmpty ? nil : LexedLine(tokens: tokens)
        }
        let before = tokens.filter {
            ($0.wholePlace.line, $0.wholePlace.column) < (first.place.line, first.place.column)
        }
        if let closing = braces.first(where: { !$0.isOpen }) {
            if tokens.isEmpty, braces.count == 1 {
                return LexedLine(tokens: [], closing: closing.place)
            }
            faults.error(
                closing.place, "\"}\" stands beside other words",
                "write one directive a line and \"}\" on a line of its own")
            let depth = braces.reduce(0) { $0 + ($1.isOpen ? 1 : -1) }
            if depth == 0 { return nil }
            return depth < 0
                ? LexedLine(tokens: [], closing: closing.place)
                : LexedLine(tokens: before, opening: first.place)
        }
        if before.count < tokens.count || braces.count > 1 {
            faults.error(first.place, "\"{\" must end its line", "write one directive a line")
        } else if tokens.isEmpty {
            faults.error(
                first.place, "\"{\" has no name before it", "write the block's name first")
        }
        return LexedLine(tokens: before, opening: first.place)
    }

    /// Moves to the next token, over joined lines; false at the end of the line.
    private mutating func skipSpace() -> Bool {
        while true {
            let line = lines[row]
            while column < line.count, line[column] == " " || line[column] == "\t" { column += 1 }
            if column == line.count { return false }
            if line[column] == "#" { return false }
            if line[column] == "\\", column == line.count - 1 {
                guard row + 1 < lines.count else { return false }
                row += 1
                column = 0
                continue
            }
            return true
        }
    }

    private mutating func readToken(isFirst: Bool, _ faults: inout Faults) -> Token {
        lines[row][column] == "\""
            ? readQuoted(&faults) : readWord(isFirst: isFirst, &faults)
    }

    private mutating func readQuoted(_ faults: inout Faults) -> Token {
        let line = lines[row]
        let start = column
        var text = String.UnicodeScalarView()
        var isFaulty = false
        column += 1
        while column < line.count, line[column] != "\"" {
            if line[column] == "\\" {
                guard column + 1 < line.count, line[column + 1] == "\"" || line[column + 1] == "\\"
                else {
                    faults.error(
                        place(column, 1), "unknown escape in quotes", "write \\\" or \\\\")
                    isFaulty = true
                    column += 1
                    continue
                }
                text.append(line[column + 1])
                column += 2
            } else if startsVariable {
                guard let value = readVariable(&faults) else {
                    isFaulty = true
                    continue
                }
                text.append(contentsOf: value.unicodeScalars)
            } else {
                isFaulty = checkCharacter(&faults) || isFaulty
                text.append(line[column])
                column += 1
            }
        }
        if column == line.count {
            faults.error(
                place(start, 1), "the quote is not closed", "write \" at the end of the text")
            isFaulty = true
        } else {
            column += 1
            if column < line.count, line[column] != " ", line[column] != "\t" {
                faults.error(
                    place(column, 1), "a quoted text must end its word", "write a space after it")
                isFaulty = true
            }
        }
        let whole = place(start, column - start)
        return Token(
            text: String(text), key: nil, place: whole, wholePlace: whole, isQuoted: true,
            isFaulty: isFaulty)
    }

    private mutating func readWord(isFirst: Bool, _ faults: inout Faults) -> Token {
        let line = lines[row]
        let start = column
        var text = String.UnicodeScalarView()
        var key: String?
        var valueStart = start
        var isFaulty = false
        while column < line.count, line[column] != " ", line[column] != "\t" {
            if line[column] == "\\", column == line.count - 1 { break }
            if startsVariable {
                if isFirst || valueStart == start && key == nil && beginsKey(from: start) {
                    faults.error(
                        place(column, 2), "a variable may stand in values only",
                        "write the word itself")
                    isFaulty = true
                    while column < line.count, line[column] != " ", line[column] != "\t" {
                        column += 1
                    }
                    break
                }
                guard let value = readVariable(&faults) else {
                    isFaulty = true
                    continue
                }
                text.append(contentsOf: value.unicodeScalars)
                continue
            }
            if line[column] == "=", key == nil, !isFirst, String(text).isKey,
                text.count == column - start
            {
                key = String(text)
                text = String.UnicodeScalarView()
                column += 1
                valueStart = column
                continue
            }
            isFaulty = checkCharacter(&faults) || isFaulty
            if line[column] == "\"", !isFaulty {
                faults.error(
                    place(column, 1), "a quote in the middle of a word",
                    "put quotes around the whole value")
                isFaulty = true
            }
            text.append(line[column])
            column += 1
        }
        let whole = place(start, column - start)
        var token = Token(
            text: String(text), key: key, place: place(valueStart, column - valueStart),
            wholePlace: whole, isFaulty: isFaulty)
        if !isFaulty { checkWord(&token, &faults) }
        return token
    }

    /// Whether the word at `start` has a variable before its first `=`: `${A}=b`.
    private func beginsKey(from start: Int) -> Bool {
        var index = start
        let line = lines[row]
        guard line[start] == "$" else { return false }
        while index < line.count, line[index] != "}" { index += 1 }
        return index + 1 < line.count && line[index + 1] == "="
    }

    /// Habits of other languages, each with its remedy.
    private func checkWord(_ token: inout Token, _ faults: inout Faults) {
        let end = place(column - 1, 1)
        let last = lines[row][column - 1]
        if token.text == "=" {
            faults.error(token.place, "\"=\" stands alone", "write key=value without spaces")
        } else if let key = token.key, token.text.isEmpty, last == "=" {
            faults.error(
                token.wholePlace, "\"\(key)=\" has no value", "write \(key)=VALUE without spaces")
        } else if last == ";" {
            faults.error(end, "a line needs no semicolon", "delete \";\"")
        } else {
            return
        }
        token.isFaulty = true
    }

    /// Whether the character at hand must not stand in a file; reported.
    private func checkCharacter(_ faults: inout Faults) -> Bool {
        let scalar = lines[row][column]
        guard !scalar.isPrintable else { return false }
        let digits = String(scalar.value, radix: 16)
        faults.error(
            place(column, 1), "invisible character U+\(digits.uppercased())", "delete it")
        return true
    }

    private var startsVariable: Bool {
        let line = lines[row]
        return line[column] == "$" && column + 1 < line.count && line[column + 1] == "{"
    }

    /// Reads `${NAME}` or `${NAME:-text}`; nil when it has no value, reported.
    private mutating func readVariable(_ faults: inout Faults) -> String? {
        let line = lines[row]
        let start = column
        guard let end = line[column...].firstIndex(of: "}") else {
            faults.error(place(start, 2), "\"${\" is not closed", "write ${NAME} or ${NAME:-text}")
            column = line.count
            return nil
        }
        column = end + 1
        let inside = String(String.UnicodeScalarView(line[(start + 2)..<end]))
        let parts = inside.cut(at: ":-")
        let name = String(parts.before)
        let whole = place(start, column - start)
        guard name.isVariableName else {
            faults.error(
                whole, "\(name.quoted) is no name of a variable", "write ${NAME} or ${NAME:-text}")
            return nil
        }
        if let value = environment(name), !value.isEmpty || parts.after == nil { return value }
        if let fallback = parts.after { return String(fallback) }
        faults.error(whole, "${\(name)} is not set; write ${\(name):-/path} for a default")
        return nil
    }
}

extension String {
    /// Whether the text is the name of a `key=`: lower-case letters, digits and `_`.
    fileprivate var isKey: Bool {
        guard let first = utf8.first, first == UInt8(ascii: "_") || isLetter(first) else {
            return false
        }
        return utf8.allSatisfy { isLetter($0) || (0x30...0x39).contains($0) || $0 == 0x5f }
    }

    private func isLetter(_ byte: UInt8) -> Bool { (0x61...0x7a).contains(byte | 0x20) }

    fileprivate var isVariableName: Bool { isKey }

    /// The text before and after the first `separator`.
    func cut(at separator: String) -> (before: Substring, after: Substring?) {
        guard let range = firstRange(of: separator) else { return (self[...], nil) }
        return (self[..<range.lowerBound], self[range.upperBound...])
    }
}
