import GateBytes
import GateConfig
import GateProxy
import Testing

private let alice = Array("alice".utf8)
private let bob = Array("bob".utf8)
private let minute = (count: 2, per: Duration.seconds(60))

@Suite("Host limits: per account and per address")
struct HostLimitsTests {
    private let home: IPAddress
    private let work: IPAddress

    init() throws {
        home = try #require(IPAddress("192.0.2.1"))
        work = try #require(IPAddress("192.0.2.2"))
    }

    private func limits(_ rates: Rates) -> HostLimits { HostLimits(rates, seed: (1, 2)) }

    @Test("challenges are limited per account and per address, and the refusal says how long")
    func challenges() {
        let byAccount = limits(makeRates([\Rates.challengesPerAccount: minute]))
        #expect(byAccount.takeChallenges(2, account: alice, address: home, at: 0) == nil)
        let refusal = byAccount.takeChallenges(1, account: alice, address: work, at: 0)
        #expect(refusal?.reason == .rateLimited)
        #expect(refusal?.code == .rateLimited)
        #expect((60...68).contains(refusal?.retryAfter ?? 0))
        #expect(byAccount.takeChallenges(1, account: bob, address: home, at: 0) == nil)
        let byAddress = limits(makeRates([\Rates.challengesPerAddress: minute]))
        #expect(byAddress.takeChallenges(2, account: alice, address: home, at: 0) == nil)
        #expect(byAddress.takeChallenges(1, account: bob, address: home, at: 0) != nil)
        #expect(byAddress.takeChallenges(1, account: bob, address: work, at: 0) == nil)
    }

    @Test("a list of challenges counts each, and passes whole or not at all")
    func count() {
        let limits = limits(
            makeRates([\Rates.challengesPerAccount: (count: 5, per: Duration.seconds(60))]))
        #expect(limits.takeChallenges(4, account: alice, address: home, at: 0) == nil)
        #expect(limits.takeChallenges(2, account: alice, address: home, at: 0) != nil)
        #expect(limits.takeChallenges(1, account: alice, address: home, at: 0) == nil)
        #expect(limits.takeChallenges(16, account: bob, address: home, at: 0) != nil)
        #expect(limits.takeChallenges(5, account: bob, address: home, at: 0) == nil)
    }

    @Test("attestations have limits of their own")
    func attestations() {
        let byAccount = limits(makeRates([\Rates.attestationsPerAccount: minute]))
        let byAddress = limits(makeRates([\Rates.attestationsPerAddress: minute]))
        for limits in [byAccount, byAddress] {
            #expect(limits.takeChallenges(9, account: alice, address: home, at: 0) == nil)
            #expect(limits.takeAttestation(account: alice, address: home, at: 0) == nil)
            #expect(limits.takeAttestation(account: alice, address: home, at: 0) == nil)
            #expect(limits.takeAttestation(account: alice, address: home, at: 0) != nil)
        }
        #expect(byAccount.takeAttestation(account: bob, address: home, at: 0) == nil)
        #expect(byAddress.takeAttestation(account: bob, address: work, at: 0) == nil)
    }

    @Test("only failed signatures use up their limit; asking does not")
    func signatures() {
        let byAccount = limits(makeRates([\Rates.failedSignaturesPerAccount: minute]))
        let byAddress = limits(makeRates([\Rates.failedSignaturesPerAddress: minute]))
        for limits in [byAccount, byAddress] {
            for _ in 0..<5 {
                #expect(limits.checkSignature(account: alice, address: home, at: 0) == nil)
            }
            limits.countFailedSignature(account: alice, address: home, at: 0)
            #expect(limits.checkSignature(account: alice, address: home, at: 0) == nil)
            limits.countFailedSignature(account: alice, address: home, at: 0)
            #expect(limits.checkSignature(account: alice, address: home, at: 0) != nil)
            #expect(limits.checkSignature(account: bob, address: work, at: 0) == nil)
        }
    }

    @Test("what one limit refuses, the other does not count")
    func refusedByOne() {
        let limits = limits(
            makeRates([
                \Rates.challengesPerAccount: minute,
                \Rates.challengesPerAddress: (count: 3, per: Duration.seconds(60)),
            ]))
        #expect(limits.takeChallenges(2, account: alice, address: home, at: 0) == nil)
        for _ in 0..<9 {
            #expect(limits.takeChallenges(1, account: alice, address: home, at: 0) != nil)
        }
        #expect(limits.takeChallenges(1, account: bob, address: home, at: 0) == nil)
        #expect(limits.takeChallenges(1, account: bob, address: home, at: 0) != nil)
    }

    @Test("without an account the limits per account do not apply")
    func noAccount() {
        let limits = limits(
            makeRates([
                \Rates.challengesPerAccount: minute, \Rates.attestationsPerAccount: minute,
                \Rates.failedSignaturesPerAccount: minute,
            ]))
        for _ in 0..<9 {
            #expect(limits.takeChallenges(1, account: [], address: home, at: 0) == nil)
            #expect(limits.takeAttestation(account: [], address: home, at: 0) == nil)
            limits.countFailedSignature(account: [], address: home, at: 0)
            #expect(limits.checkSignature(account: [], address: home, at: 0) == nil)
        }
    }

    @Test("no limits limit nothing")
    func none() {
        let limits = limits(makeRates([:]))
        #expect(limits.takeChallenges(10_000, account: alice, address: home, at: 0) == nil)
        #expect(limits.takeAttestation(account: alice, address: home, at: 0) == nil)
    }
}

@Suite("Host limits: what a client is told of them")
struct RateStatusTests {
    private let second: UInt64 = 1_000_000_000
    private let home = IPAddress(high: 0, low: 0xffff_c000_0201)

    private func value(_ status: RateStatus?) -> [String] {
        status.map { [text($0.policyValue), text($0.value)] } ?? []
    }

    @Test("a standing is two fields: the policy, and what is left until when")
    func fields() {
        let limits = HostLimits(
            makeRates([\Rates.challengesPerAccount: (count: 9, per: Duration.seconds(80))]),
            seed: (1, 2))
        func standing(_ now: UInt64) -> [String] {
            value(limits.standing(.challenges, account: alice, address: home, at: now))
        }
        #expect(standing(0) == ["\"challenges\";q=9;w=80", "\"challenges\";r=9;t=0"])
        #expect(limits.takeChallenges(2, account: alice, address: home, at: 0) == nil)
        #expect(standing(0)[1] == "\"challenges\";r=7;t=90")
        #expect(standing(40 * second)[1] == "\"challenges\";r=7;t=50")
        #expect(standing(90 * second)[1] == "\"challenges\";r=9;t=0")
        #expect(
            value(limits.standing(.challenges, account: bob, address: home, at: 0))[1]
                == "\"challenges\";r=9;t=0")
    }

    @Test("a refusal has the limit that keeps it longest, and its own wait")
    func refusal() throws {
        let limits = HostLimits(
            makeRates([
                \Rates.attestationsPerAccount: (count: 1, per: Duration.seconds(8)),
                \.attestationsPerAddress: (count: 1, per: Duration.seconds(800)),
            ]), seed: (1, 2))
        #expect(limits.takeAttestation(account: alice, address: home, at: 0) == nil)
        let refused = limits.takeAttestation(account: alice, address: home, at: 0)
        let refusal = try #require(refused)
        #expect(
            value(refusal.rateLimit) == [
                "\"attestations\";q=1;w=800", "\"attestations\";r=0;t=900",
            ])
        #expect(refusal.retryAfter == 900)
    }

    @Test("too many at once leaves what is left, and says when so many would pass")
    func many() throws {
        let limits = HostLimits(
            makeRates([\Rates.challengesPerAccount: (count: 5, per: Duration.seconds(8))]),
            seed: (1, 2))
        #expect(limits.takeChallenges(3, account: alice, address: home, at: 0) == nil)
        let refused = limits.takeChallenges(3, account: alice, address: home, at: 0)
        let refusal = try #require(refused)
        #expect(refusal.rateLimit?.remaining == 2)
        #expect(refusal.rateLimit?.seconds == refusal.retryAfter)
    }

    @Test("of two limits the nearer one is told, and none where there is none")
    func nearer() {
        let limits = HostLimits(
            makeRates([
                \Rates.challengesPerAccount: (count: 9, per: Duration.seconds(8)),
                \.challengesPerAddress: (count: 4, per: Duration.milliseconds(1500)),
            ]), seed: (1, 2))
        func standing(_ name: RateStatus.Name, _ account: [UInt8] = alice) -> [String] {
            value(limits.standing(name, account: account, address: home, at: 0))
        }
        #expect(standing(.challenges) == ["\"challenges\";q=4;w=2", "\"challenges\";r=4;t=0"])
        #expect(standing(.challenges, []) == standing(.challenges))
        #expect(standing(.attestations) == [])
        #expect(standing(.failedSignatures) == [])
    }
}
