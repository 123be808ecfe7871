internal import CGateOpenSSL

/// OpenSSL's error queue, one a thread: whoever fails reads and empties it, whoever begins clears
/// it, so that no call takes an old entry for its own.
enum OpenSSLErrors {
    /// Empties the queue.
    static func clear() {
        ERR_clear_error()
    }

    /// The first reason in the queue as a lowercase clause; empties the queue.
    static func takeReason() -> String {
        text(of: takeCode())
    }

    /// The first code in the queue, 0 when there is none; empties the queue.
    static func takeCode() -> UInt {
        let code = ERR_get_error()
        ERR_clear_error()
        return code
    }

    /// The reason of a code.
    static func text(of code: UInt) -> String {
        guard let text = unsafe ERR_reason_error_string(code) else { return "OpenSSL failed" }
        return unsafe String(cString: text)
    }
}
