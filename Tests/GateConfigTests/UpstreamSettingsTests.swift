import GateConfig
import Testing

@Suite("Upstreams: balance, health, ejection, places")
struct UpstreamSettingsTests {
    private func upstream(_ lines: String) throws -> Upstream {
        let report = load(hostText("", upstream: lines))
        let configuration = try #require(report.configuration, "\(report.render())")
        return configuration.upstreams[0]
    }

    private func messages(_ lines: String, _ severity: Diagnostic.Severity = .error) -> [String] {
        load(hostText("", upstream: lines)).diagnostics.filter { $0.severity == severity }
            .map(\.message)
    }

    @Test("everything is off where nothing is said")
    func off() throws {
        for lines in ["", "health off\neject off\nmax_active off\nrequest stream"] {
            let upstream = try upstream(lines)
            #expect(upstream.balance == .roundRobin && !upstream.isLengthRequired)
            #expect(upstream.health == nil && upstream.ejection == nil)
            #expect(upstream.activeLimit == nil)
            #expect(upstream.servers.map(\.weight) == [1])
            #expect(upstream.servers.map(\.isBackup) == [false])
        }
    }

    @Test("every value that is written arrives")
    func given() throws {
        let upstream = try upstream(
            """
            server name.test:1 weight=7 backup
            server unix:/s backup weight=1000
            balance hash key_id
            health GET /a/b expect=204 every=1s timeout=500ms rise=4 fall=5
            eject after=6 within=7s for=8s
            max_active 9 queue=10 wait=11s
            request length
            """)
        #expect(upstream.servers.map(\.weight) == [1, 7, 1000])
        #expect(upstream.servers.map(\.isBackup) == [false, true, true])
        #expect(upstream.balance == .hashKeyID && upstream.isLengthRequired)
        #expect(
            upstream.health
                == Upstream.Health(
                    path: "/a/b", status: 204, every: .seconds(1), timeout: .milliseconds(500),
                    rise: 4, fall: 5))
        #expect(
            upstream.ejection
                == Upstream.Ejection(failures: 6, within: .seconds(7), duration: .seconds(8)))
        #expect(
            upstream.activeLimit
                == Upstream.ActiveLimit(requests: 9, waiting: 10, wait: .seconds(11)))
        #expect(try self.upstream("balance least_connections").balance == .leastConnections)
    }

    @Test("a directive that is on has its other keys from the specification's example")
    func completed() throws {
        let upstream = try upstream(
            "server [::2]:1\nhealth GET /healthz fall=1\neject within=1m\nmax_active 400")
        #expect(
            upstream.health
                == Upstream.Health(
                    path: "/healthz", status: 200, every: .seconds(5), timeout: .seconds(1),
                    rise: 2, fall: 1))
        #expect(
            upstream.ejection
                == Upstream.Ejection(failures: 5, within: .seconds(60), duration: .seconds(30)))
        #expect(
            upstream.activeLimit
                == Upstream.ActiveLimit(requests: 400, waiting: 100, wait: .seconds(2)))
        #expect(try self.upstream("max_active 1 queue=0").activeLimit?.waiting == 0)
    }

    @Test("the dump says what completes a directive, and that it is a default")
    func dump() {
        let report = load(hostText("", upstream: "health GET /h every=9s\neject after=2"))
        let lines = report.dump.lines.filter { $0.blocks.last == "upstream orders" }
            .map { "\($0.text) # \($0.origin)" }
        for line in [
            "health GET /h every=9s # proxy.conf:12",
            "health expect=200 timeout=1s rise=2 fall=3 # default",
            "eject after=2 # proxy.conf:13", "eject within=10s for=30s # default",
            "max_active off # default", "balance round_robin # default",
            "request stream # default",
        ] {
            #expect(lines.contains(line), "\(line)\n\(lines.joined(separator: "\n"))")
        }
    }

    @Test(
        "each fault is named",
        arguments: [
            ("server 127.0.0.1:1 weight=0", "\"0\" is out of range"),
            ("server 127.0.0.1:1 weight=1001", "\"1001\" is out of range"),
            ("server 127.0.0.1:1 weight=x", "\"x\" is no count"),
            ("server 127.0.0.1:1 bakup", "\"bakup\" is too much for \"server\""),
            ("balance hash", "\"balance\" needs key_id"),
            ("balance hash account", "unknown balance \"account\""),
            ("balance random", "unknown balance \"random\""),
            ("health", "\"health\" needs a value"),
            ("health GET", "\"health\" needs PATH"),
            ("health POST /a", "unknown health \"POST\""),
            ("health GET /a/*", "health asks for one path, not for \"/a/*\""),
            ("health GET /a?b", "path \"/a?b\" must be without \"?\""),
            ("health GET /a expect=101", "\"101\" is out of range"),
            ("health GET /a expect=ok", "\"ok\" is no count"),
            ("health GET /a every=5", "\"5\" needs a unit"),
            ("health GET /a rise=0", "\"0\" is out of range"),
            ("health GET /a fall=101", "\"101\" is out of range"),
            ("health GET /a fail=1", "unknown key \"fail\" in \"health\"; did you mean \"fall\"?"),
            ("health off fall=1", "\"health\" takes no key \"fall\""),
            ("eject 5", "unknown eject \"5\""),
            ("eject after=0", "\"0\" is out of range"),
            ("eject after=1001", "\"1001\" is out of range"),
            ("eject within=10", "\"10\" needs a unit"),
            ("eject", "\"eject\" needs a value"),
            ("max_active 0", "\"0\" is out of range"),
            ("max_active queue=5", "\"max_active\" needs a value"),
            ("max_active 5 queue=100001", "\"100001\" is out of range"),
            ("max_active 5 wait=2", "\"2\" needs a unit"),
            ("max_active many", "\"many\" is no count"),
            ("request chunked", "unknown request \"chunked\""),
        ])
    func faults(lines: String, message: String) {
        #expect(messages(lines) == [message])
    }

    @Test("one server must be there always")
    func backupsOnly() {
        let text = hostText("").replacing(
            "server 127.0.0.1:9000", with: "server 127.0.0.1:9000 backup\nserver unix:/s backup")
        #expect(
            heads(load(text)) == [
                "proxy.conf:12:1: error: upstream \"orders\" has backup servers only"
            ])
    }

    @Test("what cannot do what it says is warned about")
    func warnings() {
        #expect(
            messages("eject after=1", .warning)
                == ["eject has no effect: upstream \"orders\" has one server"])
        #expect(messages("eject after=1\nserver unix:/s", .warning) == [])
        #expect(messages("eject off", .warning) == [])
        #expect(
            messages("health GET /a every=1s timeout=2s", .warning) == [
                "timeout=2s is longer than every=1s: checks of a slow server come late"
            ])
        #expect(messages("health GET /a", .warning) == [])
    }
}
