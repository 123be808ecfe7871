import GateConfig
import Testing

@Suite("Policy of a route: share, fallback, require")
struct PolicyTests {
    private func report(_ lines: String, host: String = "") -> ConfigurationReport {
        load(
            hostText(
                "\(host)\nroute POST /a {\n\(lines)\n}",
                listener: host.isEmpty ? "" : "trusted_proxies 10.0.0.0/8"))
    }

    private func route(_ lines: String, host: String = "") throws -> Route {
        let report = report(lines, host: host)
        return try #require(report.configuration?.hosts[0].routes[0], "\(report.render())")
    }

    private func messages(_ lines: String, host: String = "") -> [String] {
        report(lines, host: host).diagnostics.map(\.message)
    }

    // MARK: Share

    @Test("a share has its hundredths, what it goes by, and what becomes of the rest")
    func share() throws {
        let route = try route("mode enforce 25% by=key_id else=monitor")
        #expect(route.mode == .enforce)
        #expect(route.share == Share(percent: 25, basis: .keyID, otherwise: .monitor))
        #expect(
            try self.route("mode enforce 0% else=off by=address").share
                == Share(percent: 0, basis: .address, otherwise: .off))
        #expect(
            try self.route(
                "mode enforce 100% by=account else=off", host: "account header X-Account-Id"
            ).share == Share(percent: 100, basis: .account, otherwise: .off))
        #expect(try self.route("mode enforce").share == nil)
        #expect(try self.route("").share == nil)
    }

    @Test(
        "a share that is not whole says what it lacks",
        arguments: [
            (
                "mode enforce 25%",
                "\"mode enforce 25%\" needs by=key_id, by=account or by=address, and else=monitor "
                    + "or else=off"
            ),
            (
                "mode enforce 25% by=key_id",
                "\"mode enforce 25%\" needs else=monitor or else=off"
            ),
            (
                "mode enforce 25% else=off",
                "\"mode enforce 25%\" needs by=key_id, by=account or by=address"
            ),
            ("mode enforce by=key_id", "\"by=\" goes with a share"),
            ("mode enforce else=off", "\"else=\" goes with a share"),
            ("mode enforce 25 by=key_id else=off", "\"25\" is too much for \"mode\""),
            ("mode enforce 101% by=key_id else=off", "\"101%\" is too much for \"mode\""),
            ("mode enforce 25% by=key else=off", "unknown by \"key\""),
            ("mode monitor by=key_id", "\"mode\" takes no key \"by\""),
        ])
    func brokenShare(line: String, message: String) {
        #expect(messages(line) == [message], "\(report(line).render())")
    }

    @Test("by=account needs accounts")
    func accountShare() {
        #expect(
            messages("mode enforce 25% by=account else=monitor") == [
                "by=account needs accounts, and host \"api.example.com\" has none"
            ])
    }

    @Test("by=key_id with an envelope is warned about: the key ID comes too late")
    func envelopeShare() {
        let report = report("mode enforce 25% by=key_id else=monitor\nbind envelope")
        #expect(report.errorCount == 0)
        #expect(
            report.diagnostics.map(\.message).contains(
                "by=key_id sees no key ID on a route with bind envelope: all are inside"),
            "\(report.render())")
    }

    @Test("a route with a share is an enforced one for all that is checked")
    func isEnforced() throws {
        let host = try loadHost(
            """
            unmatched off
            route POST /v1/a {
                mode enforce 1% by=address else=off
            }
            """)
        #expect(match(host, "POST", "/V1/%61/") == .route(0, isAmbiguous: false))
        #expect(match(host, "PUT", "/v1/a") == .methodNotAllowed(allow: ["POST"]))
        #expect(match(host, "POST", "/v1//a") == .ambiguous)
        let overlapping = load(
            hostText(
                "route POST /A {\n mode enforce 1% by=address else=off\n}\n"
                    + "route POST /a {\n mode off\n}"))
        #expect(
            overlapping.diagnostics.map(\.message) == [
                "routes overlap: one request could match both"
            ])
    }

    @Test("a mode that is chosen anew takes nothing of the one in defaults")
    func chosenAnew() throws {
        let text = "defaults {\n mode enforce 25% by=key_id else=off\n}"
        let plain = try route("mode enforce", host: text)
        #expect(plain.mode == .enforce)
        #expect(plain.share == nil)
        #expect(try route("", host: text).share?.percent == 25)
        let dump = report("mode enforce", host: text).dump.text
        #expect(!dump.contains("by="), "\(dump)")
    }

    @Test("what no route takes is enforced for all")
    func unmatched() throws {
        let host = try loadHost(
            "unmatched enforce\ndefaults {\n mode enforce 5% by=key_id else=off\n}")
        #expect(host.unmatchedRoute.mode == .enforce)
        #expect(host.unmatchedRoute.share == nil)
    }

    // MARK: Fallback

    @Test("a fallback is deny unless another is chosen")
    func fallback() throws {
        #expect(try route("").fallback == .deny)
        #expect(try route("fallback deny").fallback == .deny)
        #expect(try route("fallback allow_unverified").fallback == .allowUnverified)
        #expect(
            try route("fallback deny", host: "defaults {\n fallback allow_unverified\n}").fallback
                == .deny)
    }

    @Test("letting the unverified pass is warned about, in its own words")
    func unverified() {
        let report = report("fallback allow_unverified")
        #expect(report.errorCount == 0)
        #expect(
            report.diagnostics.map(\.message) == [
                "every client passes without proof that says it cannot attest"
            ])
    }

    // MARK: Require

    @Test("each kind of condition is one, in any order")
    func require() throws {
        let requirements = try route(
            """
            require key_age >= 36h
            require metric <= 20 absent
            require bundle_version >= 2.14 absent
            require category app_store testflight absent
            """
        ).requirements
        #expect(requirements.category?.allowed == [2, 4])
        #expect(requirements.category?.isAbsentAllowed == true)
        #expect(requirements.bundleVersion?.least == DottedNumber("2.14"))
        #expect(requirements.bundleVersion?.isAbsentAllowed == true)
        #expect(requirements.metric == Requirements.Metric(most: 20, isAbsentAllowed: true))
        #expect(requirements.keyAge == .seconds(36 * 3600))
        let strict = try route(
            "require metric <= 0\nrequire category none\nrequire bundle_version >= 7"
        ).requirements
        #expect(strict.metric == Requirements.Metric(most: 0, isAbsentAllowed: false))
        #expect(strict.category?.allowed == [10])
        #expect(strict.category?.isAbsentAllowed == false)
        #expect(strict.bundleVersion?.isAbsentAllowed == false)
        #expect(try route("").requirements.isEmpty)
    }

    @Test("a kind given in a route goes before that of defaults, the others stay")
    func requireDefaults() throws {
        let text = "defaults {\n require metric <= 5\n require key_age >= 1h\n}"
        let requirements = try route("require metric <= 9 absent", host: text).requirements
        #expect(requirements.metric == Requirements.Metric(most: 9, isAbsentAllowed: true))
        #expect(requirements.keyAge == .seconds(3600))
    }

    @Test(
        "what is wrong with a condition is said in its place",
        arguments: [
            ("require category", "\"require\" needs NAME"),
            ("require category absent", "\"require category\" names no category"),
            (
                "require category appstore",
                "unknown category \"appstore\"; did you mean \"app_store\"?"
            ),
            ("require category shop", "unknown category \"shop\""),
            (
                "require category absent app_store", "\"absent\" stands behind all categories"
            ),
            ("require category os os", "category \"os\" is named twice"),
            ("require bundle_version > 1", "unknown require \">\"; did you mean \">=\"?"),
            ("require bundle_version >= 1.x", "\"1.x\" is no dotted number"),
            ("require bundle_version >= 1..2", "\"1..2\" is no dotted number"),
            ("require bundle_version >= 1 absnt", "\"absnt\" is too much for \"require\""),
            ("require metric <= many", "\"many\" is no count"),
            ("require metric <= 1000001", "\"1000001\" is out of range"),
            ("require metric >= 4", "unknown require \">=\"; did you mean \"<=\"?"),
            ("require key_age >= 5", "\"5\" needs a unit"),
            ("require key_age >= 1h absent", "\"absent\" is too much for \"require\""),
            ("require categories os", "unknown require \"categories\"; did you mean \"category\"?"),
            (
                "require metric <= 1\nrequire metric <= 2",
                "\"require metric\" is already given at proxy.conf:20:1"
            ),
            (
                "mode off\nrequire metric <= 1",
                "\"require\" does nothing on a route whose mode is off"
            ),
        ])
    func brokenRequire(lines: String, message: String) {
        #expect(messages(lines) == [message], "\(report(lines).render())")
    }

    @Test("an unknown category is told the known ones")
    func knownCategories() {
        let text = report("require category shop").render()
        #expect(
            text.contains(
                "known: invalid, os, testflight, development, app_store, enterprise, "
                    + "developer_id, local, rosetta, jit, none"), "\(text)")
    }

    @Test("the dump shows each condition with its line, and loads as the same")
    func dump() {
        let lines = """
            mode enforce 25% by=address else=monitor
            require category app_store absent
            require key_age >= 1h
            fallback allow_unverified
            """
        let dump = report(lines).dump.text
        for line in lines.split(separator: "\n") {
            #expect(dump.contains("        \(line) "), "\(dump)")
        }
        let again = load(dump)
        #expect(
            again.configuration?.hosts[0].routes[0].requirements
                == report(lines).configuration?.hosts[0].routes[0].requirements)
    }

    // MARK: Dotted numbers

    @Test(
        "dotted numbers compare part by part",
        arguments: [
            ("1", "2"), ("1.9", "1.10"), ("9", "10"), ("1", "1.0.1"), ("1.2", "1.3"),
            ("0", "0.0.1"), ("2.9.9", "3"), ("99999999999999999998", "99999999999999999999"),
            ("9", "10000000000000000000000000"), ("1.08", "1.9"),
        ])
    func dotted(less: String, more: String) throws {
        let less = try #require(DottedNumber(less))
        let more = try #require(DottedNumber(more))
        #expect(less < more)
        #expect(!(more < less))
        #expect(less != more)
        #expect(less >= less)
    }

    @Test(
        "trailing zero parts and leading zeros say nothing",
        arguments: [("1", "1.0"), ("1.0.0", "1"), ("01.2", "1.02"), ("0", "0.0"), ("000", "0")])
    func equal(one: String, other: String) throws {
        #expect(try #require(DottedNumber(one)) == #require(DottedNumber(other)))
    }

    @Test(
        "anything else is no dotted number",
        arguments: ["", ".", "1.", ".1", "1..2", "1a", "-1", "1.2 ", "+1", "١", "1.2b3", "1,2"])
    func noNumber(text: String) {
        #expect(DottedNumber(text) == nil)
    }
}
