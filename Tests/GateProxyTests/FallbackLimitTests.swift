import GateBytes
import GateConfig
import GateProxy
import Testing

@Suite("Limit of a fallback")
struct FallbackLimitTests {
    @Test("it is per account, and per address where there are none")
    func keys() throws {
        let limit = FallbackLimit(Rate(count: 1, per: .seconds(60)), seed: (1, 2))
        let here = try #require(IPAddress("192.0.2.1"))
        let there = try #require(IPAddress("192.0.2.2"))
        #expect(limit.take(account: [1], address: here, at: 0) == nil)
        #expect(limit.take(account: [1], address: there, at: 0) != nil)
        #expect(limit.take(account: [2], address: here, at: 0) == nil)
        #expect(limit.take(account: [], address: here, at: 0) == nil)
        #expect(limit.take(account: [], address: here, at: 0) != nil)
        #expect(limit.take(account: [], address: there, at: 0) == nil)
    }

    @Test("a refusal says how one stands with it")
    func standing() throws {
        let limit = FallbackLimit(Rate(count: 2, per: .milliseconds(8500)), seed: (1, 2))
        let address = try #require(IPAddress("192.0.2.1"))
        #expect(limit.take(account: [1], address: address, at: 0) == nil)
        #expect(limit.take(account: [1], address: address, at: 0) == nil)
        let refusal = try #require(limit.take(account: [1], address: address, at: 0))
        let seconds = try #require(refusal.retryAfter)
        #expect(
            refusal.rateLimit
                == RateStatus(
                    name: .fallback, count: 2, window: 9, remaining: 0, seconds: seconds))
    }
}
