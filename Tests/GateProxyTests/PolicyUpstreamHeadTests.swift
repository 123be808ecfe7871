import GateBytes
import GateConfig
import GateCrypto
import GateHTTP
import GateProxy
import Testing

private let keyID = SHA256.hash([7])

private func context(
    _ verdict: Verdict = .off, trusted: Bool = false, peer: String = "203.0.113.7",
    scheme: Scheme = .https, account: [UInt8]? = nil, operationID: String? = nil,
    passProof: Bool = false, expect: Bool = false, body: UpstreamBody = .none
) -> UpstreamContext {
    UpstreamContext(
        isPeerTrusted: trusted, peer: Array(peer.utf8), scheme: scheme,
        requestID: Array("rid-1".utf8), verdict: verdict, account: account,
        operationID: operationID.map { Array($0.utf8) }, isProofPassed: passProof,
        isExpectForwarded: expect, body: body)
}

private func written(
    _ head: RequestHead, _ fields: HostFields = makeFields(),
    _ context: UpstreamContext = context(), setFields: [Upstream.SetField] = []
) throws -> [UInt8] {
    var head = head
    try HopByHop.mark(&head, protected: fields.protectedNames)
    return try UpstreamHead.bytes(head, fields, context, setFields: SetFields(setFields))
}

/// Every verdict a request can go upstream with.
private let verdicts: [Verdict] = [
    .fallback, .monitored, .off, .unverified, .verified(VerifiedKey(keyID: keyID, counter: 3)),
]

@Suite("Upstream head: what goes and what stays")
struct UpstreamHeadTests {
    @Test("method, raw target, order and spelling of what stays are the client's")
    func keeps() throws {
        let head = try request(
            "DELETE /A%2f/b?x=1&x=2&y=%00+%20",
            ["hOsT: API.example.com:443", "X-b: 1", "x-A:  two  ", "X-b: 3", "Range: bytes=0-1"])
        let bytes = try written(head)
        #expect(
            Array(lines(bytes).prefix(6)) == [
                "DELETE /A%2f/b?x=1&x=2&y=%00+%20 HTTP/1.1", "hOsT: API.example.com:443",
                "X-b: 1", "x-A: two", "X-b: 3", "Range: bytes=0-1",
            ])
    }

    @Test("an absolute-form target goes on in origin-form")
    func absoluteForm() throws {
        let head = try request("GET http://api.example.com/a?b")
        #expect(lines(try written(head))[0] == "GET /a?b HTTP/1.1")
    }

    static let gateNames = [
        "App-Attest-Verdict", "App-Attest-Verified-Key", "App-Attest-Account", "App-Attest-App",
        "App-Attest-Counter", "App-Attest-Risk", "App-Attest-Next-Challenge",
    ]
    static let proofNames = [
        "App-Attest-Key-Id", "App-Attest-Assertion", "App-Attest-Client-Data",
        "App-Attest-Challenge", "App-Attest-Attestation", "App-Attest-Unsupported",
        "App-Attest-Device-Token",
    ]
    static let alwaysRemoved =
        gateNames + [
            "Proxy", "X-Original-URL", "X-Original-Method", "X-Original-Host", "X-Rewrite-URL",
        ]
    static let untrustedRemoved = [
        "X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "X-Forwarded-Port",
        "X-Forwarded-Prefix", "Forwarded", "X-Real-IP", "X-Request-Id", "X-Account-Id",
    ]
    static let overrides = ["X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"]

    /// All ways to spell the dashes of a name that fold to it, and its case turned.
    static func spellings(_ name: String) -> [String] {
        var all = [name, name.lowercased(), name.uppercased()]
        for separator in ["_", "."] {
            all.append(name.replacing("-", with: separator))
            if let first = name.firstIndex(of: "-") {
                all.append(name.replacingCharacters(at: first, with: separator))
            }
        }
        return all
    }

    @Test(
        "the gate's names, and those that reroute, go in every spelling from everyone",
        arguments: alwaysRemoved)
    func removedAlways(name: String) throws {
        for underscores in [Host.Underscores.drop, .keep] {
            let fields = makeFields(makeHost(underscores: underscores))
            for spelling in UpstreamHeadTests.spellings(name) {
                for trusted in [false, true] {
                    for verdict in verdicts {
                        let head = try request("GET /a", ["\(spelling): admin", "X-Stays: 1"])
                        let bytes = try written(
                            head, fields, context(verdict, trusted: trusted, passProof: true))
                        #expect(!text(bytes).contains("admin"), "\(spelling)")
                        #expect(values("X-Stays", bytes) == ["1"])
                    }
                }
            }
        }
    }

    @Test(
        "forwarding names and the account field go in every spelling from untrusted peers",
        arguments: untrustedRemoved)
    func removedUntrusted(name: String) throws {
        let fields = makeFields(makeHost(underscores: .keep))
        for spelling in UpstreamHeadTests.spellings(name) {
            let head = try request("GET /a", ["\(spelling): admin"])
            #expect(!text(try written(head, fields)).contains("admin"), "\(spelling)")
        }
    }

    @Test(
        "proof fields go in every mode and spelling, unless the route passes them",
        arguments: proofNames)
    func proofFields(name: String) throws {
        let fields = makeFields(makeHost(underscores: .keep))
        for spelling in UpstreamHeadTests.spellings(name) {
            for verdict in verdicts {
                let head = try request("GET /a", ["\(spelling): secret"])
                #expect(!text(try written(head, fields, context(verdict))).contains("secret"))
                let passed = try written(head, fields, context(verdict, passProof: true))
                #expect(lines(passed).contains("\(spelling): secret"))
            }
        }
    }

    @Test("a renamed proof field goes, and the default name with it, which then means nothing")
    func renamedProof() throws {
        let fields = makeFields(makeHost(keyIDField: "X-Key"))
        let head = try request("GET /a", ["X-Key: secret", "App-Attest-Key-Id: other"])
        let bytes = try written(head, fields)
        #expect(!text(bytes).contains("secret"))
        #expect(!text(bytes).contains("other"))
        let passed = try written(head, fields, context(passProof: true))
        #expect(text(passed).contains("X-Key: secret"))
        #expect(!text(passed).contains("other"))
    }

    @Test("an envelope's own content type replaces every spelling of the client's")
    func contentType() throws {
        let head = try request("POST /a", ["content-TYPE: a/b", "content.type: c/d"])
        var context = context()
        #expect(values("Content-Type", try written(head, makeFields(), context)) == ["a/b"])
        context.contentType = Array("e/f".utf8)
        let bytes = try written(head, makeFields(), context)
        #expect(values("Content-Type", bytes) == ["e/f"])
        #expect(!text(bytes).contains("c/d"))
    }

    @Test(
        "method overrides go where anything is protected and stay on an off host",
        arguments: overrides)
    func methodOverrides(name: String) throws {
        let protected: [HostFields] = [
            makeFields(makeHost(unmatched: .off, underscores: .keep, modes: [.enforce])),
            makeFields(makeHost(unmatched: .off, underscores: .keep, modes: [.monitor])),
            makeFields(makeHost(unmatched: .off, underscores: .keep, modes: [.deny(404)])),
            makeFields(makeHost(unmatched: .deny, underscores: .keep, modes: [.off])),
            makeFields(makeHost(unmatched: .enforce, underscores: .keep, modes: [])),
        ]
        let off = makeFields(makeHost(unmatched: .off, underscores: .keep, modes: [.off]))
        for spelling in UpstreamHeadTests.spellings(name) {
            let head = try request("GET /a", ["\(spelling): POST"])
            for fields in protected {
                #expect(!text(try written(head, fields)).contains("POST"), "\(spelling)")
            }
            #expect(lines(try written(head, off)).contains("\(spelling): POST"))
        }
    }

    @Test("hop-by-hop fields go, and what Connection names")
    func hopByHop() throws {
        let head = try request(
            "GET /a",
            [
                "Connection: close, X-Hop, App-Attest-Verdict, X-Forwarded-For, X-Request-Id",
                "X-Hop: gone", "Keep-Alive: gone", "Proxy-Connection: gone",
                "Proxy-Authorization: gone", "TE: trailers", "Trailer: gone", "Upgrade: h2c",
                "HTTP2-Settings: gone", "X-Stays: 1",
            ])
        let bytes = try written(head)
        for name in [
            "Connection", "X-Hop", "Keep-Alive", "Proxy-Connection", "Proxy-Authorization", "TE",
            "Trailer", "Upgrade", "HTTP2-Settings",
        ] {
            #expect(values(name, bytes).isEmpty, "\(name)")
        }
        #expect(values("X-Stays", bytes) == ["1"])
        #expect(values("App-Attest-Verdict", bytes) == ["off"])
        #expect(values("X-Forwarded-For", bytes) == ["203.0.113.7"])
        #expect(values("X-Request-Id", bytes) == ["rid-1"])
    }

    @Test("hop-by-hop fields go even from a head that nobody marked")
    func unmarked() throws {
        let head = try request(
            "POST /a",
            [
                "Connection: close", "Keep-Alive: gone", "Proxy-Connection: gone",
                "Proxy-Authorization: gone", "TE: trailers", "Trailer: gone", "Upgrade: h2c",
                "HTTP2-Settings: gone", "Transfer-Encoding: chunked",
            ])
        let bytes = try UpstreamHead.bytes(
            head, makeFields(), context(body: .length(1)), setFields: SetFields([]))
        for name in [
            "Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authorization", "TE", "Trailer",
            "Upgrade", "HTTP2-Settings", "Transfer-Encoding",
        ] {
            #expect(values(name, bytes).isEmpty, "\(name)")
        }
    }

    @Test("hop-by-hop fields and lengths go in the spellings that fold to them")
    func hopByHopSpellings() throws {
        let fields = makeFields(makeHost(underscores: .keep))
        for name in [
            "Content-Length", "Transfer-Encoding", "Keep-Alive", "Proxy-Connection",
            "Proxy-Authorization", "HTTP2-Settings",
        ] {
            for separator in ["_", "."] {
                let spelling = name.replacing("-", with: separator)
                let head = try request("GET /a", ["\(spelling): gone"])
                #expect(!text(try written(head, fields)).contains("gone"), "\(spelling)")
            }
        }
    }

    @Test(
        "a Connection that names a field the upstream or the gate relies on is refused",
        arguments: [
            "Host", "Content-Length", "Transfer-Encoding", "Authorization", "Cookie",
            "Content-Type", "Content-Encoding", "App-Attest-Key-Id", "App-Attest-Assertion",
            "App-Attest-Client-Data", "App-Attest-Challenge", "App-Attest-Attestation",
            "X-Account-Id",
        ])
    func protectedNames(name: String) throws {
        for spelling in UpstreamHeadTests.spellings(name) {
            var head = try request("GET /a", ["Connection: close, \(spelling)"])
            #expect(throws: MessageError.connectionNamesProtectedField) {
                try HopByHop.mark(&head, protected: makeFields().protectedNames)
            }
        }
    }

    @Test("the two fields that are no proof may be named by Connection")
    func unprotectedNames() throws {
        for name in ["App-Attest-Unsupported", "App-Attest-Device-Token", "X-Any"] {
            var head = try request("GET /a", ["Connection: \(name)"])
            try HopByHop.mark(&head, protected: makeFields().protectedNames)
        }
    }

    @Test("names with an underscore go by default and stay with keep")
    func underscores() throws {
        let head = try request("GET /a", ["X_User: u", "X-User: v"])
        let dropped = try written(head, makeFields(makeHost(underscores: .drop)))
        #expect(values("X_User", dropped).isEmpty)
        #expect(values("X-User", dropped) == ["v"])
        let rejecting = try written(head, makeFields(makeHost(underscores: .reject)))
        #expect(values("X_User", rejecting).isEmpty)
        let kept = try written(head, makeFields(makeHost(underscores: .keep)))
        #expect(values("X_User", kept) == ["u"])
    }

    @Test("only underscores reject refuses a request for a name with one")
    func underscoreRule() throws {
        let with = try request("GET /a", ["X_User: u"])
        let without = try request("GET /a", ["X-User: u_v"])
        for underscores in [Host.Underscores.drop, .keep, .reject] {
            let fields = makeFields(makeHost(underscores: underscores))
            #expect(UnderscoreRule.refuses(with, fields) == (underscores == .reject))
            #expect(!UnderscoreRule.refuses(without, fields))
        }
    }

    @Test("Expect goes on only where told")
    func expect() throws {
        let head = try request("POST /a", ["Expect: 100-continue", "Content-Length: 2"])
        let fields = makeFields()
        #expect(values("Expect", try written(head, fields, context())).isEmpty)
        let streaming = try written(head, fields, context(expect: true, body: .length(2)))
        #expect(values("Expect", streaming) == ["100-continue"])
    }

    @Test("the length is the gate's: exact, 0 on a POST without body, chunked where unknown")
    func lengths() throws {
        let fields = makeFields()
        let chunked = try request("POST /a", ["Transfer-Encoding: chunked"])
        let buffered = try written(chunked, fields, context(body: .length(5)))
        #expect(values("Content-Length", buffered) == ["5"])
        #expect(values("Transfer-Encoding", buffered).isEmpty)
        let known = try request("POST /a", ["Content-Length: 7"])
        #expect(
            values("Content-Length", try written(known, fields, context(body: .length(5)))) == ["5"]
        )
        let streamed = try written(chunked, fields, context(body: .chunked))
        #expect(values("Content-Length", streamed).isEmpty)
        #expect(values("Transfer-Encoding", streamed) == ["chunked"])
        for (method, expected) in [
            ("POST", ["0"]), ("PUT", ["0"]), ("PATCH", ["0"]), ("GET", []), ("DELETE", []),
        ] {
            let bytes = try written(try request("\(method) /a"), fields, context(body: .none))
            #expect(values("Content-Length", bytes) == expected, "\(method)")
        }
    }
}

@Suite("Upstream head: what the gate adds")
struct UpstreamHeadAdditionsTests {
    @Test("the verdict is there in every mode, key, counter and risk only when verified")
    func verdict() throws {
        let risk = RiskSignals(keyAge: 5)
        for (verdict, name) in [
            (Verdict.fallback, "fallback"), (.monitored, "monitored"), (.off, "off"),
            (.unverified, "unverified"),
        ] {
            let bytes = try written(try request("GET /a"), makeFields(), context(verdict))
            #expect(values("App-Attest-Verdict", bytes) == [name])
            #expect(values("App-Attest-Verified-Key", bytes).isEmpty)
            #expect(values("App-Attest-Counter", bytes).isEmpty)
            #expect(values("App-Attest-Risk", bytes).isEmpty)
        }
        let key = VerifiedKey(keyID: keyID, counter: 4_294_967_295, risk: risk)
        let bytes = try written(try request("GET /a"), makeFields(), context(.verified(key)))
        #expect(values("App-Attest-Verdict", bytes) == ["verified"])
        #expect(values("App-Attest-Verified-Key", bytes) == [Base64.encode(keyID.array)])
        #expect(values("App-Attest-Counter", bytes) == ["4294967295"])
        #expect(values("App-Attest-Risk", bytes) == ["key-age=5"])
        let bare = VerifiedKey(keyID: keyID, counter: 1)
        let without = try written(try request("GET /a"), makeFields(), context(.verified(bare)))
        #expect(values("App-Attest-Risk", without).isEmpty)
    }

    @Test("the app is there always, but on a host that has none")
    func app() throws {
        let head = try request("GET /a")
        #expect(values("App-Attest-App", try written(head)) == ["shop;env=production"])
        let none = HostFields(makeHost(), app: nil)
        #expect(values("App-Attest-App", try written(head, none)).isEmpty)
    }

    @Test("the account is percent-encoded, and absent where there is none")
    func account() throws {
        let head = try request("GET /a")
        for account in [nil, []] as [[UInt8]?] {
            let bytes = try written(head, makeFields(), context(account: account))
            #expect(values("App-Attest-Account", bytes).isEmpty)
        }
        let bytes = try written(
            head, makeFields(), context(account: Array("a b%c\u{e9}".utf8)))
        #expect(values("App-Attest-Account", bytes) == ["a%20b%25c%C3%A9"])
    }

    @Test("a signed operation replaces the client's idempotency key, in every spelling")
    func operationID() throws {
        let fields = makeFields(makeHost(underscores: .keep))
        let head = try request("POST /a", ["Idempotency-Key: mine", "Idempotency_Key: mine"])
        let kept = try written(head, fields, context())
        #expect(values("Idempotency-Key", kept) == ["mine"])
        let bytes = try written(head, fields, context(operationID: "op-1"))
        #expect(values("Idempotency-Key", bytes) == ["op-1"])
        #expect(!text(bytes).contains("mine"))
    }

    @Test("forwarding fields are set for an untrusted peer")
    func forwardedSet() throws {
        let bytes = try written(try request("GET /a", ["Host: api.example.com:8443"]))
        #expect(values("X-Forwarded-For", bytes) == ["203.0.113.7"])
        #expect(values("X-Forwarded-Proto", bytes) == ["https"])
        #expect(values("X-Forwarded-Host", bytes) == ["api.example.com:8443"])
        #expect(values("Via", bytes) == ["1.1 attestgate"])
        let clear = try written(
            try request("GET /a"), makeFields(), context(peer: "", scheme: .http))
        #expect(values("X-Forwarded-For", clear) == ["unknown"])
        #expect(values("X-Forwarded-Proto", clear) == ["http"])
    }

    @Test("forwarding fields are appended to for a trusted peer, as one list each")
    func forwardedAppended() throws {
        let head = try request(
            "GET /a",
            [
                "X-Forwarded-For: 198.51.100.1", "x-forwarded-for: 198.51.100.2, 10.0.0.9",
                "X-Forwarded-Proto: https", "X-Forwarded-Host: shop.example", "Via: 1.1 edge",
                "X.Forwarded.For: spoof", "X-Forwarded-Port: 443", "Forwarded: for=1.2.3.4",
                "X-Real-IP: 1.2.3.4", "X-Account-Id: kept", "X.Account.Id: spoof",
            ])
        let bytes = try written(
            head, makeFields(), context(trusted: true, peer: "10.0.0.1", scheme: .http))
        #expect(
            values("X-Forwarded-For", bytes) == [
                "198.51.100.1, 198.51.100.2, 10.0.0.9, 10.0.0.1"
            ])
        #expect(values("X-Forwarded-Proto", bytes) == ["https, http"])
        #expect(values("X-Forwarded-Host", bytes) == ["shop.example, api.example.com"])
        #expect(values("Via", bytes) == ["1.1 edge", "1.1 attestgate"])
        #expect(!text(bytes).contains("spoof"))
        #expect(values("X-Forwarded-Port", bytes) == ["443"])
        #expect(values("Forwarded", bytes) == ["for=1.2.3.4"])
        #expect(values("X-Real-IP", bytes) == ["1.2.3.4"])
        #expect(values("X-Account-Id", bytes) == ["kept"])
    }

    @Test("the request id is the context's alone")
    func requestID() throws {
        for trusted in [false, true] {
            let bytes = try written(
                try request("GET /a", ["X-Request-Id: theirs"]), makeFields(),
                context(trusted: trusted))
            #expect(values("X-Request-Id", bytes) == ["rid-1"])
        }
    }

    @Test("the upstream's own fields are set, and the client's of that name go, in every spelling")
    func setFields() throws {
        let secret = makeSetField("s3")
        for spelling in UpstreamHeadTests.spellings("X-Gate-Secret") {
            let bytes = try written(
                try request("GET /a", ["\(spelling): guess"]),
                makeFields(makeHost(underscores: .keep)), setFields: [secret])
            #expect(values("X-Gate-Secret", bytes) == ["s3"])
            #expect(!text(bytes).contains("guess"))
        }
    }

    @Test("a secret that would end the head is not written")
    func setFieldSplit() throws {
        for value in ["a\r\nX: b", "a\nb", "a\u{0}"] {
            let secret = makeSetField(value)
            #expect(throws: HeadWriterError.fieldValueInvalid) {
                try written(try request("GET /a"), setFields: [secret])
            }
        }
    }
}

extension String {
    func replacing(_ old: Character, with new: String) -> String {
        split(separator: old, omittingEmptySubsequences: false).joined(separator: new)
    }

    func replacingCharacters(at index: String.Index, with new: String) -> String {
        String(self[..<index]) + new + String(self[self.index(after: index)...])
    }
}
