import GateBytes
import GateConfig
import Testing

@Suite("Configuration: apple")
struct AppleTests {
    private static let block =
        "apple {\n team_id ABCDE12345\n key_id KEY1234567\n key credential:p8\n}"

    private func report(
        _ apple: String = AppleTests.block, app: String = "receipts refresh"
    ) -> ConfigurationReport {
        load(hostText("", app: app) + "\n" + apple, credentials: ["p8": "key"])
    }

    /// The messages but those of what another part of this version may lack.
    private func messages(_ report: ConfigurationReport) -> [String] {
        report.diagnostics.map(\.message).filter { !$0.hasSuffix("not available in this version") }
    }

    @Test("a key that cannot be used is an error at its line")
    func badKey() {
        var source = MemoryConfigurationSource(
            ["proxy.conf": hostText("") + "\n" + AppleTests.block], credentials: ["p8": "key"])
        source.badCertificates = [Array("key".utf8): .key("it is no P-256 key")]
        let report = ConfigurationLoader.load(path: "proxy.conf", source: source)
        #expect(
            messages(report).contains("key credential:p8 cannot be used: it is no P-256 key"),
            "\(report.render())")
        #expect(report.errorCount == 1)
        let missing = load(hostText("") + "\n" + AppleTests.block)
        #expect(messages(missing).contains { $0.hasPrefix("private key credential:p8 cannot") })
    }

    @Test("nothing of it may be left out, and a literal key is never shown")
    func required() {
        let empty = report("apple {\n}")
        for name in ["team_id", "key_id", "key"] {
            #expect(messages(empty).contains("\"\(name)\" is missing in apple"))
        }
        let literal = report(
            "apple {\n team_id ABCDE12345\n key_id KEY1234567\n key MIGTAgEAMBMGByqG\n}")
        #expect(messages(literal).contains { $0.contains("given as text") })
        #expect(!literal.render().contains("MIGTAgEAMBMGByqG"))
    }

    @Test("it is of use to what asks Apple's servers alone")
    func used() {
        #expect(messages(report()).isEmpty)
        #expect(messages(report(app: "")) == ["\"apple\" is not used"])
    }

    @Test("what asks Apple's servers needs it")
    func needed() {
        let route = load(hostText("route GET /a {\n set_bits bit0=1\n}"))
        #expect(
            messages(route) == ["\"set_bits\" asks Apple's servers, and there is no \"apple\""])
        let fallback = load(hostText("defaults {\n fallback devicecheck\n}"))
        #expect(
            messages(fallback) == [
                "\"fallback devicecheck\" asks Apple's servers, and there is no \"apple\""
            ])
        let both = load(
            hostText("route GET /a {\n fallback devicecheck\n}") + "\n" + AppleTests.block,
            credentials: ["p8": "key"])
        #expect(messages(both).isEmpty, "\(both.render())")
    }

    @Test("fallback devicecheck and set_bits are resolved, each app's environment has its server")
    func resolved() throws {
        let text = hostText(
            """
            route GET /a {
                fallback devicecheck bit1=0 rate=20/1h also_enrolled timeout=3s
                set_bits bit0=1
            }
            route GET /b {
                fallback devicecheck
            }
            """)
        let report = load(text + "\n" + AppleTests.block, credentials: ["p8": "key"])
        let configuration = try #require(report.configuration, "\(report.render())")
        let routes = configuration.hosts[0].routes
        #expect(
            routes[0].fallback
                == .deviceCheck(
                    Fallback.DeviceCheck(
                        bit1: false, rate: Rate(count: 20, per: .seconds(3600)),
                        isAlsoEnrolled: true, timeout: .seconds(3))))
        #expect(routes[0].setBits == DeviceBits(bit0: true))
        #expect(
            routes[1].fallback == .deviceCheck(Fallback.DeviceCheck(timeout: .seconds(2))))
        #expect(routes[1].setBits == nil)
        let apple = try #require(configuration.apple)
        #expect(apple.teamID == "ABCDE12345" && apple.keyID == "KEY1234567")
        let service = try #require(apple.deviceCheck[.production])
        #expect(service.url.authority == "api.devicecheck.apple.com")
        #expect(apple.deviceCheck[.development] == nil && apple.attestData.isEmpty)
        #expect(configuration.implicitUpstreams.map(\.name) == [service.upstream])
        #expect(configuration.implicitUpstreams[0].tls?.isVerified == true)
        let development = load(
            text.replacing("environment production", with: "environment development") + "\n"
                + AppleTests.block, credentials: ["p8": "key"])
        #expect(
            development.configuration?.apple?.deviceCheck[.development]?.url.authority
                == "api.development.devicecheck.apple.com")
    }

    @Test("bits that nobody is asked for are not set")
    func modes() {
        let report = load(
            hostText("route GET /a {\n mode off\n set_bits bit0=1\n}") + "\n" + AppleTests.block,
            credentials: ["p8": "key"])
        #expect(
            messages(report) == ["\"set_bits\" does nothing on a route whose mode is off"])
        let none = load(
            hostText("route GET /a {\n set_bits\n}") + "\n" + AppleTests.block,
            credentials: ["p8": "key"])
        #expect(messages(none).contains("\"set_bits\" needs a value"))
    }

    @Test("the dump shows the references, not the key")
    func dump() {
        let report = load(
            hostText("route GET /a {\n set_bits bit0=1\n}") + "\n"
                + AppleTests.block, credentials: ["p8": "the-key-itself"])
        #expect(report.dump.text.contains("key credential:p8"))
        #expect(!report.dump.text.contains("the-key-itself"))
        #expect(!load(hostText("")).dump.text.contains("apple {"))
    }

    @Test("other servers and authorities are https and warned about")
    func tests() {
        let lines = """
            devicecheck_url https://127.0.0.1:1/base
             attest_data_url https://127.0.0.1:2
             ca file:/ca.pem
            """
        let other = load(
            hostText("", app: "receipts refresh") + "\n"
                + AppleTests.block.replacing("\n}", with: "\n \(lines)\n}"),
            files: ["/ca.pem": "ca"], credentials: ["p8": "key"])
        #expect(
            messages(other) == [
                "devicecheck_url sends device tokens to https://127.0.0.1:1/base and not to Apple",
                "attest_data_url sends receipts to https://127.0.0.1:2 and not to Apple",
                "ca file:/ca.pem replaces the system's authorities for Apple's servers",
            ], "\(other.render())")
        let clear = report(
            AppleTests.block.replacing("\n}", with: "\n devicecheck_url http://a\n}"))
        #expect(messages(clear).contains("\"http://a\" is no https URL"))
    }
}

@Suite("Configuration: receipts")
struct ReceiptSettingTests {
    @Test("each word is its setting, and verify is the default")
    func words() {
        for (line, expected) in [
            ("", App.Receipts.verify), ("receipts off", .off), ("receipts verify", .verify),
            ("receipts require", .require),
        ] {
            let report = load(hostText("", app: line))
            #expect(report.configuration?.apps.first?.receipts == expected, "\(report.render())")
        }
        let block = "apple {\n team_id ABCDE12345\n key_id KEY1234567\n key credential:p8\n}"
        let report = load(
            hostText("", app: "receipts refresh") + "\n" + block, credentials: ["p8": "key"])
        #expect(report.configuration?.apps.first?.receipts == .refresh, "\(report.render())")
        #expect(load(hostText("", app: "receipts on")).configuration == nil)
    }
}
