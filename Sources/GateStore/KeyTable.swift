internal import GateBytes

/// What a shard keeps of a key: 144 bytes, those that an admit looks at first.
struct KeyEntry {
    var keyID: Bytes32
    var signCounter: UInt32
    var lastUsedAt: UInt32
    var challengeEpoch: UInt32
    var enrolledAt: UInt32
    /// Where the account is, or `none`.
    var account: AccountReference
    var app: UInt16
    var bundleVersion: UInt16
    var environment: UInt8
    /// 255 for none.
    var category: UInt8
    private var flags: UInt8
    /// Apple's fraud metric; 65535 for none.
    var metric: UInt16
    /// Unix seconds at which Apple said so.
    var metricTime: UInt32
    /// Unix seconds of the receipt's next refresh; 0 for none.
    var refreshAt: UInt32
    /// The place of its receipt as a number; 0 for none.
    var receipt: UInt64
    var publicKey: P256Point

    init(_ key: NewKey, account: AccountReference, app: UInt16, bundleVersion: UInt16) {
        keyID = key.keyID
        publicKey = key.publicKey
        metric = .max
        metricTime = 0
        refreshAt = 0
        receipt = 0
        signCounter = key.signCounter
        enrolledAt = 0
        lastUsedAt = 0
        challengeEpoch = 0
        self.account = account
        self.app = app
        self.bundleVersion = bundleVersion
        environment = key.environment
        category = key.category ?? 255
        flags = 0
    }

    /// Good for nothing any more; never cleared.
    var isRevoked: Bool {
        get { flags & 1 != 0 }
        set { flags = newValue ? flags | 1 : flags & ~1 }
    }

    /// Its record is not durable yet, so nobody may see it.
    var isPending: Bool {
        get { flags & 2 != 0 }
        set { flags = newValue ? flags | 2 : flags & ~2 }
    }
}

/// Where a key is: its shard and its place there, for life.
struct KeyReference: Sendable, Equatable {
    var index: UInt32
    var shard: UInt16
}

/// The keys of one shard: entries in chunks that never move, and an open-addressing index of their
/// places. Keys are never removed.
///
/// A key ID is a SHA-256, so its own bytes are the hash: the first word picks the shard, the second
/// the slot.
struct KeyTable {
    private static let chunkCount = 256

    private var chunks: [[KeyEntry]] = []
    /// The hash in the high half and a place plus one in the low one, or 0; a power of two of them,
    /// at most three quarters taken.
    private var slots: [UInt64] = [UInt64](repeating: 0, count: 16)
    private(set) var count = 0
    /// Keys by the number of their app.
    private(set) var countsByApp: [UInt16: Int] = [:]
    /// The apps and bundle versions that entries name by number.
    var apps = InternTable()
    var bundleVersions = InternTable()

    /// The place of `keyID`, if it is here.
    func find(_ keyID: Bytes32) -> Int? {
        let mask = slots.count - 1
        let hash = KeyTable.hash(keyID)
        var slot = Int(hash) & mask
        while slots[slot] != 0 {
            let index = Int(slots[slot] & 0xffff_ffff) - 1
            if slots[slot] >> 32 == hash, self[index].keyID == keyID { return index }
            slot = (slot + 1) & mask
        }
        return nil
    }

    private static func hash(_ keyID: Bytes32) -> UInt64 {
        keyID[word: 1] & 0xffff_ffff
    }

    /// The entry at a place that ``find(_:)`` or ``insert(_:)`` gave.
    subscript(index: Int) -> KeyEntry {
        _read { yield chunks[index / KeyTable.chunkCount][index % KeyTable.chunkCount] }
        _modify { yield &chunks[index / KeyTable.chunkCount][index % KeyTable.chunkCount] }
    }

    /// Adds an entry whose key is not here yet, and gives its place.
    mutating func insert(_ entry: KeyEntry) -> Int {
        if (count + 1) * 4 > slots.count * 3 { grow() }
        if count % KeyTable.chunkCount == 0 {
            chunks.append([])
            chunks[chunks.count - 1].reserveCapacity(KeyTable.chunkCount)
        }
        chunks[chunks.count - 1].append(entry)
        count += 1
        countsByApp[entry.app, default: 0] += 1
        place(KeyTable.hash(entry.keyID) << 32 | UInt64(count))
        return count - 1
    }

    private mutating func place(_ value: UInt64) {
        let mask = slots.count - 1
        var slot = Int(value >> 32) & mask
        while slots[slot] != 0 { slot = (slot + 1) & mask }
        slots[slot] = value
    }

    private mutating func grow() {
        let old = slots
        slots = [UInt64](repeating: 0, count: old.count * 2)
        for value in old where value != 0 { place(value) }
    }
}

/// Texts by number, for the few that very many entries share.
struct InternTable {
    /// The number of no text; also given once all numbers are taken.
    static let none = UInt16.max

    private var texts: [String] = []
    private var numbers: [String: UInt16] = [:]

    /// The text of a number, nil for `none`.
    subscript(number: UInt16) -> String? {
        number < texts.count ? texts[Int(number)] : nil
    }

    /// The number of `text`, a new one where it has none.
    mutating func intern(_ text: String) -> UInt16 {
        if let number = numbers[text] { return number }
        guard texts.count < Int(InternTable.none) else { return InternTable.none }
        let number = UInt16(texts.count)
        texts.append(text)
        numbers[text] = number
        return number
    }
}
