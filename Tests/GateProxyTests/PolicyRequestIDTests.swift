import GateProxy
import Testing

@Suite("Request id")
struct RequestIDTests {
    @Test("a fresh id is thirty-two hexadecimal digits and new each time")
    func fresh() {
        var random = CountingRandom()
        let ids = (0..<100).map { _ in RequestID.make(using: &random) }
        #expect(Set(ids).count == 100)
        let digits = Set("0123456789abcdef".utf8)
        for id in ids {
            #expect(id.count == 32)
            #expect(id.allSatisfy(digits.contains))
            #expect(RequestID.isAcceptable(id, 0..<id.count))
        }
    }

    @Test("both random words are in it, most significant digit first")
    func golden() {
        struct Two: RandomNumberGenerator {
            var values: [UInt64] = [0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210]
            mutating func next() -> UInt64 { values.removeFirst() }
        }
        var random = Two()
        let id = RequestID.make(using: &random)
        #expect(String(decoding: id, as: UTF8.self) == "0123456789abcdeffedcba9876543210")
    }

    @Test("a proxy's id may be letters, digits, dot, underscore and dash, up to 128 of them")
    func acceptable() {
        func accepts(_ text: String) -> Bool {
            let bytes = Array(text.utf8)
            return RequestID.isAcceptable(bytes, 0..<bytes.count)
        }
        #expect(accepts("a"))
        #expect(accepts("AZaz09._-"))
        #expect(accepts(String(repeating: "x", count: 128)))
        #expect(!accepts(""))
        #expect(!accepts(String(repeating: "x", count: 129)))
        for bad in UInt8.min...UInt8.max {
            let letters = Set(
                "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-".utf8)
            #expect(RequestID.isAcceptable([65, bad, 65], 0..<3) == letters.contains(bad))
        }
    }
}
