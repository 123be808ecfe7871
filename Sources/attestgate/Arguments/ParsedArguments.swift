/// The arguments of one command as the table allows them, still text. Each command resolves them
/// into values of its own before it does anything.
package struct ParsedArguments: Sendable, Equatable {
    /// The command they belong to, for messages.
    package let command: String
    /// One for each operand of the command.
    package let operands: [String]
    private let values: [String: [String]]

    init(command: String, operands: [String], values: [String: [String]]) {
        self.command = command
        self.operands = operands
        self.values = values
    }

    /// The value of `option`; nil when it was not given.
    package subscript(option: OptionSpecification) -> String? {
        values[option.name]?.last
    }

    /// The values of a repeatable option, in order.
    package func all(_ option: OptionSpecification) -> [String] {
        values[option.name] ?? []
    }

    /// Whether a switch, or any option, was given.
    package func has(_ option: OptionSpecification) -> Bool {
        values[option.name] != nil
    }

    /// A usage error of this command.
    package func fault(_ text: String) -> CommandError {
        .usage(text, command: command)
    }

    /// The value of `option` as `resolve` makes it; nil when it was not given, a usage error that
    /// says what was `expected` when `resolve` makes nothing of it.
    package func resolved<Value>(
        _ option: OptionSpecification, expected: String, _ resolve: (String) -> Value?
    ) throws(CommandError) -> Value? {
        guard let text = self[option] else { return nil }
        guard let value = resolve(text) else {
            throw fault("\(option.flag): expected \(expected), got \"\(text)\"")
        }
        return value
    }
}
