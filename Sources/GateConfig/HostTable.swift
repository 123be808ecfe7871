internal import GateBytes

/// The hosts of one listener by name, each with its routes. Immutable.
package struct HostTable: Sendable {
    private struct Entry: Sendable {
        let name: [UInt8]
        let host: Int
    }

    private var entries: [Entry] = []
    /// Entry numbers by hash; -1 is free.
    private var slots: [Int32]
    /// A table for each host of the configuration; nil for those of other listeners.
    private var tables: [RouteTable?]

    /// The hosts of `configuration` that name the listener `listener`.
    package init(configuration: Configuration, listener: String) {
        tables = []
        for (index, host) in configuration.hosts.enumerated() {
            let isOurs = host.listeners.contains(listener)
            tables.append(isOurs ? RouteTable(host: host) : nil)
            if isOurs {
                entries += host.names.map { Entry(name: Array($0.utf8), host: index) }
            }
        }
        var count = 4
        while count < entries.count * 2 { count *= 2 }
        slots = [Int32](repeating: -1, count: count)
        for (index, entry) in entries.enumerated() {
            var slot = Self.slot(entry.name, 0..<entry.name.count, count)
            while slots[slot] >= 0 { slot = (slot + 1) & (count - 1) }
            slots[slot] = Int32(index)
        }
    }

    /// The index in `Configuration.hosts` of the host called `name` (without port or trailing dot,
    /// whatever its case); nil is 421.
    package func find(_ name: String) -> Int? {
        let bytes = Array(name.utf8)
        return find(bytes, 0..<bytes.count)
    }

    /// The index of the host called `bytes[range]`, as above.
    package func find(_ bytes: [UInt8], _ range: Range<Int>) -> Int? {
        var slot = Self.slot(bytes, range, slots.count)
        while slots[slot] >= 0 {
            let entry = entries[Int(slots[slot])]
            if Self.equal(entry.name, bytes, range) { return entry.host }
            slot = (slot + 1) & (slots.count - 1)
        }
        return nil
    }

    /// The routes of a host that ``find(_:)`` gave.
    package func routes(ofHost index: Int) -> RouteTable? {
        tables.indices.contains(index) ? tables[index] : nil
    }

    private static func equal(_ name: [UInt8], _ bytes: [UInt8], _ range: Range<Int>) -> Bool {
        guard name.count == range.count else { return false }
        for offset in 0..<name.count
        where name[offset] != ASCII.lowercased(bytes[range.lowerBound + offset]) {
            return false
        }
        return true
    }

    private static func slot(_ bytes: [UInt8], _ range: Range<Int>, _ count: Int) -> Int {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for index in range {
            hash = (hash ^ UInt64(ASCII.lowercased(bytes[index]))) &* 0x100_0000_01b3
        }
        return Int(truncatingIfNeeded: hash ^ hash >> 29) & (count - 1)
    }
}
