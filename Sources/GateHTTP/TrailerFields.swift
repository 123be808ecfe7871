// Which fields of a response's trailer section may pass (RFC 9110 §6.5.1, threat T17). A client
// that asked for trailers may read them into the head, so nothing passes there that frames a
// message, says who somebody is, sets a cookie, or changes what the head said of its content or
// its use. Names are compared folded, as everywhere.

/// The rules for trailer fields.
package enum TrailerFields {
    /// Marks the lines of `trailers` that must not be forwarded (``FieldLine/isHopByHop``).
    package static func mark(_ trailers: inout ResponseTrailers) {
        for index in trailers.fields.indices {
            let line = trailers.fields[index]
            let isBarred =
                barred.contains { line.isNamedFolded($0, in: trailers.bytes) }
                || line.hasFoldedPrefix(ownPrefix, in: trailers.bytes)
            if isBarred { trailers.fields[index].isHopByHop = true }
        }
    }

    /// The gate's own fields.
    private static let ownPrefix = FieldName("app-attest-")

    private static let barred = [
        // Framing and routing.
        "connection", "content-length", "host", "http2-settings", "keep-alive",
        "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade", "via",
        // Who somebody is.
        "authentication-info", "authorization", "cookie", "proxy-authenticate",
        "proxy-authentication-info", "proxy-authorization", "set-cookie", "set-cookie2",
        "www-authenticate", "x-request-id",
        // What the content is, and what may be done with the answer.
        "age", "cache-control", "content-encoding", "content-range", "content-type", "date",
        "expires", "location", "pragma", "retry-after", "vary", "warning",
    ].compactMap { FieldName(parsing: $0) }
}

extension RequestHead {
    /// Whether the client takes trailers behind chunks: `TE: trailers`, in HTTP/1.1.
    package var acceptsTrailers: Bool { version == .http11 && asksForTrailers }

    /// Whether the request says `TE: trailers`.
    package var asksForTrailers: Bool {
        for line in fields where line.kind == .te {
            var codings = TokenList(line.value)
            while let coding = codings.next(bytes) {
                if Token.equals(bytes, coding, "trailers") { return true }
            }
        }
        return false
    }
}

extension ChunkedWriter {
    /// Appends the last chunk, the lines of `trailers` that may be forwarded, and the end of the
    /// body. A parsed line holds no octet that could end it.
    package static func appendLast(_ trailers: ResponseTrailers, to bytes: inout [UInt8]) {
        bytes += Array("0\r\n".utf8)
        for line in trailers.fields where !line.isHopByHop {
            bytes += trailers.bytes[line.name]
            bytes += Array(": ".utf8)
            bytes += trailers.bytes[line.value]
            bytes += Array("\r\n".utf8)
        }
        bytes += Array("\r\n".utf8)
    }
}
