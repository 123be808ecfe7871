package import GateHTTP

/// How an answer's body goes downstream.
package enum DownstreamBody: Sendable, Equatable {
    case chunked
    /// A length, also where no body follows it: an answer to HEAD, a 304.
    case length(Int)
    /// None, and no length either.
    case none
    /// Until the connection closes; only to HTTP/1.0 clients.
    case untilClose
}

/// Writes the head of an upstream's answer as the client gets it.
package enum DownstreamHead {
    /// The bytes for `head`, whose hop-by-hop fields have been marked: its fields in order and as
    /// spelled, but for its framing and for the two fields that are the gate's to give
    /// (`protocol.md` §6); then the gate's. `date` is the value of `Date` where the upstream sent
    /// none (RFC 9110 §6.6.1); `nextChallenge` is a challenge by value. With `announcesTrailers`
    /// the `Trailer` of a chunked answer passes. Throws never for a head that was parsed.
    package static func bytes(
        _ head: ResponseHead, date: @autoclosure () -> [UInt8], requestID: [UInt8],
        nextChallenge: [UInt8]?, body: DownstreamBody, connection: ConnectionNote,
        announcesTrailers: Bool = false
    ) throws(HeadWriterError) -> [UInt8] {
        var writer = HeadWriter(bytesExpected: head.bytes.count + 256)
        writer.startResponse(status: head.status, head.bytes, reason: head.reason)
        append(&writer, head, passesTrailer: announcesTrailers && body == .chunked)
        if head.firstValue(of: dateName) == nil { writer.field("Date", date()) }
        GateFields.append(&writer, requestID: requestID, nextChallenge: nextChallenge)
        body.append(to: &writer)
        connection.append(to: &writer)
        return try writer.finish()
    }

    /// The bytes of an interim answer (103): its fields alone.
    package static func interimBytes(_ head: ResponseHead) throws(HeadWriterError) -> [UInt8] {
        var writer = HeadWriter(bytesExpected: head.bytes.count)
        writer.startResponse(status: head.status, head.bytes, reason: head.reason)
        append(&writer, head)
        return try writer.finish()
    }

    /// What ``bytes(_:date:requestID:nextChallenge:body:connection:)`` says, to an HTTP/2 client: a
    /// length where the answer has one, and nothing of the connection.
    package static func block(
        _ head: ResponseHead, date: @autoclosure () -> [UInt8], requestID: [UInt8],
        nextChallenge: [UInt8]?
    ) throws(HeadWriterError) -> FieldBlock {
        var writer = FieldBlockWriter(status: head.status)
        append(&writer, head, passesTrailer: head.contentLength == nil)
        if head.firstValue(of: dateName) == nil { writer.field("Date", date()) }
        GateFields.append(&writer, requestID: requestID, nextChallenge: nextChallenge)
        // Not even a length of zero has a place in a 204 (RFC 9110 §8.6).
        if let length = head.contentLength, head.status != 204 {
            writer.field("Content-Length", length)
        }
        return try writer.finish()
    }

    /// An interim answer to an HTTP/2 client.
    package static func interimBlock(_ head: ResponseHead) throws(HeadWriterError) -> FieldBlock {
        var writer = FieldBlockWriter(status: head.status)
        append(&writer, head)
        return try writer.finish()
    }

    private static func append(
        _ writer: inout some FieldWriter, _ head: ResponseHead, passesTrailer: Bool = false
    ) {
        for line in head.fields
        where isPassed(line, head.bytes) || passesTrailer && line.kind == .trailer {
            writer.field(head.bytes, line)
        }
    }

    private static let dateName = FieldName("date")
    private static let requestID = FieldName("x-request-id")
    private static let nextChallenge = FieldName("app-attest-next-challenge")

    private static func isPassed(_ line: FieldLine, _ bytes: [UInt8]) -> Bool {
        guard !line.isHopByHop else { return false }
        switch line.kind {
        case .connection, .contentLength, .http2Settings, .keepAlive, .proxyAuthorization,
            .proxyConnection, .te, .trailer, .transferEncoding, .upgrade:
            return false
        case .expect, .host, .other: break
        }
        return !line.isNamedFolded(requestID, in: bytes)
            && !line.isNamedFolded(nextChallenge, in: bytes)
    }
}

/// What an answer says about its connection (RFC 9112 §9.3).
package enum ConnectionNote: Sendable, Equatable {
    /// It will be closed.
    case close
    /// It stays open, as an HTTP/1.0 client must be told.
    case keepAlive
    /// It stays open, as HTTP/1.1 takes for granted.
    case persistent
    /// It is a WebSocket from here on.
    case webSocket

    /// The note for a client of `version` whose connection stays open or not.
    package init(_ version: HTTPVersion, isPersistent: Bool) {
        switch (version, isPersistent) {
        case (_, false): self = .close
        case (.http10, true): self = .keepAlive
        case (.http11, true), (.http2, true): self = .persistent
        }
    }

    func append(to writer: inout HeadWriter) {
        switch self {
        case .close: writer.field("Connection", "close")
        case .keepAlive: writer.field("Connection", "keep-alive")
        case .persistent: break
        case .webSocket:
            writer.field("Connection", "Upgrade")
            writer.field("Upgrade", "websocket")
        }
    }
}

extension DownstreamBody {
    func append(to writer: inout HeadWriter) {
        switch self {
        case .chunked: writer.field("Transfer-Encoding", "chunked")
        case .length(let count): writer.field("Content-Length", count)
        case .none, .untilClose: break
        }
    }
}

/// The fields that every answer of the gate has.
enum GateFields {
    static func append(
        _ writer: inout some FieldWriter, requestID: [UInt8], nextChallenge: [UInt8]?
    ) {
        writer.field("X-Request-Id", requestID)
        if let nextChallenge { writer.field("App-Attest-Next-Challenge", nextChallenge) }
    }
}
