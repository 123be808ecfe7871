package import GateHTTP

/// A field of a message.
package struct HTTPField: Equatable, Sendable {
    /// The name as written.
    package let name: String
    /// The value.
    package let value: String

    /// A field.
    package init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }

    /// The field that `line` is, `Name: value` as curl takes it; nil when it is none.
    package init?(line: String) {
        guard let colon = line.firstIndex(of: ":"), colon != line.startIndex,
            FieldName(parsing: String(line[..<colon])) != nil
        else { return nil }
        let value = line[line.index(after: colon)...]
        self.init(String(line[..<colon]), String(value.drop { $0 == " " }))
    }
}

extension [HTTPField] {
    /// The value of the first field called `name`, case ignored.
    package func value(_ name: String) -> String? {
        first { $0.name.lowercased() == name.lowercased() }?.value
    }
}

/// A request as a command sends it: whole, with a length.
package struct HTTPRequest: Equatable, Sendable {
    /// The method.
    package var method: String
    /// Path and query.
    package var target: String
    /// The value of `Host`.
    package var authority: String
    /// The fields besides `Host`, `Connection` and `Content-Length`.
    package var fields: [HTTPField]
    /// The body; empty for none.
    package var body: [UInt8]

    /// A request.
    package init(
        _ method: String, _ target: String, authority: String, fields: [HTTPField] = [],
        body: [UInt8] = []
    ) {
        self.method = method
        self.target = target
        self.authority = authority
        self.fields = fields
        self.body = body
    }

    /// Whether a body is announced even if empty: a POST without a length is unusual.
    private var hasLength: Bool {
        !body.isEmpty || ["POST", "PUT", "PATCH"].contains(method)
    }

    /// The head, as it goes out; it says that the connection is for this request alone.
    package func head() throws(HTTPClientError) -> [UInt8] {
        var writer = HeadWriter()
        let source = Array(method.utf8) + Array(target.utf8)
        let end = method.utf8.count
        writer.startRequest(source, method: 0..<end, target: end..<source.count)
        writer.field("Host", fields.value("Host") ?? authority)
        for field in fields where field.name.lowercased() != "host" {
            writer.field(Array(field.name.utf8), Array(field.value.utf8))
        }
        if hasLength, fields.value("Content-Length") == nil {
            writer.field("Content-Length", body.count)
        }
        writer.field("Connection", "close" as StaticString)
        do throws(HeadWriterError) {
            return try writer.finish()
        } catch {
            throw .request(error)
        }
    }
}

/// An answer, complete.
package struct HTTPResponse: Equatable, Sendable {
    /// The status.
    package let status: Int
    /// The reason phrase; may be empty.
    package let reason: String
    /// The fields in order.
    package let fields: [HTTPField]
    /// The body, transfer coding removed.
    package let body: [UInt8]

    /// An answer.
    package init(status: Int, reason: String, fields: [HTTPField], body: [UInt8]) {
        self.status = status
        self.reason = reason
        self.fields = fields
        self.body = body
    }
}

/// Why there is no answer.
package enum HTTPClientError: Error, Equatable, Sendable {
    /// The connection ended before the answer did.
    case closed
    /// No connection: a clause that says which address and why.
    case connection(String)
    /// What came is no HTTP/1.1 answer.
    case malformed(String)
    /// A head that cannot be written.
    case request(HeadWriterError)
    /// No octet moved for the whole of the time.
    case timeout
    /// The answer is longer than the client takes.
    case tooLong
}

extension HTTPClientError: CustomStringConvertible {
    /// The error as a clause.
    package var description: String {
        switch self {
        case .closed: return "connection closed before the answer was complete"
        case .connection(let text): return text
        case .malformed(let text): return "answer is not HTTP/1.1: \(text)"
        case .request(.fieldNameInvalid): return "a field name is not valid"
        case .request(.fieldValueInvalid): return "a field value holds a control character"
        case .request(.firstLineInvalid): return "method or target is not valid"
        case .timeout: return "no answer in time"
        case .tooLong: return "answer is too long"
        }
    }
}
