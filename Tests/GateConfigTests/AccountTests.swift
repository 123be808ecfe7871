import GateConfig
import Testing

@Suite("Accounts: where they come from")
struct AccountTests {
    private let keys = ["keys.json": "{}", "key.pem": "pem"]

    private func jwt(_ lines: String, files: [String: String]? = nil) -> ConfigurationReport {
        load(hostText("account jwt {\n\(lines)\n}"), files: files ?? keys)
    }

    private func heads(_ report: ConfigurationReport, _ severity: Diagnostic.Severity = .error)
        -> [String]
    {
        report.diagnostics.filter { $0.severity == severity }.map(\.message)
    }

    private let whole = "issuer a\naudience b"

    @Test("jwt with its defaults, and with everything said")
    func token() throws {
        let plain = jwt("key file:key.pem\n" + whole)
        #expect(plain.diagnostics.isEmpty, "\(plain.render())")
        #expect(
            plain.configuration?.hosts[0].account
                == .token(
                    TokenAccount(
                        header: "Authorization", keys: .key(Array("pem".utf8)), issuer: "a",
                        audience: "b", claim: "sub",
                        algorithms: [.rs256, .ps256, .es256, .edDSA], leeway: .seconds(60))))
        let full = jwt(
            """
            header X-Token
            jwks https://ID.example:8443/keys?a=b refresh=10m
            issuer https://id.example
            audience "the shop"
            claim uid
            algorithms ES256 EdDSA
            leeway 5s
            """)
        #expect(full.diagnostics.isEmpty, "\(full.render())")
        let url = try #require(ServiceURL("https://id.example:8443/keys?a=b"))
        let upstream = "key set https://id.example:8443"
        #expect(
            full.configuration?.hosts[0].account
                == .token(
                    TokenAccount(
                        header: "X-Token",
                        keys: .url(
                            TokenAccount.KeySetURL(
                                url: url, refresh: .seconds(600), upstream: upstream)),
                        issuer: "https://id.example", audience: "the shop", claim: "uid",
                        algorithms: [.es256, .edDSA], leeway: .seconds(5))))
        #expect(full.configuration?.implicitUpstreams.map(\.name) == [upstream])
        let hourly = jwt("jwks https://id.example/keys\n" + whole).configuration
        guard case .token(let settings)? = hourly?.hosts[0].account,
            case .url(let location) = settings.keys
        else {
            Issue.record("no URL")
            return
        }
        #expect(location.refresh == .seconds(3600))
    }

    @Test("exactly one of key and jwks")
    func oneOf() {
        #expect(heads(jwt(whole)) == ["account jwt has no keys"])
        #expect(
            heads(jwt("key file:key.pem\njwks file:keys.json\n" + whole))
                == ["account jwt takes one of \"key\" and \"jwks\""])
        #expect(
            heads(jwt("key file:key.pem\nkey file:key.pem\n" + whole)).count == 1)
    }

    @Test("keys are read at check time, and what is wrong with them is said at their place")
    func texts() {
        #expect(
            heads(jwt("key file:no.pem\n" + whole))
                == ["key file:no.pem cannot be read: no such file"])
        func report(_ line: String, _ fault: CertificateFault) -> ConfigurationReport {
            var files = keys
            files["proxy.conf"] = hostText("account jwt {\n\(line)\n\(whole)\n}")
            var source = MemoryConfigurationSource(files)
            source.badCertificates = [Array("pem".utf8): fault, Array("{}".utf8): fault]
            return ConfigurationLoader.load(path: "proxy.conf", source: source)
        }
        let bad = CertificateFault.certificate("it holds a private key")
        #expect(
            heads(report("key file:key.pem", bad))
                == ["key key.pem cannot be used: it holds a private key"])
        #expect(
            heads(report("jwks file:keys.json", bad))
                == ["key set keys.json cannot be used: it holds a private key"])
        #expect(
            heads(report("jwks file:keys.json", .key("key 2: it is no public key")), .warning)
                == ["key set keys.json: key 2: it is no public key"])
    }

    @Test("values that make no sense")
    func values() {
        #expect(
            heads(jwt("jwks file:keys.json refresh=1h\n" + whole))
                == ["\"refresh=\" belongs to a URL; a file is read at each reload"])
        for (line, message) in [
            ("jwks http://id.example/keys", "\"http://id.example/keys\" is no https URL"),
            ("jwks https://id.example/k refresh=30", "\"30\" needs a unit"),
            ("jwks https://id.example/k refresh=8d", "\"8d\" is out of range"),
            ("leeway 1h", "\"1h\" is out of range"),
            ("algorithms HS256", "unknown algorithms \"HS256\"; did you mean \"RS256\"?"),
            ("algorithms none", "unknown algorithms \"none\""),
            (
                "header App-Attest-Token",
                "the token cannot stand in \"App-Attest-Token\": it is a "
                    + "proof field"
            ),
            ("header Host", "the token cannot stand in \"Host\": it belongs to the message itself"),
            (
                "header Cookie",
                "the token cannot stand in \"Cookie\": it belongs to the message "
                    + "itself"
            ),
            ("issuer \"\"", "\"issuer\" is empty"), ("claim \"\"", "\"claim\" is empty"),
        ] {
            let keys = line.hasPrefix("jwks") ? "" : "key file:key.pem\n"
            let rest = line.hasPrefix("issuer") ? "audience b" : whole
            let found = heads(jwt(keys + line + "\n" + rest))
            #expect(found == [message], "\(found)")
        }
    }

    @Test("a token of anyone's, or for anyone, is warned about")
    func parties() {
        #expect(
            heads(jwt("key file:key.pem"), .warning) == [
                "\"issuer\" is missing in account jwt: tokens made for others pass",
                "\"audience\" is missing in account jwt: tokens made for others pass",
            ])
    }

    @Test("subrequest names an upstream, a path and a field")
    func subrequest() {
        func report(_ text: String) -> ConfigurationReport {
            load(hostText("account subrequest \(text)") + "\nupstream id {\nserver 127.0.0.1:9\n}")
        }
        let good = report("id /auth?a=b X-User cache=30s")
        #expect(good.diagnostics.isEmpty, "\(good.render())")
        #expect(
            good.configuration?.hosts[0].account
                == .subrequest(
                    SubrequestAccount(
                        upstream: "id", target: "/auth?a=b", field: "X-User",
                        cache: .seconds(30))))
        let plain = report("id /auth X-User").configuration
        #expect(
            plain?.hosts[0].account
                == .subrequest(
                    SubrequestAccount(
                        upstream: "id", target: "/auth", field: "X-User", cache: nil)))
        #expect(heads(report("no /auth X-User")).count == 1)
        #expect(heads(report("id auth X-User")) == ["\"auth\" is no path to ask for"])
        #expect(
            heads(report("id /auth Content-Length"))
                == [
                    "the account cannot stand in \"Content-Length\": it belongs to the message "
                        + "itself"
                ])
        #expect(heads(report("id /auth X-User cache=2h")) == ["\"2h\" is out of range"])
        #expect(heads(report("id /auth")) == ["\"account\" needs FIELD"])
    }

    @Test("client_cert needs client_ca on a listener of the host")
    func certificate() {
        let tls = "tls {\ncertificate file:c file:k\nclient_ca optional file:ca\n}"
        func report(_ name: String, _ listener: String, _ more: String = "") -> ConfigurationReport
        {
            load(
                hostText("account client_cert \(name)\n\(more)", listener: listener),
                files: ["c": "chain", "k": "key", "ca": "root"])
        }
        let good = report("subject", tls)
        #expect(good.errorCount == 0, "\(good.render())")
        #expect(good.configuration?.hosts[0].account == .clientCertificate(.subject))
        #expect(
            report("san", tls).configuration?.hosts[0].account == .clientCertificate(.san))
        for listener in ["", "tls {\ncertificate file:c file:k\n}"] {
            let found = heads(report("subject", listener))
            #expect(found.count == 1)
            #expect(
                found.first?.hasPrefix(
                    "account client_cert needs \"client_ca\" in the tls block of listener ")
                    == true, "\(found)")
        }
        #expect(
            heads(report("subjekt", tls)) == [
                "unknown account \"subjekt\"; did you mean \"subject\"?"
            ])
    }

    @Test("the dump shows the block with its defaults, and loads as the same configuration")
    func dump() {
        let report = jwt("jwks file:keys.json\n" + whole + "\nalgorithms ES256")
        let text = report.dump.text
        #expect(text.contains("account jwt {"))
        for line in ["jwks file:keys.json", "algorithms ES256", "claim sub", "leeway 60s"] {
            #expect(text.contains(line), "\(text)")
        }
        let again = load(text, files: keys)
        #expect(
            again.configuration?.hosts[0].account == report.configuration?.hosts[0].account,
            "\(again.render())")
    }
}
