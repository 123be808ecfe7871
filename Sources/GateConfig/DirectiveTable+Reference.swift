extension DirectiveTable {
    /// The table as text, block by block: usage, default, meaning. A directive of a later version
    /// says so.
    static var reference: String {
        "anywhere\n  include FILEPATH\n      the lines of other files, * and ? in the path\n\n"
            + levels
    }

    private static var levels: String {
        Level.allCases.sorted { $0.order < $1.order }.map { level in
            let rows = rows(at: level).map { row in
                var text = "  \(row.isLater ? row.laterUsage : row.usage)"
                if row.isRequired { text += "    (required)" }
                if row.isLater { text += "    (not available in this version)" }
                text += "\n      \(row.meaning)\n"
                for value in row.defaults { text += "      default: \(value)\n" }
                if !row.completion.isEmpty { text += "      where on: \(row.completion)\n" }
                return text
            }
            let later = isLater(level) ? "    (not available in this version)" : ""
            return "\(level.rawValue)\(later)\n\(rows.joined())"
        }.joined(separator: "\n")
    }

    /// Whether nothing opens a block of this level yet.
    private static func isLater(_ level: Level) -> Bool {
        let openers = all.filter { $0.opens == level }
        return !openers.isEmpty
            && openers.allSatisfy { opener in
                opener.isLater || opener.opensWith.map { opener.syntax.contains("~\($0)") } == true
            }
    }
}

extension Directive {
    fileprivate var laterUsage: String {
        syntax.isEmpty ? "\(name) {" : "\(name) \(syntax.replacing("~", with: ""))"
    }
}

extension Level {
    /// The place of a level in the reference: outer blocks first, in the order of the table.
    fileprivate var order: Int {
        DirectiveTable.all.firstIndex { $0.level == self } ?? 0
    }
}
