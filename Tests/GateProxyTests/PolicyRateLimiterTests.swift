import GateBytes
import GateProxy
import Testing

private let second: UInt64 = 1_000_000_000

private func limiter(_ count: Int, _ per: Duration, slots: Int = 256) -> RateLimiter {
    RateLimiter(count: count, per: per, slots: slots, seed: (1, 2))
}

@Suite("Rate limiter: window and table")
struct RateLimiterTests {
    @Test("the limit passes at once and the next is refused")
    func burst() {
        var limiter = limiter(5, .seconds(60))
        let key = limiter.key(account: [1])
        for _ in 0..<5 { #expect(limiter.take(key, at: 0) == nil) }
        #expect(limiter.take(key, at: 0) != nil)
        #expect(limiter.take(key, at: 59 * second) != nil)
    }

    @Test("waiting what the limiter says lets the next pass, and a nanosecond before does not")
    func retryAfter() throws {
        for start in [0, 1, 7 * second, 123_456_789, 61 * second + 1] {
            var limiter = limiter(3, .seconds(8))
            let key = limiter.key(account: [1])
            for _ in 0..<3 { _ = limiter.take(key, at: start) }
            let wait = limiter.check(key, at: start)
            let seconds = try #require(wait)
            #expect((8...9).contains(seconds))
            #expect(limiter.check(key, at: start + UInt64(seconds - 1) * second - 1) != nil)
            #expect(limiter.check(key, at: start + UInt64(seconds) * second) == nil)
        }
    }

    @Test("no window of the length ever holds more than the limit")
    func anyWindow() {
        var random = CountingRandom()
        var limiter = limiter(20, .seconds(10))
        let key = limiter.key(account: [1])
        var now: UInt64 = 5
        var passed: [UInt64] = []
        for _ in 0..<4_000 {
            now += UInt64.random(in: 0..<(second / 2), using: &random)
            if limiter.take(key, at: now) == nil { passed.append(now) }
        }
        #expect(passed.count > 1_000)
        for (index, start) in passed.enumerated() where index + 20 < passed.count {
            #expect(passed[index + 20] - start >= 10 * second)
        }
    }

    @Test("a key at its limit gets at least eight ninths of it through")
    func throughput() {
        var limiter = limiter(90, .seconds(9))
        let key = limiter.key(account: [1])
        var passed = 0
        for tick in 0..<9_000 where limiter.take(key, at: UInt64(tick) * second / 100) == nil {
            passed += 1
        }
        #expect(passed >= 800)
        #expect(passed <= 1_000)
    }

    @Test("a refused event is not counted")
    func refusedNotCounted() {
        var limiter = limiter(1, .seconds(8))
        let key = limiter.key(account: [1])
        #expect(limiter.take(key, at: 0) == nil)
        for tick in 1..<80 { #expect(limiter.take(key, at: UInt64(tick) * second / 10) != nil) }
        #expect(limiter.take(key, at: 9 * second) == nil)
    }

    @Test("checking counts nothing; counting needs no leave")
    func checkAndCount() {
        var limiter = limiter(2, .seconds(60))
        let key = limiter.key(account: [1])
        for _ in 0..<10 { #expect(limiter.check(key, at: 0) == nil) }
        limiter.count(key, at: 0)
        #expect(limiter.check(key, at: 0) == nil)
        limiter.count(key, at: 0)
        #expect(limiter.check(key, at: 0) != nil)
    }

    @Test("keys do not touch each other while the table has room")
    func independent() {
        var limiter = limiter(1, .seconds(60), slots: 4096)
        for account in 0..<64 as Range<UInt8> {
            #expect(limiter.take(limiter.key(account: [account]), at: 0) == nil)
        }
        for account in 0..<64 as Range<UInt8> {
            #expect(limiter.take(limiter.key(account: [account]), at: 0) != nil)
        }
    }

    @Test("a flood of other keys never gives a key more than its limit")
    func flood() {
        var limiter = limiter(10, .seconds(60), slots: 16)
        let victim = limiter.key(account: Array("victim".utf8))
        var passed = 0
        for round in 0..<2_000 as Range<UInt64> {
            var other: [UInt8] = []
            other.append(bigEndian: round)
            limiter.count(limiter.key(account: other), at: round)
            if limiter.take(victim, at: round) == nil { passed += 1 }
        }
        #expect(passed <= 10)
    }

    @Test("after a flood the table is free again once the window is over")
    func floodEnds() {
        var limiter = limiter(2, .seconds(8), slots: 16)
        for round in 0..<2_000 as Range<UInt64> {
            var other: [UInt8] = []
            other.append(bigEndian: round)
            limiter.count(limiter.key(account: other), at: round)
        }
        let key = limiter.key(account: [1])
        #expect(limiter.take(key, at: 0) != nil)
        #expect(limiter.take(key, at: 9 * second) == nil)
    }

    @Test("an IPv6 address counts with its /64, an IPv4 address alone")
    func addresses() throws {
        let limiter = limiter(1, .seconds(60))
        func key(_ text: String) throws -> RateKey {
            limiter.key(address: try #require(IPAddress(text)))
        }
        #expect(try key("2001:db8::1") == key("2001:db8::ffff:2"))
        #expect(try key("2001:db8::1") != key("2001:db8:0:1::1"))
        #expect(try key("192.0.2.1") != key("192.0.2.2"))
    }

    @Test("another seed gives other keys: a collision cannot be prepared")
    func seeded() {
        let one = RateLimiter(count: 1, per: .seconds(1), slots: 16, seed: (1, 2))
        let two = RateLimiter(count: 1, per: .seconds(1), slots: 16, seed: (1, 3))
        let three = RateLimiter(count: 1, per: .seconds(1), slots: 16, seed: (2, 2))
        #expect(one.key(account: [1]) != two.key(account: [1]))
        #expect(one.key(account: [1]) != three.key(account: [1]))
        #expect(one.key(account: [1]) == one.key(account: [1]))
    }

    @Test("a limit of nothing refuses everything; odd lengths of time do not trap")
    func edges() {
        var none = limiter(0, .seconds(60))
        let key = none.key(account: [1])
        #expect(none.take(key, at: 0) != nil)
        var short = limiter(1, .nanoseconds(1))
        #expect(short.take(short.key(account: [1]), at: .max) == nil)
        #expect(short.take(short.key(account: [1]), at: .max) == 1)
        var endless = limiter(1, .seconds(Int64.max))
        #expect(endless.take(endless.key(account: [1]), at: .max) == nil)
        #expect(endless.take(endless.key(account: [1]), at: .max) != nil)
        #expect(Duration.seconds(-1).nanoseconds == 0)
        #expect(Duration.milliseconds(1500).nanoseconds == 1_500_000_000)
        #expect(Duration.seconds(Int64.max).nanoseconds == .max)
    }

    @Test("an hour of use of a small table leaves its limits exact")
    func longRun() {
        var limiter = limiter(3, .seconds(16), slots: 64)
        let key = limiter.key(account: [9])
        for minute in 0..<60 as Range<UInt64> {
            let now = minute * 60 * second
            for _ in 0..<3 { #expect(limiter.take(key, at: now) == nil) }
            #expect(limiter.take(key, at: now + second) != nil)
        }
    }
}
