extension ConfigurationReport {
    /// The report as one JSON object: `files`, `errors`, `warnings`, `diagnostics` (each `file`,
    /// `line`, `column`, `severity`, `message`, `details`) and, when dumping, `configuration` (each
    /// line with `blocks`, `text`, `origin`).
    package func json(isDumping: Bool) -> String {
        let faults = diagnostics.map { fault in
            JSONText.object([
                ("file", JSONText.string(fault.file)), ("line", String(fault.line)),
                ("column", String(fault.column)),
                ("severity", JSONText.string(fault.severity.rawValue)),
                ("message", JSONText.string(fault.message)),
                ("details", JSONText.array(fault.details.map(JSONText.string))),
            ])
        }
        var members = [
            ("files", JSONText.array(files.map(JSONText.string))), ("errors", String(errorCount)),
            ("warnings", String(warningCount)), ("diagnostics", JSONText.array(faults)),
        ]
        if isDumping {
            let lines = dump.lines.map { line in
                JSONText.object([
                    ("blocks", JSONText.array(line.blocks.map(JSONText.string))),
                    ("text", JSONText.string(line.text)),
                    ("origin", JSONText.string(line.origin)),
                ])
            }
            members.append(("configuration", JSONText.array(lines)))
        }
        return JSONText.object(members)
    }
}

/// JSON (RFC 8259) of texts that are JSON already.
private enum JSONText {
    static func object(_ members: [(String, String)]) -> String {
        "{\(members.map { "\(string($0.0)):\($0.1)" }.joined(separator: ","))}"
    }

    static func array(_ values: [String]) -> String {
        "[\(values.joined(separator: ","))]"
    }

    /// A string; all but visible ASCII and the space escaped.
    static func string(_ text: String) -> String {
        var escaped = "\""
        for unit in text.utf16 {
            switch unit {
            case 0x22: escaped += "\\\""
            case 0x5c: escaped += "\\\\"
            case 0x20...0x7e: escaped.unicodeScalars.append(Unicode.Scalar(UInt8(unit)))
            default:
                let digits = String(unit, radix: 16)
                escaped += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            }
        }
        return escaped + "\""
    }
}
