/// The spent challenges of one shard, until an hour after they expired.
///
/// They are kept in generations, one for each 256 seconds of expiry, each an open-addressing table
/// of nonces: 18 to 37 bytes a challenge. A challenge names its expiry, so one generation is looked
/// at; and a generation whose last member's life is over goes whole, which costs the same however
/// full it is.
///
/// What was forgotten stays refused: a challenge of a generation below `forgottenBefore` is taken
/// for expired whatever the clock says later.
struct SpentTable {
    /// A challenge's random bytes.
    struct Nonce: Equatable {
        var high: UInt64
        var low: UInt64
    }

    /// How far a snapshot has read.
    struct Cursor: Equatable {
        fileprivate var generation: UInt32 = 0
        fileprivate var slot = 0
        fileprivate var slots = 0
    }

    private struct Generation {
        let number: UInt32
        var count = 0
        /// Nonces, or zeros for an empty slot; a power of two of them, at most seven eighths taken.
        var slots: [Nonce] = [Nonce](repeating: Nonce(high: 0, low: 0), count: 8)
        /// The nonce that looks like an empty slot.
        var hasZero = false

        init(number: UInt32) {
            self.number = number
        }

        func contains(_ high: UInt64, _ low: UInt64) -> Bool {
            if high == 0, low == 0 { return hasZero }
            let mask = slots.count - 1
            var slot = Int(truncatingIfNeeded: low) & mask
            while slots[slot].high != 0 || slots[slot].low != 0 {
                if slots[slot].high == high, slots[slot].low == low { return true }
                slot = (slot + 1) & mask
            }
            return false
        }

        mutating func insert(_ high: UInt64, _ low: UInt64) {
            if high == 0, low == 0 {
                hasZero = true
            } else {
                if (count + 1) * 8 > slots.count * 7 { grow() }
                place(Nonce(high: high, low: low))
            }
            count += 1
        }

        private mutating func place(_ nonce: Nonce) {
            let mask = slots.count - 1
            var slot = Int(truncatingIfNeeded: nonce.low) & mask
            while slots[slot].high != 0 || slots[slot].low != 0 { slot = (slot + 1) & mask }
            slots[slot] = nonce
        }

        private mutating func grow() {
            let old = slots
            slots = [Nonce](repeating: Nonce(high: 0, low: 0), count: old.count * 2)
            for nonce in old where nonce.high != 0 || nonce.low != 0 { place(nonce) }
        }
    }

    /// In order of their numbers.
    private var generations: [Generation] = []
    /// The oldest generation that is not forgotten.
    private(set) var forgottenBefore: UInt32 = 0

    /// The number of challenges that are remembered.
    private(set) var count = 0

    /// A table that has forgotten what was over by `now`.
    init(now: UInt32) {
        forget(now: now)
    }

    /// Whether it cannot be told any more if `challenge` was spent: it expired over an hour ago.
    func isForgotten(_ challenge: SpentChallenge, now: UInt32) -> Bool {
        let end = UInt64(challenge.expiry) + UInt64(StoreLimits.spentLifeSeconds)
        return UInt64(now) > end || challenge.expiry >> 8 < forgottenBefore
    }

    /// Whether `challenge` was spent.
    func contains(_ challenge: SpentChallenge) -> Bool {
        guard let index = find(challenge.expiry >> 8).found else { return false }
        return generations[index].contains(challenge.nonceHigh, challenge.nonceLow)
    }

    /// Spends `challenge`, which is neither forgotten nor spent.
    mutating func insert(_ challenge: SpentChallenge) {
        let number = challenge.expiry >> 8
        let (found, place) = find(number)
        if found == nil { generations.insert(Generation(number: number), at: place) }
        generations[place].insert(challenge.nonceHigh, challenge.nonceLow)
        count += 1
    }

    /// Spends `challenge`; one that is forgotten, or spent already, changes nothing.
    mutating func replay(_ challenge: SpentChallenge) {
        guard challenge.expiry >> 8 >= forgottenBefore, !contains(challenge) else { return }
        insert(challenge)
    }

    /// The challenges in the next `most` slots, and their generation; nil behind the last one. A
    /// generation that grew since is read again from its beginning.
    func nonces(
        at cursor: inout Cursor, most: Int
    ) -> (generation: UInt32, nonces: [Nonce])? {
        var place = find(cursor.generation).place
        if place < generations.count, generations[place].number == cursor.generation,
            generations[place].slots.count == cursor.slots, cursor.slot == cursor.slots
        {
            place += 1
        }
        guard place < generations.count else { return nil }
        let generation = generations[place]
        if generation.number != cursor.generation || generation.slots.count != cursor.slots {
            cursor = Cursor(
                generation: generation.number, slot: 0, slots: generation.slots.count)
        }
        let end = min(cursor.slot + most, cursor.slots)
        var nonces = generation.slots[cursor.slot..<end].filter { $0.high != 0 || $0.low != 0 }
        if end == cursor.slots, generation.hasZero { nonces.append(Nonce(high: 0, low: 0)) }
        cursor.slot = end
        return (generation.number, nonces)
    }

    /// Forgets the generations before `oldest`.
    mutating func forget(before oldest: UInt32) {
        guard oldest > forgottenBefore else { return }
        forgottenBefore = oldest
        while let first = generations.first, first.number < oldest {
            count -= first.count
            generations.removeFirst()
        }
    }

    /// Forgets every generation all of whose challenges expired over an hour before `now`.
    mutating func forget(now: UInt32) {
        guard now >= StoreLimits.spentLifeSeconds else { return }
        forget(before: (now - StoreLimits.spentLifeSeconds) >> 8)
    }

    private func find(_ number: UInt32) -> (found: Int?, place: Int) {
        var low = 0
        var high = generations.count
        while low < high {
            let middle = (low + high) / 2
            if generations[middle].number < number { low = middle + 1 } else { high = middle }
        }
        let isFound = low < generations.count && generations[low].number == number
        return (isFound ? low : nil, low)
    }
}
