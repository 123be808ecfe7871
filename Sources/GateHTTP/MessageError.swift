/// Why a message was refused: one case for each rule of RFC 9112 and RFC 9113 and each limit.
///
/// After an error an HTTP/1 connection cannot be used again, since no one knows where the next
/// message would start. On a request ``status`` is the answer; a response that fails is 502
/// whatever the case.
package enum MessageError: Error, Equatable, Sendable {
    /// An absolute-form target whose authority is not the `Host` (RFC 9112 §3.2.2).
    case authorityMismatch
    /// The connection ended inside a message.
    case bodyTruncated
    /// Chunk data not followed by exactly CRLF.
    case chunkDataInvalid
    /// A chunk extension with an octet other than visible ASCII, space and tab.
    case chunkExtensionInvalid
    /// Chunk extensions past 1 KiB on a line or 16 KiB in a body.
    case chunkExtensionTooLong
    /// A chunk size that is not one to eight hexadecimal digits.
    case chunkSizeInvalid
    /// A field that speaks of the connection in an HTTP/2 message (RFC 9113 §8.2.2).
    case connectionFieldForbidden
    /// A `Connection` that is no list of tokens.
    case connectionInvalid
    /// A `Connection` that names a field which must reach the upstream.
    case connectionNamesProtectedField
    /// More connection options than ``Bounds/connectionOptionsMax``.
    case connectionOptionsTooMany
    /// A `Content-Length` that is not one to eighteen digits.
    case contentLengthInvalid
    /// A second `Content-Length`.
    case contentLengthRepeated
    /// A body where the status allows none (RFC 9112 §6.3).
    case contentUnexpected
    /// An `Expect` other than `100-continue`.
    case expectationUnknown
    /// A field name that is empty, folded, followed by space, or not a token.
    case fieldNameInvalid
    /// A field line longer than the limit.
    case fieldTooLong
    /// A control octet in a field value.
    case fieldValueInvalid
    /// More fields than the limit.
    case fieldsTooMany
    /// A head longer than the limit.
    case headTooLarge
    /// A `Host` that is not `host[:port]`.
    case hostInvalid
    /// No `Host`.
    case hostMissing
    /// A second `Host`.
    case hostRepeated
    /// More interim answers than ``Bounds/interimResponsesMax``.
    case interimResponsesTooMany
    /// `Content-Length` beside `Transfer-Encoding`.
    case lengthsConflict
    /// CR without LF, or LF without CR.
    case lineEndInvalid
    /// A method that is no token.
    case methodInvalid
    /// A method that is not registered, or is CONNECT or TRACE.
    case methodUnknown
    /// A pseudo-field of HTTP/2 that is missing, empty, unknown, repeated or late (RFC 9113 §8.3).
    case pseudoFieldInvalid
    /// A status line that is not `HTTP/1.x SP 3DIGIT SP reason`.
    case statusLineInvalid
    /// A target in none of the forms the gate takes, or with an octet outside 0x21–0x7e, or `#`.
    case targetInvalid
    /// A target longer than the limit.
    case targetTooLong
    /// `Transfer-Encoding` in an HTTP/1.0 message.
    case transferEncodingInHTTP10
    /// A `Transfer-Encoding` that is not exactly `chunked`.
    case transferEncodingInvalid
    /// A second `Transfer-Encoding`.
    case transferEncodingRepeated
    /// A 101 that nothing asked for.
    case upgradeUnexpected
    /// A version that is not `HTTP/` DIGIT `.` DIGIT.
    case versionInvalid
    /// A well-formed version other than 1.0 and 1.1.
    case versionUnsupported

    /// The status that answers a request refused for this.
    package var status: Int {
        switch self {
        case .targetTooLong: return 414
        case .expectationUnknown: return 417
        case .connectionOptionsTooMany, .fieldTooLong, .fieldsTooMany, .headTooLarge: return 431
        case .methodUnknown: return 501
        case .versionUnsupported: return 505
        default: return 400
        }
    }

    /// The internal name of the refusal, as log and metrics have it.
    package var reason: String {
        switch status {
        case 414, 431: return "too_large"
        default: return "malformed"
        }
    }
}

/// Bounds of the codecs that no configuration moves.
package enum Bounds {
    /// Connection options in one message; each is compared with each field, so the product is
    /// bounded.
    package static let connectionOptionsMax = 64
    /// Hexadecimal digits of a chunk size: 4 GiB a chunk.
    package static let chunkSizeDigitsMax = 8
    /// Bytes of extension on one chunk line, `;` included.
    package static let chunkExtensionLineBytesMax = 1024
    /// Bytes of extension in one body.
    package static let chunkExtensionBodyBytesMax = 16 * 1024
    /// Digits of a `Content-Length`: any such number fits an `Int`.
    package static let contentLengthDigitsMax = 18
    /// Interim (1xx) responses before the final one.
    package static let interimResponsesMax = 8
    /// Bytes of a method; the longest registered one has 17.
    package static let methodBytesMax = 32
    /// Trailer fields of one body.
    package static let trailersMax = 16
}
