/// How a message's end is known (RFC 9112 §6).
package enum Framing: Equatable, Sendable {
    /// By chunks.
    case chunked
    /// By a length in bytes.
    case length(Int)
    /// There is no body.
    case none
    /// By the end of the connection; responses only.
    case untilClose
}

/// A request's head: the bytes as received, and what was found in them.
///
/// Valid if and only if every rule of RFC 9112 holds, the method is one of ``Method``, there is
/// exactly one well-formed `Host`, and the length is stated at most once. All ranges index
/// ``bytes``.
package struct RequestHead: Sendable {
    /// The head as received, from the method to the empty line. Behind it stands, where an
    /// absolute-form target has no path, the origin-form made of it.
    package let bytes: [UInt8]
    /// The field lines in order, with their spelling.
    package internal(set) var fields: [FieldLine]
    /// The method as a value.
    package let knownMethod: Method
    package let form: TargetForm
    package let version: HTTPVersion
    package let framing: Framing
    /// Whether the connection may carry another request after this one.
    package let isPersistent: Bool
    /// Whether the client waits for 100 before it sends the body: `Expect: 100-continue`, HTTP/1.1,
    /// and there is a body.
    package let expectsContinue: Bool
    /// Whether `Connection` has `upgrade`; recorded, never acted on here.
    package let wantsUpgrade: Bool
    let methodRange: HeadRange
    let targetRange: HeadRange
    let pathAndQueryRange: HeadRange
    let pathRange: HeadRange
    let authorityRange: HeadRange
    let hostRange: HeadRange

    /// The method as received.
    package var method: Range<Int> { methodRange.range }

    /// The target as received.
    package var target: Range<Int> { targetRange.range }

    /// What is signed, matched and forwarded: the target in origin-form, or `*`.
    package var pathAndQuery: Range<Int> { pathAndQueryRange.range }

    /// The path of ``pathAndQuery``.
    package var path: Range<Int> { pathRange.range }

    /// What follows the first `?`; nil where there is none, which is not the same as an empty one.
    package var query: Range<Int>? {
        let whole = pathAndQuery
        let questionMark = path.upperBound
        return questionMark == whole.upperBound ? nil : (questionMark + 1)..<whole.upperBound
    }

    /// The value of `Host`, with its port.
    package var authority: Range<Int> { authorityRange.range }

    /// The host in ``authority``: no port, no trailing dot, case as received.
    package var host: Range<Int> { hostRange.range }

    /// Whether the method changes nothing.
    package var isSafe: Bool { knownMethod.isSafe }

    /// Whether the request may be sent twice.
    package var isIdempotent: Bool { knownMethod.isIdempotent }

    /// The method as text.
    package var methodText: String { text(method) }

    /// The target as received, as text; it is visible ASCII.
    package var targetText: String { text(target) }

    /// The host in lower case, without port and trailing dot: what hosts are looked up by.
    package var hostName: String {
        String(decoding: bytes[host].lazy.map(Octet.lowercased), as: UTF8.self)
    }

    /// `bytes[range]` as text, ill-formed UTF-8 replaced.
    package func text(_ range: Range<Int>) -> String {
        String(decoding: bytes[range], as: UTF8.self)
    }

    /// The value of the first field called `name`, case ignored.
    package func firstValue(of name: FieldName) -> Range<Int>? {
        fields.firstValue(of: name, in: bytes)
    }

    /// The values of the fields called `name`, case ignored, in order.
    package func values(of name: FieldName) -> [Range<Int>] {
        fields.values(of: name, in: bytes)
    }

    /// The only value of the field called `name`, case ignored; nil when there is none or more than
    /// one.
    package func onlyValue(of name: FieldName) -> Range<Int>? {
        fields.onlyValue(of: name, in: bytes)
    }
}

extension [FieldLine] {
    /// The value of the first field called `name`, case ignored.
    package func firstValue(of name: FieldName, in bytes: [UInt8]) -> Range<Int>? {
        for line in self where line.isNamed(name, in: bytes) { return line.value }
        return nil
    }

    /// The values of the fields called `name`, case ignored, in order.
    package func values(of name: FieldName, in bytes: [UInt8]) -> [Range<Int>] {
        var values: [Range<Int>] = []
        for line in self where line.isNamed(name, in: bytes) { values.append(line.value) }
        return values
    }

    /// The only value of the field called `name`; nil when there is none or more than one.
    package func onlyValue(of name: FieldName, in bytes: [UInt8]) -> Range<Int>? {
        var found: Range<Int>?
        for line in self where line.isNamed(name, in: bytes) {
            if found != nil { return nil }
            found = line.value
        }
        return found
    }
}

extension FieldLine {
    /// Whether the field is called `name`, case ignored.
    package func isNamed(_ name: FieldName, in bytes: [UInt8]) -> Bool {
        signature == name.signature && name.matches(bytes, self.name)
    }

    /// Whether the field is called `name` when both are folded (``FieldName``).
    package func isNamedFolded(_ name: FieldName, in bytes: [UInt8]) -> Bool {
        signature == name.signature && name.matchesFolded(bytes, self.name)
    }

    /// Whether the folded name of the field starts with `prefix`.
    package func hasFoldedPrefix(_ prefix: FieldName, in bytes: [UInt8]) -> Bool {
        prefix.matchesFoldedPrefix(bytes, name)
    }
}
