internal import AppAttestWire
package import GateBytes
package import GateHTTP

/// One line of the access log: what became of a request (`cli.md`). What is not known is left out.
///
/// Never a proof, token, cookie or body. A value that a peer chose is escaped byte by byte, so that
/// a line is one line and no terminal is addressed by it (threat T29).
package struct AccessLogLine: Sendable {
    /// Unix milliseconds of the end.
    package var time: Int64
    package var requestID: [UInt8]?
    /// The client's address as text.
    package var client: [UInt8]?
    /// The listener's name.
    package var listener: String?
    /// The host block's first name.
    package var host: String?
    package var method: [UInt8]?
    /// The target as received, with its query.
    package var target: [UInt8]?
    package var version: HTTPVersion?
    /// The TLS version, `TLSv1.3`; nil on a clear connection.
    package var tls: String?
    package var status: Int?
    package var code: ProblemCode?
    package var verdict: Verdict?
    package var reason: Reason?
    /// The route's name.
    package var route: String?
    /// The app block's name.
    package var app: String?
    /// The key that signed, or is said to have.
    package var keyID: Bytes32?
    /// The account in the form that logs may show: hashed unless the configuration says plain.
    package var account: [UInt8]?
    package var counter: UInt32?
    /// Bytes read from the client for this request, head included.
    package var bytesIn: Int
    /// Bytes written to it.
    package var bytesOut: Int
    /// From the request's first byte to the end.
    package var duration: Duration?
    /// Of it, the verification.
    package var verify: Duration?
    /// Of it, waiting for the store.
    package var commit: Duration?
    /// Of it, from opening the upstream exchange to its end.
    package var upstreamDuration: Duration?
    /// The server that answered, as written in the configuration.
    package var upstream: String?

    /// A line of which only its time is known.
    package init(time: Int64) {
        self.time = time
        bytesIn = 0
        bytesOut = 0
    }

    /// Appends the line and its LF to `text`; the query of the target only with `isQueryLogged`.
    package func append(to text: inout [UInt8], isQueryLogged: Bool) {
        var writer = JSONWriter(appendingTo: text)
        text = []
        writer.beginObject()
        var stamp: [UInt8] = []
        CivilTime.appendRFC3339(time, to: &stamp)
        writer.member("time", stamp)
        appendRequest(&writer, isQueryLogged)
        appendOutcome(&writer)
        appendFigures(&writer)
        writer.endObject()
        text = writer.bytes
        text.append(UInt8(ascii: "\n"))
    }

    private func appendRequest(_ writer: inout JSONWriter, _ isQueryLogged: Bool) {
        if let requestID { writer.member("request_id", requestID) }
        if let client { writer.member("client", client) }
        if let listener { writer.member("listener", listener) }
        if let host { writer.member("host", host) }
        if let method { writer.member("method", method) }
        if let target {
            let query = isQueryLogged ? nil : target.firstIndex(of: UInt8(ascii: "?"))
            writer.member("target", target, 0..<(query ?? target.count))
        }
        switch version {
        case .http10: writer.member("protocol", "HTTP/1.0")
        case .http11: writer.member("protocol", "HTTP/1.1")
        case .http2: writer.member("protocol", "HTTP/2.0")
        case nil: break
        }
        if let tls { writer.member("tls", tls) }
    }

    private func appendOutcome(_ writer: inout JSONWriter) {
        if let status { writer.member("status", status) }
        if let code { writer.member("code", code.rawValue) }
        if let verdict {
            writer.member("verdict", verdict.name.withUTF8Buffer { unsafe Array($0) })
        }
        if let reason { writer.member("reason", reason.rawValue) }
        if let route { writer.member("route", route) }
        if let app { writer.member("app", app) }
        if let keyID { writer.member("key", String(Base64.encode(keyID.array).prefix(8))) }
        if let account { writer.member("account", account) }
        if let counter { writer.member("counter", Int(counter)) }
    }

    private func appendFigures(_ writer: inout JSONWriter) {
        writer.member("bytes_in", bytesIn)
        writer.member("bytes_out", bytesOut)
        if let duration { writer.member("duration", seconds: duration) }
        if let verify { writer.member("verify", seconds: verify) }
        if let commit { writer.member("commit", seconds: commit) }
        if let upstreamDuration { writer.member("upstream_duration", seconds: upstreamDuration) }
        if let upstream { writer.member("upstream", upstream) }
    }
}
