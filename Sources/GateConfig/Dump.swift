/// The resolved configuration as text: every value with the line that set it.
///
/// A line for each directive, or for each part of one that was set elsewhere, in the order of the
/// table: `limits connections=10  # proxy.conf:9`, `limits per_address=200 …  # default`. Secrets
/// are shown as the reference that names them.
package struct Dump: Sendable, Equatable {
    /// One line of the dump.
    package struct Line: Sendable, Equatable {
        /// The blocks it stands in, the outermost first.
        package let blocks: [String]
        /// The directive with its arguments; of a block its head with `{`.
        package let text: String
        /// `proxy.conf:41`, or `default`.
        package let origin: String
        /// Whether a block begins here.
        package let opensBlock: Bool
    }

    /// The lines, blocks before what stands in them.
    package private(set) var lines: [Line] = []

    init() {}

    /// The dump of the parsed blocks.
    init(top: ParsedBlock, resolver: Resolver, files: [SourceFile]) {
        var writer = DumpWriter(resolver: resolver, files: files)
        writer.write(level: .top, chain: [top], blocks: [])
        lines = writer.lines
    }

    /// The text, with origins as comments; loads as the same configuration but for directives whose
    /// parts came from several places.
    package var text: String {
        var text = ""
        var depth = 0
        func line(_ content: String, _ origin: String) {
            let indented = String(repeating: "    ", count: depth) + content
            let padding = String(repeating: " ", count: max(1, 48 - indented.unicodeScalars.count))
            text += origin.isEmpty ? indented + "\n" : "\(indented)\(padding)# \(origin)\n"
        }
        for entry in lines {
            while depth > entry.blocks.count {
                depth -= 1
                line("}", "")
            }
            if entry.opensBlock, depth == 0, !text.isEmpty { text += "\n" }
            line(entry.text, entry.origin)
            if entry.opensBlock { depth += 1 }
        }
        while depth > 0 {
            depth -= 1
            line("}", "")
        }
        return text
    }
}

/// Walks blocks and writes their settings.
private struct DumpWriter {
    let resolver: Resolver
    let files: [SourceFile]
    var lines: [Dump.Line] = []

    init(resolver: Resolver, files: [SourceFile]) {
        self.resolver = resolver
        self.files = files
    }

    /// Writes what holds at `level`, settings first and blocks after them.
    mutating func write(level: Level, chain: [ParsedBlock], blocks: [String]) {
        let rows = DirectiveTable.rows(at: level).filter { !$0.isLater }
        for row in rows where !row.isBlock {
            if let line = chain.first?.first(row.name), let body = line.body {
                // A block by its first argument: `account jwt {`.
                let head = ([row.name] + line.arguments.map(DumpText.argument))
                    .joined(separator: " ")
                open(head + " {", origin(line.place), blocks)
                write(level: body.level, chain: [body], blocks: blocks + [head])
            } else {
                writeSettings(row, chain, blocks)
            }
        }
        for row in rows where row.isBlock { writeBlocks(row, chain, blocks) }
    }

    private mutating func writeSettings(
        _ row: Directive, _ chain: [ParsedBlock], _ blocks: [String]
    ) {
        switch row.repeats {
        case .never:
            write(resolver.setting(row.name, row.level, in: chain), blocks)
        case .byFirstArgument:
            for first in row.firsts {
                write(resolver.setting(row.name, row.level, in: chain, first: first), blocks)
            }
        case .always:
            for line in chain.first?.all(row.name) ?? [] {
                add(
                    [row.name] + line.arguments.map(DumpText.argument), origin(line.place), blocks)
            }
        }
    }

    /// Writes one setting: a line for each place its parts came from.
    private mutating func write(_ setting: Setting, _ blocks: [String]) {
        let name = setting.directive.name
        let later = Set(setting.directive.forms.flatMap(\.keys).filter(\.isLater).map(\.name))
        let keys = setting.keys.filter { !later.contains($0.key ?? "") }
        var parts: [(origin: String, words: [String])] = []
        for argument in setting.words + keys {
            let origin = origin(argument.place)
            let word = DumpText.argument(argument)
            if let index = parts.firstIndex(where: { $0.origin == origin }) {
                parts[index].words.append(word)
            } else {
                parts.append((origin, [word]))
            }
        }
        let label =
            setting.directive.repeats == .byFirstArgument
            ? [name, setting.text] : [name]
        for part in parts {
            let words =
                part.words.first == setting.text && label.count == 2
                ? Array(part.words.dropFirst()) : part.words
            if !words.isEmpty { add(label + words, part.origin, blocks) }
        }
    }

    private mutating func writeBlocks(
        _ row: Directive, _ chain: [ParsedBlock], _ blocks: [String]
    ) {
        if row.name == "defaults" {
            writeDefaults(row, chain, blocks)
            return
        }
        let given = chain.first?.all(row.name) ?? []
        // Without these blocks there is no such thing, and no default for it.
        let isOptional = ["admin", "apple", "tls"].contains(row.name)
        if given.isEmpty, row.repeats == .never, !isOptional, let level = row.opens {
            let head = "\(row.name) {"
            open(head, "default", blocks)
            write(level: level, chain: [], blocks: blocks + [row.name])
        }
        for line in given {
            guard let body = line.body else { continue }
            let head = ([row.name] + line.arguments.map(DumpText.argument)).joined(separator: " ")
            open(head + " {", origin(line.place), blocks)
            var inner = [body]
            if row.name == "route", let host = chain.first {
                inner += [host.first("defaults")?.body].compactMap { $0 }
            }
            if row.name == "route", chain.count > 1 { inner += chain.dropFirst() }
            if row.name == "host" {
                inner += [chain.first?.first("defaults")?.body].compactMap { $0 }
            }
            write(level: body.level, chain: inner, blocks: blocks + [head])
        }
    }

    /// What `defaults` come to in a host whose unmatched requests are enforced: their policy.
    private mutating func writeDefaults(
        _ row: Directive, _ chain: [ParsedBlock], _ blocks: [String]
    ) {
        guard row.level == .host, let host = chain.first,
            resolver.setting("unmatched", .host, in: [host]).text == "enforce"
        else { return }
        let line = host.first("defaults")
        open("defaults {", origin(line?.place), blocks)
        let inner = [line?.body].compactMap { $0 } + chain.dropFirst()
        write(level: .route, chain: inner, blocks: blocks + ["defaults"])
    }

    private mutating func add(_ words: [String], _ origin: String, _ blocks: [String]) {
        lines.append(
            Dump.Line(
                blocks: blocks, text: words.joined(separator: " "), origin: origin,
                opensBlock: false))
    }

    private mutating func open(_ head: String, _ origin: String, _ blocks: [String]) {
        lines.append(Dump.Line(blocks: blocks, text: head, origin: origin, opensBlock: true))
    }

    private func origin(_ place: Place?) -> String {
        place.map { "\(files[$0.file].name):\($0.line)" } ?? "default"
    }
}

extension Directive {
    /// The first arguments of one that stands once for each.
    fileprivate var firsts: [String] {
        forms.flatMap { $0.positionals.first?.choices.compactMap(\.keyword) ?? [] }
    }
}

/// Arguments as a dump writes them.
private enum DumpText {
    static func argument(_ argument: ParsedArgument) -> String {
        let text = argument.text
        let isPlain = text.unicodeScalars.allSatisfy {
            $0.isPrintable && !" \"\\#{}".unicodeScalars.contains($0)
        }
        let escaped = text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
        let word = isPlain && !text.isEmpty ? text : "\"\(escaped)\""
        return argument.key.map { "\($0)=\(word)" } ?? word
    }
}
