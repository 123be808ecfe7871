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
