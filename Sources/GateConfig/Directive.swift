/// Where a directive stands: the top of a file or the inside of a block.
enum Level: String, Sendable, CaseIterable {
    case admin
    case app
    case apple
    case host
    case jwt = "host › account jwt"
    case listener
    case listenerTLS = "listener › tls"
    case log
    case proof = "host › proof"
    case route = "host › route"
    case spool
    case store
    case top = "the top level"
    case upstream
    case upstreamTLS = "upstream › tls"
}

/// One row of the directive table: what feeds parser, messages, dump and reference.
struct Directive: Sendable {
    /// How often it may stand in one block.
    enum Repeats: Sendable {
        case always
        /// Once for each first argument.
        case byFirstArgument
        case never
    }

    let name: String
    let level: Level
    /// As in `Syntax.swift`.
    let syntax: String
    /// The forms of `syntax`.
    let forms: [Form]
    /// The names of all its `key=` arguments.
    let keys: [String]
    /// The arguments where it is not given; empty for none.
    var defaults: [String] = []
    /// The `key=` arguments that hold where it is given, is not off and leaves them out.
    var completion = ""
    /// One clause for the reference.
    let meaning: String
    /// What stands inside, where it is a block.
    var opens: Level?
    /// The first argument with which it is a block; nil where it always is.
    var opensWith: String?
    /// Whether it is not available in this version.
    var isLater = false
    var isRequired = false
    var repeats = Repeats.never
    /// Bounds of numbers, by key; `""` is the first positional one.
    var bounds: [String: ClosedRange<Int>] = [:]
    /// What a secret or file of it is called.
    var noun = "value"

    init(_ name: String, _ level: Level, _ syntax: String, _ meaning: String) {
        self.name = name
        self.level = level
        self.syntax = syntax
        self.meaning = meaning
        forms = Form.parse(syntax)
        keys = forms.flatMap(\.keys).reduce(into: []) { names, key in
            if !names.contains(key.name) { names.append(key.name) }
        }
    }

    /// The directive with the values used where it is not given.
    func defaulting(_ texts: String...) -> Directive {
        var copy = self
        copy.defaults = texts
        return copy
    }

    /// The directive, off by default, with the keys that hold where it is on.
    func completing(_ text: String) -> Directive {
        var copy = self
        copy.completion = text
        return copy
    }

    /// The directive as a block with `level` inside.
    func opening(_ level: Level, with keyword: String? = nil) -> Directive {
        var copy = self
        copy.opens = level
        copy.opensWith = keyword
        return copy
    }

    /// The directive as one of a later version.
    var later: Directive {
        var copy = self
        copy.isLater = true
        return copy
    }

    /// The directive as one that must be given.
    var required: Directive {
        var copy = self
        copy.isRequired = true
        return copy
    }

    /// The directive as one that may be given several times.
    func repeating(_ repeats: Repeats = .always) -> Directive {
        var copy = self
        copy.repeats = repeats
        return copy
    }

    /// The directive with bounds of its numbers.
    func within(_ bounds: [String: ClosedRange<Int>]) -> Directive {
        var copy = self
        copy.bounds = bounds
        return copy
    }

    /// The directive with a word for its secret or file.
    func calling(_ noun: String) -> Directive {
        var copy = self
        copy.noun = noun
        return copy
    }

    /// The form of arguments that begin with `word`; nil when none does.
    func form(of word: String?) -> Form? {
        guard let word else { return forms.first { $0.positionals.isEmpty } }
        return forms.first { form in
            form.positionals.first?.choices.contains { $0.keyword == word } ?? false
        }
            ?? forms.first { form in
                form.positionals.first?.choices.contains { $0.kind != nil } ?? false
            }
    }

    /// Whether it is only ever a block.
    var isBlock: Bool { opens != nil && opensWith == nil }
}
