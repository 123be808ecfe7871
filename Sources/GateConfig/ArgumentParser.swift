/// Fits the words of one line to the forms of its directive.
struct ArgumentParser {
    private let directive: Directive
    private let name: Place
    private let tokens: [Token]
    /// How messages call the block the line stands in.
    private let blockTitle: String
    private(set) var arguments: [ParsedArgument] = []
    private(set) var isFaulty = false
    /// Whether a word could not even be read, so that their number says nothing.
    private var hasUnreadable = false
    /// Whether something of a later version has been reported already.
    private var hasLater = false

    init(_ directive: Directive, name: Place, tokens: [Token], blockTitle: String) {
        self.directive = directive
        self.name = name
        self.tokens = tokens
        self.blockTitle = blockTitle
        isFaulty = tokens.contains(where: \.isFaulty)
    }

    /// Parses the arguments and reports what is wrong with them.
    mutating func parse(_ faults: inout Faults) {
        if directive.syntax.isEmpty {
            if let extra = tokens.first, !extra.isFaulty {
                fail(
                    &faults, extra.wholePlace, "\"\(directive.name)\" takes no arguments",
                    "delete it")
            }
            return
        }
        let positionals = tokens.filter { $0.key == nil }
        hasUnreadable = isFaulty
        guard let form = chooseForm(positionals, &faults) else { return }
        parsePositionals(positionals, form, &faults)
        parseKeys(form, &faults)
        if tokens.isEmpty, form.positionals.isEmpty {
            fail(&faults, name, "\"\(directive.name)\" needs a value", "write \(directive.usage)")
        }
    }

    private mutating func fail(
        _ faults: inout Faults, _ place: Place, _ message: String, _ remedy: String = ""
    ) {
        faults.error(place, message, remedy)
        isFaulty = true
    }

    private mutating func failLater(
        _ faults: inout Faults, _ place: Place, _ what: String, _ remedy: String
    ) {
        isFaulty = true
        guard !hasLater, !directive.isLater else { return }
        hasLater = true
        faults.error(place, "\"\(what)\" is not available in this version", remedy)
    }

    /// The form the first word belongs to.
    private mutating func chooseForm(
        _ positionals: [Token], _ faults: inout Faults
    ) -> Form? {
        if directive.forms.count == 1 { return directive.forms[0] }
        guard let first = positionals.first else {
            if let form = directive.forms.first(where: { $0.positionals.isEmpty }), !tokens.isEmpty
            {
                return form
            }
            fail(&faults, name, "\"\(directive.name)\" needs a value", "write \(directive.usage)")
            return nil
        }
        let named = directive.forms.first { form in
            form.positionals.first?.choices.contains { $0.keyword == first.text } ?? false
        }
        let valued = directive.forms.first { form in
            form.positionals.first?.choices.contains { $0.kind != nil } ?? false
        }
        if let form = named ?? valued { return form }
        guard !first.isFaulty else { return nil }
        if directive.forms.contains(where: { $0.positionals.isEmpty }) {
            // What it takes besides are keys, which the choices of a word do not show.
            fail(
                &faults, first.place, "unknown \(directive.name) \(first.text.quoted)",
                "write \(directive.usage)")
        } else {
            failUnknown(&faults, first, directive.forms.flatMap(\.firstChoices))
        }
        return nil
    }

    /// Reports a word that is none of the keywords that may stand there.
    private mutating func failUnknown(
        _ faults: inout Faults, _ token: Token, _ choices: [Form.Choice]
    ) {
        let keywords = choices.compactMap(\.keyword)
        if let near = NearestWord.find(token.text, in: keywords) {
            failMisspelt(&faults, token, near)
        } else {
            let available = choices.filter { !$0.isLater }.map(\.text)
            fail(
                &faults, token.place, "unknown \(token.key ?? directive.name) \(token.text.quoted)",
                "write \(available.alternatives)")
        }
    }

    private mutating func failMisspelt(_ faults: inout Faults, _ token: Token, _ near: String) {
        let what = token.key ?? directive.name
        fail(
            &faults, token.place,
            "unknown \(what) \(token.text.quoted); did you mean \"\(near)\"?")
    }

    private mutating func parsePositionals(
        _ words: [Token], _ form: Form, _ faults: inout Faults
    ) {
        var rest = words[...]
        for positional in form.positionals {
            var isMissing = !positional.isOptional
            while let word = rest.first {
                if positional.isOptional, !positional.accepts(word.text) { break }
                parseWord(word, positional.choices, &faults)
                rest = rest.dropFirst()
                isMissing = false
                if !positional.isRepeated { break }
            }
            if isMissing {
                if words.isEmpty, !tokens.isEmpty, !directive.defaults.isEmpty { return }
                if isFaulty { return }
                let what = positional.choices.filter { !$0.isLater }.map(\.text).alternatives
                fail(
                    &faults, name, "\"\(directive.name)\" needs \(what)", "write \(directive.usage)"
                )
                return
            }
        }
        if let extra = rest.first, !hasUnreadable { failExtra(&faults, words, extra) }
    }

    private mutating func failExtra(_ faults: inout Faults, _ words: [Token], _ extra: Token) {
        if directive.takesOneReference, let first = words.first {
            fail(
                &faults, extra.wholePlace,
                "\(blockTitle) takes one \(directive.name): \(first.text.quoted) and "
                    + "\(extra.text.quoted) given", "delete one")
        } else {
            fail(
                &faults, extra.wholePlace,
                "\(extra.text.quoted) is too much for \"\(directive.name)\"",
                "write \(directive.usage)")
        }
    }

    private mutating func parseKeys(_ form: Form, _ faults: inout Faults) {
        var seen: [String: Token] = [:]
        for token in tokens {
            guard let name = token.key else { continue }
            guard let key = form.keys.first(where: { $0.name == name }) else {
                if !token.isFaulty { failUnknownKey(&faults, token, name, form) }
                continue
            }
            if seen[name] != nil {
                fail(
                    &faults, token.wholePlace,
                    "key \"\(name)\" is given twice in \"\(directive.name)\"", "delete one")
                continue
            }
            seen[name] = token
            if key.isLater {
                failLater(
                    &faults, token.wholePlace, "\(directive.name) \(name)=", "delete it")
            }
            parseWord(token, key.choices, &faults)
        }
    }

    private mutating func failUnknownKey(
        _ faults: inout Faults, _ token: Token, _ name: String, _ form: Form
    ) {
        var place = token.wholePlace
        place.length = name.unicodeScalars.count
        let known = form.keys.map(\.name)
        if known.isEmpty {
            fail(
                &faults, place, "\"\(directive.name)\" takes no key \"\(name)\"",
                "write \(directive.usage)")
        } else if let near = NearestWord.find(name, in: known) {
            fail(
                &faults, place,
                "unknown key \"\(name)\" in \"\(directive.name)\"; did you mean \"\(near)\"?")
        } else {
            let home = DirectiveTable.home(ofKey: name, except: directive)
            fail(
                &faults, place, "unknown key \"\(name)\" in \"\(directive.name)\"",
                home.map { "it belongs in \($0)" } ?? "known: \(known.joined(separator: ", "))")
        }
    }

    /// Parses one word as one of `choices`.
    private mutating func parseWord(
        _ token: Token, _ choices: [Form.Choice], _ faults: inout Faults
    ) {
        guard !token.isFaulty else { return }
        if let choice = choices.first(where: { $0.keyword == token.text }) {
            if choice.isLater { failLaterChoice(&faults, token, choices) }
            add(token, .keyword(token.text))
            return
        }
        var failure: ValueError?
        for choice in choices {
            guard let kind = choice.kind else { continue }
            do throws(ValueError) {
                let value = try kind.parse(
                    token.text, bounds: directive.bounds[token.key ?? ""], noun: directive.noun)
                if choice.isLater { failLaterChoice(&faults, token, choices) }
                add(token, value)
                return
            } catch {
                failure = error
            }
        }
        if let failure {
            failValue(&faults, token, failure, choices)
        } else {
            failUnknown(&faults, token, choices)
        }
    }

    private mutating func failLaterChoice(
        _ faults: inout Faults, _ token: Token, _ choices: [Form.Choice]
    ) {
        let name = token.key.map { "\($0)=" } ?? "\(directive.name) "
        let others = directive.forms.flatMap(\.firstChoices).filter { !$0.isLater }.map(\.text)
        let isFirst = tokens.first { $0.key == nil }?.wholePlace == token.wholePlace
        let same = choices.filter { !$0.isLater }.map(\.text)
        let words = isFirst && same.isEmpty ? others : same
        failLater(
            &faults, token.place, name + token.text,
            words.isEmpty ? "delete it" : "write \(words.alternatives)")
    }

    private mutating func failValue(
        _ faults: inout Faults, _ token: Token, _ error: ValueError, _ choices: [Form.Choice]
    ) {
        if error.isSecret {
            faults.secretError(token.place, error.message, error.remedy)
            isFaulty = true
        } else if let near = NearestWord.find(token.text, in: choices.compactMap(\.keyword)) {
            failMisspelt(&faults, token, near)
        } else {
            fail(&faults, token.place, error.message, error.remedy)
        }
    }

    private mutating func add(_ token: Token, _ value: Value) {
        arguments.append(
            ParsedArgument(key: token.key, text: token.text, value: value, place: token.place))
    }
}

extension Form {
    /// What the form may begin with.
    var firstChoices: [Choice] { positionals.first?.choices ?? [] }
}

extension Form.Positional {
    /// A word that may stand there.
    var example: String {
        choices.first?.keyword ?? (choices.first?.kind == .count ? "1" : "/")
    }

    /// Whether `word` is one of its keywords, or a value of its kind.
    func accepts(_ word: String) -> Bool {
        choices.contains { choice in
            if choice.keyword == word { return true }
            guard let kind = choice.kind else { return false }
            do throws(ValueError) {
                _ = try kind.parse(word, bounds: nil, noun: "")
                return true
            } catch {
                return false
            }
        }
    }
}

extension Directive {
    /// Whether it names exactly one other block.
    var takesOneReference: Bool {
        syntax == "NAME" && !isBlock && (level == .host || level == .route)
    }

    /// How the directive is written in this version.
    var usage: String {
        let forms = forms.compactMap { form -> String? in
            var words: [String] = []
            for positional in form.positionals {
                let choices = positional.choices.filter { !$0.isLater || isLater }
                if choices.isEmpty {
                    if positional.isOptional { continue }
                    return nil
                }
                let text = choices.map(\.text).joined(separator: "|")
                let word = positional.isRepeated ? text + "…" : text
                words.append(positional.isOptional ? "[\(word)]" : word)
            }
            let keys = form.keys.filter { !$0.isLater || isLater }
            if words.isEmpty, keys.isEmpty { return nil }
            words += keys.map { "\($0.name)=\($0.choices.map(\.text).joined(separator: "|"))" }
            return words.joined(separator: " ")
        }
        let text = ([name] + (forms.isEmpty ? [] : [forms.joined(separator: " | ")]))
            .joined(separator: " ")
        return isBlock ? text + " {" : text
    }
}

extension Directive {
    /// The directive with an example for its value where that says more than its kind.
    var example: String {
        guard forms.count == 1, let first = forms[0].positionals.first,
            let kind = first.choices.first?.kind, first.choices.count == 1, kind != .name
        else { return usage }
        return "\(name) \(kind.example)"
    }
}

extension Array where Element == String {
    /// `a, b or c`.
    var alternatives: String {
        guard count > 1, let last else { return first ?? "" }
        return dropLast().joined(separator: ", ") + " or " + last
    }
}

extension DirectiveTable {
    /// Where a key of this name belongs, `listener › timeouts`; nil where there is none.
    static func home(ofKey name: String, except directive: Directive) -> String? {
        all.first {
            $0.keys.contains(name) && !($0.name == directive.name && $0.level == directive.level)
        }
        .map(\.path)
    }

    /// What a misspelt or misplaced `name` at `level` may have meant: a remedy; empty when nothing
    /// is near.
    static func suggestion(for name: String, at level: Level) -> String {
        let here = rows(at: level)
        if let row = here.first(where: { $0.keys.contains(name) }) {
            return "it belongs in \(row.path)"
        }
        let homes = all.filter { $0.name == name }.map(\.level.inside)
        if !homes.isEmpty { return "it belongs \(homes.alternatives)" }
        if let row = all.first(where: { $0.keys.contains(name) }) {
            return "it belongs in \(row.path)"
        }
        if let near = NearestWord.find(name, in: here.map(\.name) + ["include"]) {
            return "did you mean \"\(near)\"?"
        }
        if let near = NearestWord.find(name, in: here.flatMap(\.keys)),
            let row = here.first(where: { $0.keys.contains(near) })
        {
            return "did you mean \"\(near)\"? it belongs in \(row.path)"
        }
        if let near = NearestWord.find(name, in: all.map(\.name)),
            let row = all.first(where: { $0.name == near })
        {
            return "did you mean \"\(near)\"? it belongs \(row.level.inside)"
        }
        return "known here: \((here.map(\.name) + ["include"]).joined(separator: ", "))"
    }
}

extension Directive {
    /// `listener › timeouts`.
    var path: String { level == .top ? name : "\(level.rawValue) › \(name)" }
}

extension Level {
    /// `in listener`, `at the top level`.
    var inside: String { self == .top ? "at \(rawValue)" : "in \(rawValue)" }
}
