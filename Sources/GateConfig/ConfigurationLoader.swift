/// Turns the text of `proxy.conf` into a ``Configuration``, or into every fault it has.
package enum ConfigurationLoader {
    /// Reads `path` and what it includes, and resolves it: files, names, secrets, directories.
    /// Changes nothing and binds nothing.
    package static func load(
        path: String, source: some ConfigurationSource
    ) -> ConfigurationReport {
        var parser = Parser(source: source)
        parser.parse(path: path)
        guard parser.isReadable else {
            return ConfigurationReport(
                configuration: nil, diagnostics: parser.faults.sorted, files: [path],
                isReadable: false, dump: Dump())
        }
        var builder = Builder(source: source, top: parser.top, faults: parser.faults)
        let configuration = builder.build()
        return ConfigurationReport(
            configuration: builder.faults.hasErrors ? nil : configuration,
            diagnostics: builder.faults.sorted, files: builder.faults.files.map(\.name),
            isReadable: true,
            dump: Dump(top: parser.top, resolver: builder.resolver, files: builder.faults.files))
    }

    /// The whole directive table as text: what stands where, its syntax, default and meaning.
    package static var directiveReference: String { DirectiveTable.reference }
}

/// What loading gave: a configuration, or faults, or a configuration and warnings.
package struct ConfigurationReport: Sendable {
    /// The configuration; nil when there is any error.
    package let configuration: Configuration?
    /// Every fault, in file order.
    package let diagnostics: [Diagnostic]
    /// The files read, the first one first.
    package let files: [String]
    /// Whether the first file could be read at all.
    package let isReadable: Bool
    /// The resolved configuration with defaults, and where each value was set.
    package let dump: Dump

    /// The number of errors.
    package var errorCount: Int { diagnostics.count { $0.severity == .error } }
    /// The number of warnings.
    package var warningCount: Int { diagnostics.count { $0.severity == .warning } }

    /// All faults as text with a blank line between them, and the summary line; ends with a
    /// newline. `standing` is when the configuration that stays in force was loaded, for a reload.
    package func render(standing: String? = nil) -> String {
        let faults = diagnostics.map { $0.render() + "\n\n" }.joined()
        return faults + summary(standing: standing) + "\n"
    }

    /// `2 files, 14 errors, 2 warnings`.
    package func summary(standing: String? = nil) -> String {
        func count(_ number: Int, _ noun: String) -> String {
            "\(number) \(noun)\(number == 1 ? "" : "s")"
        }
        let counts = [
            count(files.count, "file"), count(errorCount, "error"), count(warningCount, "warning"),
        ].joined(separator: ", ")
        guard let standing, configuration == nil else { return counts }
        return counts + "; the running configuration (loaded \(standing)) stays in force"
    }
}
