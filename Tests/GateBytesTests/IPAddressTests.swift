import GateBytes
import Testing

@Suite("IP addresses: one value for both kinds")
struct IPAddressTests {
    @Test(
        "text round-trips in its canonical form",
        arguments: [
            "1.2.3.4", "255.255.255.255", "::", "::1", "2001:db8::1", "fe80::1:0:0:1",
            "1:2:3:4:5:6:7:8", "2001:db8:0:1:1:1:1:1",
        ])
    func roundTrips(text: String) throws {
        #expect(try #require(IPAddress(text)).description == text)
    }

    @Test(
        "text that is no address is refused",
        arguments: [
            "", "1.2.3", "1.2.3.4.5", "01.2.3.4", "256.1.1.1", ":::", "1::2::3", "12345::", "1:2:3",
            "1:2:3:4:5:6:7:8:9", "::g", "1.2.3.4:80", "[::1]", "::1%lo", ":1:2:3:4:5:6:7:8",
        ])
    func refuses(text: String) {
        #expect(IPAddress(text) == nil)
    }

    @Test("an IPv4-mapped IPv6 address is that IPv4 address")
    func mapped() throws {
        #expect(IPAddress("::ffff:1.2.3.4") == IPAddress("1.2.3.4"))
    }

    @Test("limits count IPv6 by its /64")
    func limitKey() throws {
        let one = try #require(IPAddress("2001:db8:1:2:3::1")).limitKey
        #expect(one == IPAddress("2001:db8:1:2:ffff::9")?.limitKey)
        #expect(one != IPAddress("2001:db8:1:3::1")?.limitKey)
        #expect(IPAddress("10.0.0.1")?.limitKey != IPAddress("10.0.0.2")?.limitKey)
    }

    @Test("a share counts a /24, or a /56 of IPv6")
    func shareKey() throws {
        #expect(IPAddress("10.0.0.1")?.shareKey == IPAddress("10.0.0.255")?.shareKey)
        #expect(IPAddress("10.0.0.1")?.shareKey != IPAddress("10.0.1.1")?.shareKey)
        let one = try #require(IPAddress("2001:db8:1:2ff::1")).shareKey
        #expect(one == IPAddress("2001:db8:1:200:ffff::9")?.shareKey)
        #expect(one != IPAddress("2001:db8:1:300::1")?.shareKey)
    }
}
