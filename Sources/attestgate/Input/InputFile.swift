internal import GateBytes

/// What a FILE argument names: an object as raw bytes, or as base64 text.
package enum InputFile {
    /// Far above any object; what is larger is not one.
    private static let bytesMax = 1 << 20

    /// The object in the file at `path`, or on standard input for `-`.
    package static func object(
        _ path: String, console: Console
    ) throws(CommandError) -> [UInt8] {
        let contents = try bytes(path, console: console)
        let name = path == "-" ? "standard input" : path
        // An object has bytes that no text has, so it is not guessed at what this could be.
        guard contents.isEmpty || base64(contents) != nil || !contents.allSatisfy(isText) else {
            throw .notHeld("\(name): text, but not base64; expected an object or base64 of one")
        }
        return object(contents)
    }

    private static func isText(_ byte: UInt8) -> Bool {
        (0x20...0x7e).contains(byte) || (0x09...0x0d).contains(byte)
    }

    /// The bytes of the file at `path` as they are, or of standard input for `-`.
    package static func bytes(
        _ path: String, console: Console
    ) throws(CommandError) -> [UInt8] {
        guard path == "-" else { return try FileAccess.read(path, bytesMax: bytesMax) }
        return try FileAccess.read(console.input, name: "standard input", bytesMax: bytesMax)
    }

    /// The object that `contents` hold: what base64 text says, white space between its characters
    /// ignored, or the bytes themselves. No object of App Attest is itself base64 text: each begins
    /// with a byte outside ASCII or with 32 bytes of a hash.
    package static func object(_ contents: [UInt8]) -> [UInt8] {
        base64(contents) ?? contents
    }

    private static func base64(_ contents: [UInt8]) -> [UInt8]? {
        let text = contents.filter { ![0x09, 0x0a, 0x0d, 0x20].contains($0) }
        return text.isEmpty ? nil : Base64.decode(text)
    }
}
