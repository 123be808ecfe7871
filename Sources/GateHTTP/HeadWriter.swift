/// Why a head was not written.
package enum HeadWriterError: Error, Equatable, Sendable {
    /// A field name that is no token.
    case fieldNameInvalid
    /// A control octet in a field value.
    case fieldValueInvalid
    /// A method that is no token, or a target with an octet outside 0x21–0x7e.
    case firstLineInvalid
}

/// The bytes of a head, built from parts; the last gate before a socket.
///
/// Whatever the parts are and whoever checked them before, what is written is one head: a method or
/// name is a token, a target is visible ASCII, a value has no control octet but tab (so no CR, LF
/// or NUL), or ``finish()`` throws and nothing is to be had.
package struct HeadWriter: FieldWriter, Sendable {
    private var bytes: [UInt8] = []
    private var fault: HeadWriterError?
    private let bytesExpected: Int

    /// A writer that makes room for heads of `bytesExpected`.
    package init(bytesExpected: Int = 1024) {
        self.bytesExpected = bytesExpected
    }

    /// Starts a request: `method SP target SP HTTP/1.1`, both taken from `source`.
    package mutating func startRequest(
        _ source: [UInt8], method: Range<Int>, target: Range<Int>
    ) {
        let isMethod = !method.isEmpty && source[method].allSatisfy(Octet.isToken)
        let isTarget = !target.isEmpty && source[target].allSatisfy(Octet.isTarget)
        guard isMethod, isTarget else { return note(.firstLineInvalid) }
        bytes.reserveCapacity(bytesExpected)
        bytes.append(contentsOf: source[method])
        bytes.append(Octet.space)
        bytes.append(contentsOf: source[target])
        append(" HTTP/1.1\r\n")
    }

    /// Starts a request of the gate's own; both texts are the source's or the configuration's.
    package mutating func startRequest(method: Method, target: String) {
        let source = Array(method.rawValue.utf8) + Array(target.utf8)
        let end = method.rawValue.utf8.count
        startRequest(source, method: 0..<end, target: end..<source.count)
    }

    /// Starts a response: `HTTP/1.1 SP status SP reason`. A `status` outside 100–999 is a fault.
    package mutating func startResponse(status: Int, reason: StaticString) {
        guard startStatusLine(status) else { return }
        append(reason)
        append("\r\n")
    }

    /// Starts a response with the reason `source[reason]`, as received.
    package mutating func startResponse(status: Int, _ source: [UInt8], reason: Range<Int>) {
        guard source[reason].allSatisfy(Octet.isFieldValue) else { return note(.firstLineInvalid) }
        guard startStatusLine(status) else { return }
        bytes.append(contentsOf: source[reason])
        append("\r\n")
    }

    /// Appends the field `source[name]: source[value]`.
    package mutating func field(_ source: [UInt8], name: Range<Int>, value: Range<Int>) {
        guard isName(source, name), isValue(source, value) else { return }
        bytes.append(contentsOf: source[name])
        append(": ")
        bytes.append(contentsOf: source[value])
        append("\r\n")
    }

    /// Appends the field `name` with `value`, or with `value[range]`.
    package mutating func field(_ name: StaticString, _ value: [UInt8], _ range: Range<Int>?) {
        appendName(name)
        let range = range ?? 0..<value.count
        guard isValue(value, range) else { return }
        bytes.append(contentsOf: value[range])
        append("\r\n")
    }

    /// Appends the field `name` with the UTF-8 of `value`.
    package mutating func field(_ name: StaticString, _ value: String) {
        appendName(name)
        let start = bytes.count
        bytes.append(contentsOf: value.utf8)
        guard isValue(bytes, start..<bytes.count) else { return }
        append("\r\n")
    }

    /// Appends a field of the source's own.
    package mutating func field(_ name: StaticString, _ value: StaticString) {
        appendName(name)
        let start = bytes.count
        append(value)
        guard isValue(bytes, start..<bytes.count) else { return }
        append("\r\n")
    }

    /// Appends the field `name` with a number, which must not be negative.
    package mutating func field(_ name: StaticString, _ value: Int) {
        appendName(name)
        guard value >= 0 else { return note(.fieldValueInvalid) }
        bytes.appendDecimal(value)
        append("\r\n")
    }

    /// Appends the empty line and gives the head; the writer is then empty again. Throws the first
    /// fault.
    package mutating func finish() throws(HeadWriterError) -> [UInt8] {
        defer {
            bytes = []
            fault = nil
        }
        if let fault { throw fault }
        append("\r\n")
        return bytes
    }
}

extension HeadWriter {
    private mutating func startStatusLine(_ status: Int) -> Bool {
        guard (100...999).contains(status) else {
            note(.firstLineInvalid)
            return false
        }
        bytes.reserveCapacity(bytesExpected)
        append("HTTP/1.1 ")
        bytes.appendDecimal(status)
        bytes.append(Octet.space)
        return true
    }

    private mutating func note(_ error: HeadWriterError) {
        if fault == nil { fault = error }
    }

    private mutating func isName(_ source: [UInt8], _ range: Range<Int>) -> Bool {
        if !range.isEmpty, source[range].allSatisfy(Octet.isToken) { return true }
        note(.fieldNameInvalid)
        return false
    }

    private mutating func appendName(_ name: StaticString) {
        let start = bytes.count
        append(name)
        guard isName(bytes, start..<bytes.count) else { return }
        append(": ")
    }

    private mutating func isValue(_ source: [UInt8], _ range: Range<Int>) -> Bool {
        if source[range].allSatisfy(Octet.isFieldValue) { return true }
        note(.fieldValueInvalid)
        return false
    }

    private mutating func append(_ text: StaticString) {
        text.withUTF8Buffer { unsafe bytes.append(contentsOf: $0) }
    }
}

extension [UInt8] {
    /// Appends `value`, not negative, in decimal.
    mutating func appendDecimal(_ value: Int) {
        if value >= 10 { appendDecimal(value / 10) }
        append(0x30 + UInt8(truncatingIfNeeded: value % 10))
    }
}
