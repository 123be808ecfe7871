/// The methods of IANA's registry that the gate forwards: all but `CONNECT` and `TRACE`, which it
/// never does, and `PRI` and `*`, which are no methods of requests. Case is significant (RFC 9110
/// §9.1).
package enum Method: String, CaseIterable, Sendable {
    case acl = "ACL"
    case baselineControl = "BASELINE-CONTROL"
    case bind = "BIND"
    case checkin = "CHECKIN"
    case checkout = "CHECKOUT"
    case copy = "COPY"
    case delete = "DELETE"
    case get = "GET"
    case head = "HEAD"
    case label = "LABEL"
    case link = "LINK"
    case lock = "LOCK"
    case merge = "MERGE"
    case mkactivity = "MKACTIVITY"
    case mkcalendar = "MKCALENDAR"
    case mkcol = "MKCOL"
    case mkredirectref = "MKREDIRECTREF"
    case mkworkspace = "MKWORKSPACE"
    case move = "MOVE"
    case options = "OPTIONS"
    case orderpatch = "ORDERPATCH"
    case patch = "PATCH"
    case post = "POST"
    case propfind = "PROPFIND"
    case proppatch = "PROPPATCH"
    case put = "PUT"
    case query = "QUERY"
    case rebind = "REBIND"
    case report = "REPORT"
    case search = "SEARCH"
    case unbind = "UNBIND"
    case uncheckout = "UNCHECKOUT"
    case unlink = "UNLINK"
    case unlock = "UNLOCK"
    case update = "UPDATE"
    case updateredirectref = "UPDATEREDIRECTREF"
    case versionControl = "VERSION-CONTROL"

    /// The method that `bytes[range]` spells; nil when it is none of these.
    package init?(_ bytes: [UInt8], _ range: Range<Int>) {
        switch range.count {
        case 3 where Token.isExactly(bytes, range, "GET"): self = .get
        case 4 where Token.isExactly(bytes, range, "POST"): self = .post
        case 3...Method.lengthMax:
            guard let known = Method(rawValue: String(decoding: bytes[range], as: UTF8.self))
            else { return nil }
            self = known
        default: return nil
        }
    }

    /// Whether the method changes nothing (RFC 9110 §9.2.1).
    package var isSafe: Bool {
        switch self {
        case .get, .head, .options, .propfind, .query, .report, .search: return true
        default: return false
        }
    }

    /// Whether sending it twice does what sending it once does (RFC 9110 §9.2.2, IANA's registry).
    package var isIdempotent: Bool {
        switch self {
        case .lock, .patch, .post: return false
        default: return true
        }
    }

    private static let lengthMax = 17
}
