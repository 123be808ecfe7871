import GateBytes
import GateConfig
import Testing

@Suite("Values: types, units, bounds")
struct ValueTests {
    /// The message and remedy for one line in a block; empty without fault.
    private func fault(_ block: String, _ line: String) -> [String] {
        let report: ConfigurationReport =
            switch block {
            case "listener": load(hostText("", listener: line))
            case "upstream": load(hostText("", upstream: line))
            case "app": load(hostText("", app: line))
            case "host": load(hostText(line))
            case "route": load(hostText("route GET /a {\n\(line)\n}"))
            case "": load(hostText("") + "\n" + line)
            default: load(hostText("") + "\n\(block) {\n\(line)\n}")
            }
        return report.diagnostics.filter { $0.severity == .error }.map { diagnostic in
            let mark = diagnostic.details.last?.split(separator: "^").last ?? ""
            return diagnostic.message + " |" + mark
        }
    }

    @Test(
        "durations",
        arguments: [
            ("5", "\"5\" needs a unit | write 5s, 5m or 5ms"),
            ("5sec", "unknown unit \"sec\" in \"5sec\" | write 5s, 5m or 5ms"),
            ("5S", "unknown unit \"S\" in \"5S\" | write 5s, 5m or 5ms"),
            ("1.5s", "unknown unit \".5s\" in \"1.5s\" | write 1s, 1m or 1ms"),
            ("0s", "\"0s\" is out of range | write a value from 1ms to 365d"),
            ("366d", "\"366d\" is out of range | write a value from 1ms to 365d"),
            (
                "9223372036854775807d",
                "\"9223372036854775807d\" is out of range | write a value from 1ms to 365d"
            ),
            (
                "99999999999999999999s",
                "\"99999999999999999999s\" is no duration | write a whole number and a unit: "
                    + "250ms, 5s, 2m, 1h or 7d"
            ),
            (
                "16359742646388824d",
                "\"16359742646388824d\" is out of range | write a value from 1ms to 365d"
            ),
            (
                "-5s",
                "\"-5s\" is no duration | write a whole number and a unit: 250ms, 5s, 2m, 1h or 7d"
            ),
            (
                "soon",
                "\"soon\" is no duration | write a whole number and a unit: 250ms, 5s, 2m, 1h or 7d"
            ),
            (
                "٥s",
                "\"٥s\" is no duration | write a whole number and a unit: 250ms, 5s, 2m, 1h or 7d"
            ),
        ])
    func duration(text: String, message: String) {
        #expect(fault("", "drain_timeout \(text)") == [message])
    }

    @Test(
        "durations in their units",
        arguments: [
            ("250ms", Duration.milliseconds(250)), ("5s", .seconds(5)), ("2m", .seconds(120)),
            ("1h", .seconds(3600)), ("7d", .seconds(604_800)),
        ])
    func goodDuration(text: String, value: Duration) {
        #expect(load(hostText("") + "\ndrain_timeout \(text)").configuration?.drainTimeout == value)
    }

    @Test(
        "sizes",
        arguments: [
            ("5", "\"5\" needs a unit | write 5k, 5m or 5g"),
            ("5kb", "unknown unit \"kb\" in \"5kb\" | write 5k, 5m or 5g"),
            ("5K", "unknown unit \"K\" in \"5K\" | write 5k, 5m or 5g"),
            ("k", "\"k\" is no size | write a whole number and a unit: 64k, 1m or 2g"),
            ("0k", "\"0k\" is out of range | write a value from 1k to 1048576g"),
            (
                "9223372036854775807g",
                "\"9223372036854775807g\" is out of range | write a value from 1k to 1048576g"
            ),
        ])
    func size(text: String, message: String) {
        #expect(fault("spool", "max \(text)") == [message])
    }

    @Test(
        "counts, rates, shares, modes and their bounds",
        arguments: [
            ("", "loops 0", "\"0\" is out of range | write a value from 1 to 1024"),
            ("", "loops 1025", "\"1025\" is out of range | write a value from 1 to 1024"),
            ("", "loops 2k", "\"2k\" is no count | write a whole number"),
            ("", "loops auot", "unknown loops \"auot\"; did you mean \"auto\"? |      | ^^^^^^"),
            ("store", "shards 63", "63 shards are no power of two | write 32, 64 or 128"),
            ("store", "shards 8192", "\"8192\" is out of range | write a value from 1 to 4096"),
            ("store", "max_keys 0", "\"0\" is out of range | write a value from 1 to 1000000000"),
            (
                "store", "dir state",
                "\"state\" is not an absolute path | write the whole path, from /"
            ),
            ("log", "sample off 1", "\"1\" needs a unit | write 1%"),
            ("log", "sample off 101%", "\"101\" is out of range | write a value from 0 to 100"),
            (
                "host", "rate challenges per_account=60",
                "\"60\" needs a window | write 60/1s, 60/1m or 60/1h"
            ),
            (
                "host", "rate challenges per_account=60/1",
                "\"1\" needs a unit | write 1s, 1m or 1ms"
            ),
            (
                "host", "rate challenges per_account=0/1s",
                "\"0\" is out of range | write a value from 1 to 1000000000"
            ),
            (
                "host", "challenge ttl=31d",
                "\"31d\" is out of range | write a value from 1s to 2592000s"
            ),
            (
                "host", "challenge ttl=999ms",
                "\"999ms\" is out of range | write a value from 1s to 2592000s"
            ),
            ("route", "mode deny 200", "\"200\" is out of range | write a value from 400 to 599"),
            (
                "route", "mode deny",
                "\"mode\" needs COUNT | write mode off | enforce | monitor | deny COUNT"
            ),
            ("route", "purpose revoke", "purpose \"revoke\" is reserved | choose another name"),
            (
                "route", "purpose attestation",
                "purpose \"attestation\" is reserved | choose another name"
            ),
            (
                "route", "purpose Export",
                "\"Export\" is no purpose | write a-z, 0-9, _ and -, at most 32"
            ),
            ("route", "body max=1b", "unknown unit \"b\" in \"1b\" | write 1k, 1m or 1g"),
            ("upstream", "retry 11", "\"11\" is out of range | write a value from 0 to 10"),
            (
                "listener", "limits header_fields=1001",
                "\"1001\" is out of range | write a value from 1 to 1000"
            ),
            (
                "listener", "limits header_size=2m",
                "\"2m\" is out of range | write a value from 1k to 1m"
            ),
        ])
    func bounds(block: String, line: String, message: String) {
        let found = fault(block, line)
        #expect(found.count == 1)
        let isMark = message.contains("| ")
        #expect(
            found.first.map {
                $0 == message || !isMark || $0.hasPrefix(message.prefix { $0 != "|" })
            } == true, "\(found)")
    }

    @Test(
        "addresses",
        arguments: [
            ("127.0.0.1", "\"127.0.0.1\" needs a port | write 127.0.0.1:8080"),
            ("::1", "\"::1\" needs a port | write [::1]:8080"),
            ("localhost", "\"localhost\" needs a port | write localhost:8080"),
            (
                "localhost:80",
                "\"localhost:80\" is no numeric address | write 127.0.0.1:80 or [::1]:80"
            ),
            ("*:80", "\"*:80\" is no numeric address | write [::]:80 or 0.0.0.0:80"),
            (":80", "\":80\" is no numeric address | write [::]:80 or 0.0.0.0:80"),
            (
                "fe80::1::2:80",
                "an IPv6 address needs brackets before its port | write [fe80::1::2]:80"
            ),
            ("[::g]:80", "\"::g\" is no IPv6 address | write [::1]:80"),
            ("127.0.0.1:65536", "\"65536\" is no port | write a number from 0 to 65535"),
            ("127.0.0.1:x", "\"x\" is no port | write a number from 0 to 65535"),
            ("unix:a", "\"a\" is not an absolute path | write unix:/path"),
            (
                "unix:/" + String(repeating: "a", count: 107),
                "the socket path is longer than 107 bytes | choose a shorter one"
            ),
            ("systemd:a.b", "\"a.b\" is no name | write letters, digits, - and _, at most 64"),
            ("127.0.0.1:81 mode=0660", "\"mode=\" belongs to unix sockets only | delete it"),
            ("unix:/a mode=999", "\"999\" is no file mode | write 0660"),
            ("unix:/a mode=1777", "\"1777\" is no file mode | write 0660"),
            ("127.0.0.1:8080", "address \"127.0.0.1:8080\" is already taken at proxy.conf:2:13 |"),
        ])
    func address(text: String, message: String) {
        let found = fault("listener", "address \(text)")
        #expect(found.count == 1)
        #expect(found.first?.hasPrefix(message) == true, "\(found)")
    }

    @Test("addresses of every kind")
    func goodAddress() {
        let report = load(
            hostText(
                "",
                listener:
                    "address [::1]:81\naddress unix:/run/a.sock mode=0600\naddress unix:/b\n"
                    + "address systemd:https"
            ))
        #expect(
            report.configuration?.listeners[0].addresses == [
                .ip("127.0.0.1", port: 8080), .ip("::1", port: 81),
                .unix("/run/a.sock", mode: 0o600),
                .unix("/b", mode: 0o660), .systemd("https"),
            ])
    }

    @Test(
        "servers",
        arguments: [
            ("http://a:80", "\"http://a:80\" is a URL"), ("a", "\"a\" needs a port"),
            ("a:0", "\"0\" is no port"), ("a_b!:80", "\"a_b!\" is no address and no name"),
            ("[a]:80", "\"a\" is no IPv6 address"),
            ("127.0.0.1:9000", "server \"127.0.0.1:9000\" is named twice"),
            ("systemd:x", "\"x\" is no port"),
            ("nowhere.test:80", "\"nowhere.test\" does not resolve: name or service not known"),
        ])
    func server(text: String, message: String) {
        let report = load(
            hostText("", upstream: "server \(text)"), unresolvable: ["nowhere.test"])
        #expect(report.diagnostics.map(\.message).count == 1)
        #expect(report.diagnostics.first?.message.hasPrefix(message) == true)
    }

    @Test(
        "networks",
        arguments: [
            ("10.0.0.0", "\"10.0.0.0\" needs a prefix length"),
            ("10.0.0.0/33", "\"33\" is no prefix length"),
            ("10.0.0.1/8", "\"10.0.0.1/8\" has bits set after its prefix"),
            ("ten", "\"ten\" is no network"),
            ("::1/129", "\"129\" is no prefix length"),
            ("none 10.0.0.0/8", "\"none\" beside networks"),
            ("10.0.0.0/", "\"\" is no prefix length"),
            ("nome", "unknown trusted_proxies \"nome\"; did you mean \"none\"?"),
        ])
    func network(text: String, message: String) {
        let found = fault("listener", "trusted_proxies \(text)")
        #expect(found.count == 1)
        #expect(found.first?.hasPrefix(message) == true, "\(found)")
    }

    @Test("networks hold what they say")
    func goodNetwork() throws {
        let report = load(hostText("", listener: "trusted_proxies 10.0.0.0/8 10.1.2.3/32 ::1/128"))
        let networks = try #require(report.configuration?.listeners[0].trustedProxies)
        let address = try #require(IPAddress("10.200.0.1"))
        #expect(networks.map { $0.contains(address) } == [true, false, false])
        #expect(networks.map(\.prefixLength) == [104, 128, 128])
    }

    @Test(
        "paths of routes",
        arguments: [
            ("v1", "path \"v1\" must begin with \"/\""),
            ("/v1/a%2Fb", "path \"/v1/a%2Fb\" must be written decoded and without \"%\""),
            ("/a?b", "path \"/a?b\" must be without \"?\""),
            ("/a*", "\"*\" in path \"/a*\" may only be its last segment"),
            ("/*/a", "\"*\" in path \"/*/a\" may only be its last segment"),
            ("/a//b", "path \"/a//b\" could never match: it holds \"//\""),
            ("//*", "path \"//*\" could never match: it holds \"//\""),
            ("/a/./b", "path \"/a/./b\" could never match: it holds a dot segment"),
            ("/a/..", "path \"/a/..\" could never match: it holds a dot segment"),
            ("/a./b", "path \"/a./b\" could never match: a segment ends with \".\""),
            ("/a./*", "path \"/a./*\" could never match: a segment ends with \".\""),
            ("/a+", "path \"/a+\" could never match: a segment ends with a space or \"+\""),
            ("\"/a \"", "path \"/a \" could never match: a segment ends with a space or \"+\""),
            ("/a\\b", "path \"/a\\b\" could never match: it holds \"\\\""),
            ("/a;b", "path \"/a;b\" could never match: it holds \";\""),
            ("/a#b", "path \"/a#b\" could never match: it holds \"#\""),
            ("/É", "path \"/É\" could never match: U+C9 changes under case folding"),
            ("/ı", "path \"/ı\" could never match: U+131 changes under case folding"),
            ("/v1/app-attest/x", "route \"GET /v1/app-attest/x\" can never match"),
            ("/V1/App-Attest", "route \"GET /V1/App-Attest\" can never match"),
        ])
    func path(text: String, message: String) {
        let found = fault("host", "enroll /v1/app-attest\nroute GET \(text) {\nmode off\n}")
        #expect(found.count == 1)
        #expect(found.first?.hasPrefix(message) == true, "\(found)")
    }

    @Test(
        "methods of routes",
        arguments: [
            ("post", "unknown method \"post\"; did you mean \"POST\"?"),
            ("FOO", "unknown method \"FOO\""),
            ("GET,", "\"GET,\" has an empty method"), ("GET,GET", "method GET is named twice"),
            ("CONNECT", "a route for CONNECT could never match"),
            ("TRACE", "a route for TRACE could never match"),
            ("DELTE", "unknown method \"DELTE\"; did you mean \"DELETE\"?"),
        ])
    func method(text: String, message: String) {
        let found = fault("host", "route \(text) /a {\nmode off\n}")
        #expect(found.count == 1)
        #expect(found.first?.hasPrefix(message) == true, "\(found)")
    }

    @Test("a route without methods")
    func noMethods() {
        let found = fault("host", "route /a {\nmode off\n}")
        #expect(
            found.first?.hasPrefix(
                "\"/a\" stands where the methods belong | write METHODS PATH, such as * /a") == true
        )
    }

    @Test(
        "names",
        arguments: [
            ("app", "app_id nope", "\"nope\" is no App ID"),
            ("app", "app_id ABCDE12345", "\"ABCDE12345\" is no App ID"),
            ("app", "app_id abcde12345.x", "\"abcde12345.x\" is no App ID"),
            ("app", "app_id ABCDE12345..x", "\"ABCDE12345..x\" is no App ID"),
            (
                "app", "app_id ABCDE12345.com.example.shop",
                "app_id \"ABCDE12345.com.example.shop\" is named twice"
            ),
            ("app", "root file:/no.pem", "certificate file:/no.pem cannot be read: no such file"),
            ("app", "root /no.pem", "\"/no.pem\" does not say where the certificate stands"),
            (
                "upstream", "set_field X-S env:NOPE",
                "value env:NOPE cannot be read: the variable is not set"
            ),
            ("upstream", "set_field X-S credential:a/b", "\"a/b\" is no credential name"),
            (
                "upstream", "set_field X-S credential:no",
                "value credential:no cannot be read: no such credential"
            ),
            ("upstream", "set_field X-S file:", "\"file:\" without a path"),
            ("upstream", "set_field X-S env:A-B", "\"A-B\" is no name of a variable"),
            ("upstream", "set_field \"X S\" env:S", "\"X S\" is no field name"),
            ("host", "account header \"a b\"", "\"a b\" is no field name"),
            ("host", "enroll /a/*", "\"enroll\" takes a prefix already"),
            ("host", "enroll /", "\"enroll /\" would take every path"),
            ("host", "listener public", "listener \"public\" is named twice"),
        ])
    func name(block: String, line: String, message: String) {
        let found = fault(block, line)
        #expect(found.count == 1)
        #expect(found.first?.hasPrefix(message) == true, "\(found)")
    }

    @Test(
        "host names",
        arguments: [
            ("*.example.com", "\"*.example.com\" is no host name"),
            ("a.com:80", "\"a.com:80\" has a port or a scheme"),
            ("a..b", "\"a..b\" is no host name"), ("-a.com", "\"-a.com\" is no host name"),
            ("é.com", "\"é.com\" is no host name"),
        ])
    func hostName(text: String, message: String) {
        let report = load(hostText("").replacing("host api.example.com", with: "host \(text)"))
        #expect(report.diagnostics.map(\.message) == [message])
    }

    @Test(
        "a secret sent upstream is one line of visible ASCII, without its final newline",
        arguments: [
            ("s3cret\n", true), ("s3cret\r\n", true), ("a b", true), ("", false), ("\n", false),
            ("a\nb", false), ("a\u{0}", false), ("é", false), (" a", false), ("a ", false),
            (String(repeating: "a", count: 8193), false),
        ])
    func secret(text: String, isGood: Bool) {
        let report = load(
            hostText("", upstream: "set_field X-Gate-Secret credential:s"), credentials: ["s": text]
        )
        #expect((report.configuration != nil) == isGood)
        if !isGood { #expect(heads(report)[0].contains("credential:s is no field value")) }
        if !text.isEmpty, text != "\n" { #expect(!report.render().contains(text)) }
    }

    @Test("the App ID's prefix has ten characters, or check says so")
    func prefix() {
        let report = load(hostText("", app: "app_id ABC.x"))
        #expect(
            heads(report) == [
                "proxy.conf:8:12: warning: the prefix of \"ABC.x\" has not ten characters"
            ])
    }

    @Test("a root is one certificate, PEM or DER")
    func root() throws {
        let der = [0x30, 0x82, 0x01, 0x00] + [UInt8](repeating: 7, count: 256)
        let pem = "-----BEGIN CERTIFICATE-----\n\(Base64.encode(der))\n-----END CERTIFICATE-----\n"
        let text = hostText("", app: "root file:root.pem")
        let good = load(text, files: ["root.pem": "Some words\n" + pem])
        #expect(good.configuration?.apps[0].root == der)
        #expect(
            heads(good) == ["proxy.conf:8:10: warning: root file:root.pem replaces Apple's root"])
        var source = MemoryConfigurationSource(["etc/proxy.conf": text])
        source.files["etc/root.pem"] = der
        let binary = ConfigurationLoader.load(path: "etc/proxy.conf", source: source)
        #expect(binary.configuration?.apps[0].root == der)
        for (content, message) in [
            (pem + pem, "file:root.pem holds 2 certificates"),
            ("x", "file:root.pem is no certificate"),
            ("", "file:root.pem is no certificate"),
            (pem.replacing("END", with: "EN"), "file:root.pem is no certificate"),
            (pem.replacing("BwcH", with: "B!cH"), "file:root.pem is no certificate"),
            (pem.replacing("MIIB", with: "MIIC"), "file:root.pem is no certificate"),
        ] {
            let bad = load(text, files: ["root.pem": content])
            #expect(bad.diagnostics.filter { $0.severity == .error }.map(\.message) == [message])
        }
        #expect(load(hostText("")).configuration?.apps[0].root == nil)
    }
}
