import GateConfig
import Testing

@Suite("Meaning: what a listener speaks")
struct ProtocolTests {
    private func listener(_ lines: String) -> Listener? {
        load(hostText("", listener: lines)).configuration?.listeners.first
    }

    @Test("HTTP/1.1 where nothing is said, and what is said where something is")
    func protocols() {
        #expect(listener("")?.http == .h1)
        #expect(listener("http h1")?.http == .h1)
        #expect(listener("http h2c")?.http == .h2c)
        #expect(listener("http h2c h1")?.http == [.h1, .h2c])
        #expect(Listener.admin([]).http == .h1)
    }

    @Test(
        "a protocol that cannot be had there is an error",
        arguments: [
            ("http h2", "\"h2\" needs tls in the same listener"),
            ("http h1 h1", "\"h1\" is named twice"),
            ("http h3", "unknown http \"h3\"; did you mean \"h1\"?"),
            (
                "http h2c\n tls {\n certificate file:/a credential:b\n }",
                "\"h2c\" is HTTP/2 in clear text, and this listener has tls"
            ),
        ])
    func faults(line: String, message: String) {
        let report = load(hostText("", listener: line))
        #expect(report.configuration == nil)
        #expect(report.diagnostics.map(\.message).contains(message), "\(report.render())")
    }

    @Test("limits of HTTP/2: the defaults, what is written, and what is out of bounds")
    func limits() throws {
        let limits = try #require(listener("")).limits
        #expect(limits.h2Streams == 100)
        #expect(limits.h2Resets == Rate(count: 200, per: .seconds(30)))
        #expect(limits.h2Control == Rate(count: 1000, per: .seconds(10)))
        let written = try #require(
            listener("limits h2_streams=7 h2_resets=5/1s h2_control=6/2m")
        ).limits
        #expect(written.h2Streams == 7)
        #expect(written.h2Resets == Rate(count: 5, per: .seconds(1)))
        #expect(written.h2Control == Rate(count: 6, per: .seconds(120)))
        for line in [
            "limits h2_streams=0", "limits h2_streams=1001", "limits h2_resets=off",
            "limits h2_resets=0/1s", "limits h2_control=10",
        ] {
            #expect(load(hostText("", listener: line)).errorCount == 1, "\(line)")
        }
    }
}
