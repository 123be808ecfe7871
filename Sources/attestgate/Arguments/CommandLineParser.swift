/// What a command line asks for.
package enum Invocation: Sendable {
    /// Run a command.
    case command(CommandSpecification, ParsedArguments)
    /// Print the help of the commands that begin with these words; of all for none.
    case help([String])
    /// Print the version.
    case version
}

/// Reads a command line by the table of commands.
///
/// Options may stand anywhere behind the command's words, as `--name value`, `--name=value`, `-n
/// value` or `-nvalue`; `--` ends them; `-` alone is an operand.
package struct CommandLineParser {
    private let table: [CommandSpecification]

    /// A parser for the commands of `table`.
    package init(_ table: [CommandSpecification]) {
        self.table = table
    }

    /// What `arguments`, without the program's name, ask for.
    package func parse(_ arguments: [String]) throws(CommandError) -> Invocation {
        guard let first = arguments.first else {
            throw .usage("expected a command")
        }
        switch first {
        case "--help", "-h": return .help([])
        case "--version": return .version
        case "help":
            let words = Array(arguments.dropFirst())
            if !words.isEmpty { try requireKnown(words) }
            return .help(words)
        default: break
        }
        try requireKnown([first])
        let isGroup = table.contains { $0.words.count > 1 && $0.words[0] == first }
        guard isGroup else { return try parse(arguments, wordCount: 1) }
        guard arguments.count > 1 else {
            let words = followers(of: [first]).joined(separator: ", ")
            throw .usage("expected one of \(words) after \"\(first)\"", command: first)
        }
        if arguments[1] == "--help" || arguments[1] == "-h" { return .help([first]) }
        try requireKnown([first, arguments[1]])
        return try parse(arguments, wordCount: 2)
    }

    private func parse(
        _ arguments: [String], wordCount: Int
    ) throws(CommandError) -> Invocation {
        let words = Array(arguments[..<wordCount])
        guard let command = table.first(where: { $0.words == words }) else {
            throw .usage("unknown command \"\(words.joined(separator: " "))\"")
        }
        var reader = OptionReader(command)
        try reader.read(arguments[wordCount...])
        if reader.isHelpAsked { return .help(words) }
        return .command(command, try reader.finish())
    }

    /// Refuses words that begin no command, with the nearest that would.
    private func requireKnown(_ words: [String]) throws(CommandError) {
        for count in 1...words.count {
            let known = followers(of: Array(words[..<(count - 1)]))
            let word = words[count - 1]
            guard !known.contains(word) else { continue }
            let context = words[..<(count - 1)].joined(separator: " ")
            let place = context.isEmpty ? "" : " after \"\(context)\""
            throw .usage(
                "unknown command \"\(word)\"\(place)\(Suggestion.text(word, in: known))",
                command: context)
        }
    }

    /// The words that may follow `words`.
    private func followers(of words: [String]) -> [String] {
        var known: [String] = []
        for command in table
        where command.words.count > words.count && command.words.starts(with: words) {
            let word = command.words[words.count]
            if !known.contains(word) { known.append(word) }
        }
        return known
    }
}

/// Reads what stands behind a command's words.
private struct OptionReader {
    private let command: CommandSpecification
    private var operands: [String] = []
    private var values: [String: [String]] = [:]
    private(set) var isHelpAsked = false

    init(_ command: CommandSpecification) {
        self.command = command
    }

    mutating func read(_ arguments: ArraySlice<String>) throws(CommandError) {
        var rest = arguments
        while let argument = rest.popFirst() {
            if argument == "--" {
                operands += rest
                return
            } else if argument.hasPrefix("--") {
                try readLong(argument.dropFirst(2), &rest)
            } else if argument.hasPrefix("-"), argument != "-" {
                try readShort(argument.dropFirst(), &rest)
            } else {
                operands.append(argument)
            }
        }
    }

    private mutating func readLong(
        _ argument: Substring, _ rest: inout ArraySlice<String>
    ) throws(CommandError) {
        let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        let name = String(parts[0])
        guard let option = command.options.first(where: { $0.name == name }) else {
            let known = command.options.map(\.flag)
            throw fault("unknown option \"--\(name)\"\(Suggestion.text("--" + name, in: known))")
        }
        try read(option, attached: parts.count > 1 ? String(parts[1]) : nil, &rest)
    }

    private mutating func readShort(
        _ argument: Substring, _ rest: inout ArraySlice<String>
    ) throws(CommandError) {
        guard let letter = argument.first,
            let option = command.options.first(where: { $0.letter == letter })
        else { throw fault("unknown option \"-\(argument)\"") }
        let attached = argument.dropFirst()
        try read(option, attached: attached.isEmpty ? nil : String(attached), &rest)
    }

    private mutating func read(
        _ option: OptionSpecification, attached: String?, _ rest: inout ArraySlice<String>
    ) throws(CommandError) {
        if option == CommandSpecification.help { isHelpAsked = true }
        guard let valueName = option.value else {
            guard attached == nil else { throw fault("\(option.flag) takes no value") }
            values[option.name] = []
            return
        }
        let isNextOption = rest.first.map { next in
            command.options.contains { $0.flag == next }
        }
        guard let value = attached ?? (isNextOption == false ? rest.popFirst() : nil) else {
            throw fault("\(option.flag) needs a value: \(option.flag) \(valueName)")
        }
        guard option.choices.isEmpty || option.choices.contains(value) else {
            let known = option.choices.joined(separator: ", ")
            throw fault(
                "\(option.flag): unknown value \"\(value)\""
                    + "\(Suggestion.text(value, in: option.choices)); one of \(known)")
        }
        guard option.isRepeatable || values[option.name] == nil else {
            throw fault("\(option.flag) given twice")
        }
        values[option.name, default: []].append(value)
    }

    /// The arguments, when they are complete.
    func finish() throws(CommandError) -> ParsedArguments {
        if operands.count < command.operands.count {
            throw fault("\(command.operands[operands.count].name) is missing")
        }
        if operands.count > command.operands.count {
            throw fault("unexpected argument \"\(operands[command.operands.count])\"")
        }
        for option in command.required where values[option.name] == nil {
            throw fault("\(option.usage) is missing")
        }
        for set in command.exactlyOneOf {
            let given = set.filter { values[$0.name] != nil }
            if given.isEmpty {
                throw fault(set.map(\.usage).joined(separator: " or ") + " is missing")
            }
            if given.count > 1 {
                throw fault(
                    "\(given[0].flag) and \(given[1].flag) exclude each other; give one")
            }
        }
        return ParsedArguments(command: command.name, operands: operands, values: values)
    }

    private func fault(_ text: String) -> CommandError {
        .usage(text, command: command.name)
    }
}
