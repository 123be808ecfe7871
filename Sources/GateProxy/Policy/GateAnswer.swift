internal import AppAttestWire
internal import GateBytes
package import GateHTTP

/// An answer that the gate gives itself: a refusal, or an enrolment call's.
package struct GateAnswer: Sendable, Equatable {
    package var status: Int
    /// The body's media type; nil without a body.
    package var contentType: MediaType?
    package var body: [UInt8]
    /// The value of `Allow`; empty for none.
    package var allow: [UInt8]
    /// The code of `WWW-Authenticate: App-Attest error="code"`, on 401.
    package var authenticate: ProblemCode?
    /// Seconds of `Retry-After`.
    package var retryAfter: Int?
    /// How the client stands with the limit that the answer is about.
    package var rateLimit: RateStatus?
    /// A challenge by value for `App-Attest-Next-Challenge`.
    package var nextChallenge: [UInt8]?

    /// Media types of the gate's answers.
    package enum MediaType: Sendable, Equatable {
        case json
        /// The text format of Prometheus.
        case metrics
        case octets
        case plain
        case problem

        var text: StaticString {
            switch self {
            case .json: return "application/json"
            case .metrics: return "text/plain; version=0.0.4; charset=utf-8"
            case .octets: return "application/octet-stream"
            case .plain: return "text/plain"
            case .problem: return "application/problem+json"
            }
        }
    }

    /// An answer with a body of `contentType`, or without either.
    package init(status: Int, contentType: MediaType? = nil, body: [UInt8] = []) {
        self.status = status
        self.contentType = contentType
        self.body = body
        allow = []
    }

    /// The answer that tells `refusal` (RFC 9457); `allow` belongs to a 405. A next challenge goes
    /// with `challenge_required` alone.
    package init(
        _ refusal: Refusal, requestID: [UInt8], nextChallenge: [UInt8]? = nil,
        allow: [String] = []
    ) {
        self.init(
            status: refusal.status, contentType: .problem,
            body: GateAnswer.problem(refusal, requestID))
        if refusal.code == .methodNotAllowed { self.allow = Array(allow.joined(separator: ", ")) }
        if refusal.status == 401 { authenticate = refusal.code }
        retryAfter = refusal.retryAfter
        rateLimit = refusal.rateLimit
        if refusal.code == .challengeRequired { self.nextChallenge = nextChallenge }
    }

    /// The head, and the body unless the request was a HEAD. `date` is the value of `Date`.
    package func bytes(
        requestID: [UInt8], date: [UInt8], isHead: Bool, connection: ConnectionNote
    ) throws(HeadWriterError) -> [UInt8] {
        var writer = HeadWriter(bytesExpected: 512 + body.count)
        writer.startResponse(status: status, reason: StatusText.phrase(status))
        appendFields(&writer, requestID: requestID, date: date)
        connection.append(to: &writer)
        let head = try writer.finish()
        return isHead ? head : head + body
    }

    /// The head to an HTTP/2 client. `date` is the value of `Date`.
    package func block(requestID: [UInt8], date: [UInt8]) throws(HeadWriterError) -> FieldBlock {
        var writer = FieldBlockWriter(status: status)
        appendFields(&writer, requestID: requestID, date: date)
        return try writer.finish()
    }

    private func appendFields(
        _ writer: inout some FieldWriter, requestID: [UInt8], date: [UInt8]
    ) {
        writer.field("Date", date)
        if let contentType { writer.field("Content-Type", contentType.text) }
        // 204 has no length (RFC 9110 §8.6).
        if status != 204 { writer.field("Content-Length", body.count) }
        writer.field("Cache-Control", "no-store" as StaticString)
        // A 405 has an Allow, if an empty one: no method is allowed there (RFC 9110 §15.5.6).
        if !allow.isEmpty || status == 405 { writer.field("Allow", allow) }
        if let authenticate {
            writer.field("WWW-Authenticate", "App-Attest error=\"\(authenticate.rawValue)\"")
        }
        if let retryAfter { writer.field("Retry-After", retryAfter) }
        if let rateLimit {
            writer.field("RateLimit-Policy", rateLimit.policyValue)
            writer.field("RateLimit", rateLimit.value)
        }
        GateFields.append(&writer, requestID: requestID, nextChallenge: nextChallenge)
    }

    private static func problem(_ refusal: Refusal, _ requestID: [UInt8]) -> [UInt8] {
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("type", "urn:attestgate:\(refusal.code.rawValue)")
        writer.member("title", refusal.code.title)
        writer.member("status", refusal.status)
        writer.member("code", refusal.code.rawValue)
        writer.member("requestId", requestID)
        if let retryAfter = refusal.retryAfter { writer.member("retryAfter", retryAfter) }
        writer.endObject()
        return writer.bytes
    }
}

/// Reason phrases of the statuses the gate itself answers.
package enum StatusText {
    /// The phrase of `status`; empty for one that has none here, which is as good (RFC 9112 §4).
    package static func phrase(_ status: Int) -> StaticString {
        switch status {
        case 200: return "OK"
        case 201: return "Created"
        case 204: return "No Content"
        case 400: return "Bad Request"
        case 401: return "Unauthorized"
        case 403: return "Forbidden"
        case 404: return "Not Found"
        case 405: return "Method Not Allowed"
        case 408: return "Request Timeout"
        case 410: return "Gone"
        case 413: return "Content Too Large"
        case 414: return "URI Too Long"
        case 417: return "Expectation Failed"
        case 421: return "Misdirected Request"
        case 425: return "Too Early"
        case 429: return "Too Many Requests"
        case 431: return "Request Header Fields Too Large"
        case 451: return "Unavailable For Legal Reasons"
        case 500: return "Internal Server Error"
        case 501: return "Not Implemented"
        case 502: return "Bad Gateway"
        case 503: return "Service Unavailable"
        case 504: return "Gateway Timeout"
        case 505: return "HTTP Version Not Supported"
        default: return ""
        }
    }
}
