package import GateHTTP

/// Kinds of requests that are told by their head alone.
package enum RequestKind {
    /// Whether `head` is a CORS preflight proper: OPTIONS with `Origin` and
    /// `Access-Control-Request-Method`, and no body (`conf.md` §5).
    package static func isPreflight(_ head: RequestHead) -> Bool {
        guard head.knownMethod == .options else { return false }
        switch head.framing {
        case .none, .length(0): break
        case .chunked, .length, .untilClose: return false
        }
        return head.firstValue(of: origin) != nil && head.firstValue(of: requestMethod) != nil
    }

    /// Whether `head` came in TLS early data, as a proxy in front says by `Early-Data: 1`: refused
    /// with `too_early` on a protected route. Repeated or with another value it means the same (RFC
    /// 8470 §5.1).
    package static func isEarlyData(_ head: RequestHead) -> Bool {
        head.firstValue(of: earlyData) != nil
    }

    private static let origin = FieldName("origin")
    private static let requestMethod = FieldName("access-control-request-method")
    private static let earlyData = FieldName("early-data")
}
