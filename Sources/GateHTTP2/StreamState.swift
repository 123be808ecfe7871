internal import GateBytes
internal import GateHTTP

/// What a session keeps of one stream, on its loop for life.
final class StreamState {
    /// The section that is coming in.
    var block: FieldBlock?
    /// Whether the peer's head was given, or the stream was opened here.
    var isHeadSeen = false
    /// Whether the library found its head malformed.
    var isMalformed = false
    /// Whether a final head has come.
    var isFinalHeadSeen = false
    /// Whether the peer's side has ended.
    var isPeerEnded = false
    /// Octets of a body that were given and not consumed.
    var unconsumed = 0
    /// Octets to send.
    var outgoing = ByteBuffer()
    /// Whether a head went out that a body follows.
    var isBodyOpen = false
    /// Whether nothing comes behind ``outgoing`` but ``trailers``.
    var isEnding = false
    var trailers: FieldBlock?
    /// Whether the library waits to be told that there is something to send.
    var isDeferred = false
    /// When octets last left, or began to wait.
    var progressAt: UInt64

    init(startedAt now: UInt64) {
        progressAt = now
    }
}
