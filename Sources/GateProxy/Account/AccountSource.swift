internal import GateConfig
internal import GateCrypto
internal import GateHTTP
internal import GateRuntime
internal import GateTLS

/// Where a host's accounts come from, prepared once when the configuration is loaded.
enum AccountSource: Sendable {
    case certificate(CertificateName)
    case header
    case none
    case subrequest(SubrequestAccounts)
    case token(TokenAccounts)

    /// The source of `account`.
    /// - Parameter previous: That of the same host before: fetched keys and answers of a service go
    ///   on where what they come from is the same.
    init(_ account: Host.Account, previous: AccountSource?) {
        switch account {
        case .clientCertificate(let name):
            self = .certificate(name)
        case .header:
            self = .header
        case .none:
            self = .none
        case .subrequest(let settings):
            if case .subrequest(let known)? = previous, known.settings == settings {
                self = .subrequest(known)
            } else {
                self = .subrequest(SubrequestAccounts(settings))
            }
        case .token(let settings):
            var known: RemoteKeySet?
            if case .token(let before)? = previous { known = before.remote }
            self = .token(TokenAccounts(settings, known: known))
        }
    }

    /// The key set that has to be fetched; nil where there is none.
    var remoteKeySet: RemoteKeySet? {
        if case .token(let accounts) = self { return accounts.remote }
        return nil
    }
}

/// The accounts of `account jwt`.
final class TokenAccounts: Sendable {
    /// The field of the token.
    let header: FieldName
    let rules: TokenRules
    /// Where the keys are fetched from; nil where they stand in a file.
    let remote: RemoteKeySet?
    private let own: TokenKeySet?

    /// - Parameter known: A set that was fetched already.
    init(_ settings: TokenAccount, known: RemoteKeySet?) {
        header = FieldName(parsing: settings.header) ?? FieldName("Authorization")
        rules = TokenRules(
            algorithms: Set(
                settings.algorithms.compactMap { TokenAlgorithm(rawValue: $0.rawValue) }),
            issuer: settings.issuer, audience: settings.audience, claim: settings.claim,
            leeway: settings.leeway.wholeSeconds)
        switch settings.keys {
        case .key(let text):
            // The configuration's check has read it: one that cannot be read verifies nothing.
            own = try? TokenKeySet.parse(pem: text)
            remote = nil
        case .set(let text):
            // As above.
            own = try? TokenKeySet.parse(set: text)
            remote = nil
        case .url(let location):
            own = nil
            if let known, known.location == location {
                remote = known
            } else {
                let isSamePlace = known?.location.url == location.url
                remote = RemoteKeySet(location, keys: isSamePlace ? known?.keys : nil)
            }
        }
    }

    /// What a token comes to.
    enum Outcome: Equatable {
        case account([UInt8])
        /// No keys have been fetched yet.
        case noKeys
        case refused(TokenError)
    }

    /// The account that `token` names at `now`, seconds of UTC since 1970.
    func judge(_ token: [UInt8], now: Int64) -> Outcome {
        do throws(TokenError) {
            let token = try JSONWebToken(token, algorithms: rules.algorithms)
            guard let keys = own ?? remote?.keys else { return .noKeys }
            return .account(try token.account(keys, rules, now: now))
        } catch {
            return .refused(error)
        }
    }
}

extension CertificateName {
    /// The account in a verified certificate; empty without.
    func account(_ names: PeerNames) -> [UInt8] {
        switch self {
        case .san: names.alternativeName
        case .subject: names.subject
        }
    }
}
