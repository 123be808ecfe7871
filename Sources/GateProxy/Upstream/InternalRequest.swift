internal import GateBytes
package import GateConfig
package import GateHTTP

/// One HTTP request of the gate's own: no client's, so it needs no permit and can carry nothing of
/// a client's that its maker did not put there.
package struct InternalRequest: Sendable {
    package var method: Method
    /// The target in origin-form, as it stands in the request line.
    package var target: String
    /// What `Host` says; nil for the server's own name and port.
    package var authority: String?
    /// The fields but `Host` and `Content-Length`, in order.
    package var fields: [(name: [UInt8], value: [UInt8])]
    package var body: [UInt8]
    /// For the whole call, from its start to the answer's last byte.
    package var deadline: Duration
    /// The longest body of an answer that is taken.
    package var answerBytesMax: Int
    /// Whether it may be sent twice: on a connection that closed when it was used again. What was
    /// not sent at all is tried elsewhere in any case.
    package var isRepeatable: Bool

    /// A request by its parts; without a word on it, repeatable where the method is idempotent.
    package init(
        _ method: Method, _ target: String, authority: String? = nil,
        fields: [(name: [UInt8], value: [UInt8])] = [], body: [UInt8] = [], deadline: Duration,
        answerBytesMax: Int = 64 * 1024, isRepeatable: Bool? = nil
    ) {
        self.method = method
        self.target = target
        self.authority = authority
        self.fields = fields
        self.body = body
        self.deadline = deadline
        self.answerBytesMax = answerBytesMax
        self.isRepeatable = isRepeatable ?? method.isIdempotent
    }

    /// Appends a field.
    package mutating func add(_ name: StaticString, _ value: [UInt8]) {
        fields.append((name: name.withUTF8Buffer { unsafe Array($0) }, value: value))
    }

    /// Appends a field.
    package mutating func add(_ name: StaticString, _ value: String) {
        add(name, Array(value.utf8))
    }

    /// The head in the form of HTTP/1.1.
    package func bytes(
        to server: Upstream.Server.Endpoint, setFields: SetFields
    ) throws(HeadWriterError) -> [UInt8] {
        var writer = HeadWriter()
        writer.startRequest(method: method, target: target)
        writer.field("Host", authority ?? InternalRequest.authority(of: server))
        append(setFields, to: &writer)
        return try writer.finish()
    }

    /// The head in the form of HTTP/2.
    package func block(
        to server: Upstream.Server.Endpoint, setFields: SetFields, scheme: Scheme
    ) throws(HeadWriterError) -> FieldBlock {
        let method = Array(method.rawValue.utf8)
        let authority = Array((authority ?? InternalRequest.authority(of: server)).utf8)
        let target = Array(target.utf8)
        let authorityEnd = method.count + authority.count
        var writer = FieldBlockWriter(
            method + authority + target, method: 0..<method.count, scheme: scheme.name,
            authority: method.count..<authorityEnd,
            path: authorityEnd..<(authorityEnd + target.count))
        append(setFields, to: &writer)
        return try writer.finish()
    }

    private func append(_ setFields: SetFields, to writer: inout some FieldWriter) {
        for field in fields { writer.field(field.name, field.value) }
        if hasLength { writer.field("Content-Length", body.count) }
        for field in setFields.fields { writer.field(field.name, field.value) }
    }

    /// Legacy services answer 411 where the length of such a request is left out (RFC 9110 §8.6).
    private var hasLength: Bool {
        switch method {
        case .patch, .post, .put: return true
        default: return !body.isEmpty
        }
    }

    private static func authority(of server: Upstream.Server.Endpoint) -> String {
        switch server {
        case .host(let name, let port):
            let address = IPAddress(name)
            return address.map { $0.isIPv4 } ?? true ? "\(name):\(port)" : "[\(name)]:\(port)"
        case .unix: return "localhost"
        }
    }
}

/// The whole answer to a request of the gate's own.
package struct InternalAnswer: Sendable {
    package let head: ResponseHead
    package let body: [UInt8]

    package var status: Int { head.status }

    /// The value of the only field called `name`; nil where there is none or more than one.
    package func value(of name: FieldName) -> [UInt8]? {
        head.onlyValue(of: name).map { Array(head.bytes[$0]) }
    }
}
