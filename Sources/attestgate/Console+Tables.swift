internal import AppAttestWire

extension Console {
    /// Prints what a JSON writer holds, as one line.
    func printJSON(_ json: JSONWriter) {
        output.write(json.bytes + [0x0a])
    }

    /// Prints names and values in two columns; a long name, as of a certificate's extension, has
    /// its value on the next line.
    func printTable(_ rows: [(name: String, value: String)]) {
        let nameWidthMax = 34
        let width = rows.map(\.name.count).filter { $0 <= nameWidthMax }.max() ?? 0
        for row in rows {
            if row.name.count > nameWidthMax {
                print("  \(row.name)")
                print("  \("".padded(to: width))  \(row.value)")
            } else {
                print("  \(row.name.padded(to: width))  \(row.value)")
            }
        }
    }
}
