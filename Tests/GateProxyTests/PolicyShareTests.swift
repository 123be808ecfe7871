import GateBytes
import GateConfig
import GateCrypto
import GateProxy
import Testing

@Suite("Share: who is inside")
struct ShareTests {
    private let secret = SHA256.hash([7])

    private func share(
        _ percent: Int, by basis: Share.Basis = .keyID, else otherwise: Share.Otherwise = .monitor
    ) -> Share {
        Share(percent: percent, basis: basis, otherwise: otherwise)
    }

    private func value(_ number: Int) -> [UInt8] { SHA256.hash(Array("\(number)".utf8)).array }

    private func isInside(_ share: Share, _ number: Int, secret: Bytes32? = nil) -> Bool {
        SharePlacement(share, of: value(number), secret: secret ?? self.secret).outside == nil
    }

    @Test(
        "of ten thousand, about as many are inside as the share says", arguments: [1, 25, 50, 90])
    func distribution(percent: Int) {
        let inside = (0..<10_000).count { isInside(share(percent), $0) }
        // Five standard deviations of a fair draw, at most.
        #expect(abs(inside - percent * 100) < 250, "\(inside)")
    }

    @Test("none are inside of nothing, and all of everything")
    func ends() {
        #expect((0..<1000).allSatisfy { !isInside(share(0), $0) })
        #expect((0..<1000).allSatisfy { isInside(share(100), $0) })
    }

    @Test("who is inside stays inside when the share is raised")
    func raised() {
        for number in 0..<2000 {
            var wasInside = false
            for percent in stride(from: 0, through: 100, by: 5) {
                let isNow = isInside(share(percent), number)
                #expect(isNow || !wasInside)
                wasInside = isNow
            }
            #expect(wasInside)
        }
    }

    @Test("the place is the same each time, and another under another secret or basis")
    func keyed() {
        let places = (0..<1000).map { isInside(share(50), $0) }
        #expect(places == (0..<1000).map { isInside(share(50, else: .off), $0) })
        #expect(places != (0..<1000).map { isInside(share(50), $0, secret: SHA256.hash([8])) })
        #expect(places != (0..<1000).map { isInside(share(50, by: .account), $0) })
    }

    @Test("without what the share goes by, a request is inside")
    func absent() {
        #expect(SharePlacement(share(0), of: nil, secret: secret).outside == nil)
    }

    @Test("outside is what the share says")
    func otherwise() {
        #expect(SharePlacement(share(0), of: [1], secret: secret).outside == .monitor)
        #expect(SharePlacement(share(0, else: .off), of: [1], secret: secret).outside == .off)
    }
}
