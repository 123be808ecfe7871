// Keys that tokens are verified with: a JWK Set (RFC 7517), or one key in PEM.
//
// A key is usable if and only if it is of a type that an algorithm here is for (RSA, P-256,
// Ed25519), is meant for signatures (`use`, `key_ops`), is public, has no `alg` but one that fits
// it, and its numbers are a key. Others are left out, each with a reason (RFC 7517 §5): a service
// may publish keys for other readers in the same set.

internal import AppAttestWire
internal import GateBytes
package import GateCrypto

/// Why a text is no set of keys at all; a lowercase clause.
package struct TokenKeySetError: Error, Equatable, Sendable, CustomStringConvertible {
    package let description: String

    package init(_ description: String) {
        self.description = description
    }
}

/// Public keys, ready to verify.
package struct TokenKeySet: Sendable {
    /// One key of a set.
    struct Entry: Sendable {
        /// Its `kid`; nil without.
        let id: [UInt8]?
        /// Its `alg`, which then is the only one it may be used with.
        let algorithm: TokenAlgorithm?
        let key: TokenKey
    }

    /// What a token's `kid` and `alg` leave of a set.
    enum Choice {
        case keys([TokenKey])
        /// No key has this `kid`: the set may have changed.
        case unknownID
    }

    let entries: [Entry]
    /// Whether its one key came without a `kid`, so that a token's says nothing.
    private let isBare: Bool
    /// What was left out, each as `key 2: its reason`.
    package let omissions: [String]

    /// The most bytes of a set's text.
    package static let textBytesMax = 256 * 1024
    /// The most keys of a set: providers publish two or three.
    package static let keysMax = 64
    /// The most keys that one token is tried with.
    package static let triesMax = 4
    /// The most bytes of a `kid`.
    static let idBytesMax = 256

    /// The number of usable keys.
    package var count: Int { entries.count }

    /// The keys that may have signed a token with this `kid` and `alg`; at most ``triesMax``.
    func choose(id: [UInt8]?, algorithm: TokenAlgorithm) -> Choice {
        let named: [Entry]
        if let id, !isBare {
            named = entries.filter { $0.id == id }
            guard !named.isEmpty else { return .unknownID }
        } else {
            named = entries
        }
        let fitting = named.lazy.filter {
            ($0.algorithm == nil || $0.algorithm == algorithm) && $0.key.fits(algorithm)
        }
        return .keys(fitting.prefix(TokenKeySet.triesMax).map(\.key))
    }

    /// The one key of a PEM text.
    package static func parse(pem text: [UInt8]) throws(TokenKeyError) -> TokenKeySet {
        let key = try TokenKey.parse(pem: text)
        return TokenKeySet(
            entries: [Entry(id: nil, algorithm: nil, key: key)], isBare: true, omissions: [])
    }

    /// The set that the JSON `text` is.
    package static func parse(set text: [UInt8]) throws(TokenKeySetError) -> TokenKeySet {
        guard text.count <= textBytesMax else {
            throw TokenKeySetError("it has more than \(textBytesMax) bytes")
        }
        let texts = try split(text)
        guard texts.count <= keysMax else {
            throw TokenKeySetError("it has more than \(keysMax) keys")
        }
        var entries: [Entry] = []
        var omissions: [String] = []
        for (index, text) in texts.enumerated() {
            do throws(TokenKeySetError) {
                entries.append(try JSONWebKey(text).entry())
            } catch {
                omissions.append("key \(index + 1): \(error)")
            }
        }
        return TokenKeySet(entries: entries, isBare: false, omissions: omissions)
    }

    /// The texts of the keys.
    private static func split(_ text: [UInt8]) throws(TokenKeySetError) -> [[UInt8]] {
        let member: JSONElement?
        do throws(JSONError) {
            member = try JSONMembers.scanElements(text, named: [Array("keys".utf8)])[0]
        } catch {
            throw TokenKeySetError("it is no strict JSON object: \(error)")
        }
        guard let member else { throw TokenKeySetError("it has no member \"keys\"") }
        let array = Array(text[member.range])
        do throws(JSONError) {
            return try JSONArray.scan(array).map { Array(array[$0.range]) }
        } catch {
            throw TokenKeySetError("its member \"keys\" is no array")
        }
    }
}

/// One JSON Web Key; what throws says why it is left out.
private struct JSONWebKey {
    private enum Member: String, CaseIterable {
        case alg, crv, d, e, k, kid, kty, n, use, x, y
        case operations = "key_ops"
    }

    private var members: [Member: JSONMember] = [:]
    private var operations: [UInt8]?

    private static let names = Member.allCases.map { Array($0.rawValue.utf8) }

    init(_ text: [UInt8]) throws(TokenKeySetError) {
        do throws(JSONError) {
            let found = try JSONMembers.scanElements(text, named: JSONWebKey.names)
            for (member, element) in zip(Member.allCases, found) {
                guard let element else { continue }
                members[member] = element.value
                if member == .operations { operations = Array(text[element.range]) }
            }
        } catch {
            throw TokenKeySetError("it is no object")
        }
    }

    /// The key, where it is one that verifies tokens.
    func entry() throws(TokenKeySetError) -> TokenKeySet.Entry {
        guard let type = try text(.kty) else { throw TokenKeySetError("\"kty\" is missing") }
        guard members[.d] == nil, members[.k] == nil, type != "oct" else {
            throw TokenKeySetError("it is no public key")
        }
        if let use = try text(.use), use != "sig" {
            throw TokenKeySetError("its \"use\" is not \"sig\"")
        }
        try checkOperations()
        let id = try string(.kid)
        guard (id?.count ?? 0) <= TokenKeySet.idBytesMax else {
            throw TokenKeySetError("its \"kid\" has over \(TokenKeySet.idBytesMax) bytes")
        }
        let key = try key(type)
        var algorithm: TokenAlgorithm?
        if let name = try text(.alg) {
            algorithm = TokenAlgorithm(rawValue: name)
            guard let algorithm, key.fits(algorithm) else {
                throw TokenKeySetError("its \"alg\" is not one that fits it")
            }
        }
        return TokenKeySet.Entry(id: id, algorithm: algorithm, key: key)
    }

    private func key(_ type: String) throws(TokenKeySetError) -> TokenKey {
        let curve = try text(.crv)
        switch (type, curve) {
        case ("RSA", _):
            let (modulus, exponent) = (try number(.n), try number(.e))
            return try make { () throws(TokenKeyError) in
                try .rsa(modulus: modulus, exponent: exponent)
            }
        case ("EC", "P-256"):
            let (x, y) = (try number(.x), try number(.y))
            return try make { () throws(TokenKeyError) in try .p256(x: x, y: y) }
        case ("OKP", "Ed25519"):
            let x = try number(.x)
            return try make { () throws(TokenKeyError) in try .ed25519(x: x) }
        default:
            throw TokenKeySetError("no algorithm here is for its \"kty\" and \"crv\"")
        }
    }

    private func make(_ key: () throws(TokenKeyError) -> TokenKey) throws(TokenKeySetError)
        -> TokenKey
    {
        do throws(TokenKeyError) {
            return try key()
        } catch {
            throw TokenKeySetError("\(error)")
        }
    }

    private func checkOperations() throws(TokenKeySetError) {
        guard let operations else { return }
        do throws(JSONError) {
            let values = try JSONArray.scan(operations).map(\.value)
            if values.contains(.string(Array("verify".utf8))) { return }
        } catch {}
        throw TokenKeySetError("its \"key_ops\" do not have \"verify\"")
    }

    private func string(_ member: Member) throws(TokenKeySetError) -> [UInt8]? {
        switch members[member] {
        case nil: return nil
        case .string(let bytes): return bytes
        case .integer, .other:
            throw TokenKeySetError("\"\(member.rawValue)\" is no string")
        }
    }

    private func text(_ member: Member) throws(TokenKeySetError) -> String? {
        try string(member).map { String(decoding: $0, as: UTF8.self) }
    }

    private func number(_ member: Member) throws(TokenKeySetError) -> [UInt8] {
        guard let text = try string(member) else {
            throw TokenKeySetError("\"\(member.rawValue)\" is missing")
        }
        guard let bytes = Base64.decode(unpaddedURL: text, 0..<text.count), !bytes.isEmpty else {
            throw TokenKeySetError("\"\(member.rawValue)\" is no base64url")
        }
        return bytes
    }
}
