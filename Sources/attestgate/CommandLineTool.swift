/// The program: reads a command line and runs the command.
package enum CommandLineTool {
    /// Runs the command that `arguments`, without the program's name, ask for.
    package static func run(_ arguments: [String], console: Console) -> ExitCode {
        do throws(CommandError) {
            switch try CommandLineParser(CommandTable.commands).parse(arguments) {
            case .command(let command, let parsed):
                return try command.action(parsed, console)
            case .help(let words):
                console.output.write(Help(CommandTable.commands).text(words))
                return .done
            case .version:
                return VersionCommand.run(isJSON: false, console: console)
            }
        } catch {
            console.report(error.description)
            return error.exitCode
        }
    }
}
