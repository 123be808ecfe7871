import GateBytes
import GateConfig
import Testing

@Suite("Service URLs")
struct ServiceURLTests {
    @Test("have a host, a port and a target")
    func parts() throws {
        let plain = try #require(ServiceURL("https://Idp.example.com/keys?x=1"))
        #expect(plain.host == "idp.example.com")
        #expect(plain.port == 443)
        #expect(plain.target == "/keys?x=1")
        #expect(plain.authority == "idp.example.com")
        let local = try #require(ServiceURL("https://127.0.0.1:8443"))
        #expect(local.host == "127.0.0.1" && local.port == 8443 && local.target == "/")
        #expect(local.authority == "127.0.0.1:8443")
        let six = try #require(ServiceURL("https://[::1]:9/a"))
        #expect(six.host == "::1" && six.port == 9 && six.authority == "[::1]:9")
        #expect(ServiceURL("https://a.test?b")?.target == "/?b")
        #expect(plain.with(target: "/other").target == "/other")
    }

    @Test(
        "are https, with nothing that has no place there",
        arguments: [
            "", "https://", "http://a.test/", "https:///keys", "https://u@a.test/",
            "https://u:p@a.test/", "https://a.test/#f", "https://a.test:0/",
            "https://a.test:70000/",
            "https://a.test:/", "https://a.test:-1/", "https://a.test/a b", "https://a.test/é",
            "https://[::1/", "https://[a.test]/", "https://-a.test/", "https://a..test/",
            "https://a.test\\/", "https://a.test/\r\nX: 1",
        ])
    func refused(_ text: String) {
        #expect(ServiceURL(text) == nil)
    }

    @Test("become upstreams that are verified and have names no block can have")
    func implicit() throws {
        let url = try #require(ServiceURL("https://[::1]:8443/keys"))
        let upstream = Upstream.implicit("jwks", url, authorities: [1])
        #expect(upstream.name == "jwks https://[::1]:8443")
        #expect(upstream.servers.map(\.endpoint) == [.host("::1", port: 8443)])
        #expect(upstream.tls?.isVerified == true && upstream.tls?.authorities == [1])
    }
}
