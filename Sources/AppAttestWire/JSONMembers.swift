/// Why a text is not the JSON that the gate reads.
package enum JSONError: Error, Equatable, Sendable {
    /// A control character in a string.
    case controlCharacter
    /// Objects and arrays nested deeper than ``JSONMembers/depthMax``.
    case depthExceeded
    /// Two members of one object with one name.
    case duplicateName
    /// The text ends inside a value.
    case endOfText
    /// An escape that JSON does not have.
    case escapeInvalid
    /// A `\u` escape of half a surrogate pair.
    case loneSurrogate
    /// The text is not an array.
    case notAnArray
    /// The text is not an object.
    case notAnObject
    /// A number outside JSON's grammar.
    case numberInvalid
    /// Bytes after the value.
    case trailingBytes
    /// An octet that cannot stand at its place.
    case unexpectedByte
    /// A string that is not well-formed UTF-8.
    case utf8Invalid
}

/// A member of the top-level object, as far as the gate cares.
package enum JSONMember: Equatable, Sendable {
    /// A number without fraction and exponent that fits an `Int`.
    case integer(Int)
    /// Any other value.
    case other
    /// A string, unescaped, in UTF-8.
    case string([UInt8])
}

/// A strict reader of JSON objects (RFC 8259): the whole text is judged, a few top-level members
/// are kept, or the one value that a pointer leads to.
///
/// Valid if and only if the text is one object in well-formed UTF-8, without byte order mark, at
/// most ``depthMax`` deep, no name twice in one object at any level (compared after unescaping),
/// every `\u` escape a scalar or a whole surrogate pair, and nothing but white space around it.
/// What two readers could read differently is thus refused before anyone reads it.
package enum JSONMembers {
    /// The greatest nesting of objects and arrays, the outermost object included.
    package static let depthMax = 16

    /// The members of `text` called `names`, in that order; nil for one that is absent.
    package static func scan(
        _ text: [UInt8], named names: [String]
    ) throws(JSONError) -> [JSONMember?] {
        try scan(text, named: names.map { Array($0.utf8) })
    }

    /// The same with names in UTF-8, for callers that keep them.
    package static func scan(
        _ text: [UInt8], named names: [[UInt8]]
    ) throws(JSONError) -> [JSONMember?] {
        var scanner = JSONScanner(text, capturing: names)
        try scanner.scanText()
        return scanner.members
    }

    /// The value of `text`, an object or an array, at `path`: the reference tokens of a JSON
    /// pointer (RFC 6901), unescaped; nil where there is none. At least one token.
    package static func value(
        of text: [UInt8], at path: [[UInt8]]
    ) throws(JSONError) -> JSONMember? {
        var scanner = JSONScanner(text, pointing: path)
        try scanner.scanText()
        return scanner.pointed
    }

    /// The members of `text` called `names`, each with where it stands in the text, so that one
    /// that is an array or an object can be scanned in its turn.
    package static func scanElements(
        _ text: [UInt8], named names: [[UInt8]]
    ) throws(JSONError) -> [JSONElement?] {
        var scanner = JSONScanner(text, capturing: names)
        try scanner.scanText()
        return zip(scanner.members, scanner.ranges).map { member, range in
            member.map { JSONElement(value: $0, range: range) }
        }
    }
}

/// A value with where it stands.
package struct JSONElement: Equatable, Sendable {
    /// The value, as far as the gate cares.
    package let value: JSONMember
    /// Where its text is, in the text that was scanned.
    package let range: Range<Int>
}

/// The same strict reader for a text that is one array.
package enum JSONArray {
    /// The values of the array `text`, in their order.
    package static func scan(_ text: [UInt8]) throws(JSONError) -> [JSONElement] {
        var scanner = JSONScanner(text, capturing: [])
        return try scanner.scanElements()
    }
}
