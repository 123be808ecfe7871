internal import AppAttestWire
package import GateBytes
internal import GateCrypto
package import GateStore

// A challenge, as `protocol.md` §1 has it. The id is base64url, unpadded, of 45 bytes:
//
//   offset  bytes  field
//   0       1      version, 1
//   1       4      epoch of the store, big endian
//   5       8      expiry, unix milliseconds, big endian: good while now < expiry
//   13      16     random
//   29      16     tag: the first half of
//                  HMAC(secret, "tag", bytes 0..<29, host, app, purpose, account)
//
// and its 32 bytes are HMAC(secret, id as text, host, app, purpose, account). Every part of a
// message is preceded by its length as u16, so no two sets of parts give the same message; the two
// uses of the secret differ in their first part, three bytes against sixty.
//
// An id has one spelling: fixed length, one alphabet, unused bits zero.

/// Why a challenge is not good. The peer never learns which.
package enum ChallengeError: Error, Sendable, Equatable, CaseIterable {
    /// Issued by this gate, for a store epoch that is over.
    case epoch
    /// Issued by this gate, and its life is over.
    case expired
    /// Not issued by this gate for this host, app, purpose and account.
    case unknown

    /// The internal name.
    package var reason: Reason {
        switch self {
        case .epoch: return .challengeEpoch
        case .expired: return .challengeExpired
        case .unknown: return .challengeUnknown
        }
    }
}

/// A challenge just issued.
package struct IssuedChallenge: Sendable, Equatable {
    /// The id's text.
    package let id: [UInt8]
    /// The thirty-two bytes a client hashes.
    package let bytes: Bytes32

    /// The by-value text, `id.mac`; 104 bytes.
    package var value: [UInt8] { ChallengeText.byValue(id: id, mac: bytes) }
}

/// A challenge that came back and is authentic, of this epoch and unexpired. It may still be spent.
package struct OpenedChallenge: Sendable, Equatable {
    /// How the client knows it, which decides what an attestation hashed.
    package enum Form: Sendable, Equatable {
        /// By its id: the client hashed the thirty-two bytes.
        case id
        /// By value: the client hashed the text `id.mac`.
        case value
    }

    /// How it was presented.
    package let form: Form
    /// The id's text.
    package let id: [UInt8]
    /// The thirty-two bytes, recomputed.
    package let bytes: Bytes32
    /// What the store remembers once it is spent.
    package let spent: SpentChallenge

    /// The client data hash of an attestation over this challenge; `isTextHashed` is
    /// `challenge_hash text` of the app, which concerns challenges by id alone.
    package func attestationHash(isTextHashed: Bool) -> Bytes32 {
        switch form {
        case .id where isTextHashed: return SHA256.hash(Array(Base64.encode(bytes.array).utf8))
        case .id: return SHA256.hash(bytes.array)
        case .value: return SHA256.hash(ChallengeText.byValue(id: id, mac: bytes))
        }
    }
}

/// Issues challenges and tells whether one that comes back is its own. Keeps nothing of them.
package struct Challenges: Sendable {
    private let current: HMACSHA256
    private let previous: HMACSHA256?
    private let previousUntil: Int64

    /// Challenges under `current`, and under `previous` while now is before `previousUntil` (unix
    /// milliseconds).
    package init(current: Bytes32, previous: Bytes32? = nil, previousUntil: Int64 = 0) {
        self.current = HMACSHA256(key: current.array)
        self.previous = previous.map { HMACSHA256(key: $0.array) }
        self.previousUntil = previousUntil
    }

    /// Challenges under the store's secrets, whose end is in seconds.
    package init(_ secrets: StoreSecrets) {
        self.init(
            current: secrets.current, previous: secrets.previous?.secret,
            previousUntil: Int64(secrets.previous?.until ?? 0) * 1000)
    }

    /// A challenge for `account` (empty under `account none`), good for `lifetime` milliseconds
    /// from `now` (unix milliseconds).
    package func issue(
        _ scope: ChallengeScope, account: [UInt8], lifetime: Int64, epoch: UInt32, now: Int64,
        using random: inout some RandomNumberGenerator
    ) -> IssuedChallenge {
        let (expiry, overflow) = now.addingReportingOverflow(lifetime)
        var bytes: [UInt8] = [Layout.version]
        bytes.reserveCapacity(Layout.bytes)
        bytes.append(bigEndian: epoch)
        bytes.append(bigEndian: overflow ? UInt64.max : UInt64(clamping: expiry))
        bytes.append(bigEndian: random.next() as UInt64)
        bytes.append(bigEndian: random.next() as UInt64)
        let tag = Challenges.tag(current, bytes, scope, account)
        bytes.append(bigEndian: tag[word: 0])
        bytes.append(bigEndian: tag[word: 1])
        let id = Array(Base64.encodeURL(bytes).utf8)
        return IssuedChallenge(id: id, bytes: Challenges.mac(current, id, scope, account))
    }

    /// The challenge that `text` is, by id or by value.
    package func open(
        _ text: [UInt8], _ scope: ChallengeScope, account: [UInt8], epoch: UInt32, now: Int64
    ) throws(ChallengeError) -> OpenedChallenge {
        switch ChallengeText(text, 0..<text.count) {
        case .byValue: return try open(value: text, scope, account: account, epoch: epoch, now: now)
        case .id: return try open(id: text, scope, account: account, epoch: epoch, now: now)
        case nil: throw .unknown
        }
    }

    /// The challenge whose id is `id`.
    package func open(
        id: [UInt8], _ scope: ChallengeScope, account: [UInt8], epoch: UInt32, now: Int64
    ) throws(ChallengeError) -> OpenedChallenge {
        guard let fields = Layout(id: id),
            let secret = authenticate(fields, scope, account, now)
        else { throw .unknown }
        guard fields.epoch == epoch else { throw .epoch }
        guard UInt64(clamping: now) < fields.expiry else { throw .expired }
        return OpenedChallenge(
            form: .id, id: id, bytes: Challenges.mac(secret, id, scope, account),
            spent: SpentChallenge(
                nonceHigh: fields.nonceHigh, nonceLow: fields.nonceLow,
                expiry: UInt32(clamping: fields.expiry / 1000 &+ 1)))
    }

    /// The challenge whose id is `id`, whose thirty-two bytes the client says are `bytes`: those of
    /// client data. Bytes of another length are another challenge's.
    package func open(
        id: [UInt8], bytes: [UInt8], _ scope: ChallengeScope, account: [UInt8], epoch: UInt32,
        now: Int64
    ) throws(ChallengeError) -> OpenedChallenge {
        let opened = try open(id: id, scope, account: account, epoch: epoch, now: now)
        guard let presented = Bytes32(bytes), presented == opened.bytes else { throw .unknown }
        return opened
    }

    /// The challenge whose by-value text is `text`.
    package func open(
        value text: [UInt8], _ scope: ChallengeScope, account: [UInt8], epoch: UInt32, now: Int64
    ) throws(ChallengeError) -> OpenedChallenge {
        guard case .byValue(let id, let mac) = ChallengeText(text, 0..<text.count) else {
            throw .unknown
        }
        let opened = try open(
            id: Array(text[id]), scope, account: account, epoch: epoch, now: now)
        guard mac == opened.bytes else { throw .unknown }
        return OpenedChallenge(
            form: .value, id: opened.id, bytes: opened.bytes, spent: opened.spent)
    }

    /// The secret under which the tag holds.
    private func authenticate(
        _ fields: Layout, _ scope: ChallengeScope, _ account: [UInt8], _ now: Int64
    ) -> HMACSHA256? {
        if fields.isTagged(Challenges.tag(current, fields.head, scope, account)) { return current }
        guard let previous, now < previousUntil,
            fields.isTagged(Challenges.tag(previous, fields.head, scope, account))
        else { return nil }
        return previous
    }

    private static func tag(
        _ secret: HMACSHA256, _ head: [UInt8], _ scope: ChallengeScope, _ account: [UInt8]
    ) -> Bytes32 {
        var message: [UInt8] = []
        message.reserveCapacity(head.count + scope.parts.count + account.count + 9)
        message.append(lengthPrefixed: Array("tag".utf8))
        message.append(lengthPrefixed: head)
        message.append(contentsOf: scope.parts)
        message.append(lengthPrefixed: account)
        return secret.authenticate(message)
    }

    private static func mac(
        _ secret: HMACSHA256, _ id: [UInt8], _ scope: ChallengeScope, _ account: [UInt8]
    ) -> Bytes32 {
        var message: [UInt8] = []
        message.reserveCapacity(id.count + scope.parts.count + account.count + 4)
        message.append(lengthPrefixed: id)
        message.append(contentsOf: scope.parts)
        message.append(lengthPrefixed: account)
        return secret.authenticate(message)
    }
}

/// The fields of an id; nothing is authentic yet.
private struct Layout {
    static let version: UInt8 = 1
    /// Bytes before the tag.
    static let headBytes = 29
    static let bytes = 45
    /// Characters of an id: 45 bytes in base64url.
    static let characters = 60

    let head: [UInt8]
    let epoch: UInt32
    /// Unix milliseconds.
    let expiry: UInt64
    let nonceHigh: UInt64
    let nonceLow: UInt64
    private let tagHigh: UInt64
    private let tagLow: UInt64

    init?(id: [UInt8]) {
        guard id.count == Layout.characters,
            case .id = ChallengeText(id, 0..<id.count),
            let bytes = Base64.decode(id)
        else { return nil }
        var reader = ByteReader(bytes)
        guard reader.readByte() == Layout.version,
            let epoch = reader.readUInt32(), let expiry = reader.readUInt64(),
            let nonceHigh = reader.readUInt64(), let nonceLow = reader.readUInt64(),
            let tagHigh = reader.readUInt64(), let tagLow = reader.readUInt64(), reader.isAtEnd
        else { return nil }
        head = Array(bytes[..<Layout.headBytes])
        self.epoch = epoch
        self.expiry = expiry
        self.nonceHigh = nonceHigh
        self.nonceLow = nonceLow
        self.tagHigh = tagHigh
        self.tagLow = tagLow
    }

    /// Whether the tag is the first half of `tag`, in the same time wherever they differ.
    func isTagged(_ tag: Bytes32) -> Bool {
        (tagHigh ^ tag[word: 0]) | (tagLow ^ tag[word: 1]) == 0
    }
}
