import Foundation
import GateBytes
import GateConfig
import Testing

/// The stored values of a struct as text, `count: 1, per: 1.0 seconds`; a rate as `1/1.0 seconds`.
func fields(_ value: Any) -> String {
    let mirror = Mirror(reflecting: value)
    if mirror.displayStyle == .optional {
        return mirror.children.first.map { fields($0.value) } ?? "nil"
    }
    return mirror.children.map { child in
        let inner = Mirror(reflecting: child.value)
        var text = "\(child.value)"
        if inner.displayStyle == .optional {
            let value = inner.children.first?.value
            let rate = value as? Rate
            text = rate.map { "\($0.count)/\($0.per)" } ?? value.map { "\($0)" } ?? "nil"
        }
        return "\(child.label ?? ""): \(text)"
    }.joined(separator: ", ")
}

@Suite("Resolution: defaults, inheritance, dump")
struct ResolutionTests {
    @Test("everything that is not written has the default of the specification")
    func defaults() throws {
        let loaded = load(hostText("    route POST /a {\n    }"), variables: [:]).configuration
        let configuration = try #require(loaded)
        #expect(configuration.loops == nil)
        #expect(configuration.drainTimeout == .seconds(30))
        #expect(
            fields(configuration.log) == "access: stdout, errorLevel: info, sampleOffPercent: 100"
                + ", isQueryLogged: false, isAccountPlain: false")
        #expect(
            fields(configuration.store)
                == "directory: /var/lib/attestgate, shards: 64, keysMax: 5000000"
                + ", relaxedMilliseconds: nil, snapshotInterval: 600.0 seconds"
                + ", snapshotAfterBytes: 268435456")
        #expect(
            fields(configuration.spool)
                == "directory: /var/cache/attestgate, bytesMax: 1073741824, filesMax: 256")
        #expect(configuration.admin.isEmpty)
        let listener = configuration.listeners[0]
        #expect(listener.trustedProxies.isEmpty && listener.proxySources.isEmpty)
        #expect(
            fields(listener.limits) == "connections: 20000, perAddress: 200, headerFields: 100"
                + ", headerSize: 49152, fieldSize: 32768, targetSize: 8192, requests: 10000"
                + ", h2Streams: 100, h2Resets: Rate(count: 200, per: 30.0 seconds)"
                + ", h2Control: Rate(count: 1000, per: 10.0 seconds)")
        #expect(
            fields(listener.timeouts)
                == "handshake: 10.0 seconds, header: 10.0 seconds, body: 15.0 seconds"
                + ", bodyMinRate: 1024, keepalive: 75.0 seconds, write: 30.0 seconds"
                + ", tunnel: 3600.0 seconds, tunnelMax: 86400.0 seconds")
        let app = configuration.apps[0]
        #expect(app.root == nil && app.keysPerAccount == 20 && app.challengeHash == .bytes)
        #expect(app.environment == .production && app.appIDs == ["ABCDE12345.com.example.shop"])
        let upstream = configuration.upstreams[0]
        #expect(upstream.servers.map(\.text) == ["127.0.0.1:9000"])
        #expect(upstream.servers.map(\.endpoint) == [.host("127.0.0.1", port: 9000)])
        #expect(upstream.keepaliveConnections == 64 && upstream.keepaliveIdle == .seconds(4))
        #expect(upstream.keepaliveRequests == 10_000 && upstream.retries == 1)
        #expect(upstream.resolveEvery == .seconds(30) && upstream.setFields.isEmpty)
        #expect(
            fields(upstream.timeouts)
                == "connect: 2.0 seconds, firstByte: 30.0 seconds, idle: 60.0 seconds")
    }

    @Test("defaults of a host and its routes")
    func hostDefaults() throws {
        let host = try loadHost("    route POST /a {\n    }")
        #expect(host.unmatched == .deny && host.enroll == "" && host.account == .none)
        #expect(host.challengeLifetime == .seconds(300))
        #expect(host.attestationChallengeLifetime == .seconds(86_400))
        #expect(host.isPathStrict && host.underscores == .drop && host.isPreflightPassed)
        #expect(
            fields(host.rates)
                == "challengesPerAccount: 600/60.0 seconds, challengesPerAddress: nil"
                + ", attestationsPerAccount: 60/3600.0 seconds"
                + ", attestationsPerAddress: 600/3600.0 seconds"
                + ", failedSignaturesPerAccount: 60/60.0 seconds"
                + ", failedSignaturesPerAddress: 600/60.0 seconds")
        #expect(
            fields(host.proof) == "keyID: App-Attest-Key-Id, assertion: App-Attest-Assertion"
                + ", clientData: App-Attest-Client-Data, challenge: App-Attest-Challenge"
                + ", attestation: App-Attest-Attestation" + ", unsupported: App-Attest-Unsupported"
                + ", deviceToken: App-Attest-Device-Token, isKeyIDOptional: false")
        let route = host.routes[0]
        #expect(route.name == "api.example.com POST /a" && route.place == "proxy.conf:18")
        #expect(route.methods == ["POST"] && route.path == "/a" && !route.isPrefix)
        #expect(
            route.mode == .enforce && route.binding == .clientData && route.purpose == "request")
        #expect(route.bodyBytesMax == 1 << 20 && route.bodyMemoryBytes == 64 << 10)
        #expect(route.upstream == "orders" && !route.isProofPassed && !route.isWebSocket)
        #expect(route.tunnelTimeout == nil && route.tunnelMax == nil)
        #expect(route.bodyTimeout == nil && route.bodyMinRate == nil && route.writeTimeout == nil)
        #expect(
            route.connectTimeout == nil && route.firstByteTimeout == nil && route.idleTimeout == nil
        )
    }

    @Test("relaxed durability and a route that is bound without a challenge exclude each other")
    func relaxedWithoutChallenge() {
        let route = "route POST /a {\n bind body challenge=none\n}"
        func messages(_ durability: String, _ route: String) -> [String] {
            load(hostText(route) + "\nstore {\n durability \(durability)\n}").diagnostics
                .filter { $0.severity == .error }.map(\.message)
        }
        let found = messages("relaxed 20ms", route)
        #expect(found == ["\"challenge=none\" needs \"durability strict\""])
        #expect(messages("strict", route).isEmpty)
        #expect(messages("relaxed 20ms", "route POST /a {\n}").isEmpty)
        #expect(messages("relaxed 2s", "") == ["2s is not within 1ms to 1s"])
    }

    @Test("every value that is written arrives")
    func given() throws {
        let report = load(everyValue, variables: ["SECRET": "s3"])
        let loaded = report.configuration
        let configuration = try #require(loaded, "\(report.render())")
        #expect(configuration.loops == 3 && configuration.drainTimeout == .seconds(60))
        #expect(
            fields(configuration.log)
                == "access: file(\"/var/log/a.log\"), errorLevel: warn, sampleOffPercent: 7"
                + ", isQueryLogged: true, isAccountPlain: true")
        #expect(
            fields(configuration.store) == "directory: /s, shards: 8, keysMax: 9"
                + ", relaxedMilliseconds: 25, snapshotInterval: 60.0 seconds"
                + ", snapshotAfterBytes: 1048576")
        #expect(fields(configuration.spool) == "directory: /p, bytesMax: 2097152, filesMax: 3")
        #expect(configuration.admin == [.ip("127.0.0.1", port: 9901), .unix("/a", mode: 0o600)])
        let listener = configuration.listeners[0]
        #expect(
            fields(listener.limits)
                == "connections: 1, perAddress: 2, headerFields: 3, headerSize: 40960"
                + ", fieldSize: 5120, targetSize: 6144, requests: 7"
                + ", h2Streams: 8, h2Resets: Rate(count: 9, per: 10.0 seconds)"
                + ", h2Control: Rate(count: 11, per: 12.0 seconds)")
        #expect(
            fields(listener.timeouts)
                == "handshake: 1.0 seconds, header: 2.0 seconds, body: 3.0 seconds"
                + ", bodyMinRate: 4096, keepalive: 5.0 seconds, write: 6.0 seconds"
                + ", tunnel: 7.0 seconds, tunnelMax: 8.0 seconds")
        let balancers = listener.proxySources
        #expect(balancers.count == 1)
        #expect(balancers[0].contains(try #require(IPAddress("10.1.2.3"))))
        #expect(!balancers[0].contains(try #require(IPAddress("10.2.0.1"))))
        let app = configuration.apps[0]
        #expect(app.appIDs == ["ABCDE12345.x", "ABCDE12345.y", "ABCDE12345.z"])
        #expect(
            app.environment == .development && app.keysPerAccount == 5 && app.challengeHash == .text
        )
        let upstream = configuration.upstreams[0]
        #expect(
            upstream.servers.map(\.endpoint) == [
                .host("name.test", port: 1), .host("::1", port: 2), .unix("/s"),
            ])
        #expect(upstream.keepaliveConnections == 8 && upstream.keepaliveIdle == .seconds(1))
        #expect(upstream.keepaliveRequests == 9 && upstream.retries == 0)
        #expect(upstream.resolveEvery == .seconds(3600))
        #expect(upstream.timeouts.connect == .seconds(1) && upstream.timeouts.idle == .seconds(3))
        #expect(upstream.timeouts.firstByte == .seconds(2))
        #expect(
            upstream.setFields.map(\.name) == ["X-S"]
                && upstream.setFields[0].value == Array("s3".utf8))
        checkHost(configuration.hosts[0])
    }

    private func checkHost(_ host: GateConfig.Host) {
        #expect(host.unmatched == .enforce && host.enroll == "/e" && host.account == .header("X-A"))
        #expect(host.challengeLifetime == .seconds(60))
        #expect(host.attestationChallengeLifetime == .seconds(7200))
        #expect(!host.isPathStrict && host.underscores == .keep && !host.isPreflightPassed)
        #expect(fields(host.rates.challengesPerAccount as Any) == "count: 1, per: 1.0 seconds")
        #expect(fields(host.rates.challengesPerAddress as Any) == "count: 2, per: 1.0 seconds")
        #expect(host.rates.attestationsPerAccount == nil)
        #expect(
            fields(host.rates.attestationsPerAddress as Any) == "count: 600, per: 3600.0 seconds")
        #expect(
            fields(host.rates.failedSignaturesPerAccount as Any) == "count: 60, per: 60.0 seconds")
        #expect(host.rates.failedSignaturesPerAddress == nil)
        #expect(host.routes[0].mode == .deny(451) && host.routes[0].isPrefix)
        #expect(host.routes[0].path == "/a" && host.routes[0].methods == ["GET", "PUT"])
        #expect(host.routes[0].upstream == "")
        let route = host.routes[1]
        #expect(route.methods == [] && route.binding == .request && route.purpose == "buy")
        #expect(route.bodyBytesMax == 2 << 20 && route.bodyMemoryBytes == 3 << 10)
        #expect(route.bodyTimeout == .seconds(1) && route.bodyMinRate == 2048)
        #expect(route.writeTimeout == .seconds(3) && route.connectTimeout == .seconds(4))
        #expect(route.firstByteTimeout == .seconds(5) && route.idleTimeout == .seconds(6))
        #expect(route.tunnelTimeout == .seconds(7) && route.tunnelMax == .seconds(8))
        #expect(route.isProofPassed && route.isWebSocket)
    }

    @Test("a route's own word, then its host's defaults, then the file's, key by key")
    func inheritance() throws {
        let text =
            "defaults {\n mode off\n body max=2m memory=8k\n timeouts body=1s write=2s\n}\n"
            + hostText(
                """
                defaults {
                    body memory=16k
                    timeouts write=3s
                }
                route GET /a {
                    body max=4m
                    timeouts idle=4s
                }
                route GET /b {
                    mode monitor
                    body max=8k
                }
                """)
        let report = load(text)
        let loaded = report.configuration
        let routes = try #require(loaded, "\(report.render())").hosts[0].routes
        #expect(routes.map(\.mode) == [.off, .monitor])
        #expect(routes.map(\.bodyBytesMax) == [4 << 20, 8 << 10])
        #expect(routes.map(\.bodyMemoryBytes) == [16 << 10, 8 << 10])
        #expect(routes[0].bodyTimeout == .seconds(1) && routes[0].writeTimeout == .seconds(3))
        #expect(routes[0].idleTimeout == .seconds(4) && routes[1].idleTimeout == nil)
        let lines = report.dump.lines.filter { $0.blocks.last == "route GET /a" }
            .map { "\($0.text) # \($0.origin)" }
        #expect(
            lines == [
                "mode off # proxy.conf:2", "bind client_data # default",
                "purpose request # default",
                "inline_enroll off # default", "body max=4m # proxy.conf:28",
                "body memory=16k # proxy.conf:24",
                "fallback deny # default", "timeouts body=1s # proxy.conf:4",
                "timeouts write=3s # proxy.conf:25",
                "timeouts idle=4s # proxy.conf:29", "pass_proof off # default",
            ])
    }

    @Test("the dump names the line of each value, defaults included, and loads again as the same")
    func dump() throws {
        let text = hostText(
            """
                enroll /v1/app-attest
                unmatched enforce
                challenge ttl=1m
                rate challenges per_address=5/1s
                route POST,PUT "/v1/a b/*" {
                    body max=2m memory=64k
                }
            """, listener: "limits connections=7")
        let report = load(text)
        let dump = report.dump.text
        #expect(dump.contains("loops auto                                      # default\n"))
        #expect(dump.contains("    limits connections=7                        # proxy.conf:3\n"))
        #expect(dump.contains("    limits per_address=200 header_fields=100"))
        #expect(dump.contains("    challenge ttl=1m                            # proxy.conf:20\n"))
        #expect(dump.contains("    rate challenges per_address=5/1s            # proxy.conf:21\n"))
        #expect(
            dump.contains("    route POST,PUT \"/v1/a b/*\" {                # proxy.conf:22\n"))
        #expect(dump.contains("host api.example.com {                          # proxy.conf:14\n"))
        let merged = merge(report.dump)
        var again = load(merged).configuration
        var first = report.configuration
        for index in again?.hosts[0].routes.indices ?? 0..<0 {
            again?.hosts[0].routes[index].place = ""
            first?.hosts[0].routes[index].place = ""
        }
        again?.hosts[0].unmatchedRoute.place = ""
        first?.hosts[0].unmatchedRoute.place = ""
        #expect(again == first && again != nil, "\(load(merged).render())\n\(merged)")
    }

    /// The dump with the parts of one directive on one line again.
    private func merge(_ dump: Dump) -> String {
        var seen: [String: Int] = [:]
        var lines: [(blocks: [String], text: String)] = []
        for line in dump.lines {
            let words = line.text.split(separator: " ").map(String.init)
            let name = words[0] == "rate" ? words[0...1].joined(separator: " ") : words[0]
            let id = (line.blocks + [name]).joined(separator: "|")
            if !line.opensBlock, let index = seen[id], line.text.contains("=") {
                lines[index].text += " " + line.text.dropFirst(name.count + 1)
            } else {
                if !line.opensBlock { seen[id] = lines.count }
                lines.append((line.blocks, line.text))
            }
        }
        var text = ""
        var depth = 0
        for (index, line) in lines.enumerated() {
            while depth > line.blocks.count {
                depth -= 1
                text += "}\n"
            }
            text += line.text + "\n"
            if line.text.hasSuffix(" {") { depth += 1 }
            if index == lines.count - 1 { text += String(repeating: "}\n", count: depth) }
        }
        return text
    }

    @Test("directories that cannot be used are faults, also by default")
    func directories() {
        let text = hostText("") + "\nspool {\n dir /p\n}"
        #expect(
            heads(load(text, unwritable: ["/p", "/var/lib/attestgate"])) == [
                "proxy.conf:1:1: error: directory /var/lib/attestgate of store cannot be "
                    + "used: permission denied",
                "proxy.conf:21:6: error: directory /p of spool cannot be used: permission denied",
            ])
    }

    @Test("a log or a socket that a start could not make is a fault, at its place")
    func files() {
        let text =
            hostText("") + "\nlog {\n access /l/a.log\n}\nadmin {\n address unix:/s/a.sock\n}"
        #expect(
            heads(load(text, unwritable: ["/l/a.log", "/s/a.sock"])) == [
                "proxy.conf:21:9: error: access log /l/a.log cannot be used: permission denied",
                "proxy.conf:24:10: error: socket /s/a.sock cannot be used: permission denied",
            ])
        #expect(load(text).errorCount == 0)
    }

    @Test("the report as JSON is JSON, whatever stands in it")
    func json() throws {
        let report = load("loops \"é\u{1F600}\\\"\"\n" + hostText("route GET /a {\n}"))
        let data = Data(report.json(isDumping: true).utf8)
        let object = try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
        #expect(object["errors"] as? Int == 1 && object["warnings"] as? Int == 0)
        #expect(object["files"] as? [String] == ["proxy.conf"])
        let faults = try #require(object["diagnostics"] as? [[String: Any]])
        #expect(faults[0]["message"] as? String == "\"é\u{1F600}\"\" is no count")
        #expect(faults[0]["line"] as? Int == 1 && faults[0]["column"] as? Int == 7)
        let lines = try #require(object["configuration"] as? [[String: Any]])
        #expect(
            lines.contains {
                $0["text"] as? String == "drain_timeout 30s" && $0["origin"] as? String == "default"
            })
        #expect(!report.json(isDumping: false).contains("\"configuration\""))
    }
}

@Suite("Table: one list of directives")
struct TableTests {
    @Test("the reference names every directive, its default and what it means")
    func reference() {
        let text = ConfigurationLoader.directiveReference
        for name in [
            "loops", "drain_timeout", "access", "error", "sample", "query_in_log", "account_in_log",
            "dir",
            "shards", "durability", "snapshot", "max_keys", "max", "address", "http", "tls",
            "certificate",
            "min_version", "client_ca", "tickets", "proxy_protocol", "trusted_proxies", "limits",
            "timeouts",
            "team_id", "key_id", "key", "devicecheck_url", "attest_data_url", "ca", "app_id",
            "environment",
            "root", "receipts", "keys_per_account", "challenge_hash", "server", "balance",
            "protocol",
            "verify", "name", "resolve", "keepalive", "health", "eject", "max_active", "retry",
            "set_field",
            "request", "listener", "app", "upstream", "unmatched", "enroll", "account", "header",
            "jwks",
            "issuer", "audience", "claim", "algorithms", "leeway", "challenge", "rate", "proof",
            "assertion",
            "client_data", "attestation", "unsupported", "device_token", "paths", "underscores",
            "preflight",
            "mode", "bind", "purpose", "inline_enroll", "body", "fallback", "set_bits", "require",
            "upgrade",
            "pass_proof", "defaults", "route", "host", "log", "store", "spool", "admin", "apple",
        ] {
            #expect(text.contains("\n  \(name)"), "\(name)")
        }
        #expect(
            text.contains(
                "  drain_timeout DURATION\n      how long a stop waits for requests in work\n"
                    + "      default: 30s\n"
            ))
        #expect(
            text.contains(
                "  snapshot every=DURATION after=SIZE\n"))
        #expect(
            text.contains(
                "  mode off | enforce [SHARE] by=key_id|account|address else=monitor|off | monitor "
                    + "| deny COUNT\n"))
        #expect(!text.contains("~"))
    }

    @Test("the configuration that is shipped has no fault, as text and as it stands")
    func shipped() throws {
        let url = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../proxy.conf").standardizedFileURL
        let text = try String(contentsOf: url, encoding: .utf8)
        let report = load(text)
        #expect(report.diagnostics.isEmpty, "\(report.render())")
        let loaded = report.configuration
        let configuration = try #require(loaded)
        #expect(configuration.listeners[0].addresses == [.ip("127.0.0.1", port: 8080)])
        #expect(configuration.store.directory.hasPrefix("/tmp/"))
        let host = try #require(configuration.hosts.first)
        #expect(match(host, "POST", "/v1/exports") == .route(0, isAmbiguous: false))
        #expect(match(host, "GET", "/public/a") == .route(4, isAmbiguous: false))
        #expect(match(host, "GET", "/other") == .notFound)
    }
}

/// Each directive that is available, with another value than its default.
private let everyValue = """
    loops 3
    drain_timeout 1m
    log {
        access /var/log/a.log
        error level=warn
        sample off 7%
        query_in_log on
        account_in_log plain
    }
    store {
        dir /s
        shards 8
        max_keys 9
        durability relaxed 25ms
        snapshot every=1m after=1m
    }
    spool {
        dir /p
        max 2m files=3
    }
    admin {
        address 127.0.0.1:9901
        address unix:/a mode=0600
    }
    listener l {
        address [::1]:1
        trusted_proxies 10.0.0.0/8
        proxy_protocol require from 10.1.0.0/16
        limits connections=1 per_address=2 header_fields=3 header_size=40k field_size=5k \
        target_size=6k requests=7 h2_streams=8 h2_resets=9/10s h2_control=11/12s
        timeouts handshake=1s header=2s body=3s body_min_rate=4k keepalive=5s write=6s \
        tunnel=7s tunnel_max=8s
    }
    app a {
        app_id ABCDE12345.x ABCDE12345.y
        app_id ABCDE12345.z
        environment development
        receipts off
        keys_per_account 5
        challenge_hash text
    }
    upstream u {
        server name.test:1
        server [::1]:2
        server unix:/s
        keepalive 8 idle=1s requests=9
        resolve every=1h
        retry 0
        timeouts connect=1s first_byte=2s idle=3s
        set_field X-S env:SECRET
    }
    host h.test {
        listener l
        app a
        upstream u
        unmatched enforce
        enroll /e
        account header X-A
        challenge ttl=1m attestation_ttl=2h
        rate challenges per_account=1/1s per_address=2/1s
        rate attestations per_account=off
        rate failed_signatures per_address=off
        paths matched
        underscores keep
        preflight deny
        route GET,PUT /a/* {
            mode deny 451
        }
        route * /b {
            bind request
            purpose buy
            body max=2m memory=3k
            fallback deny
            inline_enroll off
            timeouts body=1s body_min_rate=2k write=3s connect=4s first_byte=5s idle=6s \
            tunnel=7s tunnel_max=8s
            upgrade websocket
            pass_proof on
        }
    }
    """
