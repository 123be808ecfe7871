/// A place in the text of a configuration: a run of characters on one line.
struct Place: Hashable, Sendable {
    /// The number of the file, in the order of first reading.
    var file: Int
    /// From 1.
    var line: Int
    /// From 1, in Unicode scalars.
    var column: Int
    /// At least 1.
    var length: Int
}

/// One file as it was read, in lines.
struct SourceFile: Sendable {
    /// The path as named by the command or by an `include`.
    let name: String
    /// The lines without their ends.
    let lines: [[Unicode.Scalar]]
    /// The numbers of lines that are not UTF-8.
    let undecodable: [Int]

    /// The file `name` with the content `bytes`; a byte order mark and CR before LF are dropped.
    init(name: String, bytes: [UInt8]) {
        self.name = name
        var rest = bytes[...]
        if rest.starts(with: [0xef, 0xbb, 0xbf]) { rest = rest.dropFirst(3) }
        var undecodable: [Int] = []
        lines = rest.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
            .enumerated().map { number, line in
                let text = line.last == UInt8(ascii: "\r") ? line.dropLast() : line
                if String(validating: text, as: UTF8.self) == nil { undecodable.append(number + 1) }
                return Array(String(decoding: text, as: UTF8.self).unicodeScalars)
            }
        self.undecodable = undecodable
    }

    /// Line `number`, from 1, fit for a terminal: controls but tab are replaced.
    func printable(_ number: Int) -> String {
        guard lines.indices.contains(number - 1) else { return "" }
        var text = String.UnicodeScalarView()
        for scalar in lines[number - 1] {
            text.append(scalar.isPrintable || scalar == "\t" ? scalar : "\u{fffd}")
        }
        return String(text)
    }
}

extension Unicode.Scalar {
    /// Whether a terminal shows it: no control, no format or line separator.
    var isPrintable: Bool {
        switch properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator: false
        default: true
        }
    }
}

extension String {
    /// The text in quotes, fit for a message: controls replaced, cut after 80 characters.
    var quoted: String {
        var text = String.UnicodeScalarView()
        for scalar in unicodeScalars.prefix(80) {
            text.append(scalar.isPrintable ? scalar : "\u{fffd}")
        }
        if unicodeScalars.count > 80 { text.append("…") }
        return "\"\(String(text))\""
    }
}
