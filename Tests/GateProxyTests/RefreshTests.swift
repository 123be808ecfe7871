import AppAttest
import AppAttestDevice
import GateBytes
import GateCrypto
import GateProxy
import GateRuntime
import GateStore
import Testing

@Suite("Refresh of receipts: when")
struct RefreshPlanTests {
    private let now: Int64 = 1_790_000_000
    private var random = SystemRandomNumberGenerator()

    private func seconds(_ time: UInt32) -> Int64 { Int64(time) - now }

    @Test("the first comes some minutes after the enrolment, spread by the key")
    func first() {
        var found: Set<UInt32> = []
        for _ in 0..<200 {
            let time = RefreshPlan.first(of: SystemRandom.bytes32(), now: now)
            #expect((180..<780).contains(seconds(time)))
            found.insert(time)
        }
        #expect(found.count > 100)
    }

    @Test("the next is never before the not-before, and spread behind it")
    mutating func next() {
        for milliseconds: Int64 in [0, 1, 999] {
            let creation = now * 1000 + milliseconds
            let notBefore = creation + 86_400_000
            var found: Set<UInt32> = []
            for _ in 0..<200 {
                let time = RefreshPlan.next(
                    notBefore: notBefore, creation: creation, now: now, using: &random)
                #expect(Int64(time) * 1000 > notBefore)
                #expect(Int64(time) * 1000 <= notBefore + 8_642_000)
                found.insert(time)
            }
            #expect(found.count > 100)
        }
        // One that is over already, one at once, and one without.
        let past = RefreshPlan.next(
            notBefore: 1000, creation: 0, now: now, using: &random)
        #expect(seconds(past) == 1)
        let brief = RefreshPlan.next(
            notBefore: now * 1000 + 1500, creation: now * 1000, now: now, using: &random)
        #expect(seconds(brief) == 3)
        let without = RefreshPlan.next(
            notBefore: nil, creation: now * 1000, now: now, using: &random)
        #expect((86_400...95_100).contains(seconds(without)))
    }

    @Test("after 304 the not-before counts; where that is over, hours do")
    mutating func notModified() {
        let later = RefreshPlan.notModified(now * 1000 + 5_000_500, now: now, using: &random)
        #expect((5002...5061).contains(seconds(later)))
        for notBefore in [nil, now * 1000, 5] as [Int64?] {
            let time = RefreshPlan.notModified(notBefore, now: now, using: &random)
            #expect((3 * 3600...6 * 3600).contains(seconds(time)))
        }
    }

    @Test("failures back off further and further, up to hours")
    mutating func backoff() {
        var most: Int64 = 60
        for failures in 1...40 {
            for _ in 0..<20 {
                let time = RefreshPlan.unavailable(failures: failures, now: now, using: &random)
                #expect((most / 2...most).contains(seconds(time)), "\(failures)")
            }
            most = min(most * 2, 60 << 8)
        }
    }

    @Test("what Apple refuses is not asked again soon")
    mutating func refused() {
        #expect(seconds(RefreshPlan.notFound(now: now, using: &random)) >= 3 * 86_400)
        #expect(seconds(RefreshPlan.refused(now: now, using: &random)) >= 15 * 86_400)
        #expect(seconds(RefreshPlan.unauthorized(now: now, using: &random)) >= 43_200)
        #expect(seconds(RefreshPlan.invalid(now: now, using: &random)) >= 43_200)
    }

    @Test("a receipt brings its metric and the time that Apple said so")
    mutating func update() throws {
        let root = DeviceRoot.generate(at: now)
        let device = Device(root: root, appID: "TEAM123456.a", isProduction: true, shape: .iOS27)
        let recipe = device.recipe(clientDataHash: [], at: now)
        let leaf = recipe.leaf.signed(by: recipe.issuerKey)
        var receipt = device.receipt(leaf: leaf, clientDataHash: [1], at: now * 1000 + 250)
        receipt.refresh(metric: 12, at: now * 1000 + 250)
        let verified = try Receipt.verify(
            receipt.encoded(),
            ReceiptTerms(
                appIDs: ["TEAM123456.a"], root: try TrustRoot(der: root.certificate), at: now))
        let update = RefreshPlan.update(with: verified, now: now, using: &random)
        #expect(update.metric == RiskMetric(12, time: UInt32(now)))
        #expect(update.refreshAt.map { seconds($0) > 86_400 } == true)
    }
}

@Suite("Refresh of receipts: how fast")
struct RefreshPaceTests {
    private let start = Moment(nanoseconds: 5_000_000_000)
    private var pace: RefreshPace

    init() {
        pace = RefreshPace(at: start)
    }

    private mutating func begin(after duration: Duration) -> Bool {
        pace.begin(at: start + duration)
    }

    @Test("no more at a time than there may be")
    mutating func inFlight() {
        let begun = (0..<RefreshPace.inFlightMax).count { _ in begin(after: .zero) }
        #expect(begun == RefreshPace.inFlightMax)
        let tooMany = begin(after: .seconds(9))
        #expect(!tooMany)
        pace.end()
        let another = begin(after: .seconds(9))
        #expect(another)
    }

    @Test("no more a second than there may be, but for the first burst")
    mutating func rate() {
        var count = 0
        for millisecond in 0..<10_000 {
            while begin(after: .milliseconds(millisecond)) {
                pace.end()
                count += 1
            }
        }
        let most = 10 * RefreshPace.perSecond + RefreshPace.burst
        #expect((most - RefreshPace.perSecond / 10...most).contains(count))
    }

    @Test("nothing in a pause, which only a longer one moves")
    mutating func pauses() {
        pace.pause(.seconds(10), at: start)
        pace.pause(.seconds(2), at: start)
        #expect(pace.isPaused(at: start + .seconds(9)))
        let paused = begin(after: .seconds(9))
        #expect(!paused)
        let over = begin(after: .seconds(10))
        #expect(over)
        pace.pause(.seconds(3600), at: start + .seconds(10))
        pace.resume()
        let resumed = begin(after: .seconds(11))
        #expect(resumed)
    }
}
