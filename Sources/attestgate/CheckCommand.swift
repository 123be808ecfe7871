internal import GateConfig

/// `attestgate check -c FILE [--dump] [--json]`: everything a start would parse and resolve, and
/// every fault of it at once. Binds nothing.
enum CheckCommand {
    /// What the command says and how it ends.
    struct Outcome: Equatable {
        /// For standard output: the dump, or everything with `--json`.
        var output = ""
        /// For standard error: faults and the summary.
        var errors = ""
        /// 0 without errors, 2 with any, 3 when the file itself cannot be read.
        var status: Int32 = 0
    }

    /// Checks the configuration at `path`.
    static func run(path: String, isDumping: Bool, isJSON: Bool) -> Outcome {
        let report = ConfigurationLoader.load(path: path, source: FileConfigurationSource())
        var outcome = Outcome()
        outcome.status = !report.isReadable ? 3 : report.configuration == nil ? 2 : 0
        if isJSON {
            outcome.output = report.json(isDumping: isDumping) + "\n"
            return outcome
        }
        if isDumping { outcome.output = report.dump.text }
        outcome.errors = report.render()
        return outcome
    }
}
