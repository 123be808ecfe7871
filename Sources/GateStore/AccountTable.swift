/// Where an account is: its shard and its place there, for life.
struct AccountReference: Sendable, Equatable {
    static let none = AccountReference(index: .max, shard: 0)

    var index: UInt32
    var shard: UInt16
}

/// The accounts of one shard, their keys and whether they are blocked. Accounts are never removed.
///
/// Texts lie end to end in chunks of 64 KiB; an account's keys are a list in one array of nodes, so
/// that an account with one key costs some 40 bytes besides its text.
struct AccountTable {
    private struct Entry {
        /// The chunk in the high half, the offset in it in the low one.
        var text: UInt32
        var hash: UInt32
        /// The newest node plus one, or 0.
        var keys: UInt32
        var byteCount: UInt16
        var isBlocked: Bool
    }

    private struct Node {
        var index: UInt32
        /// The next node plus one, or 0.
        var next: UInt32
        var shard: UInt16
    }

    private var entries: [Entry] = []
    private var slots: [UInt32] = [UInt32](repeating: 0, count: 16)
    private var nodes: [Node] = []
    private var chunks: [[UInt8]] = [[]]

    /// The number of accounts.
    var count: Int { entries.count }

    /// The hash of an account. Accounts are chosen by others, hence a hash seeded for this process;
    /// it picks the shard as well, which is no matter on disk.
    static func hash(_ account: [UInt8]) -> UInt64 {
        var hasher = Hasher()
        hasher.combine(account)
        return UInt64(bitPattern: Int64(hasher.finalize()))
    }

    /// The place of `account`, if it is here.
    func find(_ account: [UInt8], hash: UInt64) -> Int? {
        let mask = slots.count - 1
        let hash = UInt32(truncatingIfNeeded: hash)
        var slot = Int(hash) & mask
        while slots[slot] != 0 {
            let index = Int(slots[slot]) - 1
            if entries[index].hash == hash, isText(of: index, account) { return index }
            slot = (slot + 1) & mask
        }
        return nil
    }

    /// Adds an account that is not here yet, and gives its place.
    mutating func insert(_ account: [UInt8], hash: UInt64) -> Int {
        precondition(account.count <= StoreLimits.textBytesMax)
        if (entries.count + 1) * 4 > slots.count * 3 { grow() }
        if chunks[chunks.count - 1].count + account.count > 65535 { chunks.append([]) }
        let chunk = chunks.count - 1
        let text = UInt32(chunk) << 16 | UInt32(chunks[chunk].count)
        chunks[chunk].append(contentsOf: account)
        entries.append(
            Entry(
                text: text, hash: UInt32(truncatingIfNeeded: hash), keys: 0,
                byteCount: UInt16(account.count), isBlocked: false))
        place(entries.count - 1)
        return entries.count - 1
    }

    /// The bytes of the account at a place.
    func text(_ index: Int) -> [UInt8] {
        let (chunk, range) = position(index)
        return Array(chunks[chunk][range])
    }

    /// Whether the account at a place is blocked.
    func isBlocked(_ index: Int) -> Bool {
        entries[index].isBlocked
    }

    /// Blocks or unblocks the account at a place.
    mutating func setBlocked(_ index: Int, _ isBlocked: Bool) {
        entries[index].isBlocked = isBlocked
    }

    /// The blocked accounts among the `most` entries from `index` on, and the next index; nil at
    /// the end.
    func blocked(from index: Int, most: Int) -> (accounts: [[UInt8]], next: Int?) {
        let end = min(index + most, entries.count)
        guard index < end else { return ([], nil) }
        let accounts = (index..<end).filter { entries[$0].isBlocked }.map { text($0) }
        return (accounts, end < entries.count ? end : nil)
    }

    /// Adds a key to those of the account at a place.
    mutating func add(_ key: KeyReference, to index: Int) {
        nodes.append(Node(index: key.index, next: entries[index].keys, shard: key.shard))
        entries[index].keys = UInt32(truncatingIfNeeded: nodes.count)
    }

    /// The keys of the account at a place, newest first.
    func keys(_ index: Int) -> [KeyReference] {
        var keys: [KeyReference] = []
        var next = entries[index].keys
        while next != 0 {
            let node = nodes[Int(next) - 1]
            keys.append(KeyReference(index: node.index, shard: node.shard))
            next = node.next
        }
        return keys
    }

    private func position(_ index: Int) -> (chunk: Int, range: Range<Int>) {
        let start = Int(entries[index].text & 0xffff)
        return (Int(entries[index].text >> 16), start..<start + Int(entries[index].byteCount))
    }

    private func isText(of index: Int, _ account: [UInt8]) -> Bool {
        let (chunk, range) = position(index)
        return range.count == account.count && chunks[chunk][range].elementsEqual(account)
    }

    private mutating func place(_ index: Int) {
        let mask = slots.count - 1
        var slot = Int(entries[index].hash) & mask
        while slots[slot] != 0 { slot = (slot + 1) & mask }
        slots[slot] = UInt32(truncatingIfNeeded: index + 1)
    }

    private mutating func grow() {
        slots = [UInt32](repeating: 0, count: slots.count * 2)
        for index in entries.indices { place(index) }
    }
}
