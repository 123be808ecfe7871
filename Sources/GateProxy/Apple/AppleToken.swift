internal import AppAttestWire
internal import GateBytes
package import GateCrypto
internal import GateLock

/// The token that Apple's servers take the gate for the operator by: a JWT (RFC 7519) signed with
/// ES256. Made once and used for a while, as Apple asks; in memory only, and in no message. Shared
/// by all loops, behind a lock.
package final class AppleToken: Sendable, CustomReflectable {
    private struct Made {
        let text: String
        let issuedAt: Int64
    }

    private let teamID: String
    private let keyID: String
    private let key: ServiceSigningKey
    private let made = Lock<Made?>(nil)

    /// How long one is used: Apple takes a token for an hour, and wants none made more often than
    /// every twenty minutes.
    package static let lifeSeconds: Int64 = 40 * 60

    /// A token for `iss` and `kid`.
    package init(teamID: String, keyID: String, key: ServiceSigningKey) {
        self.teamID = teamID
        self.keyID = keyID
        self.key = key
    }

    /// The token at `now`, in unix seconds.
    package func text(now: Int64) -> String {
        made.withLock { made in
            // A clock that was set back makes one from the future, which Apple refuses.
            if let made, (0..<AppleToken.lifeSeconds).contains(now - made.issuedAt) {
                return made.text
            }
            let text = make(now: now)
            made = Made(text: text, issuedAt: now)
            return text
        }
    }

    private func make(now: Int64) -> String {
        var header = JSONWriter()
        header.beginObject()
        header.member("alg", "ES256")
        header.member("kid", keyID)
        header.endObject()
        var claims = JSONWriter()
        claims.beginObject()
        claims.member("iss", teamID)
        claims.member("iat", Int(now))
        claims.endObject()
        let signed = Base64.encodeURL(header.bytes) + "." + Base64.encodeURL(claims.bytes)
        return signed + "." + Base64.encodeURL(key.sign(Array(signed.utf8)))
    }

    /// Nothing.
    package var customMirror: Mirror { Mirror(self, children: []) }
}
