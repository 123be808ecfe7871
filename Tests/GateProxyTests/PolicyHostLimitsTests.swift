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
