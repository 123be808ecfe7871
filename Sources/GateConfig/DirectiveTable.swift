/// Every directive of conf.md §3: the one list behind parser, messages, dump and reference.
enum DirectiveTable {
    /// All rows, in the order of the reference.
    static let all: [Directive] =
        top + log + store + spool + admin + listener + listenerTLS + apple + app + upstream
        + upstreamTLS + host + proof + jwt + route

    /// The row of `name` at `level`; nil where it may not stand.
    static func find(_ name: String, at level: Level) -> Directive? {
        index[level]?[name]
    }

    /// The rows of `level`.
    static func rows(at level: Level) -> [Directive] {
        all.filter { $0.level == level }
    }

    private static let index: [Level: [String: Directive]] = Dictionary(grouping: all, by: \.level)
        .mapValues { rows in
            Dictionary(rows.map { ($0.name, $0) }) { first, _ in first }
        }

    private static let top = [
        Directive("loops", .top, "auto|COUNT", "event loops; auto is one a core")
            .defaulting(Defaults.loops).within(["": Limits.loops]),
        Directive("drain_timeout", .top, "DURATION", "how long a stop waits for requests in work")
            .defaulting(Defaults.drainTimeout),
        Directive("log", .top, "", "where log lines go").opening(.log),
        Directive("store", .top, "", "where keys and spent challenges are kept").opening(.store),
        Directive("spool", .top, "", "where bodies over body memory wait").opening(.spool),
        Directive("admin", .top, "", "health, readiness and metrics").opening(.admin),
        Directive("listener", .top, "NAME", "addresses that clients connect to").opening(.listener)
            .repeating(),
        Directive("apple", .top, "", "credentials for Apple's servers").opening(.apple),
        Directive("app", .top, "NAME", "an app whose installations may pass").opening(.app)
            .repeating(),
        Directive("upstream", .top, "NAME", "a service behind the gate").opening(.upstream)
            .repeating(),
        Directive("host", .top, "HOST…", "what is served under these names").opening(.host)
            .repeating(),
        Directive("defaults", .top, "", "route directives for every route").opening(.route),
    ]

    private static let log = [
        Directive("access", .log, "stdout|off|FILEPATH", "one JSON line a request")
            .defaulting(Defaults.access),
        Directive("error", .log, "level=debug|info|warn|error", "least severity on standard error")
            .defaulting(Defaults.error),
        Directive("sample", .log, "off SHARE", "share of lines kept for routes whose mode is off")
            .defaulting(Defaults.sample),
        Directive("query_in_log", .log, "on|off", "whether a target's query is logged")
            .defaulting(Defaults.queryInLog),
        Directive("account_in_log", .log, "hashed|plain", "how an account is logged")
            .defaulting(Defaults.accountInLog),
    ]

    private static let store = [
        Directive("dir", .store, "FILEPATH", "the directory, created 0700")
            .defaulting(Defaults.storeDirectory),
        Directive("shards", .store, "COUNT", "shards of the table in memory, a power of two")
            .defaulting(Defaults.shards).within(["": Limits.shards]),
        Directive("durability", .store, "strict | relaxed DURATION", "when a commit counts")
            .defaulting(Defaults.durability),
        Directive("snapshot", .store, "every=DURATION after=SIZE", "when the log is compacted")
            .defaulting(Defaults.snapshot)
            .within(["every": Limits.snapshotSeconds, "after": Limits.snapshotBytes]),
        Directive("max_keys", .store, "COUNT", "keys the store takes")
            .defaulting(Defaults.keysMax),
    ]

    private static let spool = [
        Directive("dir", .spool, "FILEPATH", "the directory, created 0700")
            .defaulting(Defaults.spoolDirectory),
        Directive("max", .spool, "SIZE files=COUNT", "bytes and files at one time; over it 503")
            .defaulting(Defaults.spoolMax),
    ]

    private static let admin = [
        Directive("address", .admin, "ADDRESS mode=OCTAL", "where to listen; mode for unix sockets")
            .required.repeating()
    ]

    private static let listener = [
        Directive("address", .listener, "ADDRESS mode=OCTAL", "where to listen").required
            .repeating(),
        Directive("http", .listener, "h1|h2|h2c…", "protocols spoken").defaulting(Defaults.http),
        Directive("tls", .listener, "", "certificates").opening(.listenerTLS),
        Directive(
            "proxy_protocol", .listener, "off | require from NETWORK…",
            "whether a PROXY line comes first"
        ).defaulting(Defaults.proxyProtocol),
        Directive(
            "trusted_proxies", .listener, "none|NETWORK…",
            "peers whose X-Forwarded-* and account field are believed"
        ).defaulting(Defaults.trustedProxies),
        Directive(
            "limits", .listener,
            """
            connections=COUNT per_address=COUNT header_fields=COUNT header_size=SIZE \
            field_size=SIZE target_size=SIZE requests=COUNT h2_streams=COUNT h2_resets=RATE \
            h2_control=RATE
            """, "bounds on what a peer may send"
        ).defaulting(Defaults.listenerLimits).within([
            "header_fields": Limits.headerFields, "header_size": Limits.headBytes,
            "field_size": Limits.headBytes, "target_size": Limits.headBytes,
            "h2_streams": Limits.streams,
        ]),
        Directive(
            "timeouts", .listener,
            """
            handshake=DURATION header=DURATION body=DURATION body_min_rate=SIZE \
            keepalive=DURATION write=DURATION tunnel=DURATION tunnel_max=DURATION
            """, "deadlines of a client's connection"
        ).defaulting(Defaults.listenerTimeouts),
    ]

    private static let listenerTLS = [
        Directive("certificate", .listenerTLS, "FILE SECRET", "a chain and its key, chosen by SNI")
            .required.repeating().calling("private key"),
        Directive("min_version", .listenerTLS, "1.2|1.3", "oldest TLS version")
            .defaulting(Defaults.tlsMinVersion),
        Directive(
            "client_ca", .listenerTLS, "off | optional FILE | require FILE", "client certificates"
        )
        .defaulting(Defaults.clientCA).calling("certificate"),
        Directive("tickets", .listenerTLS, "off | rotate DURATION", "session tickets")
            .defaulting(Defaults.tickets).within(["": Limits.ticketSeconds]),
    ]

    private static let apple = [
        Directive("team_id", .apple, "TEXT", "the team").required,
        Directive("key_id", .apple, "TEXT", "the key's ID").required,
        Directive("key", .apple, "SECRET", "the key's PKCS #8 text").required.calling(
            "private key"),
        Directive("devicecheck_url", .apple, "URL", "for tests: DeviceCheck elsewhere"),
        Directive("attest_data_url", .apple, "URL", "for tests: receipts elsewhere"),
        Directive("ca", .apple, "FILE", "for tests: another root for these URLs")
            .calling("certificate"),
    ]

    private static let app = [
        Directive("app_id", .app, "APPID…", "PREFIX.bundle.id").required.repeating(),
        Directive("environment", .app, "production|development", "App Attest's environment")
            .required,
        Directive("root", .app, "builtin|FILE", "the root attestations chain to")
            .defaulting(Defaults.root).calling("certificate"),
        Directive("receipts", .app, "off|verify|require|refresh", "what is done with receipts")
            .defaulting(Defaults.receipts),
        Directive(
            "keys_per_account", .app, "COUNT",
            "keys of one account; one more retires what was idle for 30 days, or is rejected"
        ).defaulting(Defaults.keysPerAccount),
        Directive("challenge_hash", .app, "bytes|text", "what the app hashes of a challenge by id")
            .defaulting(Defaults.challengeHash),
    ]

    private static let upstream = [
        Directive(
            "server", .upstream, "SERVER [weight=COUNT] [backup]",
            "where it answers; backup: only while no other is usable"
        ).required.repeating().within(["weight": Limits.weight]),
        Directive(
            "balance", .upstream, "round_robin | least_connections | hash key_id",
            "which server takes a request; without a verified key, hash is round robin"
        ).defaulting(Defaults.balance),
        Directive("protocol", .upstream, "h1|h2c|h2", "what the service speaks")
            .defaulting(Defaults.upstreamProtocol),
        Directive("tls", .upstream, "", "TLS towards the service").opening(.upstreamTLS),
        Directive("resolve", .upstream, "every=DURATION", "how often names are looked up")
            .defaulting(Defaults.resolve),
        Directive(
            "keepalive", .upstream, "COUNT idle=DURATION requests=COUNT",
            "idle connections kept, how long, for how many requests"
        ).defaulting(Defaults.keepalive).within(["": Limits.keepalive]),
        Directive(
            "health", .upstream,
            "off | GET PATH expect=COUNT every=DURATION timeout=DURATION rise=COUNT fall=COUNT",
            "active health checks; a server that is down gets no request, not even the last one"
        ).defaulting(Defaults.health).completing(Defaults.healthKeys).within([
            "expect": Limits.healthStatus, "rise": Limits.healthStreak,
            "fall": Limits.healthStreak,
        ]),
        Directive(
            "eject", .upstream, "off | after=COUNT within=DURATION for=DURATION",
            """
            servers left out after failures: connections that fail or break, time-outs, malformed \
            answers; no status is one, and the last server is never left out
            """
        ).defaulting(Defaults.eject).completing(Defaults.ejectKeys)
            .within(["after": Limits.ejectFailures]),
        Directive(
            "max_active", .upstream, "off | COUNT queue=COUNT wait=DURATION",
            "requests and tunnels at one time, and in the queue, over all servers; over it 503"
        ).defaulting(Defaults.maxActive).completing(Defaults.maxActiveKeys)
            .within(["": Limits.active, "queue": Limits.queue]),
        Directive("retry", .upstream, "COUNT", "attempts after the first")
            .defaulting(Defaults.retry).within(["": Limits.retries]),
        Directive(
            "timeouts", .upstream, "connect=DURATION first_byte=DURATION idle=DURATION",
            "deadlines towards the service"
        ).defaulting(Defaults.upstreamTimeouts),
        Directive("set_field", .upstream, "FIELD SECRET", "a field added to every request")
            .repeating(),
        Directive(
            "request", .upstream, "length|stream",
            "how off routes send a body: held for its length where it has none, or chunked"
        ).defaulting(Defaults.request),
    ]

    private static let upstreamTLS = [
        Directive("verify", .upstreamTLS, "on|off", "whether the service's certificate is checked")
            .defaulting(Defaults.verify),
        Directive("name", .upstreamTLS, "HOST", "the name it must have"),
        Directive("ca", .upstreamTLS, "FILE", "the roots it may chain to").calling("certificate"),
        Directive("certificate", .upstreamTLS, "FILE SECRET", "the gate's own")
            .calling("private key"),
    ]

    private static let host = [
        Directive("listener", .host, "NAME…", "where it is served").required.repeating(),
        Directive("app", .host, "NAME", "the app whose installations may pass"),
        Directive("upstream", .host, "NAME", "where requests go"),
        Directive("unmatched", .host, "deny|off|enforce", "what no route takes")
            .defaulting(Defaults.unmatched),
        Directive("enroll", .host, "PATH", "prefix of the enrolment endpoints"),
        Directive(
            "account", .host,
            """
            none | header FIELD | jwt | subrequest NAME TEXT FIELD cache=DURATION | \
            client_cert subject|san
            """, "where the account of a request comes from"
        ).defaulting(Defaults.account).opening(.jwt, with: "jwt")
            .within(["cache": Limits.accountCacheSeconds]),
        Directive(
            "challenge", .host, "ttl=DURATION attestation_ttl=DURATION", "lifetimes of challenges"
        ).defaulting(Defaults.challenge).within([
            "ttl": Limits.challengeSeconds, "attestation_ttl": Limits.challengeSeconds,
        ]),
        Directive(
            "rate", .host,
            "challenges|attestations|failed_signatures per_account=RATE|off per_address=RATE|off",
            "limits of the enrolment endpoints and of failed proofs"
        ).defaulting(
            Defaults.rateChallenges, Defaults.rateAttestations, Defaults.rateFailedSignatures
        ).repeating(.byFirstArgument),
        Directive("proof", .host, "", "names of the proof fields").opening(.proof),
        Directive("paths", .host, "strict|matched", "how paths with two readings are taken")
            .defaulting(Defaults.paths),
        Directive("underscores", .host, "drop|reject|keep", "field names with an underscore")
            .defaulting(Defaults.underscores),
        Directive("preflight", .host, "pass|deny", "CORS preflights")
            .defaulting(Defaults.preflight),
        Directive("defaults", .host, "", "route directives for this host's routes").opening(.route),
        Directive("route", .host, "METHODS PATH", "what happens to these requests")
            .opening(.route).repeating(),
    ]

    private static let proof = [
        Directive(
            "key_id", .proof, "header FIELD | account",
            "the key ID; account: without one, the account's keys are tried"
        )
        .defaulting(Defaults.keyIDField),
        Directive("assertion", .proof, "header FIELD", "the assertion")
            .defaulting(Defaults.assertionField),
        Directive("client_data", .proof, "header FIELD", "the client data")
            .defaulting(Defaults.clientDataField),
        Directive("challenge", .proof, "header FIELD", "the challenge")
            .defaulting(Defaults.challengeField),
        Directive("attestation", .proof, "header FIELD", "the attestation")
            .defaulting(Defaults.attestationField),
        Directive("unsupported", .proof, "header FIELD", "cannot attest")
            .defaulting(Defaults.unsupportedField),
        Directive("device_token", .proof, "header FIELD", "the DeviceCheck token")
            .defaulting(Defaults.deviceTokenField),
    ]

    private static let jwt = [
        Directive("header", .jwt, "FIELD", "the field of the token; Bearer before it is taken off")
            .defaulting(Defaults.tokenField),
        Directive("key", .jwt, "FILE", "one public key, as PEM").calling("key"),
        Directive(
            "jwks", .jwt, "FILE|URL refresh=DURATION",
            "a set of public keys; of a URL fetched every hour or as said, the last good one kept"
        ).calling("key set").within(["refresh": Limits.keySetSeconds]),
        Directive("issuer", .jwt, "TEXT", "what iss must be"),
        Directive("audience", .jwt, "TEXT", "what aud must be or hold"),
        Directive("claim", .jwt, "TEXT", "the claim that is the account")
            .defaulting(Defaults.tokenClaim),
        Directive("algorithms", .jwt, "RS256|PS256|ES256|EdDSA…", "signature algorithms taken")
            .defaulting(Defaults.tokenAlgorithms),
        Directive("leeway", .jwt, "DURATION", "clock difference taken")
            .defaulting(Defaults.tokenLeeway).within(["": Limits.tokenLeewaySeconds]),
    ]

    private static let route = [
        Directive(
            "mode", .route,
            """
            off | enforce [SHARE] [by=key_id|account|address] [else=monitor|off] | monitor | \
            deny COUNT
            """, "what happens to a request"
        ).defaulting(Defaults.mode).within(["": Limits.denyStatus]),
        Directive(
            "bind", .route, "client_data|request|envelope | body challenge=none|POINTER",
            "what a proof signs; of body: where the challenge is, json:/pointer, or none"
        )
        .defaulting(Defaults.bind),
        Directive("purpose", .route, "PURPOSE", "what its challenges are for")
            .defaulting(Defaults.purpose),
        Directive("inline_enroll", .route, "off|on", "enrolment with the first request")
            .defaulting(Defaults.inlineEnroll),
        Directive(
            "body", .route, "max=SIZE memory=SIZE",
            """
            largest body of an enforced route, with request length of any; what is held in memory
            """
        ).defaulting(Defaults.body).within(["max": Limits.bodyBytes, "memory": Limits.bodyMemory]),
        Directive(
            "fallback", .route,
            """
            deny | allow_unverified | devicecheck [also_enrolled] bit0=0|1 bit1=0|1 rate=RATE \
            timeout=DURATION
            """, "what a device that cannot attest gets"
        ).defaulting(Defaults.fallback).completing(Defaults.fallbackKeys)
            .within(["timeout": Limits.deviceCheckSeconds]),
        Directive(
            "set_bits", .route, "bit0=0|1 bit1=0|1",
            "DeviceCheck bits set after a 2xx answer, for clients that sent a device token"),
        Directive(
            "require", .route,
            """
            category NAME… [absent] | bundle_version >= DOTTED [absent] | metric <= COUNT [absent] \
            | key_age >= DURATION
            """, "what else a request must show; absent: or that it is not known"
        ).repeating(.byFirstArgument).within(["": Limits.metric]),
        Directive("upgrade", .route, "websocket", "protocols let through"),
        Directive(
            "timeouts", .route,
            """
            body=DURATION body_min_rate=SIZE write=DURATION tunnel=DURATION tunnel_max=DURATION \
            connect=DURATION first_byte=DURATION idle=DURATION
            """, "deadlines as of listener and upstream, for this route"),
        Directive("pass_proof", .route, "on|off", "whether proof fields go upstream")
            .defaulting(Defaults.passProof),
        Directive("upstream", .route, "NAME", "where its requests go"),
    ]
}
