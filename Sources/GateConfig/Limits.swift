/// Bounds of the search for the key of a proof that names none.
package enum KeySearchLimits {
    /// Keys tried, a few milliseconds of a loop; `keys_per_account` may not be more there.
    package static let keysMax = 64
}

/// Bounds on what a configuration may say and on the work of reading it.
enum Limits {
    /// Files nested by `include`, the first one counted.
    static let includeDepthMax = 8
    /// Bytes of one file: far over any configuration written by people, far under a harm.
    static let fileBytesMax = 4 << 20
    /// Faults reported; a file with more is not a configuration.
    static let faultsMax = 500
    /// Characters of a word that is compared with the known ones.
    static let wordLengthMax = 64

    /// Counts that say nothing else.
    static let count = 1...1_000_000_000
    /// Loops: more than any machine has cores.
    static let loops = 1...1024
    /// Shards: a power of two, each with its own lock.
    static let shards = 1...4096
    /// Between two snapshots, in seconds: each writes the whole store.
    static let snapshotSeconds = 1...(30 * 86_400)
    /// Bytes of the log that bring on a snapshot.
    static let snapshotBytes = (1 << 20)...(1 << 40)
    /// Milliseconds for which an admit may be answered before it is on disk: beyond, a crash would
    /// cost every client in flight for nothing.
    static let relaxedMilliseconds = 1...1000
    /// Attempts after the first.
    static let retries = 0...10
    /// The weight of a server.
    static let weight = 1...1000
    /// The status a health check expects; 1xx is no answer.
    static let healthStatus = 200...599
    /// Checks in a row that turn a server.
    static let healthStreak = 1...100
    /// Failures that eject a server: their times are kept, for each server.
    static let ejectFailures = 1...1000
    /// Requests at one time.
    static let active = 1...1_000_000
    /// Requests that wait for a place; each is a client's connection kept open.
    static let queue = 0...100_000
    /// Idle connections kept; 0 keeps none.
    static let keepalive = 0...1_000_000
    /// How long Apple's DeviceCheck is waited for, in seconds: a phone's user waits as well.
    static let deviceCheckSeconds = 1...60
    /// Statuses of `deny`.
    static let denyStatus = 400...599
    /// The greatest fraud metric that passes: Apple counts a device's keys of a month.
    static let metric = 0...1_000_000
    /// Header fields of a request.
    static let headerFields = 1...1000
    /// A request's head, one field of it, or its target, in bytes: the smallest that real clients
    /// need, and what still fits many times into memory.
    static let headBytes = 1024...(1 << 20)
    /// Streams that one HTTP/2 connection may have open: each holds up to 256 KiB that came.
    static let streams = 1...1000
    /// A body held in memory, in bytes.
    static let bodyMemory = 1024...(1 << 30)
    /// A body, in bytes.
    static let bodyBytes = 1024...(1 << 50)
    /// Keys of an account that a proof without a key ID may be tried with: a signature each.
    static let keysTriedMax = KeySearchLimits.keysMax
    /// Bytes of a body that is read as JSON, which a loop does in one go.
    static let jsonBodyBytesMax = 16 << 20
    /// Reference tokens of a pointer: JSON is read to a depth of sixteen.
    static let pointerTokensMax = 16
    /// Durations, in seconds: a year is more than anything here waits.
    static let durationSecondsMax = 365 * 86_400
    /// Lifetimes of challenges, in seconds: spent ids are stored for as long.
    static let challengeSeconds = 1...(30 * 86_400)
    /// How long a service's word on a credential counts, in seconds: signing out takes as long.
    static let accountCacheSeconds = 1...3600
    /// Between two fetches of a key set, in seconds: a key that was withdrawn counts as long.
    static let keySetSeconds = 1...(7 * 86_400)
    /// Difference of clocks, in seconds: each lengthens a token's life.
    static let tokenLeewaySeconds = 1...600
    /// Life of a key of session tickets, in seconds: no ticket may live longer (RFC 8446 §4.6.1).
    static let ticketSeconds = 1...(7 * 86_400)
    /// A certificate that ends within this many seconds is warned about: a week is what a renewal
    /// that failed leaves to be noticed in.
    static let certificateWarningSeconds: Int64 = 7 * 86_400
    /// Bytes of a secret sent upstream.
    static let secretBytesMax = 8192
    /// Bytes of a unix socket's path, with its end, on Linux.
    static let unixPathBytesMax = 107
}
