// The fields of one HTTP/2 head or trailer section (RFC 9113 §8.2, §8.3): names, values and their
// order, pseudo-fields among them, as HPACK gives or takes them. Nothing of a connection, no
// framing.
//
// What comes in is counted as it comes, decoded, the way SETTINGS_MAX_HEADER_LIST_SIZE counts: name
// + value + 32 (threat T21). Past a limit nothing more is kept; the counting goes on.

/// The fields of one HTTP/2 section, in order.
package struct FieldBlock: Sendable {
    /// One field: where its name and its value stand in ``bytes``.
    package struct Line: Sendable {
        private let start: UInt32
        private let middle: UInt32
        private let end: UInt32
        /// Whether HPACK must not put it into a table: its value is secret or never comes again.
        package let isNeverIndexed: Bool

        init(start: Int, middle: Int, end: Int, isNeverIndexed: Bool) {
            self.start = UInt32(truncatingIfNeeded: start)
            self.middle = UInt32(truncatingIfNeeded: middle)
            self.end = UInt32(truncatingIfNeeded: end)
            self.isNeverIndexed = isNeverIndexed
        }

        package var name: Range<Int> { Int(start)..<Int(middle) }
        package var value: Range<Int> { Int(middle)..<Int(end) }
    }

    /// Names and values, one behind the other.
    package private(set) var bytes: [UInt8] = []
    package private(set) var lines: [Line] = []
    /// The size of all that came, kept or not (RFC 9113 §6.5.2).
    package private(set) var size = 0
    /// The limit that the section broke; then nothing is kept.
    package private(set) var fault: MessageError?
    /// Whether `:method` is `HEAD`; known also where nothing is kept.
    package private(set) var isHead = false

    /// What each field costs beside its octets.
    package static let lineOverhead = 32

    /// An empty section.
    package init() {}

    /// Takes a field as it came, within `limits`.
    package mutating func receive(
        _ name: Span<UInt8>, _ value: Span<UInt8>, limits: HeadLimits
    ) {
        size += name.count + value.count + FieldBlock.lineOverhead
        guard fault == nil else { return }
        if let broken = limitBroken(name, value, limits) {
            fault = broken
            bytes = []
            lines = []
            return
        }
        let start = bytes.count
        bytes.append(name)
        let middle = bytes.count
        bytes.append(value)
        lines.append(
            Line(start: start, middle: middle, end: bytes.count, isNeverIndexed: false))
        if name.count == FieldBlock.methodName.count, value.count == 4 {
            isHead = isHead || Token.isExactly(bytes, middle..<bytes.count, "HEAD")
        }
    }

    private static let methodName = Array(":method".utf8)
    private static let pathName = Array(":path".utf8)

    private func limitBroken(
        _ name: Span<UInt8>, _ value: Span<UInt8>, _ limits: HeadLimits
    ) -> MessageError? {
        // The target before the whole: a target too long is told as such.
        if name.count == FieldBlock.pathName.count, value.count > limits.targetSize,
            name[0] == Octet.colon
        {
            return .targetTooLong
        }
        if size > limits.headerSize { return .headTooLarge }
        let (length, overflow) = name.count.addingReportingOverflow(value.count + 2)
        if overflow || length > limits.fieldSize { return .fieldTooLong }
        if lines.count >= limits.headerFields + FieldBlock.pseudoFieldsMax {
            return .fieldsTooMany
        }
        return nil
    }

    /// Pseudo-fields of a request; they do not count as fields.
    private static let pseudoFieldsMax = 4

    /// Appends `name`, in lower case, and `value`. Both must have been judged.
    mutating func append(_ name: ArraySlice<UInt8>, _ value: ArraySlice<UInt8>) {
        let start = bytes.count
        for byte in name { bytes.append(Octet.lowercased(byte)) }
        let middle = bytes.count
        bytes.append(contentsOf: value)
        size += bytes.count - start + FieldBlock.lineOverhead
        lines.append(
            Line(
                start: start, middle: middle, end: bytes.count,
                isNeverIndexed: FieldBlock.isNeverIndexed(bytes, start..<middle)))
    }

    /// Whether the value of the field `bytes[name]` is a secret or comes once only: such a value
    /// would push useful ones out of the peer's table, or could be guessed at through it (RFC 7541
    /// §7.1.3).
    private static func isNeverIndexed(_ bytes: [UInt8], _ name: Range<Int>) -> Bool {
        func names(_ text: StaticString) -> Bool { Token.equals(bytes, name, text) }
        switch name.count {
        case 6: return names("cookie")
        case 10: return names("set-cookie")
        case 12: return names("x-request-id")
        case 13: return names("authorization")
        case 18: return names("app-attest-account")
        case 20: return names("app-attest-assertion")
        case 25: return names("app-attest-next-challenge")
        default: return false
        }
    }

    /// The value of the first field called `name`, which must be in lower case.
    package func firstValue(of name: StaticString) -> Range<Int>? {
        for line in lines where Token.isExactly(bytes, line.name, name) { return line.value }
        return nil
    }

    /// `bytes[range]` as text, ill-formed UTF-8 replaced.
    package func text(_ range: Range<Int>) -> String {
        String(decoding: bytes[range], as: UTF8.self)
    }
}

extension [UInt8] {
    /// Appends all of `span`.
    fileprivate mutating func append(_ span: Span<UInt8>) {
        unsafe span.withUnsafeBufferPointer { unsafe append(contentsOf: $0) }
    }
}
