/// The help text, made of the table.
package struct Help {
    private let table: [CommandSpecification]

    /// The help of `table`.
    package init(_ table: [CommandSpecification]) {
        self.table = table
    }

    /// The help of the one command that `words` are, or the list of those that begin with them.
    package func text(_ words: [String]) -> String {
        if let command = table.first(where: { $0.words == words }) { return Help.text(command) }
        return list(words)
    }

    private func list(_ words: [String]) -> String {
        let prefix = (["attestgate"] + words).joined(separator: " ")
        var text = "usage: \(prefix) COMMAND [arguments]\n\n"
        if words.isEmpty {
            text = "attestgate: a reverse proxy that verifies Apple App Attest\n\n" + text
        }
        let commands = table.filter { $0.words.starts(with: words) }
        let width = commands.map(\.name.count).max() ?? 0
        for command in commands {
            text += "  \(command.name.padded(to: width))  \(command.summary)\n"
        }
        if words.isEmpty {
            text +=
                "\nattestgate COMMAND --help tells more. A FILE is raw bytes or base64 text; - is "
            text += "standard input.\nExit codes: 0 done, 1 the thing checked did not hold, "
            text += "2 usage or configuration,\n3 a file, a port or a permission.\n"
        }
        return text
    }

    private static func text(_ command: CommandSpecification) -> String {
        var text = wrapped("usage: \(command.usage)", indent: 11, first: 0)
        text += "\n\(command.summary)\n"
        var rows = command.operands.map { ($0.name, $0.help) }
        if !rows.isEmpty { text += "\n" + table(rows) }
        rows = command.options.map { option in
            let letter = option.letter.map { "-\($0), " } ?? "    "
            var help = option.help
            if !option.choices.isEmpty {
                help += ": " + option.choices.joined(separator: ", ")
            }
            if option.isRepeatable { help += "; may be repeated" }
            return (letter + option.usage, help)
        }
        text += "\n" + table(rows)
        for note in command.notes { text += "\n" + wrapped(note, indent: 0, first: 0) }
        return text
    }

    private static let width = 92
    private static let nameWidthMax = 32

    private static func table(_ rows: [(name: String, help: String)]) -> String {
        let nameWidth = min(nameWidthMax, rows.map(\.name.count).max() ?? 0)
        return rows.map { row in
            let name = "  " + row.name.padded(to: nameWidth) + "  "
            let isWide = row.name.count > nameWidth
            let help = wrapped(row.help, indent: nameWidth + 4, first: nameWidth + 4)
            return isWide
                ? "  \(row.name)\n\(help)"
                : name + help.drop { $0 == " " }
        }.joined()
    }

    /// `text` in lines of at most ``width`` characters, the first after `first` spaces, the others
    /// after `indent`.
    private static func wrapped(_ text: String, indent: Int, first: Int) -> String {
        var lines: [String] = []
        var line = String(repeating: " ", count: first)
        var isEmpty = true
        for word in text.split(separator: " ") {
            if !isEmpty, line.count + 1 + word.count > width {
                lines.append(line)
                line = String(repeating: " ", count: indent)
                isEmpty = true
            }
            line += (isEmpty ? "" : " ") + word
            isEmpty = false
        }
        lines.append(line)
        return lines.joined(separator: "\n") + "\n"
    }
}

extension String {
    /// The text with spaces behind it, up to `width` characters.
    func padded(to width: Int) -> String {
        self + String(repeating: " ", count: max(0, width - count))
    }
}
