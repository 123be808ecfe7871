import GateCrypto
import Testing

@Suite("Buffered randomness: every value is fresh")
struct BufferedRandomTests {
    @Test("values do not repeat within or across refills")
    func fresh() {
        var random = BufferedRandom()
        var other = BufferedRandom()
        var seen: Set<UInt64> = []
        for _ in 0..<1000 {
            #expect(seen.insert(random.next()).inserted)
            #expect(seen.insert(other.next()).inserted)
        }
    }
}
