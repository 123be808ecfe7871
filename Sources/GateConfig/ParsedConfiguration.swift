// The text with positions, before anything is resolved: what `Configuration` is built from and what
// a dump shows.

/// An argument of a directive that was understood.
struct ParsedArgument: Sendable {
    /// The name of a `key=` argument.
    var key: String?
    /// As written, variables replaced.
    var text: String
    var value: Value
    /// Where it stands; nil for a default.
    var place: Place?
}

/// A directive as it stands in a file.
struct ParsedLine {
    let directive: Directive
    var arguments: [ParsedArgument]
    /// Where its name stands.
    let place: Place
    /// Whether a fault of its own arguments has been reported: its values are then defaults and say
    /// nothing about what was meant.
    var isFaulty: Bool
    /// What stands inside, where it is a block.
    var body: ParsedBlock?

    /// The texts of its arguments without keys.
    var words: [String] {
        arguments.filter { $0.key == nil }.map(\.text)
    }

    /// How messages call it: `upstream "orders"`, `route "POST /v1/exports"`, `store`.
    var title: String {
        if directive.name == "host" { return "host \(words.first?.quoted ?? "")" }
        let words = words.joined(separator: " ")
        return words.isEmpty ? directive.name : "\(directive.name) \(words.quoted)"
    }
}

/// The inside of a block, or of a whole file. Identity: the parser adds to the block that is open.
final class ParsedBlock {
    let level: Level
    /// Where its head stands; nil for the top level.
    let head: Place?
    /// As in messages.
    let title: String
    fileprivate(set) var lines: [ParsedLine] = []

    init(level: Level, head: Place?, title: String) {
        self.level = level
        self.head = head
        self.title = title
    }

    /// Appends a line.
    func append(_ line: ParsedLine) {
        lines.append(line)
    }

    /// The lines called `name`, in file order.
    func all(_ name: String) -> [ParsedLine] {
        lines.filter { $0.directive.name == name }
    }

    /// The first line called `name`.
    func first(_ name: String) -> ParsedLine? {
        lines.first { $0.directive.name == name }
    }
}
