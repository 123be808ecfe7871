import GateConfig
import Testing

@Suite("Messages: place, line, mark and remedy")
struct MessageTests {
    @Test("ten different mistakes are ten errors, each with its place and its remedy")
    func ten() {
        let text = """
            loops many
            drain_timeout 30
            store {
                dir ${GATE_DIR}
            }
            listener public {
                address 127.0.0.1:8080
                key_alive 75s
                limits conections=20
            }
            app shop {
                environment production
            }
            upstream orders {
                server 127.0.0.1:9000
                set_field X-Gate-Secret s3cr3t
            }
            host api.example.com {
                listener public
                app shop
                upstream order
                route POST /v1/exports {
                    mode enforse
                }
                route GET /v1/a%2Fb {
                }
            }
            """
        let report = load(text)
        #expect(
            heads(report) == [
                "proxy.conf:1:7: error: \"many\" is no count",
                "proxy.conf:2:15: error: \"30\" needs a unit",
                "proxy.conf:4:9: error: ${GATE_DIR} is not set; write ${GATE_DIR:-/path} for "
                    + "a default",
                "proxy.conf:8:5: error: unknown directive \"key_alive\" in listener \"public\"",
                "proxy.conf:9:12: error: unknown key \"conections\" in \"limits\"; did you "
                    + "mean \"connections\"?",
                "proxy.conf:11:1: error: \"app_id\" is missing in app \"shop\"",
                "proxy.conf:16:29: error: value given as text; use credential:NAME or file:PATH",
                "proxy.conf:21:14: error: upstream \"order\" is not defined; defined: orders",
                "proxy.conf:23:14: error: unknown mode \"enforse\"; did you mean \"enforce\"?",
                "proxy.conf:25:15: error: path \"/v1/a%2Fb\" must be written decoded and "
                    + "without \"%\"",
            ])
        #expect(report.configuration == nil)
        #expect(report.errorCount == 10 && report.warningCount == 0)
        for diagnostic in report.diagnostics {
            let isInHead = ["; did you mean", "; write", "; use", "; defined", "must be"]
                .contains { diagnostic.message.contains($0) }
            let hasRemedy = diagnostic.details.last?.split(separator: "^").last?.first == " "
            #expect(isInHead || hasRemedy, "\(diagnostic.render())")
            #expect(diagnostic.details.count == 2)
            #expect(diagnostic.details[0].contains(" | "))
        }
        #expect(report.render().hasSuffix("\n\n1 file, 10 errors, 0 warnings\n"))
    }

    @Test("a misplaced word: the line, the mark, the nearest word and where it belongs")
    func nearest() {
        let report = load(
            "listener public {\n  address 127.0.0.1:1\n  key_alive 75s\n}\nhost a {\n "
                + "listener public\n}\n"
        )
        #expect(
            report.render() == """
                proxy.conf:3:3: error: unknown directive "key_alive" in listener "public"
                    3 |   key_alive 75s
                      |   ^^^^^^^^^ did you mean "keepalive"? it belongs in listener › timeouts

                1 file, 1 error, 0 warnings

                """)
    }

    @Test("a value without its unit")
    func unit() {
        let report = load(
            hostText("", upstream: "timeouts connect=5 first_byte=30s"))
        #expect(
            report.diagnostics.map { $0.render() } == [
                """
                proxy.conf:12:22: error: "5" needs a unit
                   12 |     timeouts connect=5 first_byte=30s
                      |                      ^ write 5s, 5m or 5ms
                """
            ])
    }

    @Test("overlapping routes: both lines with their modes")
    func overlap() {
        let report = load(
            hostText(
                """
                  route POST /v1/exports {
                  }
                  route POST /v1/Exports {
                    mode off
                  }
                """))
        #expect(
            report.diagnostics.map { $0.render() } == [
                """
                proxy.conf:18:3: error: routes overlap: one request could match both
                   18 |   route POST /v1/exports {        enforce
                   20 |   route POST /v1/Exports {        off
                      |   enforced routes ignore case; delete one
                """
            ])
    }

    @Test("a brace that is missing is reported with its block, where that becomes clear")
    func brace() {
        let report = load("upstream orders {\n  server 127.0.0.1:1\n host a {\n}\n")
        #expect(
            heads(report).contains(
                "proxy.conf:3:2: error: \"}\" missing: block upstream \"orders\", opened at "
                    + "line 1, "
                    + "is still open at \"host\" (line 3)"))
        #expect(
            heads(load("log {\n  access off\n")).contains(
                "proxy.conf:1:1: error: \"}\" missing: block log, opened at line 1, is still "
                    + "open at "
                    + "the end of the file (line 3)"))
        let inner = load(
            hostText("  route GET /a {\n  mode off\n  route GET /b {\n  mode off\n  }"))
        #expect(
            heads(inner) == [
                "proxy.conf:20:3: error: \"}\" missing: block route \"GET /a\", opened at "
                    + "line 18, is "
                    + "still open at \"route\" (line 20)"
            ])
    }

    @Test("duplicates name both places")
    func duplicates() {
        #expect(
            heads(load("loops 1\nloops 2\nlog {\n}\n log {\n}\n")).contains(
                "proxy.conf:2:1: error: \"loops\" is already given at proxy.conf:1:1"))
        #expect(
            heads(load("log {\n}\n log {\n}\n")).contains(
                "proxy.conf:3:2: error: \"log\" is already given at proxy.conf:1:1"))
        let hosts = load(
            hostText("") + "\ninclude conf.d/*.conf",
            files: ["conf.d/b.conf": "# other\n\nhost api.example.com {\n  listener public\n}\n"])
        #expect(
            hosts.diagnostics.map { $0.render() } == [
                """
                conf.d/b.conf:3:1: error: host "api.example.com" is already defined at \
                proxy.conf:14:1
                    3 | host api.example.com {
                   14 | host api.example.com {        in proxy.conf
                      |   rename one or delete it
                """
            ])
        for kind in [
            "listener public {\n address 127.0.0.1:2\n}", "app shop {\n}", "upstream orders {\n}",
        ] {
            let name = kind.split(separator: " ").prefix(2).joined(separator: " \"")
            #expect(
                heads(load(hostText("") + "\n" + kind)).contains {
                    $0.contains("error: \(name)\" is already")
                })
        }
        let twice = load(
            hostText("rate challenges per_account=1/1s\nrate challenges per_account=2/1s"))
        #expect(
            heads(twice) == [
                "proxy.conf:19:1: error: \"rate challenges\" is already given at proxy.conf:18:1"
            ])
    }

    @Test("a host takes one app")
    func oneApp() {
        let report = load(hostText("    app shop-dev\n"))
        #expect(
            report.diagnostics.map { $0.render() } == [
                """
                proxy.conf:18:5: error: host "api.example.com" takes one app: "shop" (line 16) \
                and "shop-dev" given
                   16 |     app shop
                   18 |     app shop-dev
                      |   delete one
                """
            ])
        let line = load(hostText("").replacing("    app shop\n", with: "    app shop b\n"))
        #expect(
            heads(line) == [
                "proxy.conf:16:14: error: host \"api.example.com\" takes one app: \"shop\" "
                    + "and \"b\" given"
            ])
    }

    @Test("names that are not defined list those that are")
    func undefined() {
        #expect(
            heads(load(hostText("").replacing("    listener public", with: "    listener publik")))
                == [
                    "proxy.conf:15:14: error: listener \"publik\" is not defined; defined: public"
                ])
        #expect(
            heads(load(hostText("route GET /a {\n upstream no\n}"))) == [
                "proxy.conf:19:11: error: upstream \"no\" is not defined; defined: orders"
            ])
        #expect(
            heads(load("listener l {\n address 127.0.0.1:1\n}\nhost a {\n listener l\n app b\n}"))
                == [
                    "proxy.conf:6:6: error: app \"b\" is not defined; no app is defined"
                ])
    }

    @Test("an exact word in the wrong block says where it belongs")
    func misplaced() {
        let report = load(
            hostText("    server 127.0.0.1:1\n    app_id X\n    retry 1\n    connections 4"))
        #expect(
            report.diagnostics.map { $0.details.last ?? "" } == [
                "      |     ^^^^^^ it belongs in upstream", "      |     ^^^^^^ it belongs in app",
                "      |     ^^^^^ it belongs in upstream",
                "      |     ^^^^^^^^^^^ it belongs in listener › limits",
            ])
    }

    @Test("a word means what stands in the same block, before what stands elsewhere")
    func nearestFirst() {
        let report = load(
            hostText("", listener: "header 10s\n    adress 127.0.0.1:2\n    includ a"))
        #expect(
            report.diagnostics.map { $0.details.last ?? "" } == [
                "      |     ^^^^^^ it belongs in listener › timeouts",
                "      |     ^^^^^^ did you mean \"address\"?",
                "      |     ^^^^^^ did you mean \"include\"?",
            ])
    }

    @Test("a literal secret is never shown, nor is what it is read from")
    func secrets() {
        let literal = load(hostText("", upstream: "set_field X-Secret hunter2 "))
        #expect(!literal.render().contains("hunter2"))
        #expect(literal.render().contains("set_field X-Secret ***"))
        #expect(!literal.dump.text.contains("hunter2"))
        let expanded = load(
            hostText("", upstream: "set_field X-Secret ${S}"), variables: ["S": "hunter2"])
        #expect(expanded.errorCount == 1)
        #expect(!expanded.render().contains("hunter2"))
        #expect(!expanded.dump.text.contains("hunter2"))
        let quoted = load(hostText("", upstream: "set_field X-Secret \"hunter2\""))
        #expect(!quoted.render().contains("hunter2"))
        let good = load(
            hostText("", upstream: "set_field X-Secret credential:s"),
            credentials: ["s": "hunter2\n"])
        #expect(good.configuration?.upstreams[0].setFields[0].value == Array("hunter2".utf8))
        #expect(!good.dump.text.contains("hunter2"))
        #expect(good.dump.text.contains("set_field X-Secret credential:s"))
    }

    @Test("a private key given as text")
    func privateKey() {
        let report = load(
            hostText("", listener: "tls {\n  certificate file:/a.pem MIGHAgEAMBMG\n}"),
            files: ["/a.pem": "chain"])
        #expect(
            heads(report) == [
                "proxy.conf:4:27: error: private key given as text; use credential:NAME or "
                    + "file:PATH"
            ])
        #expect(!report.render().contains("MIGH"))
    }

    @Test("the mark stands under its word behind tabs too")
    func tabs() {
        let report = load(hostText("\t\troute GET /a {\n\t\t\tmode\tenforse\n\t\t}"))
        #expect(
            report.diagnostics.map(\.details) == [
                ["   19 | \t\t\tmode\tenforse", "      | \t\t\t    \t^^^^^^^"]
            ])
        #expect(report.diagnostics[0].column == 9)
    }

    @Test("a line joined from two shows the one that holds the word")
    func joined() {
        let report = load(
            hostText("", listener: "limits connections=10 \\\n   per_adress=4 \\\n   requests=1"))
        #expect(
            heads(report) == [
                "proxy.conf:4:4: error: unknown key \"per_adress\" in \"limits\"; did you "
                    + "mean \"per_address\"?"
            ])
    }

    @Test("what a terminal would obey is not printed")
    func controls() {
        let report = load("loops \u{1b}[2J\n\u{202e}x\n" + hostText(""))
        #expect(!report.render().contains("\u{1b}"))
        #expect(!report.render().contains("\u{202e}"))
        #expect(heads(report)[0] == "proxy.conf:1:7: error: invisible character U+1B")
    }

    @Test("faults come in file order, and one mistake is one message")
    func order() {
        let report = load(hostText("").replacing("production", with: "prod"))
        #expect(
            heads(report) == [
                "proxy.conf:7:17: error: unknown environment \"prod\""
            ])
        let mode = load(
            "listener l {\n address 127.0.0.1:1\n}\nhost a {\n listener l\n route GET /x {\n "
                + "mode of\n }\n}"
        )
        #expect(
            heads(mode) == ["proxy.conf:7:7: error: unknown mode \"of\"; did you mean \"off\"?"])
        let account = load(
            hostText("account header X", listener: "trusted_proxies 10.0.0.0"))
        #expect(heads(account) == ["proxy.conf:3:21: error: \"10.0.0.0\" needs a prefix length"])
    }

    @Test("the summary counts, and says what stays in force after a failed reload")
    func summary() {
        let good = load(hostText(""))
        #expect(good.summary() == "1 file, 0 errors, 0 warnings")
        #expect(good.summary(standing: "2026-11-30 09:12:03") == "1 file, 0 errors, 0 warnings")
        let bad = load("loops x\ninclude a\n" + hostText(""), files: ["a": ""])
        #expect(
            bad.render(standing: "2026-11-30 09:12:03").hasSuffix(
                "2 files, 1 error, 0 warnings; the running configuration (loaded 2026-11-30 "
                    + "09:12:03) stays in force\n"))
    }

    @Test("a file that cannot be read is one error")
    func unreadable() {
        let report = ConfigurationLoader.load(
            path: "no.conf", source: MemoryConfigurationSource([:]))
        #expect(heads(report) == ["no.conf:1:1: error: cannot read no.conf: no such file"])
        #expect(!report.isReadable && report.configuration == nil)
    }

    @Test("a file of nothing but faults is cut off, not endless")
    func bounded() {
        let report = load(String(repeating: "x\n", count: 5000))
        #expect(report.errorCount == 500)
    }
}
