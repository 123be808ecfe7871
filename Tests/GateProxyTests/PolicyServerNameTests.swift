import GateConfig
import GateProxy
import Testing

@Suite("Server names: which requests a connection may carry")
struct ServerNameRuleTests {
    private func configuration() throws -> Configuration {
        func listener(_ name: String, _ port: Int, _ authority: String) -> String {
            """
            listener \(name) {
                address 127.0.0.1:\(port)
                tls {
                    certificate file:/a.pem file:/a.key
                    \(authority)
                }
            }

            """
        }
        func host(_ names: String, _ listener: String) -> String {
            "host \(names) {\n listener \(listener)\n upstream service\n unmatched off\n}\n"
        }
        let text =
            listener("main", 8443, "") + listener("twin", 8444, "")
            + listener("strict", 8445, "client_ca require file:/ca.pem")
            + "upstream service {\n server 127.0.0.1:9000\n}\n"
            + host("a.test www.a.test", "main") + host("b.test", "main") + host("c.test", "twin")
            + host("d.test", "strict") + host("e.test", "strict main")
        let source = MemoryConfigurationSource([
            "proxy.conf": text, "/a.pem": "a", "/a.key": "k", "/ca.pem": "c",
        ])
        let report = ConfigurationLoader.load(path: "proxy.conf", source: source)
        return try #require(report.configuration, "\(report.render())")
    }

    @Test("another host's name counts where certificate or authorities differ")
    func rule() throws {
        let configuration = try configuration()
        let rule = ServerNameRule(configuration, listener: configuration.listeners[0])
        // One certificate for all names but b.test's.
        func certificates(_ name: String) -> Int { name == "b.test" ? 1 : 0 }
        let cases: [(serverName: String, host: Int, name: String, isMisdirected: Bool)] = [
            ("a.test", 0, "a.test", false), ("a.test", 0, "A.TEST", false),
            // Two names of one host.
            ("www.a.test", 0, "a.test", false),
            ("a.test", 1, "b.test", true), ("a.test", 1, "B.test", true),
            ("b.test", 0, "a.test", true),
            // On another listener with the same settings, and with others.
            ("c.test", 0, "a.test", false), ("d.test", 0, "a.test", true),
            // On this listener too.
            ("e.test", 0, "a.test", false),
            // Nobody's name.
            ("nobody.test", 1, "b.test", false),
        ]
        for entry in cases {
            #expect(
                rule.isMisdirected(
                    serverName: entry.serverName, host: entry.host,
                    name: Array(entry.name.utf8)[...], certificates: certificates)
                    == entry.isMisdirected, "\(entry)")
        }
    }
}
