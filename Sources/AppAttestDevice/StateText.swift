/// State as text: one `name value` a line, values without line breaks. Names that nobody asks for
/// are left alone, so that a root and a device fit into one file.
struct StateText {
    private var lines: [(name: String, value: String)] = []

    init() {}

    init(_ text: String) {
        for line in text.split(separator: "\n") {
            let parts = line.split(separator: " ", maxSplits: 1)
            if parts.count == 2 { lines.append((String(parts[0]), String(parts[1]))) }
        }
    }

    subscript(name: String) -> String? {
        get { lines.first { $0.name == name }?.value }
        set {
            lines.removeAll { $0.name == name }
            if let newValue { lines.append((name, newValue)) }
        }
    }

    var text: String {
        lines.map { "\($0.name) \($0.value)\n" }.joined()
    }
}
