import GateConfig
import Testing

@Suite("Grammar: lines, quotes, variables")
struct GrammarTests {
    private func loads(_ text: String) -> Bool { load(text).configuration != nil }

    @Test("comments, blank lines, CRLF, a byte order mark and joined lines")
    func forms() {
        let text = hostText("")
        #expect(loads("# a\n\n   # b\n" + text + "\nloops 4 # c\n"))
        #expect(loads(text.replacing("\n", with: "\r\n")))
        #expect(loads("\u{feff}" + text))
        #expect(loads(text + "\nloops \\\n  4"))
        #expect(load(text + "\nloops \\\n  4").configuration?.loops == 4)
        #expect(loads("# ends with a backslash \\\n" + text))
    }

    @Test(
        "habits of other languages have a remedy",
        arguments: [
            ("loops 4;", 8, "a line needs no semicolon"),
            ("log{\n}", 4, "\"{\" needs a space before it"),
            ("log { access off }", 18, "\"}\" stands beside other words"),
            ("log { access off\n}", 5, "\"{\" must end its line"),
            ("log {\n access off }", 13, "\"}\" stands beside other words"),
            ("include a {\n}", 1, "\"include\" is no block"),
            ("{\n}", 1, "\"{\" has no name before it"),
            ("}", 1, "\"}\" closes nothing"), ("drain_timeout = 5s", 15, "\"=\" stands alone"),
            ("\"loops\" 4", 1, "a directive's name stands without quotes"),
            ("loops \"4", 7, "the quote is not closed"),
            ("loops a\"b", 8, "a quote in the middle of a word"),
            ("loops \"4\"x", 10, "a quoted text must end its word"),
            ("loops \"\\n\"", 8, "unknown escape in quotes"),
            ("loops ${X", 7, "\"${\" is not closed"),
            ("loops ${1X}", 7, "\"1X\" is no name of a variable"),
            ("loops ${X}", 7, "${X} is not set; write ${X:-/path} for a default"),
            ("${X} 4", 1, "a variable may stand in values only"),
            ("spool {\n max 1g ${X}=4\n}", 0, "a variable may stand in values only"),
            ("spool {\n max 1g files=\n}", 0, "\"files=\" has no value"),
            ("loops", 1, "\"loops\" needs auto or COUNT"),
            ("loops 1 2", 9, "\"2\" is too much for \"loops\""),
            ("loops n=1", 7, "\"loops\" takes no key \"n\""),
            ("log x {\n}", 5, "\"log\" takes no arguments"),
            ("log", 1, "\"log\" opens a block"), ("loops 4 {\n}", 1, "\"loops\" is no block"),
            ("include", 1, "\"include\" needs one path"),
            ("spool {\n max 1g files=1 files=2\n}", 0, "key \"files\" is given twice in \"max\""),
            ("log {\n error\n}", 0, "\"error\" needs a value"),
        ])
    func habits(text: String, column: Int, message: String) throws {
        let report = load(hostText("") + "\n" + text)
        let found = report.diagnostics.map(\.message)
        #expect(found == [message], "\(report.render())")
        if column > 0 { #expect(report.diagnostics.first?.column == column) }
        #expect(report.diagnostics.first?.details.last?.contains("^") == true)
    }

    @Test("account opens a block with jwt and with nothing else")
    func account() {
        #expect(
            heads(load(hostText("account none {\n}"))) == [
                "proxy.conf:18:1: error: \"account\" is a block with \"jwt\" only"
            ])
    }

    @Test("what a variable brings is checked like what is written")
    func hidden() {
        let report = load(hostText("route GET ${P} {\n mode off\n}"), variables: ["P": "/a\u{1}"])
        #expect(report.diagnostics.map(\.message).first?.hasSuffix("it holds a control") == true)
        #expect(!report.render().contains("\u{1}"))
    }

    @Test("a brace beside words still counts for the nesting")
    func nesting() {
        #expect(load(hostText("") + "\nlog{\n access off\n}").errorCount == 1)
        #expect(load(hostText("") + "\nlog { access off }\nloops x").errorCount == 2)
        #expect(load(hostText("") + "\nunknown {\n  a {\n  }\n b c\n}\nloops x").errorCount == 2)
    }

    @Test("variables: value, default, empty, never more than one word")
    func variables() {
        func directory(_ text: String, _ variables: [String: String] = [:]) -> String? {
            load(hostText("") + "\nstore {\n dir \(text)\n}", variables: variables).configuration?
                .store.directory
        }
        #expect(directory("${D}", ["D": "/a"]) == "/a")
        #expect(directory("${D:-/b}") == "/b")
        #expect(directory("${D:-/b}", ["D": ""]) == "/b")
        #expect(directory("${D:-/b}/c", ["D": "/a"]) == "/a/c")
        #expect(directory("\"${D}/x y\"", ["D": "/a b"]) == "/a b/x y")
        #expect(directory("${D}", ["D": "/a b { } # \" ;"]) == "/a b { } # \" ;")
        #expect(directory("\"/q \\\" \\\\\"") == "/q \" \\")
        let defaults = load(
            hostText(""), variables: ["STATE_DIRECTORY": "/s", "CACHE_DIRECTORY": "/c"])
        #expect(defaults.configuration?.store.directory == "/s")
        #expect(defaults.configuration?.spool.directory == "/c")
        #expect(load(hostText("")).configuration?.store.directory == "/var/lib/attestgate")
        let key = load(hostText("", listener: "limits connections=${N}"), variables: ["N": "7"])
        #expect(key.configuration?.listeners[0].limits.connections == 7)
        let head = load(
            hostText("").replacing("host api.", with: "host ${H}."), variables: ["H": "www"])
        #expect(head.configuration?.hosts[0].names == ["www.example.com"])
    }

    @Test("text that is not UTF-8 is an error with its line")
    func encoding() {
        var source = MemoryConfigurationSource([:])
        source.files["proxy.conf"] = Array(hostText("").utf8) + [0x0a, 0x23, 0xff, 0x0a]
        let report = ConfigurationLoader.load(path: "proxy.conf", source: source)
        #expect(heads(report) == ["proxy.conf:20:1: error: the line is not UTF-8"])
    }

    @Test("a whole configuration cut at every byte never traps")
    func cuts() {
        let text = hostText(
            """
                enroll /v1/app-attest
                rate challenges per_account=600/1m
                route POST,PUT "/v1/redeem/*" {
                    body max=${B:-2m} \\
                        memory=64k
                }
            """)
        let bytes = Array(text.utf8)
        #expect(load(text).errorCount == 0, "\(load(text).render())")
        for end in stride(from: 0, to: bytes.count, by: 3) {
            let report = load(String(decoding: bytes[..<end], as: UTF8.self))
            #expect((report.configuration == nil) == (report.errorCount > 0))
            _ = (report.render(), report.dump.text)
        }
    }

    @Test(
        "random edits never trap, and what loads says where it is wrong or nothing",
        arguments: 0..<4)
    func edits(seed: Int) {
        var random = SplitMix(state: UInt64(seed) &+ 77)
        let bytes = Array(
            hostText("    enroll /e\n    route GET /a/* {\n        mode deny 404\n    }").utf8)
        let pool = Array("{}\"\\#$=/*%. \n\t:;ax019-_\u{e9}".utf8)
        for _ in 0..<60 {
            var edited = bytes
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                let index = Int.random(in: 0..<edited.count, using: &random)
                switch Int.random(in: 0..<3, using: &random) {
                case 0: edited.remove(at: index)
                case 1: edited.insert(pool.randomElement(using: &random) ?? 0, at: index)
                default: edited[index] = UInt8.random(in: 0...255, using: &random)
                }
            }
            var source = MemoryConfigurationSource([:])
            source.files["proxy.conf"] = edited
            let report = ConfigurationLoader.load(path: "proxy.conf", source: source)
            #expect((report.configuration == nil) == (report.errorCount > 0))
            for diagnostic in report.diagnostics {
                #expect(diagnostic.line >= 1 && diagnostic.column >= 1)
            }
            _ = (report.render(), report.dump.text)
        }
    }
}

/// A small generator whose seed a failing test names.
struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var value = state
        value = (value ^ value >> 30) &* 0xbf58_476d_1ce4_e5b9
        value = (value ^ value >> 27) &* 0x94d0_49bb_1331_11eb
        return value ^ value >> 31
    }
}

@Suite("Grammar: include")
struct IncludeTests {
    @Test("relative to the file that names it, sorted, hidden names left out")
    func glob() {
        let report = ConfigurationLoader.load(
            path: "/etc/gate/proxy.conf",
            source: MemoryConfigurationSource([
                "/etc/gate/proxy.conf": "include conf.d/*.conf\ninclude hosts/?.conf",
                "/etc/gate/conf.d/b.conf": "loops x",
                "/etc/gate/conf.d/a.conf": "loops y\ninclude ../up.conf",
                "/etc/gate/conf.d/.c.conf": "loops z", "/etc/gate/conf.d/d.txt": "loops z",
                "/etc/gate/conf.d/../up.conf": "log {\n}", "/etc/gate/hosts/1.conf": "",
                "/etc/gate/hosts/12.conf": "loops z",
            ]))
        #expect(
            report.files == [
                "/etc/gate/proxy.conf", "/etc/gate/conf.d/a.conf", "/etc/gate/conf.d/../up.conf",
                "/etc/gate/conf.d/b.conf", "/etc/gate/hosts/1.conf",
            ])
        #expect(heads(report).filter { $0.contains("loops") }.count == 1)
    }

    @Test("a file may stand inside a block, and must close what it opens")
    func inside() {
        let text = hostText("    include route.conf\n")
        let good = load(text, files: ["route.conf": "route GET /a {\n mode off\n}"])
        #expect(good.configuration?.hosts[0].routes.map(\.place) == ["route.conf:1"])
        let open = load(text, files: ["route.conf": "route GET /a {\n mode off\n"])
        #expect(
            heads(open).count == 1
                && heads(open)[0].hasPrefix("route.conf:1:1: error: \"}\" missing"))
        let close = load(text, files: ["route.conf": "}\n"])
        #expect(heads(close) == ["route.conf:1:1: error: \"}\" closes nothing"])
    }

    @Test("a file that is missing is an error, a pattern that finds nothing is not")
    func missing() {
        #expect(
            heads(load(hostText("") + "\ninclude no.conf")) == [
                "proxy.conf:20:9: error: cannot read no.conf: no such file"
            ])
        #expect(load(hostText("") + "\ninclude conf.d/*.conf").configuration != nil)
    }

    @Test("a circle and more than eight files inside each other are errors")
    func depth() {
        #expect(
            heads(load("include proxy.conf\n" + hostText(""))) == [
                "proxy.conf:1:9: error: proxy.conf includes itself"
            ])
        var files = [String: String]()
        for index in 1...8 { files["f\(index)"] = index == 8 ? "" : "include f\(index + 1)" }
        let deep = load("include f1\n" + hostText(""), files: files)
        #expect(heads(deep) == ["f7:1:9: error: files are nested deeper than 8"])
        files["f7"] = ""
        #expect(load("include f1\n" + hostText(""), files: files).configuration != nil)
    }

    @Test("a file too large to be a configuration is refused")
    func large() {
        let report = load(
            "include big\n" + hostText(""),
            files: ["big": String(repeating: "#", count: (4 << 20) + 1)])
        #expect(heads(report) == ["proxy.conf:1:9: error: cannot read big: larger than 4 MiB"])
    }
}
