import GateConfig
import Testing

/// A host whose one route has these lines.
private func report(_ lines: String, host: String = "", top: String = "", app: String = "")
    -> ConfigurationReport
{
    load(hostText("\(host)\nroute POST /v1/scores {\n\(lines)\n}", app: app) + "\n\(top)")
}

private func binding(_ lines: String) -> Route.Binding? {
    report(lines).configuration?.hosts.first?.routes.first?.binding
}

private func messages(_ report: ConfigurationReport) -> [String] {
    report.diagnostics.map(\.message)
}

private let unsigned =
    "bind body does not sign the path: a proof for POST /v1/scores also fits other routes of app "
    + "\"shop\""

@Suite("Bindings: what a route's proofs sign")
struct BindingTests {
    @Test("each binding is read, and client_data where nothing is said")
    func bindings() {
        #expect(binding("") == .clientData)
        #expect(binding("bind client_data") == .clientData)
        #expect(binding("bind request") == .request)
        #expect(binding("bind envelope") == .envelope)
        #expect(binding("bind body challenge=none") == .body(.none))
        #expect(binding("bind body challenge=json:/challenge") == .body(.pointer(["challenge"])))
        #expect(
            binding("bind body challenge=json:/a~1b/0/~0/~01/")
                == .body(.pointer(["a/b", "0", "~", "~1", ""])))
        #expect(binding("bind body challenge=json:/") == .body(.pointer([""])))
    }

    @Test(
        "a place in the body that is none is an error",
        arguments: [
            ("bind body", "\"bind body\" does not say where the challenge is"),
            ("bind body challenge=json:", "\"json:\" is the whole body, which is no challenge"),
            ("bind body challenge=json:challenge", "a JSON pointer begins with \"/\""),
            ("bind body challenge=/challenge", "\"/challenge\" is no place in a body"),
            ("bind body challenge=json:/a~2", "\"~\" in a JSON pointer is followed by 0 or 1"),
            ("bind body challenge=json:/a~", "\"~\" in a JSON pointer is followed by 0 or 1"),
            ("bind envelope challenge=none", "\"bind\" takes no key \"challenge\""),
            ("bind client_data challenge=none", "\"bind\" takes no key \"challenge\""),
        ])
    func faults(line: String, message: String) {
        #expect(report(line).configuration == nil)
        #expect(messages(report(line)).contains(message), "\(report(line).render())")
    }

    @Test("a pointer deeper than JSON is read is an error")
    func deep() {
        let names = Array(repeating: "a", count: 16).joined(separator: "/")
        #expect(binding("bind body challenge=json:/\(names)") != nil)
        #expect(report("bind body challenge=json:/\(names)/a").configuration == nil)
    }

    @Test("that the path is not signed is warned of, where proofs are checked")
    func pathUnsigned() {
        for challenge in ["none", "json:/challenge"] {
            let line = "bind body challenge=\(challenge)"
            #expect(messages(report(line)) == [unsigned], "\(report(line).render())")
            #expect(messages(report("\(line)\nmode monitor")) == [unsigned])
            #expect(messages(report("\(line)\nmode deny 404")).isEmpty)
        }
        #expect(messages(report("bind request")).isEmpty)
        #expect(messages(report("bind envelope")).isEmpty)
        let text = hostText("unmatched enforce\ndefaults {\nbind body challenge=none\n}")
        #expect(messages(load(text)).contains { $0.contains("a proof for what no route takes") })
    }

    @Test("two routes of an app with the challenge in the body have two purposes")
    func purposes() {
        func routes(_ first: String, _ second: String) -> ConfigurationReport {
            load(
                hostText(
                    """
                    route POST /a {
                        bind body challenge=json:/a
                        \(first)
                    }
                    route POST /b {
                        bind body challenge=json:/b
                        \(second)
                    }
                    """))
        }
        let message =
            "two routes of app \"shop\" with \"bind body\" have the purpose \"request\""
        #expect(messages(routes("", "")).contains(message), "\(routes("", "").render())")
        #expect(routes("", "").configuration == nil)
        #expect(routes("", "purpose b").configuration != nil)
        #expect(routes("mode off", "").configuration != nil)
        #expect(routes("purpose b", "purpose b").configuration == nil)
    }

    @Test("one route of a host with the challenge in the body takes first requests, not two")
    func firstRequests() {
        func routes(_ first: String, _ second: String) -> ConfigurationReport {
            load(
                hostText(
                    """
                    route POST /a {
                        purpose a
                        \(first)
                    }
                    route POST /b {
                        purpose b
                        \(second)
                    }
                    """))
        }
        let pointed = "bind body challenge=json:/a"
        let inline = "\(pointed)\ninline_enroll on"
        let message =
            "two routes of host \"api.example.com\" with \"bind body\" have \"inline_enroll on\""
        #expect(messages(routes(inline, inline)).contains(message))
        #expect(routes(inline, inline).configuration == nil)
        #expect(routes(inline, "mode monitor\n\(inline)").configuration == nil)
        #expect(routes(inline, pointed).configuration != nil)
        #expect(routes(inline, "bind request\ninline_enroll on").configuration != nil)
        #expect(routes(inline, "mode off\n\(inline)").configuration != nil)
    }

    @Test("without a challenge nothing that a crash takes back may count")
    func durability() {
        let relaxed = report("bind body challenge=none", top: "store {\ndurability relaxed 20ms\n}")
        #expect(
            messages(relaxed).contains("\"challenge=none\" needs \"durability strict\""),
            "\(relaxed.render())")
        let pointed = report(
            "bind body challenge=json:/a", top: "store {\ndurability relaxed 20ms\n}")
        #expect(!messages(pointed).contains { $0.contains("durability strict") })
        #expect(
            report("bind body challenge=none", top: "store {\ndurability strict\n}")
                .configuration != nil)
    }

    @Test("a body that is read as JSON is no larger than what is read in one go")
    func readable() {
        for bind in ["bind envelope", "bind body challenge=json:/a"] {
            #expect(report("\(bind)\nbody max=16m memory=64k").configuration != nil)
            let over = report("\(bind)\nbody max=17m memory=64k")
            #expect(over.configuration == nil)
            #expect(
                messages(over).contains { $0.hasPrefix("max=17m is more than is read as JSON") })
        }
        #expect(report("bind body challenge=none\nbody max=17m memory=64k").configuration != nil)
    }

    @Test("inline enrolment needs a challenge, and a field for the attestation")
    func inline() throws {
        func isInline(_ lines: String) -> Bool? {
            report(lines).configuration?.hosts.first?.routes.first?.isInlineEnrolment
        }
        #expect(isInline("") == false)
        #expect(isInline("inline_enroll off") == false)
        #expect(isInline("inline_enroll on") == true)
        #expect(isInline("inline_enroll on\nbind request") == true)
        #expect(isInline("inline_enroll on\nbind body challenge=json:/a") == true)
        for bind in ["bind envelope", "bind body challenge=none"] {
            let report = report("inline_enroll on\n\(bind)")
            #expect(report.configuration == nil)
            #expect(
                messages(report).contains { $0.hasPrefix("\"inline_enroll on\" does not go with") },
                "\(report.render())")
        }
    }

    @Test("keys are looked up by the account only where there is one, and only so many")
    func keySearch() {
        let accounts = """
            account header X-Account-Id
            proof {
                key_id account
            }
            """
        func load(_ host: String, app: String = "") -> ConfigurationReport {
            GateConfigTests.load(
                hostText(host, listener: "trusted_proxies 10.0.0.0/8", app: app))
        }
        let good = load(accounts)
        #expect(good.configuration?.hosts.first?.proof.isKeyIDOptional == true)
        #expect(good.configuration?.hosts.first?.proof.keyID == "App-Attest-Key-Id")
        #expect(load("").configuration?.hosts.first?.proof.isKeyIDOptional == false)
        let none = load("proof {\nkey_id account\n}")
        #expect(none.configuration == nil)
        #expect(
            messages(none) == ["\"key_id account\" needs \"account\" in host \"api.example.com\""],
            "\(none.render())")
        #expect(load(accounts, app: "keys_per_account 64").configuration != nil)
        let many = load(accounts, app: "keys_per_account 65")
        #expect(many.configuration == nil)
        #expect(
            messages(many) == [
                "\"key_id account\" tries every key, and app \"shop\" allows 65 of an account"
            ], "\(many.render())")
    }
}
