/// Everything `proxy.conf` says, resolved: immutable, complete, nothing with a default left
/// optional.
///
/// Built by ``ConfigurationLoader`` and by nothing else; a running gate swaps one whole value for
/// the next. Every default stands in `Defaults.swift` with its unit and its reason.
package struct Configuration: Sendable, Equatable {
    /// The number of loops; nil is one for each core.
    package var loops: Int?
    /// How long a stop waits for requests in work.
    package var drainTimeout: Duration
    /// The `log` block.
    package var log: LogSettings
    /// The `store` block.
    package var store: StoreSettings
    /// The `spool` block.
    package var spool: SpoolSettings
    /// The addresses of the `admin` block; empty without one.
    package var admin: [ListenAddress]
    /// The `listener` blocks, in file order.
    package var listeners: [Listener]
    /// The `apple` block; nil without.
    package var apple: AppleSettings?
    /// The `app` blocks, in file order.
    package var apps: [App]
    /// The `upstream` blocks, in file order.
    package var upstreams: [Upstream]
    /// The services of URLs that the gate itself asks; no block names them.
    package var implicitUpstreams: [Upstream]
    /// The `host` blocks, in file order.
    package var hosts: [Host]

    /// All upstreams, in the order of their indices: those of blocks, then the implicit ones.
    package var allUpstreams: [Upstream] { upstreams + implicitUpstreams }
}

/// Where log lines go and what they may hold.
package struct LogSettings: Sendable, Equatable {
    /// A destination of lines.
    package enum Destination: Sendable, Equatable {
        case file(String)
        case off
        case stdout
    }

    /// The least severity that the error log keeps.
    package enum Level: String, Sendable, Equatable, CaseIterable {
        case debug
        case info
        case warn
        case error
    }

    /// Where the access log goes.
    package var access: Destination
    /// The least severity of the error log, which goes to standard error.
    package var errorLevel: Level
    /// The share of access lines kept for routes whose mode is off, in hundredths (0–100).
    package var sampleOffPercent: Int
    /// Whether a target's query is logged.
    package var isQueryLogged: Bool
    /// Whether accounts are logged as they are; otherwise as an HMAC.
    package var isAccountPlain: Bool
}

/// Where the store lives.
package struct StoreSettings: Sendable, Equatable {
    /// The directory, created 0700.
    package var directory: String
    /// The number of shards, a power of two.
    package var shards: Int
    /// The most keys the store takes.
    package var keysMax: Int
    /// Milliseconds by which an admit may be answered before it is on disk; nil where `strict`.
    package var relaxedMilliseconds: Int?
    /// The time from one snapshot to the next.
    package var snapshotInterval: Duration
    /// Bytes of the log since a snapshot that bring on the next.
    package var snapshotAfterBytes: Int
}

/// Where bodies over `body memory` go.
package struct SpoolSettings: Sendable, Equatable {
    /// The directory, created 0700.
    package var directory: String
    /// The most bytes of all spool files together.
    package var bytesMax: Int
    /// The most spool files at one time.
    package var filesMax: Int
}

/// An address to listen on.
package enum ListenAddress: Sendable, Equatable {
    /// A numeric IPv4 or IPv6 address (without brackets) and its port.
    case ip(String, port: UInt16)
    /// A socket passed by systemd under this name.
    case systemd(String)
    /// A unix socket path and its mode bits.
    case unix(String, mode: Int)
}

/// One `listener` block.
package struct Listener: Sendable, Equatable {
    /// The block's name.
    package var name: String
    /// Where it listens; at least one.
    package var addresses: [ListenAddress]
    /// Its certificates; nil is a clear listener.
    package var tls: ListenerTLS?
    /// Peers that must send a PROXY header, and whose word on the client's address it is; nobody
    /// else may.
    package var proxySources: [Network]
    /// Peers whose `X-Forwarded-*`, request id and account field are believed.
    package var trustedProxies: [Network]
    /// What it speaks; never empty.
    package var http: HTTPProtocols
    /// Bounds on what a peer may send.
    package var limits: ListenerLimits
    /// Deadlines.
    package var timeouts: ListenerTimeouts
}

/// Protocols of a listener.
package struct HTTPProtocols: OptionSet, Sendable, Equatable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// HTTP/1.0 and HTTP/1.1.
    package static let h1 = HTTPProtocols(rawValue: 1)
    /// HTTP/2 over TLS, chosen by ALPN.
    package static let h2 = HTTPProtocols(rawValue: 2)
    /// HTTP/2 in clear text, by prior knowledge.
    package static let h2c = HTTPProtocols(rawValue: 4)
}

/// Bounds on what a peer may send; counts or bytes.
package struct ListenerLimits: Sendable, Equatable {
    /// Connections at one time, over all loops.
    package var connections: Int
    /// Connections of one address (IPv6: one /64) at one time; trusted proxies are not counted.
    package var perAddress: Int
    /// Field lines of a head.
    package var headerFields: Int
    /// Bytes of a whole head.
    package var headerSize: Int
    /// Bytes of one field line.
    package var fieldSize: Int
    /// Bytes of a request target.
    package var targetSize: Int
    /// Requests on one connection before it is closed.
    package var requests: Int
    /// Streams that an HTTP/2 connection may have open at one time.
    package var h2Streams: Int
    /// Streams of an HTTP/2 connection that may be reset or refused.
    package var h2Resets: Rate
    /// Frames of an HTTP/2 connection that do nothing for a request.
    package var h2Control: Rate
}

/// Deadlines of a downstream connection.
package struct ListenerTimeouts: Sendable, Equatable {
    /// Until the connection can carry its first head: TLS, and whatever else comes before HTTP.
    package var handshake: Duration
    /// From the first byte of a head to its end.
    package var header: Duration
    /// Between two reads of a body.
    package var body: Duration
    /// The least bytes a second a body must come in at, once the first `body` interval has passed.
    package var bodyMinRate: Int
    /// Between two requests.
    package var keepalive: Duration
    /// Without progress while an answer is written.
    package var write: Duration
    /// A WebSocket without an octet in either direction.
    package var tunnel: Duration
    /// A WebSocket in all.
    package var tunnelMax: Duration
}

/// One `app` block.
package struct App: Sendable, Equatable {
    /// The environment an attestation must come from.
    package enum Environment: String, Sendable, Equatable {
        case development
        case production
    }

    /// What is done with the receipt of an attestation.
    package enum Receipts: String, Sendable, Equatable {
        /// Kept unread.
        case off
        /// As `verify`, and exchanged with Apple for the fraud metric now and then.
        case refresh
        /// A bad one refuses the attestation.
        case require
        /// Kept where it is good.
        case verify
    }

    /// What an attestation's client hashed for a challenge by id.
    package enum ChallengeHash: String, Sendable, Equatable {
        case bytes
        case text
    }

    /// The block's name.
    package var name: String
    /// `PREFIX.bundle.id`, at least one.
    package var appIDs: [String]
    /// The environment an attestation must come from.
    package var environment: Environment
    /// DER of the root that replaces Apple's; nil for the built-in one.
    package var root: [UInt8]?
    /// What is done with the receipt of an attestation.
    package var receipts: Receipts
    /// Keys that an account may have; over it the one unused for longest is retired, if for 30
    /// days, or else an enrolment is `rejected`.
    package var keysPerAccount: Int
    /// What an attestation's client hashed for a challenge by id.
    package var challengeHash: ChallengeHash
}

/// One `upstream` block.
package struct Upstream: Sendable, Equatable {
    /// One `server` line.
    package struct Server: Sendable, Equatable {
        /// How it is reached.
        package enum Endpoint: Sendable, Equatable {
            /// A numeric address or a name to resolve, and a port.
            case host(String, port: UInt16)
            case unix(String)
        }

        /// How the server is reached.
        package var endpoint: Endpoint
        /// As written, for logs.
        package var text: String
        /// Its share of the requests, against the other servers' weights.
        package var weight = 1
        /// Whether it is used only while no other server is usable.
        package var isBackup = false
    }

    /// Which server takes a request.
    package enum Balance: String, Sendable, Equatable {
        case hashKeyID = "hash"
        case leastConnections = "least_connections"
        case roundRobin = "round_robin"
    }

    /// Active health checks.
    package struct Health: Sendable, Equatable {
        /// The path asked for, decoded.
        package var path: String
        /// The one status that passes.
        package var status: Int
        /// Between the begins of two checks of a server.
        package var every: Duration
        /// For a whole check.
        package var timeout: Duration
        /// Passed checks in a row that bring a server up.
        package var rise: Int
        /// Failed checks in a row that take a server down.
        package var fall: Int

        /// Checks by their parts.
        package init(
            path: String, status: Int, every: Duration, timeout: Duration, rise: Int, fall: Int
        ) {
            self.path = path
            self.status = status
            self.every = every
            self.timeout = timeout
            self.rise = rise
            self.fall = fall
        }
    }

    /// Passive ejection.
    package struct Ejection: Sendable, Equatable {
        /// Failures that eject a server,
        package var failures: Int
        /// when they fall into this time.
        package var within: Duration
        /// How long it is left out.
        package var duration: Duration

        /// An ejection by its parts.
        package init(failures: Int, within: Duration, duration: Duration) {
            self.failures = failures
            self.within = within
            self.duration = duration
        }
    }

    /// Requests at one time, over all servers and loops.
    package struct ActiveLimit: Sendable, Equatable {
        /// The most requests at one time.
        package var requests: Int
        /// The most requests that wait.
        package var waiting: Int
        /// How long one waits.
        package var wait: Duration

        /// A limit by its parts.
        package init(requests: Int, waiting: Int, wait: Duration) {
            self.requests = requests
            self.waiting = waiting
            self.wait = wait
        }
    }

    /// Deadlines towards the service.
    package struct Timeouts: Sendable, Equatable {
        /// Until a connection stands.
        package var connect: Duration
        /// From the request's last byte to the answer's first.
        package var firstByte: Duration
        /// Without progress in either direction once the exchange runs.
        package var idle: Duration
    }

    /// A field the gate adds, with a secret value.
    package struct SetField: Sendable, Equatable {
        /// The field's name.
        package var name: String
        /// Its value; a secret, never logged or dumped.
        package var value: [UInt8]
    }

    /// What the service speaks.
    package enum ServiceProtocol: String, Sendable, Equatable {
        case http1 = "h1"
        /// HTTP/2 over TLS.
        case http2 = "h2"
        /// HTTP/2 by prior knowledge, in clear.
        case http2Clear = "h2c"
    }

    /// The block's name.
    package var name: String
    /// Its servers, in file order; at least one.
    package var servers: [Server]
    /// The most idle connections kept, over all loops; 0 keeps none.
    package var keepaliveConnections: Int
    /// How long an idle connection is kept.
    package var keepaliveIdle: Duration
    /// The most requests on one connection.
    package var keepaliveRequests: Int
    /// What the service speaks.
    package var `protocol`: ServiceProtocol
    /// How often names are resolved anew.
    package var resolveEvery: Duration
    /// How often a request may be tried again.
    package var retries: Int
    /// Deadlines towards the service.
    package var timeouts: Timeouts
    /// Fields the gate adds to every request.
    package var setFields: [SetField]
    /// TLS towards the service; nil is clear.
    package var tls: UpstreamTLS?
    /// Which server takes a request.
    package var balance: Balance
    /// Active health checks; nil for none.
    package var health: Health?
    /// Passive ejection; nil for none.
    package var ejection: Ejection?
    /// Requests at one time; nil for no limit.
    package var activeLimit: ActiveLimit?
    /// Whether the body of a route that is not enforced is held until its length is known, and
    /// bounded; otherwise it streams.
    package var isLengthRequired: Bool
}

/// One `host` block.
package struct Host: Sendable, Equatable {
    /// What becomes of a request no route takes.
    package enum Unmatched: String, Sendable, Equatable {
        case deny
        case enforce
        case off
    }

    /// Where the account comes from.
    package enum Account: Sendable, Equatable {
        case clientCertificate(CertificateName)
        case header(String)
        case none
        case subrequest(SubrequestAccount)
        case token(TokenAccount)
    }

    /// What becomes of field names with an underscore.
    package enum Underscores: String, Sendable, Equatable {
        case drop
        case keep
        case reject
    }

    /// The names a host answers to, lower case, without port or trailing dot; at least one.
    package var names: [String]
    /// Names of its listeners.
    package var listeners: [String]
    /// Name of its app; empty where the host has no app (then nothing is enforced and nothing
    /// enrolled).
    package var app: String
    /// Name of its upstream; empty only where every route names its own and `unmatched` is `deny`.
    package var upstream: String
    /// What becomes of a request no route takes.
    package var unmatched: Unmatched
    /// The prefix of the enrolment endpoints, `/v1/app-attest`; empty without.
    package var enroll: String
    /// Where the account comes from.
    package var account: Account
    /// Life of a challenge for requests and revocations.
    package var challengeLifetime: Duration
    /// Life of a challenge for attestations.
    package var attestationChallengeLifetime: Duration
    /// The host's limits.
    package var rates: Rates
    /// The names of the proof's fields.
    package var proof: ProofFields
    /// Whether every ambiguous path is refused (`paths strict`).
    package var isPathStrict: Bool
    /// What becomes of field names with an underscore.
    package var underscores: Underscores
    /// Whether CORS preflights pass.
    package var isPreflightPassed: Bool
    /// The `route` blocks, in file order.
    package var routes: [Route]
    /// The policy of a request that no route takes: what `defaults` and the route defaults say.
    package var unmatchedRoute: Route
}

/// A limit: at most `count` in any window of `per`.
package struct Rate: Sendable, Equatable {
    /// Events in any window.
    package var count: Int
    /// The window's length.
    package var per: Duration

    package init(count: Int, per: Duration) {
        self.count = count
        self.per = per
    }

    /// What stands for a limit whose text has a fault.
    static let none = Rate(count: 0, per: .seconds(1))
}

/// The `rate` lines of a host; nil is no limit.
package struct Rates: Sendable, Equatable {
    /// Challenges issued to one account.
    package var challengesPerAccount: Rate?
    /// Challenges issued to one address.
    package var challengesPerAddress: Rate?
    /// Attestations tried by one account.
    package var attestationsPerAccount: Rate?
    /// Attestations tried from one address.
    package var attestationsPerAddress: Rate?
    /// Signatures of one account that failed.
    package var failedSignaturesPerAccount: Rate?
    /// Signatures from one address that failed.
    package var failedSignaturesPerAddress: Rate?
}

/// The field names of a proof, as configured.
package struct ProofFields: Sendable, Equatable {
    /// Key ID, `App-Attest-Key-Id`.
    package var keyID: String
    /// Assertion, `App-Attest-Assertion`.
    package var assertion: String
    /// Client data, `App-Attest-Client-Data`.
    package var clientData: String
    /// Challenge, `App-Attest-Challenge`.
    package var challenge: String
    /// Attestation of an inline enrolment, `App-Attest-Attestation`.
    package var attestation: String
    /// `App-Attest-Unsupported`.
    package var unsupported: String
    /// DeviceCheck token, `App-Attest-Device-Token`.
    package var deviceToken: String
    /// Whether a proof may leave the key ID out: then the account's keys are tried.
    package var isKeyIDOptional: Bool
}

/// One `route` block, or the stand-in for requests no route takes.
package struct Route: Sendable, Equatable {
    /// What the route does with a request.
    package enum Mode: Sendable, Equatable {
        /// Answers with this status.
        case deny(Int)
        case enforce
        case monitor
        case off
    }

    /// What the client data of a proof is.
    package enum Binding: Sendable, Equatable {
        /// The body itself.
        case body(BodyChallenge)
        /// A JSON object in a field.
        case clientData
        /// As `clientData`, all of the proof and the request's own body inside the body.
        case envelope
        /// Method, target, challenge and body's hash, built at both ends.
        case request
    }

    /// Where the challenge of a body that is client data stands.
    package enum BodyChallenge: Sendable, Equatable {
        /// Nowhere: the counter alone stops a replay.
        case none
        /// In the JSON body, at the pointer with these reference tokens, unescaped; one at least.
        case pointer([String])
    }

    /// The route's name in logs and metrics: `HOST METHODS PATH` as written.
    package var name: String
    /// The methods it takes; empty for any.
    package var methods: [String]
    /// The path, decoded, without the `/*` of a prefix (so `/*` itself is the empty path).
    package var path: String
    /// Whether `path` is a prefix.
    package var isPrefix: Bool
    /// What the route does with a request.
    package var mode: Mode
    /// The part of its requests that an enforced route judges; nil for all.
    package var share: Share?
    /// What becomes of a request that says its device cannot attest.
    package var fallback: Fallback
    /// The DeviceCheck bits set after a 2xx answer; nil for none.
    package var setBits: DeviceBits?
    /// What else a request must show once its proof holds.
    package var requirements: Requirements
    /// What the client data of a proof is.
    package var binding: Binding
    /// The purpose its challenges are issued for.
    package var purpose: String
    /// Whether a request may bring the attestation of its key.
    package var isInlineEnrolment: Bool
    /// Bytes of a body on an enforced route.
    package var bodyBytesMax: Int
    /// Bytes of a held body that stay in memory.
    package var bodyMemoryBytes: Int
    /// The upstream, already resolved from route or host; empty on denied routes without one.
    package var upstream: String
    /// Between two reads of a body; nil leaves the listener's.
    package var bodyTimeout: Duration?
    /// Least bytes a second of a body; nil leaves the listener's.
    package var bodyMinRate: Int?
    /// Without progress while an answer is written; nil leaves the listener's.
    package var writeTimeout: Duration?
    /// A WebSocket without an octet in either direction; nil leaves the listener's.
    package var tunnelTimeout: Duration?
    /// A WebSocket in all; nil leaves the listener's.
    package var tunnelMax: Duration?
    /// Until a connection stands; nil leaves the upstream's.
    package var connectTimeout: Duration?
    /// From the request's end to the answer's begin; nil leaves the upstream's.
    package var firstByteTimeout: Duration?
    /// Without progress in either direction; nil leaves the upstream's.
    package var idleTimeout: Duration?
    /// Whether a request may open a WebSocket.
    package var isWebSocket: Bool
    /// Whether proof fields go upstream.
    package var isProofPassed: Bool
    /// Where the route stands, `proxy.conf:41`; for the stand-in, where its host does.
    package var place: String
}
