import Foundation
import GateLock
import GateRuntime
import GateTLS
import Testing

/// A clock that only moves when told to.
private final class ManualClock: Clock {
    private let moment = Lock(Moment(nanoseconds: 1_000_000_000))

    func now() -> Moment { moment.withLock { $0 } }
    func unixNanoseconds() -> Int64 { now().nanoseconds }
    func advance(_ duration: Duration) { moment.withLock { $0 = $0 + duration } }
}

@Suite("TLS: what contexts are made of")
struct SetupTests {
    let certificates: Certificates

    init() throws {
        certificates = try Certificates.shared.get()
    }

    @Test("a certificate tells its names and its time")
    func facts() throws {
        let identity = try certificates.identity("api-ec")
        #expect(identity.names == ["api.example.test", "www.example.test"])
        let now = Int64(Date().timeIntervalSince1970)
        #expect(identity.validity.contains(now + 60))
        #expect(identity.validity.upperBound - identity.validity.lowerBound == 10 * 86_400)
        #expect(try certificates.identity("address").names == [])
    }

    @Test("what is no pair of certificate and key is refused, each with its reason")
    func refusals() throws {
        let chain = certificates.bytes("api-ec.pem")
        let key = certificates.bytes("api-ec.key")
        func refusal(_ chain: [UInt8], _ key: [UInt8]) -> TLSSetupError? {
            do throws(TLSSetupError) {
                _ = try TLSIdentity(chain: chain, key: key)
                return nil
            } catch {
                return error
            }
        }
        #expect(refusal(chain, key) == nil)
        #expect(refusal(chain, certificates.bytes("wild.key")) == .foreignKey)
        #expect(refusal(chain, certificates.bytes("api-rsa.key")) == .foreignKey)
        #expect(refusal([], key) == .certificate("no BEGIN CERTIFICATE in it"))
        #expect(refusal(key, key) == .certificate("no BEGIN CERTIFICATE in it"))
        #expect(refusal(chain, chain) == .key("no BEGIN PRIVATE KEY in it"))
        #expect(refusal(chain, []) == .key("no BEGIN PRIVATE KEY in it"))
        var cut = chain
        cut[cut.count / 2] = UInt8(ascii: "!")
        guard case .certificate = refusal(cut, key) else {
            Issue.record("a damaged certificate was taken")
            return
        }
        try certificates.openssl([
            "pkcs8", "-topk8", "-v2", "aes256", "-passout", "pass:secret", "-in", "api-ec.key",
            "-out", "locked.key",
        ])
        #expect(
            refusal(chain, certificates.bytes("locked.key")) == .key("it is under a passphrase"))
    }

    @Test("of certificates that fit a name the most exact counts, and one of each algorithm")
    func choice() {
        let choice = CertificateChoice([
            (names: ["a.test", "b.test"], algorithm: 1), (names: ["a.test"], algorithm: 2),
            (names: ["a.test", "*.test"], algorithm: 1), (names: ["*.b.test"], algorithm: 1),
        ])
        #expect(choice.groups == [[0, 1], [0], [2], [3]])
        for (name, group) in [
            ("a.test", 0), ("b.test", 1), ("c.test", 2), ("x.b.test", 3), ("x.c.test", 0),
            ("test", 0), ("", 0), (".test", 2),
        ] {
            #expect(choice.group(for: name) == group, "\(name)")
        }
    }

    @Test("a ticket key seals for one period, opens for one more, and is gone")
    func tickets() {
        let clock = ManualClock()
        let keys = TicketKeys(period: .seconds(60), clock: clock)
        let first = keys.current().name
        clock.advance(.seconds(59))
        #expect(keys.current().name == first)
        clock.advance(.seconds(1))
        let second = keys.current().name
        #expect(second != first)
        #expect(keys.find(first)?.isOld == true)
        #expect(keys.find(second)?.isOld == false)
        clock.advance(.seconds(59))
        #expect(keys.find(first) != nil)
        clock.advance(.seconds(1))
        #expect(keys.find(first) == nil)
        #expect(keys.find(second)?.isOld == true)
        clock.advance(.seconds(600))
        #expect(keys.find(second) == nil)
        #expect(keys.find([UInt8](repeating: 0, count: 16)) == nil)
    }
}
