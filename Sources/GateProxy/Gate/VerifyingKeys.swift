package import GateBytes
package import GateCrypto

/// Ready verifying keys of one loop: building one from 64 raw bytes costs a quarter of a
/// verification.
///
/// Bounded; when full, a new key takes the place of one that has not been used since the hand
/// passed it (the clock algorithm).
package struct VerifyingKeys {
    private struct Entry {
        var keyID: Bytes32
        var point: P256Point
        var key: P256PublicKey
        var isUsed: Bool
    }

    private var entries: [Entry] = []
    private var indices: [Bytes32: Int] = [:]
    private var hand = 0
    private let countMax: Int

    package init(countMax: Int) {
        self.countMax = countMax
    }

    /// The key of `point`, which the store has under `keyID`; nil when the point is not on the
    /// curve.
    package mutating func key(_ keyID: Bytes32, _ point: P256Point) -> P256PublicKey? {
        if let index = indices[keyID], entries[index].point == point {
            entries[index].isUsed = true
            return entries[index].key
        }
        guard let key = P256PublicKey(point) else { return nil }
        let entry = Entry(keyID: keyID, point: point, key: key, isUsed: false)
        if let index = indices[keyID] {
            entries[index] = entry
        } else if entries.count < countMax {
            indices[keyID] = entries.count
            entries.append(entry)
        } else {
            replace(with: entry)
        }
        return key
    }

    private mutating func replace(with entry: Entry) {
        while entries[hand].isUsed {
            entries[hand].isUsed = false
            hand = (hand + 1) % entries.count
        }
        indices[entries[hand].keyID] = nil
        entries[hand] = entry
        indices[entry.keyID] = hand
        hand = (hand + 1) % entries.count
    }
}
