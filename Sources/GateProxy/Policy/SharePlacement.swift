package import GateBytes
package import GateConfig
internal import GateCrypto

/// Where a request falls with the share of its route.
package struct SharePlacement: Sendable, Equatable {
    /// What becomes of it outside; nil when it is inside.
    package let outside: Share.Otherwise?

    /// The place of `value`, what `share` goes by; without it, or with one that says nothing, a
    /// request is inside.
    ///
    /// The first 64 bits of HMAC(secret, "share", basis, value), with the length prefixes of
    /// challenges, taken as a fraction of one: inside when it is below the share. So whoever is
    /// inside stays there when the share is raised, on every route, and over restarts; and without
    /// the store's secret nobody finds a value that is outside but by trying.
    package init(_ share: Share, of value: [UInt8]?, secret: Bytes32) {
        guard let value, share.percent < 100 else {
            outside = nil
            return
        }
        var message: [UInt8] = []
        message.append(lengthPrefixed: Array("share".utf8))
        message.append(lengthPrefixed: Array(share.basis.rawValue.utf8))
        message.append(lengthPrefixed: value)
        let hash = HMACSHA256(key: secret.array).authenticate(message)[word: 0]
        let hundredth = hash.multipliedFullWidth(by: 100).high
        outside = hundredth < UInt64(share.percent) ? nil : share.otherwise
    }
}
