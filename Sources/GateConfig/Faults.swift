/// The faults found so far, and the files whose lines they show.
struct Faults {
    /// The files read, by number.
    var files: [SourceFile] = []
    private var found: [(place: Place, diagnostic: Diagnostic)] = []

    /// Whether any of them is an error.
    var hasErrors: Bool { found.contains { $0.diagnostic.severity == .error } }

    /// Every fault once, in the order of their places.
    var sorted: [Diagnostic] {
        let order = found.indices.sorted { left, right in
            let (a, b) = (found[left].place, found[right].place)
            return (a.file, a.line, a.column, left) < (b.file, b.line, b.column, right)
        }
        var unique: [Diagnostic] = []
        for index in order where !unique.contains(found[index].diagnostic) {
            unique.append(found[index].diagnostic)
        }
        return unique
    }

    /// An error at `place`; `remedy` stands beside the mark.
    mutating func error(_ place: Place, _ message: String, _ remedy: String = "") {
        add(.error, place, message, lines(place, remedy))
    }

    /// A warning at `place`.
    mutating func warning(_ place: Place, _ message: String, _ remedy: String = "") {
        add(.warning, place, message, lines(place, remedy))
    }

    /// The line of a place and its mark; of an empty file the remedy alone.
    private func lines(_ place: Place, _ remedy: String) -> [String] {
        let isEmpty = files[place.file].lines.allSatisfy(\.isEmpty)
        if isEmpty { return remedy.isEmpty ? [] : ["      | \(remedy)"] }
        return [excerpt(place), mark(place, remedy)]
    }

    /// An error whose line holds a secret: it is shown up to the secret only.
    mutating func secretError(_ place: Place, _ message: String, _ remedy: String = "") {
        var shown = place
        shown.length = 3
        let line = files[place.file].printable(place.line).unicodeScalars
        let start = String(String.UnicodeScalarView(line.prefix(place.column - 1)))
        add(
            .error, place, message,
            ["\(number(place.line)) | \(start)***", mark(shown, remedy)])
    }

    /// A fault of two places: both lines with a word each, and a remedy below.
    mutating func fault(
        _ severity: Diagnostic.Severity, _ place: Place, _ word: String, and other: Place,
        _ otherWord: String, _ message: String, _ remedy: String
    ) {
        var lines = [(place, word), (other, otherWord)]
        if other.file == place.file, other.line < place.line { lines.reverse() }
        var details = lines.map { shown, word in
            let file = shown.file == place.file ? "" : "in \(files[shown.file].name)"
            let label = [word, file].filter { !$0.isEmpty }.joined(separator: ", ")
            return excerpt(shown) + (label.isEmpty ? "" : "        \(label)")
        }
        if !remedy.isEmpty { details.append("      |   \(remedy)") }
        add(severity, place, message, details)
    }

    private mutating func add(
        _ severity: Diagnostic.Severity, _ place: Place, _ message: String, _ details: [String]
    ) {
        guard found.count < Limits.faultsMax else { return }
        let diagnostic = Diagnostic(
            severity: severity, file: files[place.file].name, line: place.line,
            column: place.column, message: message, details: details)
        found.append((place, diagnostic))
    }

    /// `proxy.conf:41:3`.
    func text(_ place: Place) -> String {
        "\(files[place.file].name):\(place.line):\(place.column)"
    }

    /// `line 41`, or with the file's name where that is another one than `base`'s.
    func line(_ place: Place, from base: Place) -> String {
        place.file == base.file
            ? "line \(place.line)" : "\(files[place.file].name):\(place.line)"
    }

    private func excerpt(_ place: Place) -> String {
        "\(number(place.line)) | \(files[place.file].printable(place.line))"
    }

    private func number(_ line: Int) -> String {
        let text = String(line)
        return String(repeating: " ", count: max(0, 5 - text.count)) + text
    }

    /// The mark under a place; tabs of the line are kept, so that it stands where it should.
    private func mark(_ place: Place, _ remedy: String) -> String {
        let lines = files[place.file].lines
        let line = lines.indices.contains(place.line - 1) ? lines[place.line - 1] : []
        var text = "      | "
        for scalar in line.prefix(place.column - 1) { text += scalar == "\t" ? "\t" : " " }
        if line.count < place.column - 1 {
            text += String(repeating: " ", count: place.column - 1 - line.count)
        }
        text += String(repeating: "^", count: max(1, place.length))
        return remedy.isEmpty ? text : "\(text) \(remedy)"
    }
}
