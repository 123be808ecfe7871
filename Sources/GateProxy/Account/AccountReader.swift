package import GateBytes
internal import GateCrypto
package import GateHTTP

/// What a request says of its account.
package enum AccountReading: Sendable, Equatable {
    case absent
    /// The account, 1 to 256 bytes without controls.
    case account([UInt8])
    /// The field is there twice, too long, or has a control octet: 400.
    case malformed
}

/// What a request shows of its credential.
package enum CredentialReading: Sendable, Equatable {
    case absent
    case credential([UInt8])
    /// The field is there twice: 400.
    case malformed
}

/// The account out of the field of `account header` (`protocol.md` §7).
package enum AccountReader {
    /// The most bytes of an account.
    package static let bytesMax = 256

    /// The account of `head`. Only a trusted proxy can name one; from any other peer the field is
    /// as good as absent, and ``UpstreamHead`` removes it.
    package static func read(
        _ head: RequestHead, _ fields: HostFields, isTrusted: Bool
    ) -> AccountReading {
        guard isTrusted else { return .absent }
        var found: Range<Int>?
        for line in head.fields {
            let match = fields.table.match(head.bytes, line.name)
            guard match.use == .account, match.isExact else { continue }
            guard found == nil else { return .malformed }
            found = line.value
        }
        guard let found, !found.isEmpty else { return .absent }
        let account = Array(head.bytes[found])
        return isAccount(account) ? .account(account) : .malformed
    }

    /// Whether `bytes` can be an account: 1 to ``bytesMax`` bytes without controls, those from
    /// U+0080 to U+009F included, as UTF-8 has them.
    package static func isAccount(_ bytes: some Collection<UInt8>) -> Bool {
        guard (1...bytesMax).contains(bytes.count) else { return false }
        var previous: UInt8 = 0
        for byte in bytes {
            guard byte >= 0x20, byte != 0x7f, previous != 0xc2 || byte >= 0xa0 || byte < 0x80
            else { return false }
            previous = byte
        }
        return true
    }

    /// The value of the credential's field: the token of `Authorization: Bearer TOKEN`, or all of
    /// the field where it is another one. `Bearer` may stand before that as well.
    package static func readToken(_ head: RequestHead, in name: FieldName) -> CredentialReading {
        var found: Range<Int>?
        var count = 0
        for line in head.fields where name.matchesFolded(head.bytes, line.name) {
            count += 1
            // Another spelling is not read here, but a service may read that one.
            if name.matches(head.bytes, line.name) { found = line.value }
        }
        guard count <= 1 else { return .malformed }
        guard let value = found, !value.isEmpty else { return .absent }
        let bytes = head.bytes[value]
        let scheme = bytes.prefix { $0 != 0x20 }
        if scheme.map({ $0 | 0x20 }) == Array("bearer".utf8), scheme.count < bytes.count {
            let token = bytes.dropFirst(scheme.count).drop { $0 == 0x20 }
            return token.isEmpty ? .absent : .credential(Array(token))
        }
        // Another scheme names nobody here.
        guard name != authorization else { return .absent }
        return .credential(Array(bytes))
    }

    private static let authorization = FieldName("Authorization")
}

/// How an account is shown to others.
package enum AccountText {
    /// The account percent-encoded outside visible ASCII and `%` itself: the value of
    /// `App-Attest-Account`.
    package static func percentEncoded(_ account: [UInt8]) -> [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity(account.count)
        for byte in account {
            if (0x21...0x7e).contains(byte), byte != UInt8(ascii: "%") {
                text.append(byte)
            } else {
                text.append(UInt8(ascii: "%"))
                text.append(digit(byte >> 4))
                text.append(digit(byte & 15))
            }
        }
        return text
    }

    /// What logs show instead of the account: the first half of HMAC(secret, "account", account),
    /// with the length prefixes of challenges, in base64url. `secret` is the store's.
    package static func hashed(_ account: [UInt8], secret: Bytes32) -> [UInt8] {
        var message: [UInt8] = []
        message.append(lengthPrefixed: Array("account".utf8))
        message.append(lengthPrefixed: account)
        let code = HMACSHA256(key: secret.array).authenticate(message)
        return Array(Base64.encodeURL(Array(code.array[..<16])).utf8)
    }

    private static func digit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "A") + value - 10
    }
}
