/// How a command ends (`cli.md`).
package enum ExitCode: Int32, Sendable {
    /// It did what was asked.
    case done = 0
    /// The thing checked did not hold.
    case notHeld = 1
    /// The command line or the configuration is wrong.
    case usage = 2
    /// A file, a port, a peer or a permission.
    case environment = 3
}

/// Why a command could not do its work; a lowercase clause that goes to standard error.
package enum CommandError: Error, Equatable, Sendable {
    /// A file, a port, a peer or a permission.
    case environment(String)
    /// The thing checked did not hold, and there is nothing more to print about it.
    case notHeld(String)
    /// The command line; `command` is the one whose help would tell, empty for all of them.
    case usage(String, command: String = "")

    /// The exit code that goes with it.
    package var exitCode: ExitCode {
        switch self {
        case .environment: return .environment
        case .notHeld: return .notHeld
        case .usage: return .usage
        }
    }
}

extension CommandError: CustomStringConvertible {
    /// The clause, and for a usage error where the right usage stands.
    package var description: String {
        switch self {
        case .environment(let text), .notHeld(let text): return text
        case .usage(let text, let command):
            let words = command.isEmpty ? "" : command + " "
            return "\(text)\nsee attestgate \(words)--help"
        }
    }
}
