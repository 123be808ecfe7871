/// Where the fields of a head are written to: the bytes of an HTTP/1 head or a section of HTTP/2.
/// What a message says is written once, for both.
package protocol FieldWriter {
    /// Appends the field `source[name]: source[value]`.
    mutating func field(_ source: [UInt8], name: Range<Int>, value: Range<Int>)
    /// Appends the field `name` with `value[range]`.
    mutating func field(_ name: StaticString, _ value: [UInt8], _ range: Range<Int>?)
}

extension FieldWriter {
    /// Appends a field with its spelling, from the head `source`.
    package mutating func field(_ source: [UInt8], _ line: FieldLine) {
        field(source, name: line.name, value: line.value)
    }

    /// Appends a field whose name is `name` and whose value is `value`.
    package mutating func field(_ name: [UInt8], _ value: [UInt8]) {
        let both = name + value
        field(both, name: 0..<name.count, value: name.count..<both.count)
    }

    /// Appends the field `name` with `value`.
    package mutating func field(_ name: StaticString, _ value: [UInt8]) {
        field(name, value, nil)
    }

    /// Appends the field `name` with the UTF-8 of `value`.
    package mutating func field(_ name: StaticString, _ value: String) {
        field(name, Array(value.utf8), nil)
    }

    /// Appends a field of the source's own.
    package mutating func field(_ name: StaticString, _ value: StaticString) {
        field(name, value.withUTF8Buffer { unsafe Array($0) }, nil)
    }

    /// Appends the field `name` with a number, which must not be negative.
    package mutating func field(_ name: StaticString, _ value: Int) {
        guard value >= 0 else { return field(name, [0], nil) }
        var digits: [UInt8] = []
        digits.appendDecimal(value)
        field(name, digits, nil)
    }
}

/// Writes a section of HTTP/2 from parts; as strict as ``HeadWriter``: what is no token or no value
/// makes ``finish()`` throw.
package struct FieldBlockWriter: FieldWriter, Sendable {
    private var block = FieldBlock()
    private var fault: HeadWriterError?

    /// A writer of a trailer section.
    package init() {}

    /// A writer of a response's head. A `status` outside 100–999 is a fault.
    package init(status: Int) {
        guard (100...999).contains(status) else {
            fault = .firstLineInvalid
            return
        }
        var digits: [UInt8] = []
        digits.appendDecimal(status)
        appendPseudo(":status", digits[...])
    }

    /// A writer of a request's head, all parts taken from `source`.
    package init(
        _ source: [UInt8], method: Range<Int>, scheme: StaticString, authority: Range<Int>,
        path: Range<Int>
    ) {
        let isMethod = !method.isEmpty && source[method].allSatisfy(Octet.isToken)
        let isPath = !path.isEmpty && source[path].allSatisfy(Octet.isTarget)
        let isAuthority = !authority.isEmpty && source[authority].allSatisfy(Octet.isTarget)
        guard isMethod, isPath, isAuthority else {
            fault = .firstLineInvalid
            return
        }
        appendPseudo(":method", source[method])
        appendPseudo(":scheme", scheme.withUTF8Buffer { unsafe Array($0) }[...])
        appendPseudo(":authority", source[authority])
        appendPseudo(":path", source[path])
    }

    package mutating func field(_ source: [UInt8], name: Range<Int>, value: Range<Int>) {
        append(source[name], source[value])
    }

    package mutating func field(_ name: StaticString, _ value: [UInt8], _ range: Range<Int>?) {
        append(name.withUTF8Buffer { unsafe Array($0) }[...], value[range ?? 0..<value.count])
    }

    /// The section; the writer is then empty again. Throws the first fault.
    package mutating func finish() throws(HeadWriterError) -> FieldBlock {
        defer {
            block = FieldBlock()
            fault = nil
        }
        if let fault { throw fault }
        return block
    }

    private mutating func append(_ name: ArraySlice<UInt8>, _ value: ArraySlice<UInt8>) {
        guard !name.isEmpty, name.allSatisfy(Octet.isToken) else {
            return note(.fieldNameInvalid)
        }
        guard value.allSatisfy(Octet.isFieldValue) else { return note(.fieldValueInvalid) }
        block.append(name, value)
    }

    private mutating func appendPseudo(_ name: StaticString, _ value: ArraySlice<UInt8>) {
        block.append(name.withUTF8Buffer { unsafe Array($0) }[...], value)
    }

    private mutating func note(_ error: HeadWriterError) {
        if fault == nil { fault = error }
    }
}
