/// `account jwt`: a signed token of each request names its account.
package struct TokenAccount: Sendable, Equatable {
    /// A signature algorithm; the raw value is its name in a token.
    package enum Algorithm: String, Sendable, Equatable, CaseIterable {
        case rs256 = "RS256"
        case ps256 = "PS256"
        case es256 = "ES256"
        case edDSA = "EdDSA"
    }

    /// Where the public keys stand.
    package enum Keys: Sendable, Equatable {
        /// One key, as PEM.
        case key([UInt8])
        /// A JWK Set.
        case set([UInt8])
        case url(KeySetURL)
    }

    /// A JWK Set that is fetched again and again.
    package struct KeySetURL: Sendable, Equatable {
        /// Where it is fetched from.
        package var url: ServiceURL
        /// Between two fetches.
        package var refresh: Duration
        /// The name of the implicit upstream that it is asked over.
        package var upstream: String

        package init(url: ServiceURL, refresh: Duration, upstream: String) {
            self.url = url
            self.refresh = refresh
            self.upstream = upstream
        }
    }

    /// The field of the token; `Authorization` has the scheme `Bearer` before it.
    package var header: String
    /// The public keys.
    package var keys: Keys
    /// The one `iss`; nil takes any.
    package var issuer: String?
    /// What `aud` must be or hold; nil takes any.
    package var audience: String?
    /// The claim that is the account.
    package var claim: String
    /// The algorithms taken.
    package var algorithms: [Algorithm]
    /// How far clocks may differ.
    package var leeway: Duration

    package init(
        header: String, keys: Keys, issuer: String?, audience: String?, claim: String,
        algorithms: [Algorithm], leeway: Duration
    ) {
        self.header = header
        self.keys = keys
        self.issuer = issuer
        self.audience = audience
        self.claim = claim
        self.algorithms = algorithms
        self.leeway = leeway
    }
}

/// `account subrequest`: a service is asked who the client is.
package struct SubrequestAccount: Sendable, Equatable {
    /// The upstream that is asked.
    package var upstream: String
    /// The path asked for, as it stands in the request line.
    package var target: String
    /// The field of the answer that is the account.
    package var field: String
    /// How long an answer counts for the same credential; nil asks for each request.
    package var cache: Duration?

    package init(upstream: String, target: String, field: String, cache: Duration?) {
        self.upstream = upstream
        self.target = target
        self.field = field
        self.cache = cache
    }
}

/// What of a client's certificate is the account.
package enum CertificateName: String, Sendable, Equatable {
    /// The first name of the extension, with its type: `DNS:`, `URI:` or `email:`.
    case san
    /// The subject, as RFC 2253 writes it.
    case subject
}
