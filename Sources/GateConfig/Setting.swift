/// What a directive comes to in one place: each part from the nearest block that gives it, else
/// from the default.
struct Setting {
    let directive: Directive
    /// The arguments without key.
    var words: [ParsedArgument] = []
    /// The `key=` arguments, in the order of the table.
    var keys: [ParsedArgument] = []
    /// The line it was given on; nil for a default.
    var place: Place?
    /// Whether the line it was given on has a fault, so that nothing may be concluded from it.
    var isFaulty = false

    /// The text of the first argument.
    var text: String { words.first?.text ?? "" }

    /// Whether it comes from a file.
    var isGiven: Bool { place != nil }

    /// The argument called `key`, or the first without key.
    func argument(_ key: String) -> ParsedArgument? {
        key.isEmpty ? words.first : keys.first { $0.key == key }
    }

    /// A count.
    func count(_ key: String = "") -> Int {
        if case .count(let value)? = argument(key)?.value { value } else { 0 }
    }

    /// A size in bytes.
    func size(_ key: String = "") -> Int {
        optionalSize(key) ?? 0
    }

    /// A size in bytes; nil where it is not given.
    func optionalSize(_ key: String) -> Int? {
        if case .size(let value)? = argument(key)?.value { value } else { nil }
    }

    /// A duration.
    func duration(_ key: String = "") -> Duration {
        optionalDuration(key) ?? .zero
    }

    /// A duration; nil where it is not given.
    func optionalDuration(_ key: String) -> Duration? {
        if case .duration(let value)? = argument(key)?.value { value } else { nil }
    }

    /// A rate; nil for `off`.
    func rate(_ key: String) -> Rate? {
        if case .rate(let value)? = argument(key)?.value { value } else { nil }
    }
}

/// Finds settings. The defaults are parsed once, at its making.
struct Resolver {
    /// The default arguments of a directive, one list for each line of its default.
    private var defaults: [Level: [String: [[ParsedArgument]]]] = [:]
    /// What completes a directive that is on, likewise.
    private var completions: [Level: [String: [ParsedArgument]]] = [:]

    /// A resolver that looks up variables of defaults with `environment`.
    init(environment: @escaping (String) -> String?) {
        for directive in DirectiveTable.all {
            defaults[directive.level, default: [:]][directive.name] = directive.defaults.map {
                text in
                Self.parse(text, of: directive, environment)
            }
            guard !directive.completion.isEmpty else { continue }
            // The words in front only choose the form; the keys are what counts.
            let form = directive.forms.first { !$0.keys.isEmpty }
            let words = form?.positionals.map(\.example) ?? []
            let text = (words + [directive.completion]).joined(separator: " ")
            completions[directive.level, default: [:]][directive.name] =
                Self.parse(text, of: directive, environment).filter { $0.key != nil }
        }
    }

    /// The setting of `name`, which may be given once, from the first of `blocks` that gives each
    /// part of it. `first` chooses among the lines of a directive that stands once for each first
    /// argument.
    func setting(
        _ name: String, _ level: Level, in blocks: [ParsedBlock], first: String? = nil
    ) -> Setting {
        guard let directive = DirectiveTable.find(name, at: level) else {
            preconditionFailure("no directive \(name) in \(level)")
        }
        var lines = blocks.compactMap { block in
            block.lines.first { line in
                line.directive.name == name && (first == nil || line.words.first == first)
            }
        }
        // A line that begins with a word has chosen anew: no keys of another choice belong to it.
        if let nearest = lines.first, !nearest.words.isEmpty { lines = [nearest] }
        var setting = Setting(directive: directive)
        setting.place = lines.first?.place
        setting.isFaulty = lines.first?.isFaulty ?? false
        let rest = completion(of: directive, lines) ?? defaultArguments(of: directive, first: first)
        let given = lines.map(\.arguments) + [rest]
        let words = given.first { $0.contains { $0.key == nil } } ?? []
        setting.words = words.filter { $0.key == nil }
        for key in directive.keys {
            let found = given.lazy.compactMap { $0.first { $0.key == key } }.first
            if let found { setting.keys.append(found) }
        }
        return setting
    }

    /// The keys that complete what `lines` give; nil where what was chosen has none.
    private func completion(
        of directive: Directive, _ lines: [ParsedLine]
    ) -> [ParsedArgument]? {
        guard let line = lines.first, !line.arguments.isEmpty,
            directive.form(of: line.words.first)?.keys.isEmpty == false
        else { return nil }
        return completions[directive.level]?[directive.name]
    }

    /// The default of a directive, as if it had been written.
    func defaultArguments(of directive: Directive, first: String? = nil) -> [ParsedArgument] {
        let lines = defaults[directive.level]?[directive.name] ?? []
        return lines.first { first == nil || $0.first?.text == first } ?? []
    }

    private static func parse(
        _ text: String, of directive: Directive, _ environment: @escaping (String) -> String?
    ) -> [ParsedArgument] {
        var faults = Faults()
        faults.files = [SourceFile(name: "", bytes: Array("\(directive.name) \(text)".utf8))]
        var lexer = Lexer(file: 0, of: faults.files, environment: environment)
        guard let line = lexer.next(&faults) else { return [] }
        var parser = ArgumentParser(
            directive, name: line.tokens[0].place, tokens: Array(line.tokens.dropFirst()),
            blockTitle: "")
        parser.parse(&faults)
        return parser.arguments.map { argument in
            var copy = argument
            copy.place = nil
            return copy
        }
    }
}
