import GateConfig
import Testing

/// 2026-11-29 12:26:40 UTC.
private let now: Int64 = 1_795_955_200
private let day: Int64 = 86_400

/// A configuration with a `tls` block of these lines, at line 4 on, and a source that knows of some
/// certificates.
private func loadTLS(
    _ lines: String, faults: [String: CertificateFault] = [:],
    validities: [String: ClosedRange<Int64>] = [:], text: String? = nil
) -> ConfigurationReport {
    let text = text ?? hostText("", listener: "tls {\n\(lines)\n}")
    var source = MemoryConfigurationSource(
        ["proxy.conf": text, "/a.pem": "a", "/a.key": "ka", "/b.pem": "b", "/ca.pem": "ca"],
        credentials: ["b.key": "kb"])
    source.now = now
    for (chain, fault) in faults { source.badCertificates[Array(chain.utf8)] = fault }
    for (chain, range) in validities { source.validities[Array(chain.utf8)] = range }
    return ConfigurationLoader.load(path: "proxy.conf", source: source)
}

private let good = "  certificate file:/a.pem file:/a.key"

@Suite("Listener tls: certificates, client authorities, tickets")
struct ListenerTLSTests {
    @Test("without the block a listener is clear; with one certificate the rest is by default")
    func defaults() throws {
        #expect(load(hostText("")).configuration?.listeners[0].tls == nil)
        #expect(!load(hostText("")).dump.text.contains("tls {"))
        let report = loadTLS(good)
        let tls = try #require(report.configuration?.listeners[0].tls, "\(report.render())")
        let pair = CertificatePair(chain: Array("a".utf8), key: Array("ka".utf8))
        #expect(tls.certificates == [pair])
        #expect(tls.minVersion == .tls12)
        #expect(tls.clientCA == .off)
        #expect(tls.ticketPeriod == .seconds(43_200))
        let dump = report.dump.text
        for line in ["certificate file:/a.pem file:/a.key", "min_version 1.2", "client_ca off"] {
            #expect(dump.contains(line), "\(dump)")
        }
        #expect(dump.contains("tickets rotate 12h"), "\(dump)")
    }

    @Test("every directive of the block comes out as written")
    func all() throws {
        let report = loadTLS(
            good + "\n  certificate file:/b.pem credential:b.key\n  min_version 1.3\n"
                + "  client_ca require file:/ca.pem\n  tickets off")
        let tls = try #require(report.configuration?.listeners[0].tls, "\(report.render())")
        #expect(tls.certificates.map(\.key) == [Array("ka".utf8), Array("kb".utf8)])
        #expect(tls.minVersion == .tls13)
        #expect(tls.clientCA == .require(Array("ca".utf8)))
        #expect(tls.ticketPeriod == nil)
        let other = loadTLS(good + "\n  client_ca optional file:/ca.pem\n  tickets rotate 1h")
        let otherTLS = other.configuration?.listeners[0].tls
        #expect(otherTLS?.clientCA == .optional(Array("ca".utf8)))
        #expect(otherTLS?.ticketPeriod == .seconds(3600))
    }

    @Test(
        "faults have their place and name",
        arguments: [
            ("  min_version 1.3", "3:5: error: \"certificate\" is missing in tls"),
            ("  certificate file:/a.pem", "4:3: error: \"certificate\" needs SECRET"),
            (
                "  certificate file:/no.pem file:/a.key",
                "4:15: error: certificate file:/no.pem cannot be read: no such file"
            ),
            (
                "  certificate file:/a.pem credential:no.key",
                "4:27: error: private key credential:no.key cannot be read: no such credential"
            ),
            (
                good + "\n  client_ca require file:/no.pem",
                "5:21: error: certificate file:/no.pem cannot be read: no such file"
            ),
            (
                good + "\n  min_version 1.1",
                "5:15: error: unknown min_version \"1.1\"; did you mean \"1.2\"?"
            ),
            (good + "\n  tickets rotate 8d", "5:18: error: \"8d\" is out of range"),
            (good + "\n  client_ca optional", "5:3: error: \"client_ca\" needs FILE"),
        ])
    func faults(lines: String, says: String) {
        let report = loadTLS(lines)
        #expect(
            heads(report).contains { $0.hasPrefix("proxy.conf:\(says)") }, "\(report.render())")
        #expect(report.configuration == nil)
    }

    @Test(
        "a certificate and its key are examined",
        arguments: [
            (
                CertificateFault.foreignKey,
                "4:27: error: key file:/a.key does not belong to certificate a.pem"
            ),
            (
                .certificate("no BEGIN CERTIFICATE in it"),
                "4:15: error: certificate /a.pem cannot be used: no BEGIN CERTIFICATE in it"
            ),
            (
                .key("it is under a passphrase"),
                "4:27: error: key /a.key cannot be used: it is under a passphrase"
            ),
        ])
    func examined(fault: CertificateFault, says: String) {
        let report = loadTLS(good, faults: ["a": fault])
        let shown = says.replacing("key file:/a.key", with: "key /a.key")
        #expect(heads(report) == ["proxy.conf:\(shown)"], "\(report.render())")
    }

    @Test("authorities that cannot be read are a fault")
    func authorities() {
        let report = loadTLS(
            good + "\n  client_ca require file:/ca.pem",
            faults: ["ca": .certificate("no BEGIN CERTIFICATE in it")])
        #expect(
            heads(report) == [
                "proxy.conf:5:21: error: /ca.pem holds no authorities: "
                    + "no BEGIN CERTIFICATE in it"
            ])
    }

    @Test("a certificate that has ended, has not begun or soon ends")
    func validity() {
        let cases: [(ClosedRange<Int64>, String?)] = [
            (
                (now - 100 * day)...(now - 28 * day),
                "error: certificate /a.pem ended on 2026-11-01 (28 days ago)"
            ),
            ((now - 9)...(now - 1), "error: certificate /a.pem ended on 2026-11-29 (today)"),
            (
                (now + 1)...(now + 90 * day),
                "error: certificate /a.pem is not valid before 2026-11-29"
            ),
            (
                now...(now + 2 * day),
                "warning: certificate /a.pem ends on 2026-12-01 (in 2 days)"
            ),
            (now...(now + 8 * day), nil),
        ]
        for (range, says) in cases {
            let report = loadTLS(good, validities: ["a": range])
            let wanted = says.map { ["proxy.conf:4:15: \($0)"] } ?? []
            #expect(heads(report) == wanted, "\(report.render())")
        }
    }

    @Test("a public address with protected routes is warned about only where it is clear")
    func publicAddress() {
        let clear = hostText("route GET /a {\n}").replacing("127.0.0.1:8080", with: "[::]:8080")
        let warning = "listener \"public\" is clear on a public address"
        #expect(loadTLS("", text: clear).diagnostics.contains { $0.message.hasPrefix(warning) })
        let secure = clear.replacing("[::]:8080\n", with: "[::]:8080\n tls {\n\(good)\n }\n")
        let report = loadTLS("", text: secure)
        #expect(report.configuration != nil, "\(report.render())")
        #expect(!report.diagnostics.contains { $0.message.hasPrefix(warning) })
    }
}

@Suite("Upstream tls: who is taken for the service")
struct UpstreamTLSTests {
    private func load(_ lines: String, server: String = "127.0.0.1:9000") -> ConfigurationReport {
        let text = hostText("", upstream: "tls {\n\(lines)\n}")
            .replacing("127.0.0.1:9000", with: server)
        return loadTLS("", faults: ["b": .foreignKey], text: text)
    }

    @Test("it is verified by its own name and the system's authorities unless the block says more")
    func values() throws {
        #expect(loadTLS(good).configuration?.upstreams[0].tls == nil)
        let plain = load("")
        let plainTLS = try #require(plain.configuration?.upstreams[0].tls, "\(plain.render())")
        #expect(plainTLS.isVerified && plainTLS.name.isEmpty)
        #expect(plainTLS.authorities == nil && plainTLS.certificate == nil)
        #expect(plain.dump.text.contains("verify on"), "\(plain.dump.text)")
        let whole = load("  name a.test\n  ca file:/ca.pem\n" + good)
        let wholeTLS = try #require(whole.configuration?.upstreams[0].tls, "\(whole.render())")
        #expect(wholeTLS.isVerified && wholeTLS.name == "a.test")
        #expect(wholeTLS.authorities == Array("ca".utf8))
        #expect(
            wholeTLS.certificate
                == CertificatePair(chain: Array("a".utf8), key: Array("ka".utf8)))
    }

    @Test("what is unsafe is warned about, what cannot be is an error")
    func faults() {
        let off = load("  verify off\n  ca file:/ca.pem")
        #expect(off.configuration?.upstreams[0].tls?.isVerified == false)
        #expect(
            off.diagnostics.map(\.message) == [
                "verify off takes any server for this upstream",
                "\"ca\" has no use beside verify off",
            ])
        let socket = load("  verify on", server: "unix:/run/a.sock")
        #expect(
            socket.diagnostics.map(\.message) == [
                "server \"unix:/run/a.sock\" has no name for its certificate"
            ])
        #expect(load("  name a.test", server: "unix:/run/a.sock").configuration != nil)
        let clear = loadTLS("", text: hostText("", upstream: "protocol h2"))
        #expect(clear.diagnostics.map(\.message) == ["protocol h2 needs a tls block"])
        let twice = loadTLS(
            "", text: hostText("", upstream: "protocol h2c\ntls {\n}"))
        #expect(twice.diagnostics.contains { $0.message == "protocol h2c is HTTP/2 in clear" })
        let foreign = load("  certificate file:/b.pem file:/a.key")
        #expect(
            foreign.diagnostics.map(\.message) == [
                "key /a.key does not belong to certificate b.pem"
            ])
    }
}
