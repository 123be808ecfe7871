/// What holds where `proxy.conf` says nothing, as it would be written there, each with its reason.
enum Defaults {
    /// One loop a core: a loop never waits, so more would only take turns.
    static let loops = "auto"
    /// Long enough for a slow answer, shorter than systemd's 90 s before it kills.
    static let drainTimeout = "30s"

    /// The journal under systemd, the terminal without.
    static let access = "stdout"
    /// Starts, stops, failures; nothing per request.
    static let error = "level=info"
    /// Every line: a thinned log is a choice.
    static let sample = "off 100%"
    /// Queries hold tokens and searches.
    static let queryInLog = "off"
    /// A log is read by more people than the accounts' owners know.
    static let accountInLog = "hashed"

    /// What systemd's StateDirectory= gives, else the place of the package.
    static let storeDirectory = "${STATE_DIRECTORY:-/var/lib/attestgate}"
    /// Many more than cores, so that two requests seldom meet.
    static let shards = "64"
    /// An admitted counter survives a power cut.
    static let durability = "strict"
    /// A replay of minutes at most, without rewriting the store all the time.
    static let snapshot = "every=10m after=256m"
    /// About 1 GB of memory.
    static let keysMax = "5000000"

    /// What systemd's CacheDirectory= gives, else the place of the package.
    static let spoolDirectory = "${CACHE_DIRECTORY:-/var/cache/attestgate}"
    /// A bound on disk and on descriptors.
    static let spoolMax = "1g files=256"

    /// What this version speaks without TLS.
    static let http = "h1"
    /// Nobody's word is taken for an address.
    static let proxyProtocol = "off"
    /// As above, for X-Forwarded-For and the account field.
    static let trustedProxies = "none"
    /// Over what real clients send, under what hurts: a head of 48 KiB holds a proof with
    /// attestation.
    static let listenerLimits = """
        connections=20000 per_address=200 header_fields=100 header_size=48k field_size=32k \
        target_size=8k requests=10000 h2_streams=100 h2_resets=200/30s h2_control=1000/10s
        """
    /// A phone on a bad network passes; one that sends a byte now and then does not hold a
    /// connection.
    static let listenerTimeouts = """
        handshake=10s header=10s body=15s body_min_rate=1k keepalive=75s write=30s tunnel=1h \
        tunnel_max=24h
        """
    /// Every client of the last ten years; older ones have no App Attest.
    static let tlsMinVersion = "1.2"
    /// Most clients have no certificate.
    static let clientCA = "off"
    /// Forward secrecy within half a day.
    static let tickets = "rotate 12h"

    /// Apple's App Attest root, compiled in.
    static let root = "builtin"
    /// A good one can be exchanged for the fraud metric later; a bad one is no fault of a device.
    static let receipts = "verify"
    /// Reinstalls and devices of one person; over it something enrols in a loop.
    static let keysPerAccount = "20"
    /// As Apple's documentation has it: the challenge's bytes are hashed.
    static let challengeHash = "bytes"

    /// No state to get wrong.
    static let balance = "round_robin"
    static let upstreamProtocol = "h1"
    /// A name that moved is followed in half a minute.
    static let resolve = "every=30s"
    /// Shorter than the 5 s that some services keep an idle connection.
    static let keepalive = "64 idle=4s requests=10000"
    static let health = "off"
    /// A dead server is found within 15 s, one that answers late once is not.
    static let healthKeys = "expect=200 every=5s timeout=1s rise=2 fall=3"
    static let eject = "off"
    /// More than a server restarting drops at once from one client, less than users would bear.
    static let ejectKeys = "after=5 within=10s for=30s"
    static let maxActive = "off"
    /// A short burst waits less than a client's patience.
    static let maxActiveKeys = "queue=100 wait=2s"
    /// One connection that closed under us is no failure yet.
    static let retry = "1"
    /// A connect takes milliseconds on a data centre's network; an answer may take its time.
    static let upstreamTimeouts = "connect=2s first_byte=30s idle=60s"
    static let request = "stream"
    /// A service's certificate is checked.
    static let verify = "on"

    /// What no route names does not pass.
    static let unmatched = "deny"
    static let account = "none"
    /// Where OAuth puts tokens (RFC 6750 §2.1).
    static let tokenField = "Authorization"
    static let tokenClaim = "sub"
    /// All that the gate knows: what a key can do is the key's to say.
    static let tokenAlgorithms = "RS256 PS256 ES256 EdDSA"
    /// Clocks without NTP are seldom further apart.
    static let tokenLeeway = "60s"
    /// Providers announce a new key days before they sign with it, and an unknown one is asked for
    /// at once.
    static let keySetRefresh = Duration.seconds(3600)
    /// A challenge is asked for just before it is used; an attestation may wait for Apple for a
    /// day.
    static let challenge = "ttl=5m attestation_ttl=24h"
    /// Ten requests a second of one account, and enrolment at a person's pace.
    static let rateChallenges = "challenges per_account=600/1m per_address=off"
    static let rateAttestations = "attestations per_account=60/1h per_address=600/1h"
    static let rateFailedSignatures = "failed_signatures per_account=60/1m per_address=600/1m"
    /// One reading only.
    static let paths = "strict"
    /// A name with `_` may be read as one with `-` behind the gate.
    static let underscores = "drop"
    /// A browser's preflight cannot carry a proof.
    static let preflight = "pass"

    /// A route that says nothing is protected.
    static let mode = "enforce"
    /// Method, target and body are signed, and the client sees what it signs.
    static let bind = "client_data"
    static let purpose = "request"
    static let inlineEnroll = "off"
    /// What an API call carries; up to 64 KiB of it in memory.
    static let body = "max=1m memory=64k"
    static let fallback = "deny"
    /// A user waits for it, with Apple far away.
    static let fallbackKeys = "timeout=2s"
    /// A proof is for the gate alone.
    static let passProof = "off"

    /// The proof fields of protocol.md §3.
    static let keyIDField = "header App-Attest-Key-Id"
    static let assertionField = "header App-Attest-Assertion"
    static let clientDataField = "header App-Attest-Client-Data"
    static let challengeField = "header App-Attest-Challenge"
    static let attestationField = "header App-Attest-Attestation"
    static let unsupportedField = "header App-Attest-Unsupported"
    static let deviceTokenField = "header App-Attest-Device-Token"

    /// The idle time that some services close connections after; a longer one of ours races them.
    static let serviceIdleSeconds = 5
}
