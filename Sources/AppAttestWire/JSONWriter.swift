/// JSON written piece by piece: the gate's answers and its access log.
///
/// Every byte of a string outside 0x20–0x7e, the quote and the backslash are written as `\u00xx`,
/// so one value is one line and no terminal or log reader ever meets a control character. Text in
/// UTF-8 thus comes out byte by byte; what must survive as Unicode is kept to ASCII by the callers.
package struct JSONWriter: Sendable {
    /// What has been written.
    package private(set) var bytes: [UInt8]
    private var needsComma = false

    /// A writer that continues `bytes`.
    package init(appendingTo bytes: [UInt8] = []) {
        self.bytes = bytes
    }

    /// Opens an object: the value itself, or an element of an array.
    package mutating func beginObject() { open(UInt8(ascii: "{")) }

    /// Opens an object as member `name`.
    package mutating func beginObject(_ name: StaticString) {
        writeName(name)
        open(UInt8(ascii: "{"))
    }

    /// Closes the object.
    package mutating func endObject() { close(UInt8(ascii: "}")) }

    /// Opens an array: the value itself, or an element of an array.
    package mutating func beginArray() { open(UInt8(ascii: "[")) }

    /// Opens an array as member `name`.
    package mutating func beginArray(_ name: StaticString) {
        writeName(name)
        open(UInt8(ascii: "["))
    }

    /// Closes the array.
    package mutating func endArray() { close(UInt8(ascii: "]")) }

    /// Writes the string `value`, or `value[range]`, as member `name`.
    package mutating func member(
        _ name: StaticString, _ value: [UInt8], _ range: Range<Int>? = nil
    ) {
        writeName(name)
        writeString(value[range ?? 0..<value.count])
        needsComma = true
    }

    /// Writes the string `value` as member `name`.
    package mutating func member(_ name: StaticString, _ value: String) {
        writeName(name)
        writeString(value.utf8)
        needsComma = true
    }

    /// Writes the number `value` as member `name`.
    package mutating func member(_ name: StaticString, _ value: Int) {
        writeName(name)
        bytes.append(contentsOf: String(value).utf8)
        needsComma = true
    }

    /// Writes `value` as member `name`.
    package mutating func member(_ name: StaticString, _ value: Bool) {
        writeName(name)
        bytes.append(contentsOf: (value ? "true" : "false").utf8)
        needsComma = true
    }

    /// Writes a duration as member `name`: a number of seconds with six digits after the point.
    package mutating func member(_ name: StaticString, seconds value: Duration) {
        writeName(name)
        let parts = value.components
        let isNegative = parts.seconds < 0 || parts.attoseconds < 0
        if isNegative { bytes.append(UInt8(ascii: "-")) }
        bytes.append(contentsOf: String(parts.seconds.magnitude).utf8)
        bytes.append(UInt8(ascii: "."))
        let fraction = String(parts.attoseconds.magnitude / 1_000_000_000_000)
        bytes.append(contentsOf: repeatElement(UInt8(ascii: "0"), count: 6 - fraction.utf8.count))
        bytes.append(contentsOf: fraction.utf8)
        needsComma = true
    }

    /// Writes the string `value` as an element of an array.
    package mutating func element(_ value: String) {
        separate()
        writeString(value.utf8)
        needsComma = true
    }

    private mutating func open(_ bracket: UInt8) {
        separate()
        bytes.append(bracket)
        needsComma = false
    }

    private mutating func close(_ bracket: UInt8) {
        bytes.append(bracket)
        needsComma = true
    }

    private mutating func separate() {
        if needsComma { bytes.append(UInt8(ascii: ",")) }
        needsComma = false
    }

    private mutating func writeName(_ name: StaticString) {
        separate()
        name.withUTF8Buffer { unsafe writeString($0) }
        bytes.append(UInt8(ascii: ":"))
    }

    private mutating func writeString(_ value: some Sequence<UInt8>) {
        bytes.append(UInt8(ascii: "\""))
        for byte in value {
            if byte >= 0x20, byte < 0x7f, byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\") {
                bytes.append(byte)
            } else {
                bytes.append(contentsOf: [0x5c, 0x75, 0x30, 0x30])
                bytes.append(JSONWriter.digit(byte >> 4))
                bytes.append(JSONWriter.digit(byte & 15))
            }
        }
        bytes.append(UInt8(ascii: "\""))
    }

    private static func digit(_ value: UInt8) -> UInt8 {
        value < 10 ? 0x30 + value : 0x57 + value
    }
}
