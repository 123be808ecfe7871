// The syntax column of the directive table, which is documentation and grammar in one:
//
//   form { " | " form }          alternatives
//   form = { word }              arguments in their order; `key=` ones in any order
//   word = choice { "|" choice } one of these, `…` behind it for one or more
//   choice                       a keyword as written, or a kind of value in capitals
//   [ … ]                        may be left out; every `key=` may
//   ~                            before a choice or a key: not available in this version

/// One form of a directive's arguments.
struct Form: Sendable {
    var positionals: [Positional] = []
    var keys: [Key] = []

    /// An argument by its position.
    struct Positional: Sendable {
        var choices: [Choice]
        var isOptional = false
        var isRepeated = false
    }

    /// A `key=` argument.
    struct Key: Sendable {
        var name: String
        var choices: [Choice]
        var isLater = false
    }

    /// What may stand in one place.
    struct Choice: Sendable {
        enum Meaning: Sendable, Equatable {
            case keyword(String)
            case value(ValueKind)
        }
        var meaning: Meaning
        var isLater = false

        /// The keyword; nil for a kind of value.
        var keyword: String? {
            if case .keyword(let word) = meaning { word } else { nil }
        }

        /// The kind of value; nil for a keyword.
        var kind: ValueKind? {
            if case .value(let kind) = meaning { kind } else { nil }
        }

        /// As the syntax writes it.
        var text: String {
            switch meaning {
            case .keyword(let word): word
            case .value(let kind): kind.rawValue
            }
        }
    }

    /// The forms of a syntax text.
    static func parse(_ syntax: String) -> [Form] {
        var forms = [Form()]
        var isOptional = false
        for word in syntax.split(separator: " ") {
            var rest = word
            if rest == "|" {
                forms.append(Form())
                continue
            }
            if rest.hasPrefix("[") {
                isOptional = true
                rest = rest.dropFirst()
            }
            let closes = rest.hasSuffix("]")
            if closes { rest = rest.dropLast() }
            forms[forms.count - 1].append(rest, isOptional: isOptional)
            if closes { isOptional = false }
        }
        return forms
    }

    private mutating func append(_ word: Substring, isOptional: Bool) {
        let parts = String(word).cut(at: "=")
        if let values = parts.after, !parts.before.isEmpty, parts.before.last != ">",
            parts.before.last != "<"
        {
            let isLater = parts.before.hasPrefix("~")
            keys.append(
                Key(
                    name: String(parts.before.drop { $0 == "~" }), choices: Self.choices(values),
                    isLater: isLater))
            return
        }
        let isRepeated = word.hasSuffix("…")
        positionals.append(
            Positional(
                choices: Self.choices(isRepeated ? word.dropLast() : word), isOptional: isOptional,
                isRepeated: isRepeated))
    }

    private static func choices(_ text: Substring) -> [Choice] {
        text.split(separator: "|").map { word in
            let isLater = word.hasPrefix("~")
            let name = String(isLater ? word.dropFirst() : word)
            let meaning: Choice.Meaning =
                ValueKind(rawValue: name).map(Choice.Meaning.value) ?? .keyword(name)
            return Choice(meaning: meaning, isLater: isLater)
        }
    }
}
