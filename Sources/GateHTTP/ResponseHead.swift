/// A response's head: the bytes as received, and what was found in them. All ranges index
/// ``bytes``.
package struct ResponseHead: Sendable {
    /// The head as received, from the status line to the empty line.
    package let bytes: [UInt8]
    /// The field lines in order, with their spelling.
    package internal(set) var fields: [FieldLine]
    package let version: HTTPVersion
    /// 100 to 599.
    package let status: Int
    /// The reason phrase; may be empty.
    package let reason: Range<Int>
    package let framing: Framing
    /// The stated `Content-Length`, also where ``framing`` is none because the request was a HEAD
    /// or the status is 304.
    package let contentLength: Int?
    /// Whether the connection may carry another exchange after this response.
    package let isPersistent: Bool

    /// Whether this is an interim (1xx) response; 101 is final.
    package var isInterim: Bool { status < 200 && status != 101 }

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

    /// `bytes[range]` as text, ill-formed UTF-8 replaced.
    package func text(_ range: Range<Int>) -> String {
        String(decoding: bytes[range], as: UTF8.self)
    }
}

/// The trailer section of a chunked response; never merged into the head (RFC 9110 §6.5.1).
package struct ResponseTrailers: Sendable {
    /// The section as received.
    package let bytes: [UInt8]
    /// Its lines, at most ``Bounds/trailersMax``.
    package internal(set) var fields: [FieldLine]
}
