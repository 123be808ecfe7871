/// One fault of a configuration: where, what, and what would be right.
package struct Diagnostic: Sendable, Equatable {
    /// Whether it stops the configuration from being used.
    package enum Severity: String, Sendable, Equatable {
        case error
        case warning
    }

    package let severity: Severity
    /// The file as it was named: the argument of `-c`, or a path joined to its directory.
    package let file: String
    /// From 1.
    package let line: Int
    /// From 1, in characters.
    package let column: Int
    /// A lowercase clause.
    package let message: String
    /// The lines, marks and remedies below the first line; each ends without newline.
    package let details: [String]

    /// The fault as text, without a newline at its end.
    package func render() -> String {
        (["\(file):\(line):\(column): \(severity.rawValue): \(message)"] + details)
            .joined(separator: "\n")
    }
}
