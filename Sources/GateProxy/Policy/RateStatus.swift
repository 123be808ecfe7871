internal import GateBytes
package import GateConfig
internal import GateHTTP

/// How somebody stands with a limit: `RateLimit-Policy` and `RateLimit` of
/// draft-ietf-httpapi-ratelimit-headers, on refusals and on the calls that a limit is for.
///
/// Of the limit per account and the one per address it is the one that is nearer to its end.
package struct RateStatus: Sendable, Equatable {
    /// Which limit, by its name in `proxy.conf`.
    package enum Name: String, Sendable, Equatable {
        case attestations
        case challenges
        case fallback
        case failedSignatures = "failed_signatures"
    }

    /// Which limit.
    package var name: Name
    /// Events that it lets pass in a window.
    package var count: Int
    /// The window's length in whole seconds, rounded up.
    package var window: Int
    /// Events that would pass now.
    package var remaining: Int
    /// Seconds until more would.
    package var seconds: Int

    /// A standing by its parts.
    package init(name: Name, count: Int, window: Int, remaining: Int, seconds: Int) {
        self.name = name
        self.count = count
        self.window = window
        self.remaining = remaining
        self.seconds = seconds
    }

    /// A standing with the limit `rate`.
    package init(name: Name, _ rate: Rate, remaining: Int, seconds: Int) {
        let window = rate.per.nanoseconds / 1_000_000_000
        let isWhole = rate.per.nanoseconds % 1_000_000_000 == 0
        self.init(
            name: name, count: rate.count, window: Int(clamping: window) + (isWhole ? 0 : 1),
            remaining: remaining, seconds: seconds)
    }

    /// The value of `RateLimit-Policy`.
    package var policyValue: [UInt8] {
        Array("\"\(name.rawValue)\";q=\(count);w=\(window)".utf8)
    }

    /// The value of `RateLimit`.
    package var value: [UInt8] {
        Array("\"\(name.rawValue)\";r=\(remaining);t=\(seconds)".utf8)
    }
}
