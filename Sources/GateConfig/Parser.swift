/// Reads a file and what it includes into blocks, by the directive table.
struct Parser<Source: ConfigurationSource> {
    private let source: Source
    /// What has gone wrong, and the files read.
    var faults = Faults()
    /// The top level of all files.
    let top = ParsedBlock(level: .top, head: nil, title: "the top level")
    /// Whether the first file could be read.
    private(set) var isReadable = true
    private var open: [OpenBlock]
    private var paths: [String] = []

    /// A block whose `}` has not come yet.
    private struct OpenBlock {
        /// What lines are added to; nil inside something unknown, where all is skipped.
        let block: ParsedBlock?
        /// `upstream "orders"`.
        let title: String
        let place: Place
    }

    init(source: Source) {
        self.source = source
        open = [
            OpenBlock(
                block: top, title: "the file",
                place: Place(file: 0, line: 1, column: 1, length: 1))
        ]
    }

    /// Reads `path` and everything it includes.
    mutating func parse(path: String) {
        let start = Place(file: 0, line: 1, column: 1, length: 1)
        do throws(SourceError) {
            readFile(path, try read(path))
        } catch {
            isReadable = false
            faults.files.append(SourceFile(name: path, bytes: []))
            faults.error(
                start, "cannot read \(path): \(error.reason)",
                "name a file that can be read, with -c FILE")
        }
    }

    private func read(_ path: String) throws(SourceError) -> [UInt8] {
        let bytes = try source.contents(ofFile: path)
        guard bytes.count <= Limits.fileBytesMax else {
            throw SourceError("larger than \(Limits.fileBytesMax >> 20) MiB")
        }
        return bytes
    }

    private mutating func readFile(_ path: String, _ bytes: [UInt8]) {
        let number = faults.files.count
        faults.files.append(SourceFile(name: path, bytes: bytes))
        for line in faults.files[number].undecodable {
            faults.error(
                Place(file: number, line: line, column: 1, length: 1), "the line is not UTF-8",
                "save the file as UTF-8")
        }
        paths.append(path)
        let base = open.count
        let environment = source.environment
        var lexer = Lexer(file: number, of: faults.files, environment: environment)
        while let line = lexer.next(&faults) { add(line, base: base) }
        close(to: base, at: nil)
        paths.removeLast()
    }

    private mutating func add(_ line: LexedLine, base: Int) {
        if let closing = line.closing {
            if open.count > base {
                open.removeLast()
            } else {
                faults.error(
                    closing, "\"}\" closes nothing", "delete it, or open a block before it")
            }
            return
        }
        guard let name = line.tokens.first else {
            if let opening = line.opening { openUnknown("block", at: opening) }
            return
        }
        guard !name.isFaulty, !name.isQuoted else {
            if name.isQuoted {
                faults.error(name.place, "a directive's name stands without quotes")
            }
            if line.opensBlock { openUnknown(name.text, at: name.place) }
            return
        }
        if line.opensBlock { closeForgotten(before: name, base: base) }
        guard let block = open.last?.block else {
            if line.opensBlock { openUnknown(name.text, at: name.place) }
            return
        }
        if name.text == "include" {
            include(line, base: base)
        } else if let directive = DirectiveTable.find(name.text, at: block.level) {
            add(line, name, directive, to: block)
        } else {
            addUnknown(line, name, in: block)
        }
    }

    private mutating func openUnknown(_ title: String, at place: Place) {
        open.append(OpenBlock(block: nil, title: title, place: place))
    }

    private mutating func addUnknown(_ line: LexedLine, _ name: Token, in block: ParsedBlock) {
        let inside = block.level == .top ? "at the top level" : "in \(block.title)"
        faults.error(
            name.place, "unknown directive \(name.text.quoted) \(inside)",
            DirectiveTable.suggestion(for: name.text, at: block.level))
        if line.opensBlock { openUnknown(name.text, at: name.place) }
    }

    /// A block that only an outer block may hold ends the inner ones: their `}` was forgotten.
    private mutating func closeForgotten(before name: Token, base: Int) {
        guard open.count > base, let inner = open.last?.block,
            DirectiveTable.find(name.text, at: inner.level)?.opens == nil
        else { return }
        let outer = open.indices.dropLast().last { index in
            guard index >= base - 1, let level = open[index].block?.level else { return false }
            return DirectiveTable.find(name.text, at: level)?.isBlock ?? false
        }
        guard let outer else { return }
        close(to: outer + 1, at: name)
    }

    /// Closes the blocks over `depth` whose `}` is missing; `name` is where that became clear.
    private mutating func close(to depth: Int, at name: Token?) {
        while open.count > depth {
            let block = open.removeLast()
            if let name {
                faults.error(
                    name.place,
                    "\"}\" missing: block \(block.title), opened at "
                        + "\(faults.line(block.place, from: name.place)), is still open at "
                        + "\"\(name.text)\" (line \(name.place.line))")
            } else {
                let file = faults.files[block.place.file]
                faults.error(
                    block.place,
                    "\"}\" missing: block \(block.title), opened at line \(block.place.line), "
                        + "is still open at the end of the file (line \(file.lines.count))")
            }
        }
    }

    private mutating func add(
        _ line: LexedLine, _ name: Token, _ directive: Directive, to block: ParsedBlock
    ) {
        var arguments = ArgumentParser(
            directive, name: name.place, tokens: Array(line.tokens.dropFirst()),
            blockTitle: block.title)
        arguments.parse(&faults)
        var parsed = ParsedLine(
            directive: directive, arguments: arguments.arguments, place: name.place,
            isFaulty: arguments.isFaulty)
        if directive.isLater {
            faults.error(
                name.place, "\"\(directive.name)\" is not available in this version",
                directive.isBlock ? "delete the block" : "delete the line")
            parsed.isFaulty = true
        }
        checkBraces(line, &parsed)
        checkRepeat(parsed, in: block)
        if line.opensBlock {
            if let level = directive.opens {
                let body = ParsedBlock(level: level, head: name.place, title: parsed.title)
                parsed.body = body
                open.append(OpenBlock(block: body, title: parsed.title, place: name.place))
            } else {
                openUnknown(name.text, at: name.place)
            }
        } else if directive.isBlock {
            parsed.body = ParsedBlock(level: directive.level, head: name.place, title: parsed.title)
            parsed.isFaulty = true
        }
        block.append(parsed)
    }

    /// A block needs its braces and nothing else may have them.
    private mutating func checkBraces(_ line: LexedLine, _ parsed: inout ParsedLine) {
        let directive = parsed.directive
        if directive.isBlock, !line.opensBlock {
            faults.error(
                parsed.place, "\"\(directive.name)\" opens a block",
                "write \" {\" at the end of the line")
            parsed.isFaulty = true
        } else if line.opensBlock, directive.opens == nil {
            faults.error(
                parsed.place, "\"\(directive.name)\" is no block", "delete \"{\" and its \"}\"")
            parsed.isFaulty = true
        } else if let keyword = directive.opensWith, !parsed.isFaulty,
            line.opensBlock != (parsed.words.first == keyword)
        {
            faults.error(
                parsed.place, "\"\(directive.name)\" is a block with \"\(keyword)\" only",
                "write \(directive.usage)")
            parsed.isFaulty = true
        }
    }

    /// Reports a directive that stands twice where it may stand once.
    private mutating func checkRepeat(_ parsed: ParsedLine, in block: ParsedBlock) {
        let directive = parsed.directive
        let earlier = block.lines.first { line in
            guard line.directive.name == directive.name else { return false }
            switch directive.repeats {
            case .always: return false
            case .never: return true
            case .byFirstArgument: return line.words.first == parsed.words.first
            }
        }
        guard let earlier else { return }
        if directive.takesOneReference, let first = earlier.words.first,
            let second = parsed.words.first
        {
            faults.fault(
                .error, parsed.place, "", and: earlier.place, "",
                "\(block.title) takes one \(directive.name): \(first.quoted) "
                    + "(\(faults.line(earlier.place, from: parsed.place))) "
                    + "and \(second.quoted) given",
                "delete one")
        } else {
            let name =
                directive.repeats == .byFirstArgument
                ? "\(directive.name) \(parsed.words.first ?? "")" : directive.name
            faults.fault(
                .error, parsed.place, "", and: earlier.place, "",
                "\"\(name)\" is already given at \(faults.text(earlier.place))", "delete one")
        }
    }

    private mutating func include(_ line: LexedLine, base: Int) {
        let name = line.tokens[0]
        if line.opensBlock {
            faults.error(name.place, "\"include\" is no block", "delete \"{\" and its \"}\"")
            openUnknown(name.text, at: name.place)
            return
        }
        let arguments = line.tokens.dropFirst()
        guard let argument = arguments.first, arguments.count == 1, argument.key == nil else {
            faults.error(name.place, "\"include\" needs one path", "write include conf.d/*.conf")
            return
        }
        guard !argument.isFaulty else { return }
        let path = FilePath.join(argument.text, relativeTo: paths.last ?? "")
        let found = FilePath.expand(path, source: source)
        for file in found {
            if paths.contains(file) {
                faults.error(argument.place, "\(file) includes itself", "delete the line")
            } else if paths.count >= Limits.includeDepthMax {
                faults.error(
                    argument.place, "files are nested deeper than \(Limits.includeDepthMax)",
                    "include \(file) from a file further out")
            } else {
                do throws(SourceError) {
                    readFile(file, try read(file))
                } catch {
                    faults.error(
                        argument.place, "cannot read \(file): \(error.reason)",
                        "name a file that can be read, or delete the line")
                }
            }
        }
    }
}

/// Paths of configuration files: joining and wildcards.
enum FilePath {
    /// `path` as seen from the directory of the file `base`.
    static func join(_ path: String, relativeTo base: String) -> String {
        guard !path.hasPrefix("/"), let slash = base.lastIndex(of: "/") else { return path }
        return String(base[...slash]) + path
    }

    /// The files a path with `*` and `?` stands for, sorted; the path itself without wildcards.
    static func expand(_ pattern: String, source: some ConfigurationSource) -> [String] {
        guard pattern.contains("*") || pattern.contains("?") else { return [pattern] }
        var found = [pattern.hasPrefix("/") ? "/" : ""]
        let parts = pattern.split(separator: "/")
        for (index, part) in parts.enumerated() {
            let isLast = index == parts.count - 1
            found = found.flatMap { directory in
                expand(String(part), in: directory, source).map { isLast ? $0 : $0 + "/" }
            }
        }
        return found.sorted()
    }

    private static func expand(
        _ part: String, in directory: String, _ source: some ConfigurationSource
    ) -> [String] {
        guard part.contains("*") || part.contains("?") else { return [directory + part] }
        let path =
            directory.count > 1 && directory.hasSuffix("/")
            ? String(directory.dropLast()) : directory
        let names = source.entries(ofDirectory: path) ?? []
        return names.filter { !$0.hasPrefix(".") || part.hasPrefix(".") }
            .filter { matches(Array($0.unicodeScalars), Array(part.unicodeScalars)) }
            .map { directory + $0 }
    }

    /// Whether `name` fits `pattern`; the place of the last `*` is kept, so the work is the product
    /// of both lengths at most.
    static func matches(_ name: [Unicode.Scalar], _ pattern: [Unicode.Scalar]) -> Bool {
        var (index, place) = (0, 0)
        var star: (place: Int, index: Int)?
        while index < name.count {
            if place < pattern.count, pattern[place] == "*" {
                star = (place, index)
                place += 1
            } else if place < pattern.count, pattern[place] == "?" || pattern[place] == name[index]
            {
                index += 1
                place += 1
            } else if let last = star {
                star = (last.place, last.index + 1)
                index = last.index + 1
                place = last.place + 1
            } else {
                return false
            }
        }
        return pattern[place...].allSatisfy { $0 == "*" }
    }
}
