internal import GateBytes
package import GateConfig
package import GateHTTP

// The head of a request as the upstream gets it, `protocol.md` §6. In this order, for every request
// of every route and mode:
//
//   1. method and raw target of the request, `HTTP/1.1`;
//   2. the request's fields, in order and as spelled, but for those that end here (``FieldTable``);
//   3. what the gate says.
//
// Whatever the gate says was removed first, unconditionally: a field is never merely overwritten
// where there happens to be a value (threat T06). Fields that `Connection` names were marked by
// ``HopByHop``, before anything of the gate's own stands there to be named (T07).

/// How the body goes upstream.
package enum UpstreamBody: Sendable, Equatable {
    /// While an off route of unknown length streams.
    case chunked
    case length(Int)
    case none
}

/// The scheme of the downstream connection.
package enum Scheme: Sendable, Equatable {
    case http
    case https

    var name: StaticString {
        switch self {
        case .http: return "http"
        case .https: return "https"
        }
    }
}

/// The `set_field` lines of an upstream, prepared once.
package struct SetFields: Sendable {
    let fields: [(name: [UInt8], value: [UInt8])]
    let names: [FieldName]

    /// Fields from the configuration; one whose name is no token is not sent.
    package init(_ fields: [Upstream.SetField]) {
        var kept: [(name: [UInt8], value: [UInt8])] = []
        var names: [FieldName] = []
        for field in fields {
            guard let name = FieldName(parsing: field.name) else { continue }
            kept.append((name: Array(field.name.utf8), value: field.value))
            names.append(name)
        }
        self.fields = kept
        self.names = names
    }
}

/// What the gate knows of a request beside its head.
package struct UpstreamContext: Sendable {
    /// Whether the peer is in `trusted_proxies`.
    package var isPeerTrusted: Bool
    /// The peer's address as text, without port; empty where it has none.
    package var peer: [UInt8]
    package var scheme: Scheme
    package var requestID: [UInt8]
    package var verdict: Verdict
    /// What is known of a device without a key.
    package var risk: RiskSignals?
    /// The account; nil where there is none.
    package var account: [UInt8]?
    /// The signed `operationID`.
    package var operationID: [UInt8]?
    /// The media type of a body that came in an envelope, in place of the client's field.
    package var contentType: [UInt8]?
    /// `pass_proof on`.
    package var isProofPassed: Bool
    /// Whether `Expect` goes on: an off route that streams.
    package var isExpectForwarded: Bool
    /// Sent in place of the client's `traceparent` and `tracestate`; nil where those pass.
    package var traceParent: [UInt8]?
    /// Whether the request opens a WebSocket.
    package var isWebSocket: Bool
    package var body: UpstreamBody

    /// A context by its parts.
    package init(
        isPeerTrusted: Bool, peer: [UInt8], scheme: Scheme, requestID: [UInt8], verdict: Verdict,
        risk: RiskSignals? = nil,
        account: [UInt8]? = nil, operationID: [UInt8]? = nil, contentType: [UInt8]? = nil,
        isProofPassed: Bool = false,
        isExpectForwarded: Bool = false, traceParent: [UInt8]? = nil, isWebSocket: Bool = false,
        body: UpstreamBody
    ) {
        self.isPeerTrusted = isPeerTrusted
        self.peer = peer
        self.scheme = scheme
        self.requestID = requestID
        self.verdict = verdict
        self.risk = risk
        self.account = account
        self.operationID = operationID
        self.contentType = contentType
        self.isProofPassed = isProofPassed
        self.isExpectForwarded = isExpectForwarded
        self.traceParent = traceParent
        self.isWebSocket = isWebSocket
        self.body = body
    }
}

/// Writes the head that goes upstream.
package enum UpstreamHead {
    /// The bytes for `head`, whose hop-by-hop fields have been marked, in the form of HTTP/1.1.
    /// Throws only where a part that is not the peer's, such as a secret, cannot stand in a head.
    package static func bytes(
        _ head: RequestHead, _ fields: HostFields, _ context: UpstreamContext,
        setFields: SetFields
    ) throws(HeadWriterError) -> [UInt8] {
        var writer = HeadWriter(bytesExpected: head.bytes.count + 512)
        writer.startRequest(head.bytes, method: head.method, target: head.pathAndQuery)
        write(head, fields, context, setFields, isHTTP2: false, to: &writer)
        return try writer.finish()
    }

    /// The section for `head` in the form of HTTP/2 (RFC 9113 §8.3.1): the authority is a
    /// pseudo-field, chunks are no field, and `te: trailers` passes, which gRPC asks for.
    package static func block(
        _ head: RequestHead, _ fields: HostFields, _ context: UpstreamContext,
        setFields: SetFields, scheme: Scheme
    ) throws(HeadWriterError) -> FieldBlock {
        var writer = FieldBlockWriter(
            head.bytes, method: head.method, scheme: scheme.name, authority: head.authority,
            path: head.pathAndQuery)
        write(head, fields, context, setFields, isHTTP2: true, to: &writer)
        return try writer.finish()
    }

    private static func write(
        _ head: RequestHead, _ fields: HostFields, _ context: UpstreamContext,
        _ setFields: SetFields, isHTTP2: Bool, to writer: inout some FieldWriter
    ) {
        var forwarded = Forwarded()
        for line in head.fields where !(isHTTP2 && line.kind == .host) {
            let isPassed = isPassed(
                line, head.bytes, fields, context, setFields, &forwarded)
            if isPassed { writer.field(head.bytes, line) }
        }
        if isHTTP2, head.asksForTrailers { writer.field("te", "trailers" as StaticString) }
        appendLength(&writer, head, context.body, isHTTP2: isHTTP2)
        appendFindings(&writer, fields, context)
        appendForwarded(&writer, head, context, forwarded)
        if context.isWebSocket, !isHTTP2 {
            writer.field("Connection", "Upgrade" as StaticString)
            writer.field("Upgrade", "websocket" as StaticString)
        }
        for field in setFields.fields { writer.field(field.name, field.value) }
    }

    /// The fields of `head` that would go upstream, with those that say where it came from, but
    /// without the gate's findings and without `set_field`: for a question about the request.
    static func collect(
        _ head: RequestHead, _ fields: HostFields, _ context: UpstreamContext,
        setFields: SetFields, into writer: inout some FieldWriter
    ) {
        var forwarded = Forwarded()
        for line in head.fields
        where isPassed(line, head.bytes, fields, context, setFields, &forwarded) {
            writer.field(head.bytes, line)
        }
        writer.field("X-Request-Id", context.requestID)
        appendForwarded(&writer, head, context, forwarded)
    }

    /// What trusted proxies said of the hops before them, to append to.
    private struct Forwarded {
        var addresses: [UInt8] = []
        var hosts: [UInt8] = []
        var schemes: [UInt8] = []
    }

    private static func isPassed(
        _ line: FieldLine, _ bytes: [UInt8], _ fields: HostFields, _ context: UpstreamContext,
        _ setFields: SetFields, _ forwarded: inout Forwarded
    ) -> Bool {
        guard !line.isHopByHop else { return false }
        for name in setFields.names where line.isNamedFolded(name, in: bytes) { return false }
        switch line.kind {
        case .host: return true
        case .expect: return context.isExpectForwarded
        case .connection, .contentLength, .http2Settings, .keepAlive, .proxyAuthorization,
            .proxyConnection, .te, .trailer, .transferEncoding, .upgrade:
            return false
        case .other: break
        }
        if fields.underscores != .keep, UnderscoreRule.hasUnderscore(bytes, line.name) {
            return false
        }
        let match = fields.table.match(bytes, line.name)
        switch match.use {
        case .other: return true
        case .dropped, .requestID: return false
        case .droppedUntrusted: return context.isPeerTrusted
        // Another spelling goes even where a trusted proxy let it through: it was not read as the
        // account, and the service behind must not read it so.
        case .account: return context.isPeerTrusted && match.isExact
        case .assertion, .attestation, .challenge, .clientData, .deviceToken, .keyID, .unsupported:
            return context.isProofPassed
        case .contentType: return context.contentType == nil
        case .idempotencyKey: return context.operationID == nil
        case .trace: return context.traceParent == nil
        // The same for names that the gate sets.
        case .forwardedFor:
            if context.isPeerTrusted, match.isExact { forwarded.addresses.append(bytes, line) }
            return false
        case .forwardedHost:
            if context.isPeerTrusted, match.isExact { forwarded.hosts.append(bytes, line) }
            return false
        case .forwardedProto:
            if context.isPeerTrusted, match.isExact { forwarded.schemes.append(bytes, line) }
            return false
        }
    }

    private static func appendLength(
        _ writer: inout some FieldWriter, _ head: RequestHead, _ body: UpstreamBody, isHTTP2: Bool
    ) {
        switch body {
        case .chunked where isHTTP2: break
        case .chunked: writer.field("Transfer-Encoding", "chunked" as StaticString)
        case .length(let count): writer.field("Content-Length", count)
        case .none:
            switch head.knownMethod {
            // Legacy services answer 411 where the length of such a request is left out (RFC 9110
            // §8.6).
            case .patch, .post, .put: writer.field("Content-Length", 0)
            default: break
            }
        }
    }

    private static func appendFindings(
        _ writer: inout some FieldWriter, _ fields: HostFields, _ context: UpstreamContext
    ) {
        writer.field("App-Attest-Verdict", context.verdict.name)
        if !fields.appValue.isEmpty { writer.field("App-Attest-App", fields.appValue) }
        if let account = context.account, !account.isEmpty {
            writer.field("App-Attest-Account", AccountText.percentEncoded(account))
        }
        if case .verified(let key) = context.verdict {
            writer.field("App-Attest-Verified-Key", Base64.encode(key.keyID.array))
            writer.field("App-Attest-Counter", Int(key.counter))
        }
        let risk = (context.verdict.risk ?? context.risk)?.fieldValue ?? []
        if !risk.isEmpty { writer.field("App-Attest-Risk", risk) }
        if let contentType = context.contentType { writer.field("Content-Type", contentType) }
        if let operationID = context.operationID { writer.field("Idempotency-Key", operationID) }
        writer.field("X-Request-Id", context.requestID)
        if let traceParent = context.traceParent { writer.field("traceparent", traceParent) }
    }

    private static func appendForwarded(
        _ writer: inout some FieldWriter, _ head: RequestHead, _ context: UpstreamContext,
        _ forwarded: Forwarded
    ) {
        let peer = context.peer.isEmpty ? Array("unknown".utf8) : context.peer
        writer.field("X-Forwarded-For", forwarded.addresses.listed(peer))
        writer.field("X-Forwarded-Proto", forwarded.schemes.listed(context.scheme.name))
        writer.field("X-Forwarded-Host", forwarded.hosts.listed(Array(head.bytes[head.authority])))
        writer.field("Via", "1.1 attestgate" as StaticString)
    }
}

extension [UInt8] {
    /// Appends the value of `line` to a comma-separated list.
    fileprivate mutating func append(_ bytes: [UInt8], _ line: FieldLine) {
        guard !line.value.isEmpty else { return }
        if !isEmpty { append(contentsOf: ", ".utf8) }
        append(contentsOf: bytes[line.value])
    }

    /// The list with one more member.
    fileprivate func listed(_ member: [UInt8]) -> [UInt8] {
        isEmpty ? member : self + Array(", ".utf8) + member
    }

    /// The list with one more member.
    fileprivate func listed(_ member: StaticString) -> [UInt8] {
        listed(member.withUTF8Buffer { unsafe Array($0) })
    }
}
