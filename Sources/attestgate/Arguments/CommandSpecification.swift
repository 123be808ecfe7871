// What the table of commands is made of. One entry feeds the parser, the help and the completion,
// so none of them can know an option that the others do not.

/// One option of a command.
package struct OptionSpecification: Sendable, Equatable {
    /// The long name without its dashes, `app-id`.
    package let name: String
    /// The short name, `c`; most have none.
    package let letter: Character?
    /// What its value is called in the help, `FILE`; nil for a switch.
    package let value: String?
    /// Whether it may be given more than once.
    package let isRepeatable: Bool
    /// The words the value must be one of; empty for any value.
    package let choices: [String]
    /// What it does, a clause.
    package let help: String

    /// An option; a switch where `value` is nil.
    package init(
        _ name: String, letter: Character? = nil, value: String? = nil,
        isRepeatable: Bool = false, choices: [String] = [], help: String
    ) {
        self.name = name
        self.letter = letter
        self.value = value
        self.isRepeatable = isRepeatable
        self.choices = choices
        self.help = help
    }

    /// `--app-id`.
    package var flag: String { "--" + name }

    /// `--app-id ID`.
    var usage: String { value.map { "\(flag) \($0)" } ?? flag }
}

/// One argument of a command that has its meaning by its place.
package struct OperandSpecification: Sendable, Equatable {
    /// What it is called in the help, `FILE`.
    package let name: String
    /// What it is, a clause.
    package let help: String

    /// An operand.
    package init(_ name: String, help: String) {
        self.name = name
        self.help = help
    }
}

/// One command.
package struct CommandSpecification: Sendable {
    /// What a command does with its arguments.
    package typealias Action =
        @Sendable (ParsedArguments, Console) throws(CommandError) -> ExitCode

    /// Its words: `["verify", "attestation"]`.
    package let words: [String]
    /// What it does, one line for the list of commands.
    package let summary: String
    /// Its operands, all required.
    package let operands: [OperandSpecification]
    /// Options that must be given.
    package let required: [OptionSpecification]
    /// Sets of options of which exactly one must be given.
    package let exactlyOneOf: [[OptionSpecification]]
    /// Options that may be left out.
    package let optional: [OptionSpecification]
    /// Paragraphs below the options.
    package let notes: [String]
    let action: Action

    /// A command; `action` runs only with arguments that keep the rules of the other members.
    package init(
        _ words: String..., summary: String, operands: [OperandSpecification] = [],
        required: [OptionSpecification] = [], exactlyOneOf: [[OptionSpecification]] = [],
        optional: [OptionSpecification] = [], notes: [String] = [], action: @escaping Action
    ) {
        precondition((1...2).contains(words.count))
        self.words = words
        self.summary = summary
        self.operands = operands
        self.required = required
        self.exactlyOneOf = exactlyOneOf
        self.optional = optional + [CommandSpecification.help]
        self.notes = notes
        self.action = action
    }

    /// The option that every command has.
    package static let help = OptionSpecification("help", letter: "h", help: "print this help")

    /// Every option, in the order of the help.
    package var options: [OptionSpecification] {
        required + exactlyOneOf.flatMap { $0 } + optional
    }

    /// `verify attestation`.
    package var name: String { words.joined(separator: " ") }

    /// `attestgate verify attestation FILE --app-id ID …`.
    package var usage: String {
        var parts = ["attestgate", name] + operands.map(\.name) + required.map(\.usage)
        parts += exactlyOneOf.map { set in
            "(" + set.map(\.usage).joined(separator: " | ") + ")"
        }
        if optional.count > 1 { parts.append("[options]") }
        return parts.joined(separator: " ")
    }
}
