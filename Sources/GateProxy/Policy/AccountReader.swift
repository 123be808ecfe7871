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
        guard found.count <= bytesMax else { return .malformed }
        for index in found where head.bytes[index] < 0x20 || head.bytes[index] == 0x7f {
            return .malformed
        }
        return .account(Array(head.bytes[found]))
    }
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
