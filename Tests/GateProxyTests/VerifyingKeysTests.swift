import GateBytes
import GateCrypto
import GateProxy
import Testing

@Suite("Verifying keys: a bounded cache that never gives another key's point")
struct VerifyingKeysTests {
    @Test("a key is found again, and replaced when its point changes")
    func pointDecides() {
        var keys = VerifyingKeys(countMax: 4)
        let one = P256PrivateKey().point
        let two = P256PrivateKey().point
        let id = Bytes32([UInt8](repeating: 1, count: 32)) ?? Bytes32()
        let first = keys.key(id, one)
        #expect(first?.point == one)
        let again = keys.key(id, one)
        #expect(again === first)
        let second = keys.key(id, two)
        #expect(second !== first)
        #expect(second?.point == two)
    }

    @Test("the cache forgets rather than grows, and what it gives stays right")
    func bounded() {
        var keys = VerifyingKeys(countMax: 4)
        let points = (0..<12).map { _ in P256PrivateKey().point }
        for _ in 0..<3 {
            for (index, point) in points.enumerated() {
                var id = Bytes32()
                id[0] = UInt8(index)
                let found = keys.key(id, point)
                #expect(found?.point == point)
            }
        }
    }

    @Test("a point off the curve gives no key")
    func offCurve() {
        var keys = VerifyingKeys(countMax: 4)
        let key = keys.key(Bytes32(), P256Point(x: Bytes32(), y: Bytes32()))
        #expect(key == nil)
    }
}
