// A token of `account jwt`: a JSON Web Signature in compact form (RFC 7515 §7.1) over claims
// (RFC 7519).
//
//   BASE64URL(header) "." BASE64URL(claims) "." BASE64URL(signature)
//
// Read in this order, and nothing of a later part before the earlier has passed: length, three
// parts, header (strict JSON, `alg`, no `crit`, `kid`), key, signature, claims. The header only
// ever chooses among what the configuration and the keys allow: a key is used with an algorithm of
// its own type alone, so a public key is never taken for a secret, and `none` is no algorithm.

internal import AppAttestWire
internal import GateBytes
package import GateCrypto

/// Why a token names no account; for the log alone.
package enum TokenError: Error, Equatable, Sendable {
    /// `alg` is none that is taken here.
    case algorithm
    /// `aud` has not the audience.
    case audience
    /// The claim of the account is absent, no string, too long or has a control.
    case claim
    /// `crit` asks for what no reader here does.
    case critical
    /// `exp` is past.
    case expired
    /// `exp` is absent: such a token would hold for ever.
    case expiryMissing
    /// `iss` is another.
    case issuer
    /// No key has the token's `kid`.
    case keyUnknown
    /// Not three parts of base64url, or no strict JSON of the right shape.
    case malformed
    /// `nbf` or `iat` lies ahead.
    case notYetValid
    /// No fitting key verifies the signature.
    case signature
    /// Over ``JSONWebToken/bytesMax`` bytes.
    case tooLong
}

/// What a token must say besides its signature.
package struct TokenRules: Sendable, Equatable {
    /// The algorithms taken.
    package var algorithms: Set<TokenAlgorithm>
    /// The one `iss`; nil takes any.
    package var issuer: [UInt8]?
    /// What `aud` must be or hold; nil takes any.
    package var audience: [UInt8]?
    /// The claim that is the account.
    package var claim: [UInt8]
    /// Seconds that clocks may differ by.
    package var leeway: Int64

    /// Rules by their parts.
    package init(
        algorithms: Set<TokenAlgorithm> = Set(TokenAlgorithm.allCases), issuer: String? = nil,
        audience: String? = nil, claim: String = "sub", leeway: Int64 = 60
    ) {
        self.algorithms = algorithms
        self.issuer = issuer.map { Array($0.utf8) }
        self.audience = audience.map { Array($0.utf8) }
        self.claim = Array(claim.utf8)
        self.leeway = leeway
    }
}

/// A token whose header has been read.
package struct JSONWebToken: Sendable {
    let algorithm: TokenAlgorithm
    let keyID: [UInt8]?
    private let text: [UInt8]
    private let signed: Range<Int>
    private let claims: Range<Int>
    private let signature: [UInt8]

    /// The most bytes of a token.
    package static let bytesMax = 8192

    private static let headerNames = ["alg", "crit", "kid"].map { Array($0.utf8) }

    /// Reads the form and the header of `text`.
    /// - Parameter algorithms: Those that are taken.
    package init(
        _ text: [UInt8], algorithms: Set<TokenAlgorithm>
    ) throws(TokenError) {
        guard text.count <= JSONWebToken.bytesMax else { throw .tooLong }
        let dots = text.indices.filter { text[$0] == UInt8(ascii: ".") }
        guard dots.count == 2 else { throw .malformed }
        self.text = text
        signed = 0..<dots[1]
        claims = (dots[0] + 1)..<dots[1]
        guard let header = Base64.decode(unpaddedURL: text, 0..<dots[0]),
            let signature = Base64.decode(unpaddedURL: text, (dots[1] + 1)..<text.count)
        else { throw .malformed }
        self.signature = signature
        let members: [JSONMember?]
        do throws(JSONError) {
            members = try JSONMembers.scan(header, named: JSONWebToken.headerNames)
        } catch {
            throw .malformed
        }
        guard case .string(let name) = members[0] else { throw .malformed }
        guard let algorithm = TokenAlgorithm(rawValue: String(decoding: name, as: UTF8.self)),
            algorithms.contains(algorithm)
        else { throw .algorithm }
        self.algorithm = algorithm
        guard members[1] == nil else { throw .critical }
        switch members[2] {
        case nil: keyID = nil
        case .string(let id): keyID = id
        case .integer, .other: throw .malformed
        }
    }

    /// The account that the token names at `now`, seconds of UTC since 1970.
    package func account(
        _ keys: TokenKeySet, _ rules: TokenRules, now: Int64
    ) throws(TokenError) -> [UInt8] {
        guard rules.algorithms.contains(algorithm) else { throw .algorithm }
        switch keys.choose(id: keyID, algorithm: algorithm) {
        case .unknownID:
            throw .keyUnknown
        case .keys(let keys):
            let isSigned = keys.contains {
                $0.isValidSignature(signature, over: text, signed, algorithm)
            }
            guard isSigned else { throw .signature }
        }
        guard let bytes = Base64.decode(unpaddedURL: text, claims) else { throw .malformed }
        return try TokenClaims(bytes, rules.claim).account(rules, now: now)
    }
}

/// The claims of a token whose signature holds.
private struct TokenClaims {
    private let audience: JSONElement?
    private let expiry: JSONElement?
    private let notBefore: JSONElement?
    private let issuedAt: JSONElement?
    private let issuer: JSONMember?
    private let named: JSONMember?
    private let text: [UInt8]

    private static let names = ["aud", "exp", "nbf", "iat", "iss"].map { Array($0.utf8) }

    init(_ text: [UInt8], _ claim: [UInt8]) throws(TokenError) {
        self.text = text
        // The scanner keeps the first of two names that are one.
        let index = TokenClaims.names.firstIndex(of: claim)
        do throws(JSONError) {
            let found = try JSONMembers.scanElements(
                text, named: TokenClaims.names + (index == nil ? [claim] : []))
            (audience, expiry, notBefore, issuedAt) = (found[0], found[1], found[2], found[3])
            issuer = found[4]?.value
            named = found[index ?? 5]?.value
        } catch {
            throw .malformed
        }
    }

    func account(_ rules: TokenRules, now: Int64) throws(TokenError) -> [UInt8] {
        if let expected = rules.issuer, issuer != .string(expected) { throw .issuer }
        if let expected = rules.audience, try !isMeant(for: expected) { throw .audience }
        guard let expiry else { throw .expiryMissing }
        guard now < sum(try seconds(expiry), rules.leeway) else { throw .expired }
        for element in [notBefore, issuedAt] {
            guard let element else { continue }
            guard try seconds(element) <= sum(now, rules.leeway) else { throw .notYetValid }
        }
        let account: [UInt8]
        switch named {
        case .string(let text): account = text
        // Some services number their users; an integer is written in one way only.
        case .integer(let number): account = Array(String(number).utf8)
        case nil, .other: throw .claim
        }
        guard AccountReader.isAccount(account) else { throw .claim }
        return account
    }

    private func isMeant(for expected: [UInt8]) throws(TokenError) -> Bool {
        guard let audience else { return false }
        if case .string(let one) = audience.value { return one == expected }
        do throws(JSONError) {
            let values = try JSONArray.scan(Array(text[audience.range])).map(\.value)
            return values.contains(.string(expected))
        } catch {
            throw .malformed
        }
    }

    /// A NumericDate (RFC 7519 §2), cut to whole seconds.
    private func seconds(_ element: JSONElement) throws(TokenError) -> Int64 {
        switch element.value {
        case .integer(let number):
            return Int64(number)
        case .string:
            throw .malformed
        case .other:
            let text = String(decoding: text[element.range], as: UTF8.self)
            guard let number = Double(text), number.magnitude < TokenClaims.secondsMax else {
                throw .malformed
            }
            return Int64(number.rounded(.down))
        }
    }

    /// Beyond it a `Double` has no whole seconds.
    private static let secondsMax = 9_007_199_254_740_992.0

    private func sum(_ left: Int64, _ right: Int64) -> Int64 {
        let (sum, isOver) = left.addingReportingOverflow(right)
        return isOver ? .max : sum
    }
}
