import GateConfig
import Testing

@Suite("Meaning: what blocks need of each other")
struct MeaningTests {
    private func messages(_ report: ConfigurationReport, _ severity: Diagnostic.Severity = .error)
        -> [String]
    {
        report.diagnostics.filter { $0.severity == severity }.map(\.message)
    }

    /// A host without app or upstream.
    private func bare(_ host: String, _ more: String = "") -> ConfigurationReport {
        load("listener l {\n address 127.0.0.1:1\n}\nhost a.b {\n listener l\n\(host)\n}\n\(more)")
    }

    private let upstream = "upstream u {\n server 127.0.0.1:2\n}"

    @Test(
        "what checks proofs or enrols needs an app",
        arguments: [
            "route GET /a {\n}", "route GET /a {\n mode monitor\n}", "unmatched enforce",
            "enroll /e",
        ])
    func app(text: String) {
        let report = bare("upstream u\n" + text, upstream)
        #expect(messages(report) == ["\"app\" is missing in host \"a.b\""])
        #expect(report.diagnostics[0].details.count == 3)
    }

    @Test(
        "what forwards needs an upstream",
        arguments: ["route GET /a {\n mode off\n}", "unmatched off"])
    func upstream(text: String) {
        #expect(messages(bare(text)) == ["\"upstream\" is missing in host \"a.b\""])
    }

    @Test("a wrong name of an upstream is one message, not a second one that it is missing")
    func wrongUpstream() {
        let report = bare("route GET /a {\n mode off\n upstream no\n}", upstream)
        #expect(messages(report) == ["upstream \"no\" is not defined; defined: u"])
    }

    @Test("a denied route needs neither, and a route may have an upstream of its own")
    func neither() {
        #expect(bare("route * /* {\n mode deny 403\n}").configuration != nil)
        let own = bare("route GET /a {\n mode off\n upstream u\n}", upstream)
        #expect(own.configuration?.hosts[0].routes[0].upstream == "u")
        #expect(own.configuration?.hosts[0].upstream == "")
        let defaults = bare("defaults {\n upstream u\n mode off\n}\nroute GET /a {\n}", upstream)
        #expect(defaults.configuration?.hosts[0].routes[0].upstream == "u")
    }

    @Test(
        "required directives",
        arguments: [
            ("listener m {\n}", "\"address\" is missing in listener \"m\""),
            ("admin {\n}", "\"address\" is missing in admin"),
            ("app b {\n app_id ABCDE12345.x\n}", "\"environment\" is missing in app \"b\""),
            ("app b {\n environment production\n}", "\"app_id\" is missing in app \"b\""),
            ("upstream b {\n}", "\"server\" is missing in upstream \"b\""),
            ("host b {\n}", "\"listener\" is missing in host \"b\""),
        ])
    func required(text: String, message: String) {
        #expect(messages(load(hostText("") + "\n" + text)) == [message])
    }

    @Test("a gate that would serve nothing is a mistake")
    func nothing() {
        #expect(messages(load("")) == ["no listener is defined: the gate would serve nothing"])
        #expect(
            messages(load("listener l {\n address 127.0.0.1:1\n}")) == [
                "no host is defined: the gate would serve nothing"
            ])
    }

    @Test("account header needs trusted_proxies on every listener of the host")
    func trusted() {
        let report = load(hostText("    account header X-Account-Id"))
        #expect(
            messages(report) == [
                "account header \"X-Account-Id\" needs \"trusted_proxies\" in listener "
                    + "\"public\" (line 1)"
            ])
        #expect(report.diagnostics[0].line == 18)
        let good = load(
            hostText("account header X-Account-Id", listener: "trusted_proxies 10.0.0.0/8"))
        #expect(good.configuration?.hosts[0].account == .header("X-Account-Id"))
        let none = load(hostText("account header X-Account-Id", listener: "trusted_proxies none"))
        #expect(messages(none).count == 1)
        let second = load(
            hostText("account header X\nlistener m", listener: "trusted_proxies 10.0.0.0/8")
                + "\nlistener m {\n address 127.0.0.1:3\n}")
        #expect(
            messages(second) == [
                "account header \"X\" needs \"trusted_proxies\" in listener \"m\" (line 21)"
            ])
    }

    @Test(
        "an account field is neither a proof field nor one of the message",
        arguments: [
            ("Host", "the account cannot stand in \"Host\": it belongs to the message itself"),
            (
                "Content_Length",
                "the account cannot stand in \"Content_Length\": it belongs to the message itself"
            ),
            (
                "App-Attest-Verdict",
                "the account cannot stand in \"App-Attest-Verdict\": it is a proof field"
            ),
            ("X.Key", "the account cannot stand in \"X.Key\": it is a proof field"),
        ])
    func accountField(field: String, message: String) {
        let report = load(
            hostText(
                "account header \(field)\nproof {\n key_id header X-Key\n}",
                listener: "trusted_proxies 10.0.0.0/8"))
        #expect(messages(report) == [message])
    }

    @Test("proof fields have names of their own, and not a message's")
    func proofFields() throws {
        let host = try loadHost("proof {\n key_id header X-Key\n device_token header X-Token\n}")
        #expect(host.proof.keyID == "X-Key" && host.proof.deviceToken == "X-Token")
        #expect(host.proof.assertion == "App-Attest-Assertion")
        #expect(
            messages(load(hostText("proof {\n key_id header X-K\n assertion header X_K\n}"))) == [
                "field \"X_K\" is used for key_id and assertion"
            ])
        #expect(
            messages(load(hostText("proof {\n key_id header App-Attest-Challenge\n}"))) == [
                "field \"App-Attest-Challenge\" is used for challenge and key_id"
            ])
        #expect(
            messages(load(hostText("proof {\n key_id header Cookie\n}"))) == [
                "key_id cannot stand in \"Cookie\": it belongs to the message itself"
            ])
    }

    @Test(
        "a proof is not read from a field that the gate sets",
        arguments: [
            "App-Attest-Account", "App-Attest-App", "App-Attest-Counter", "App-Attest-Risk",
            "App-Attest-Next-Challenge", "app_attest_verdict", "App-Attest-Verified-Key",
        ])
    func proofInGateField(name: String) {
        #expect(
            messages(load(hostText("proof {\n assertion header \(name)\n}"))) == [
                "assertion cannot stand in \"\(name)\": the gate sets it"
            ])
    }

    @Test(
        "a field set for an upstream is not one the gate or the message sets",
        arguments: [
            ("Host", "it belongs to the message itself"),
            ("transfer_encoding", "it belongs to the message itself"),
            ("App-Attest-Verdict", "the gate sets it"), ("X-Forwarded-For", "the gate sets it"),
            ("X-Request-Id", "the gate sets it"), ("Via", "the gate sets it"),
        ])
    func setField(field: String, reason: String) {
        let report = load(
            hostText("", upstream: "set_field \(field) credential:s"), credentials: ["s": "x"])
        #expect(messages(report) == ["field \"\(field)\" cannot be set: \(reason)"])
    }

    @Test("a field is set once")
    func setTwice() {
        let report = load(
            hostText("", upstream: "set_field X-A credential:s\nset_field x_a credential:s"),
            credentials: ["s": "x"])
        #expect(messages(report) == ["field \"x_a\" is already set at proxy.conf:12:5"])
    }

    @Test(
        "overlaps: one request could be won by two",
        arguments: [
            ("GET /a", "enforce", "GET /a", "enforce", "delete one"),
            ("GET /a", "off", "GET /a", "off", "delete one"),
            ("GET /a", "enforce", "HEAD /a", "off", "delete one"),
            ("* /a", "monitor", "* /A", "off", "monitored routes ignore case; delete one"),
            (
                "POST,PUT /a", "deny 403", "PUT,GET /A", "off",
                "denied routes ignore case; delete one"
            ),
            (
                "GET /a", "enforce", "GET /A/", "off",
                "enforced routes ignore case and a final \"/\" or \".\"; delete one"
            ),
            (
                "GET /a", "enforce", "GET /a.", "off",
                "enforced routes ignore case and a final \"/\" or \".\"; delete one"
            ),
            ("GET /a/*", "enforce", "GET /A/*", "off", "enforced routes ignore case; delete one"),
            ("GET /a/*", "deny 404", "GET /a/*", "off", "delete one"),
            ("* /*", "enforce", "* /*", "off", "delete one"),
        ])
    func overlaps(first: String, mode: String, second: String, other: String, remedy: String) {
        for pair in [[(first, mode), (second, other)], [(second, other), (first, mode)]] {
            let text = pair.map { "route \($0.0) {\n mode \($0.1)\n}" }.joined(separator: "\n")
            let report = load(hostText(text))
            #expect(messages(report) == ["routes overlap: one request could match both"])
            #expect(
                report.diagnostics.first { $0.severity == .error }?.details.last
                    == "      |   \(remedy)")
        }
    }

    @Test(
        "no overlap where one is more specific, or the methods or bytes differ",
        arguments: [
            ("GET /a", "enforce", "POST /a", "off"), ("GET /a", "enforce", "* /a", "enforce"),
            ("GET /a", "off", "GET /A", "off"), ("GET /a", "off", "GET /a/", "off"),
            ("GET /a/*", "enforce", "GET /a", "enforce"),
            ("GET /a/*", "enforce", "GET /a/b/*", "enforce"),
            ("GET /a", "enforce", "GET /ab", "enforce"),
            ("HEAD /a", "enforce", "POST /a", "enforce"),
        ])
    func noOverlap(first: String, mode: String, second: String, other: String) {
        let report = load(
            hostText("route \(first) {\n mode \(mode)\n}\nroute \(second) {\n mode \(other)\n}"))
        #expect(messages(report) == [])
    }

    @Test("what overlaps is what the matcher could not tell apart")
    func overlapIsExact() throws {
        let paths = ["/a", "/A", "/a/", "/a.", "/a/*", "/A/*", "/*", "/", "/a/b"]
        func text(_ path: String, _ mode: String) -> String {
            "route GET \(path) {\n mode \(mode)\n}\n"
        }
        var hosts: [String: Host] = [:]
        for path in paths {
            for mode in ["enforce", "off"] {
                hosts[text(path, mode)] = try loadHost(text(path, mode))
            }
        }
        for first in paths {
            for second in paths {
                for (mode, other) in [("enforce", "off"), ("off", "off"), ("enforce", "enforce")] {
                    let both = text(first, mode) + text(second, other)
                    let left = try #require(hosts[text(first, mode)])
                    let right = try #require(hosts[text(second, other)])
                    #expect(
                        (load(hostText(both)).errorCount > 0) == isTie(left, right), "\(both)")
                }
            }
        }
    }

    /// Whether some request fits the one route of each host, and neither is more specific.
    private func isTie(_ left: Host, _ right: Host) -> Bool {
        let requests = [
            "/", "/a", "/A", "/a/", "/A/", "/a.", "/a/b", "/A/b", "/A/B", "/a/b/", "/b",
        ]
        guard sameRank(left.routes[0], right.routes[0]) else { return false }
        return requests.contains { request in
            [left, right].allSatisfy { match($0, "GET", request) == .route(0, isAmbiguous: false) }
        }
    }

    private func sameRank(_ left: Route, _ right: Route) -> Bool {
        guard left.isPrefix == right.isPrefix else { return false }
        return !left.isPrefix || left.path.utf8.count == right.path.utf8.count
    }
}

@Suite("Meaning: warnings")
struct WarningTests {
    private func warnings(_ report: ConfigurationReport) -> [String] {
        #expect(report.configuration != nil, "\(report.render())")
        return report.diagnostics.filter { $0.severity == .warning }.map {
            "\($0.line):\($0.column) \($0.message)"
        }
    }

    @Test("blocks that nothing uses")
    func unused() {
        let more = """

            listener m {
                address 127.0.0.1:3
            }
            app b {
                app_id ABCDE12345.x
                environment production
            }
            upstream v {
                server 127.0.0.1:4
            }
            """
        #expect(
            warnings(load(hostText("") + more)) == [
                "20:1 listener \"m\" is not used by any host",
                "23:1 app \"b\" is not used by any host",
                "27:1 upstream \"v\" is not used by any host",
            ])
        #expect(
            warnings(load(hostText("defaults {\n upstream v\n}\nlistener m") + more)).count == 1)
    }

    @Test("an idle time longer than services keep connections")
    func idle() {
        #expect(
            warnings(load(hostText("", upstream: "keepalive 64 idle=120s"))) == [
                "12:5 idle=120s is longer than the 5 s some upstreams keep connections; "
                    + "expect 502 on reuse"
            ])
        #expect(warnings(load(hostText("", upstream: "keepalive 64 idle=5s"))) == [])
        #expect(warnings(load(hostText("", upstream: "keepalive 0 idle=120s"))) == [])
    }

    @Test(
        "a clear listener on a public address that serves protected routes",
        arguments: [
            ("[::]:80", true), ("0.0.0.0:80", true), ("203.0.113.1:80", true),
            ("[2001:db8::1]:80", true),
            ("127.0.0.2:80", false), ("[::1]:80", false), ("10.1.2.3:80", false),
            ("172.31.0.1:80", false),
            ("172.32.0.1:80", true), ("192.168.1.1:80", false), ("[fd00::1]:80", false),
            ("[fe80::1]:80", false), ("unix:/a", false), ("systemd:a", false),
        ])
    func clear(address: String, isPublic: Bool) {
        let message =
            "3:13 listener \"public\" is clear on a public address and serves protected "
            + "routes of host "
            + "\"api.example.com\""
        let text = "address \(address)"
        for route in ["route GET /a {\n}", "unmatched enforce", "route GET /a {\n mode monitor\n}"]
        {
            #expect(warnings(load(hostText(route, listener: text))) == (isPublic ? [message] : []))
        }
        #expect(warnings(load(hostText("unmatched off", listener: text))) == [])
    }

    @Test("an off or monitored route inside what a denied or enforced one takes")
    func shadowed() {
        let report = load(
            hostText(
                """
                route * /internal/* {
                    mode deny 404
                }
                route GET /internal/health {
                    mode off
                }
                """))
        #expect(
            warnings(report) == [
                "21:1 route \"GET /internal/health\" takes requests out of route \"* /internal/*\""
            ])
        for (closed, open) in [
            ("* /a/*", "GET /a"), ("* /a", "GET /a"), ("* /*", "GET /a/*"),
            ("GET /A/*", "HEAD /a/b/*"),
        ] {
            let text = "route \(closed) {\n}\nroute \(open) {\n mode monitor\n}"
            #expect(warnings(load(hostText(text))).count == 1, "\(closed) \(open)")
        }
        for (closed, open) in [
            ("GET /a/*", "POST /a/b"), ("GET /a", "GET /ab"), ("GET /a/b", "* /a/*"),
        ] {
            let text = "route \(closed) {\n}\nroute \(open) {\n mode off\n}"
            #expect(warnings(load(hostText(text))).isEmpty, "\(closed) \(open)")
        }
        #expect(
            warnings(load(hostText("route * /a/* {\n mode deny 404\n}\nroute GET /a/b {\n}"))) == []
        )
    }

    @Test("other methods of a protected path under unmatched off")
    func methods() {
        #expect(
            warnings(load(hostText("unmatched off\nroute POST /v1/exports {\n}"))) == [
                "19:1 other methods on /v1/exports are answered 405, not forwarded"
            ])
        #expect(
            warnings(load(hostText("unmatched off\nroute POST /a {\n mode deny 403\n}"))).count == 1
        )
        for text in [
            "route POST /a {\n}", "unmatched off\nroute POST /a {\n mode monitor\n}",
            "unmatched off\nroute * /a {\n}",
            "unmatched off\nroute POST /a/b {\n}\nroute * /a/* {\n}",
        ] {
            #expect(warnings(load(hostText(text))) == [], "\(text)")
        }
    }

    @Test("a host that serves without proof what another protects")
    func shared() {
        let open = """

            host open.example.com {
                listener public
                upstream spare
                unmatched off
            }
            upstream spare {
                server 127.0.0.1:9000
            }
            """
        let message =
            "host \"open.example.com\" serves without proof what host \"api.example.com\" protects"
        #expect(warnings(load(hostText("route GET /a {\n}") + open)) == ["21:1 \(message)"])
        #expect(warnings(load(hostText("unmatched enforce") + open)) == ["20:1 \(message)"])
        #expect(warnings(load(hostText("unmatched off") + open)) == [])
        #expect(
            warnings(load(hostText("route GET /a {\n}") + open.replacing("9000", with: "9001")))
                == [])
        let both = open.replacing(
            "    unmatched off",
            with: "    app shop\n    route GET /b {\n    }\n    route GET /c {\n mode off\n }")
        #expect(warnings(load(hostText("route GET /a {\n}") + both)) == [])
    }

    @Test("trust in everybody is warned of", arguments: ["0.0.0.0/0", "::/0"])
    func trustsEverybody(network: String) {
        #expect(
            warnings(load(hostText("", listener: "trusted_proxies \(network)"))) == [
                "3:21 trusted_proxies \(network) trusts every client"
            ])
        #expect(
            warnings(load(hostText("", listener: "proxy_protocol require from \(network)"))) == [
                "3:33 proxy_protocol from \(network) lets every client say who it is"
            ])
    }

    @Test("a WebSocket begins with GET")
    func upgradeWithoutGet() {
        let report = load(hostText("route POST,PUT /a {\n upgrade websocket\n}"))
        #expect(
            report.diagnostics.map(\.message)
                == ["\"upgrade websocket\" on a route that does not take GET"])
        for methods in ["GET", "*", "POST,GET"] {
            let report = load(hostText("route \(methods) /a {\n upgrade websocket\n}"))
            #expect(report.configuration?.hosts[0].routes[0].isWebSocket == true, "\(methods)")
        }
        let http2 = load(
            hostText("route GET /a {\n upgrade websocket\n}", upstream: "protocol h2c"))
        #expect(
            warnings(http2).contains {
                $0.hasSuffix("upstream \"orders\" speaks HTTP/2, which opens no WebSocket")
            }, "\(http2.render())")
        // Defaults are for every route, and mean something to those that take GET.
        let defaults = load(hostText("defaults {\n upgrade websocket\n}\nroute POST /a {\n}"))
        #expect(defaults.configuration != nil)
    }

    @Test(
        "an account cannot stand in a field that proxies set",
        arguments: [
            "X-Forwarded-For", "x_request_id", "Forwarded", "Via",
        ])
    func accountInProxyField(name: String) {
        let report = load(
            hostText("account header \(name)", listener: "trusted_proxies 10.0.0.0/8"))
        #expect(report.configuration == nil)
        #expect(
            report.diagnostics.map(\.message) == [
                "the account cannot stand in \"\(name)\": proxies set it"
            ])
    }

    @Test("a field or a target larger than the whole head, where somebody wrote it")
    func headSizes() {
        #expect(
            warnings(load(hostText("", listener: "limits field_size=64k"))) == [
                "3:23 field_size=64k is more than the whole head, header_size=48k"
            ])
        #expect(
            warnings(load(hostText("", listener: "limits header_size=4k target_size=5k"))) == [
                "3:39 target_size=5k is more than the whole head, header_size=4k"
            ])
        #expect(warnings(load(hostText("", listener: "limits header_size=4k"))) == [])
    }

    @Test("a body larger than the whole spool; port 0")
    func others() {
        #expect(
            warnings(load(hostText("route GET /a {\n body max=2g\n}"))) == [
                "19:11 max=2g is more than the whole spool holds"
            ])
        #expect(
            warnings(load(hostText("", listener: "address 127.0.0.1:0"))) == [
                "3:13 port 0 lets the system choose one at each start"
            ])
    }
}
