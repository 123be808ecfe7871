internal import GateBytes

// Paths to routes: an open-addressed table of whole paths and prefixes, looked up by a hash that
// rolls over the path once and is probed at each segment border. Keys come from the configuration
// alone, so a peer cannot make chains longer.

/// Routes by path, exact and by prefix.
struct PathIndex: Sendable {
    /// One path with all routes that name it.
    struct Entry: Sendable {
        let key: [UInt8]
        let isPrefix: Bool
        let length: Int
        var routes: [Int]
        /// The next shorter prefix that also takes what this one takes; -1 for none.
        var parent: Int
    }

    /// What takes a path: the exact entry and the longest prefix; -1 for none.
    struct Hit: Sendable {
        var exact = -1
        var prefix = -1
    }

    private(set) var entries: [Entry] = []
    /// Entry numbers by hash; -1 is free. Its count is a power of two, at least twice the entries.
    private var slots: [Int32] = []

    /// The keys of all entries.
    var keys: some Sequence<(key: ArraySlice<UInt8>, isPrefix: Bool)> {
        entries.lazy.map { ($0.key[...], $0.isPrefix) }
    }

    /// A route to be put into an index.
    struct Item {
        let key: [UInt8]
        let isPrefix: Bool
        let length: Int
        let route: Int
    }

    /// The index of `items`.
    init(_ items: [Item]) {
        var exacts: [[UInt8]: Int] = [:]
        var prefixes: [[UInt8]: Int] = [:]
        for item in items {
            if let index = item.isPrefix ? prefixes[item.key] : exacts[item.key] {
                entries[index].routes.append(item.route)
                continue
            }
            if item.isPrefix {
                prefixes[item.key] = entries.count
            } else {
                exacts[item.key] = entries.count
            }
            entries.append(
                Entry(
                    key: item.key, isPrefix: item.isPrefix, length: item.length,
                    routes: [item.route], parent: -1))
        }
        guard !entries.isEmpty else { return }
        var count = 4
        while count < entries.count * 2 { count *= 2 }
        slots = [Int32](repeating: -1, count: count)
        for index in entries.indices {
            var slot = Int(truncatingIfNeeded: Self.hash(entries[index])) & (count - 1)
            while slots[slot] >= 0 { slot = (slot + 1) & (count - 1) }
            slots[slot] = Int32(index)
            if entries[index].isPrefix {
                entries[index].parent = Self.parent(of: entries[index].key, in: prefixes)
            }
        }
    }

    private static func parent(of key: [UInt8], in prefixes: [[UInt8]: Int]) -> Int {
        var end = key.count
        while let slash = key[..<end].lastIndex(of: UInt8(ascii: "/")) {
            if let index = prefixes[Array(key[..<slash])] { return index }
            end = slash
        }
        return -1
    }

    /// The entries that take `bytes[range]`. `isFolding` ignores ASCII case; `takesOwnPath` lets
    /// the prefix `/a/*` take `/a`.
    func find(
        _ bytes: [UInt8], _ range: Range<Int>, isFolding: Bool, takesOwnPath: Bool
    ) -> Hit {
        var hit = Hit()
        guard !slots.isEmpty else { return hit }
        var hash = Self.seed
        for index in range {
            let byte = isFolding ? ASCII.lowercased(bytes[index]) : bytes[index]
            if byte == UInt8(ascii: "/") {
                let found = look(
                    hash, bytes, range.lowerBound..<index, isPrefix: true, isFolding: isFolding)
                if found >= 0 { hit.prefix = found }
            }
            hash = Self.mix(hash, byte)
        }
        if takesOwnPath {
            let found = look(hash, bytes, range, isPrefix: true, isFolding: isFolding)
            if found >= 0 { hit.prefix = found }
        }
        hit.exact = look(hash, bytes, range, isPrefix: false, isFolding: isFolding)
        return hit
    }

    private func look(
        _ hash: UInt64, _ bytes: [UInt8], _ range: Range<Int>, isPrefix: Bool, isFolding: Bool
    ) -> Int {
        let mask = slots.count - 1
        var slot = Int(truncatingIfNeeded: Self.finish(hash, isPrefix: isPrefix)) & mask
        while true {
            let index = Int(slots[slot])
            if index < 0 { return -1 }
            if entries[index].isPrefix == isPrefix,
                Self.equal(entries[index].key, bytes, range, isFolding: isFolding)
            {
                return index
            }
            slot = (slot + 1) & mask
        }
    }

    private static func equal(
        _ key: [UInt8], _ bytes: [UInt8], _ range: Range<Int>, isFolding: Bool
    ) -> Bool {
        guard key.count == range.count else { return false }
        for offset in 0..<key.count {
            let byte = bytes[range.lowerBound + offset]
            if key[offset] != (isFolding ? ASCII.lowercased(byte) : byte) { return false }
        }
        return true
    }

    // FNV-1a, 64 bits; folded at the end so that the low bits depend on all.
    private static let seed: UInt64 = 0xcbf2_9ce4_8422_2325

    private static func mix(_ hash: UInt64, _ byte: UInt8) -> UInt64 {
        (hash ^ UInt64(byte)) &* 0x100_0000_01b3
    }

    private static func finish(_ hash: UInt64, isPrefix: Bool) -> UInt64 {
        let mixed = hash ^ (isPrefix ? 0x9e37_79b9_7f4a_7c15 : 0)
        return mixed ^ mixed >> 29
    }

    private static func hash(_ entry: Entry) -> UInt64 {
        finish(entry.key.reduce(seed, mix), isPrefix: entry.isPrefix)
    }
}

/// The entries that take one path, wide and narrow, and the order in which they count.
struct PathHits: Sendable {
    let wide: PathIndex.Hit
    let narrow: PathIndex.Hit

    /// The entries of equal rank; -1 for none on that side.
    struct Level {
        let wide: Int
        let narrow: Int
        /// The prefixes not yet considered.
        private let widePrefix: Int
        private let narrowPrefix: Int

        init(wide: Int, narrow: Int, widePrefix: Int, narrowPrefix: Int) {
            self.wide = wide
            self.narrow = narrow
            self.widePrefix = widePrefix
            self.narrowPrefix = narrowPrefix
        }

        /// The longest of the prefixes left; nil when none is.
        func next(_ wideIndex: PathIndex, _ narrowIndex: PathIndex) -> Level? {
            Level.longest(wideIndex, narrowIndex, wide: widePrefix, narrow: narrowPrefix)
        }

        /// The level of the longest of two chains of prefixes.
        static func longest(
            _ wideIndex: PathIndex, _ narrowIndex: PathIndex, wide: Int, narrow: Int
        ) -> Level? {
            guard wide >= 0 || narrow >= 0 else { return nil }
            let wideLength = wide < 0 ? -1 : wideIndex.entries[wide].length
            let narrowLength = narrow < 0 ? -1 : narrowIndex.entries[narrow].length
            let takesWide = wideLength >= narrowLength
            let takesNarrow = narrowLength >= wideLength
            return Level(
                wide: takesWide ? wide : -1, narrow: takesNarrow ? narrow : -1,
                widePrefix: takesWide ? wideIndex.entries[wide].parent : wide,
                narrowPrefix: takesNarrow ? narrowIndex.entries[narrow].parent : narrow)
        }

        /// The routes of the level, protected ones first.
        func routes(
            _ wideIndex: PathIndex, _ narrowIndex: PathIndex
        ) -> some Sequence<Int> {
            let wideRoutes = wide < 0 ? [] : wideIndex.entries[wide].routes
            let narrowRoutes = narrow < 0 ? [] : narrowIndex.entries[narrow].routes
            return RouteIndexes(first: wideRoutes, second: narrowRoutes)
        }
    }

    /// The most specific level; nil when nothing takes the path.
    func first(_ wideIndex: PathIndex, _ narrowIndex: PathIndex) -> Level? {
        if wide.exact >= 0 || narrow.exact >= 0 {
            return Level(
                wide: wide.exact, narrow: narrow.exact, widePrefix: wide.prefix,
                narrowPrefix: narrow.prefix)
        }
        return Level.longest(wideIndex, narrowIndex, wide: wide.prefix, narrow: narrow.prefix)
    }
}

/// Two lists of route numbers, one after the other, without copying either.
struct RouteIndexes: Sequence, IteratorProtocol {
    private let first: [Int]
    private let second: [Int]
    private var position = 0

    init(first: [Int], second: [Int]) {
        self.first = first
        self.second = second
    }

    mutating func next() -> Int? {
        defer { position += 1 }
        if position < first.count { return first[position] }
        let index = position - first.count
        return index < second.count ? second[index] : nil
    }
}
