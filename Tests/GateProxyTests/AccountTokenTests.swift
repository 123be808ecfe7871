import GateBytes
import GateCrypto
import GateProxy
import Testing

/// Tokens signed here, with ES256.
private struct Signer {
    let key = ECPrivateKey.generate(.p256)

    var numbers: (x: String, y: String) {
        let point = key.point
        return (Base64.encodeURL(Array(point[1..<33])), Base64.encodeURL(Array(point[33...])))
    }

    func jwk(_ more: String = "\"kid\":\"k1\"") -> String {
        "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"\(numbers.x)\",\"y\":\"\(numbers.y)\""
            + (more.isEmpty ? "" : "," + more) + "}"
    }

    /// r ‖ s of the DER that the key makes.
    func sign(_ text: String) -> [UInt8] {
        let der = key.sign(Array(text.utf8), digest: .sha256)
        var halves: [UInt8] = []
        var index = 2
        for _ in 0..<2 {
            let count = Int(der[index + 1])
            let number = der[(index + 2)..<(index + 2 + count)].drop { $0 == 0 }
            halves += [UInt8](repeating: 0, count: 32 - number.count) + number
            index += 2 + count
        }
        return halves
    }

    func token(header: String, claims: String) -> String {
        let text = [header, claims].map { Base64.encodeURL(Array($0.utf8)) }
            .joined(separator: ".")
        return text + "." + Base64.encodeURL(sign(text))
    }

    func token(
        _ claims: String, header: String = "{\"alg\":\"ES256\",\"kid\":\"k1\"}"
    ) -> String {
        token(header: header, claims: claims)
    }
}

private let now: Int64 = 1_800_000_000

private func keySet(_ keys: String...) throws -> TokenKeySet {
    try TokenKeySet.parse(set: Array("{\"keys\":[\(keys.joined(separator: ","))]}".utf8))
}

private func judge(
    _ token: String, _ keys: TokenKeySet, _ rules: TokenRules = TokenRules(), at time: Int64 = now
) -> Result<String, TokenError> {
    do throws(TokenError) {
        let token = try JSONWebToken(Array(token.utf8), algorithms: rules.algorithms)
        return .success(
            String(decoding: try token.account(keys, rules, now: time), as: UTF8.self))
    } catch {
        return .failure(error)
    }
}

private let good = "{\"sub\":\"alice\",\"exp\":1800000100}"

@Suite("Accounts: tokens")
struct AccountTokenTests {
    private let signer = Signer()

    private func judge(
        _ claims: String, header: String = "{\"alg\":\"ES256\",\"kid\":\"k1\"}",
        rules: TokenRules = TokenRules(), at time: Int64 = now
    ) throws -> Result<String, TokenError> {
        GateProxyTests.judge(
            signer.token(claims, header: header), try keySet(signer.jwk()), rules, at: time)
    }

    @Test("a token of each algorithm names its account")
    func algorithms() throws {
        let set = try keySet(
            "{\"kty\":\"RSA\",\"kid\":\"r1\",\"n\":\"\(Tokens.modulus)\",\"e\":\"AQAB\"}",
            "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"kid\":\"o1\",\"x\":\"\(Tokens.edwardsX)\"}",
            signer.jwk())
        #expect(set.count == 3 && set.omissions == [])
        for token in [Tokens.rs256, Tokens.ps256, Tokens.edDSA, signer.token(good)] {
            #expect(GateProxyTests.judge(token, set) == .success("alice"))
        }
        let bare = try TokenKeySet.parse(pem: Array(Tokens.pem.utf8))
        #expect(GateProxyTests.judge(Tokens.rs256, bare) == .success("alice"))
        #expect(GateProxyTests.judge(Tokens.edDSA, bare) == .failure(.signature))
    }

    @Test("a public key is never taken for a secret, and none is no algorithm")
    func confusion() throws {
        for set in [
            try TokenKeySet.parse(pem: Array(Tokens.pem.utf8)),
            try keySet(
                "{\"kty\":\"RSA\",\"kid\":\"r1\",\"n\":\"\(Tokens.modulus)\",\"e\":\"AQAB\"}"),
        ] {
            #expect(GateProxyTests.judge(Tokens.hs256OfPEM, set) == .failure(.algorithm))
            #expect(GateProxyTests.judge(Tokens.rs256OfHMAC, set) == .failure(.signature))
            #expect(GateProxyTests.judge(Tokens.psAsRS, set) == .failure(.signature))
        }
        for name in ["none", "None", "NONE", "", "HS256", "es256", "ES384", "RS512"] {
            let header = "{\"alg\":\"\(name)\",\"kid\":\"k1\"}"
            #expect(try judge(good, header: header) == .failure(.algorithm))
            let parts = signer.token(good, header: header).split(separator: ".")
            let unsigned = "\(parts[0]).\(parts[1])."
            #expect(
                GateProxyTests.judge(unsigned, try keySet(signer.jwk())) == .failure(.algorithm))
        }
        let unsigned = signer.token(good).split(separator: ".").prefix(2).joined(separator: ".")
        #expect(
            GateProxyTests.judge(unsigned + ".", try keySet(signer.jwk())) == .failure(.signature))
    }

    @Test("an algorithm that is not configured is refused, whatever the key could do")
    func configuredAlgorithms() throws {
        let rules = TokenRules(algorithms: [.rs256, .edDSA])
        #expect(try judge(good, rules: rules) == .failure(.algorithm))
        #expect(try judge(good, rules: TokenRules(algorithms: [.es256])) == .success("alice"))
        let token = try JSONWebToken(
            Array(signer.token(good).utf8), algorithms: [.es256])
        let set = try keySet(signer.jwk())
        #expect(throws: TokenError.algorithm) { try token.account(set, rules, now: now) }
    }

    @Test("crit is refused, whatever it lists")
    func critical() throws {
        for value in ["[\"exp\"]", "[]", "[\"b64\"]", "null", "1"] {
            let header = "{\"alg\":\"ES256\",\"kid\":\"k1\",\"crit\":\(value)}"
            #expect(try judge(good, header: header) == .failure(.critical))
        }
    }

    @Test("a kid is for exactly that key; without one the fitting keys are tried")
    func keyIDs() throws {
        let other = Signer()
        let set = try keySet(other.jwk("\"kid\":\"k2\""), signer.jwk())
        func judge(_ header: String) -> Result<String, TokenError> {
            GateProxyTests.judge(signer.token(good, header: header), set)
        }
        #expect(judge("{\"alg\":\"ES256\",\"kid\":\"k1\"}") == .success("alice"))
        #expect(judge("{\"alg\":\"ES256\",\"kid\":\"k2\"}") == .failure(.signature))
        #expect(judge("{\"alg\":\"ES256\",\"kid\":\"k3\"}") == .failure(.keyUnknown))
        #expect(judge("{\"alg\":\"ES256\",\"kid\":\"\"}") == .failure(.keyUnknown))
        #expect(judge("{\"alg\":\"ES256\",\"kid\":1}") == .failure(.malformed))
        #expect(judge("{\"alg\":\"ES256\"}") == .success("alice"))
        let many = (0..<TokenKeySet.triesMax).map { _ in Signer().jwk("") } + [signer.jwk("")]
        let long = try TokenKeySet.parse(
            set: Array("{\"keys\":[\(many.joined(separator: ","))]}".utf8))
        let token = signer.token(good, header: "{\"alg\":\"ES256\"}")
        #expect(GateProxyTests.judge(token, long) == .failure(.signature))
    }

    @Test("what is not three parts of unpadded base64url over strict JSON is refused")
    func form() throws {
        let set = try keySet(signer.jwk())
        let token = signer.token(good)
        let parts = token.split(separator: ".").map(String.init)
        for text in [
            "", ".", "..", "...", parts[0], "\(parts[0]).\(parts[1])", token + ".",
            token + "." + parts[2], token + "=", "\(parts[0])=.\(parts[1]).\(parts[2])",
            " " + token, token + "\n", token.replacing(parts[2], with: parts[2] + "+"),
            "e30.\(parts[1]).\(parts[2])",
        ] {
            #expect(GateProxyTests.judge(text, set) == .failure(.malformed), "\(text)")
        }
        for header in [
            "", "[]", "{\"alg\":\"ES256\",\"alg\":\"ES256\"}", "{\"alg\":1}", "{\"alg\":null}",
            "{\"alg\":\"ES256\",}", "{\"alg\":\"ES256\"} x",
            "{\"alg\":\"ES256\",\"\\u0061lg\":\"none\"}",
        ] {
            #expect(try judge(good, header: header) == .failure(.malformed), "\(header)")
        }
        for claims in [
            "", "[]", "{\"sub\":\"alice\",\"sub\":\"bob\",\"exp\":1800000100}",
            "{\"sub\":\"alice\",\"exp\":1800000100,\"x\":{\"a\":1,\"a\":2}}",
            "{\"sub\":\"alice\",\"exp\":\"1800000100\"}",
            "{\"sub\":\"alice\",\"exp\":1e400}", "{\"sub\":\"alice\",\"exp\":true}",
            "{\"sub\":\"alice\",\"exp\":[1800000100]}",
        ] {
            #expect(try judge(claims) == .failure(.malformed), "\(claims)")
        }
    }

    @Test("the longest token is taken and one byte more refused")
    func length() throws {
        let set = try keySet(signer.jwk())
        var filler = JSONWebToken.bytesMax * 3 / 4 - 200
        var token = ""
        while token.utf8.count < JSONWebToken.bytesMax {
            let more = String(repeating: "a", count: filler)
            token = signer.token("{\"sub\":\"alice\",\"exp\":1800000100,\"x\":\"\(more)\"}")
            if token.utf8.count <= JSONWebToken.bytesMax {
                #expect(GateProxyTests.judge(token, set) == .success("alice"))
            }
            filler += 1
        }
        if token.utf8.count == JSONWebToken.bytesMax {
            token = signer.token(
                "{\"sub\":\"alice\",\"exp\":1800000100,\"x\":\""
                    + String(repeating: "a", count: filler + 1) + "\"}")
        }
        #expect(token.utf8.count > JSONWebToken.bytesMax)
        #expect(GateProxyTests.judge(token, set) == .failure(.tooLong))
    }

    @Test("exp is required and ends a token, nbf and iat begin it, with leeway")
    func times() throws {
        func at(_ time: Int64, _ claims: String) throws -> Result<String, TokenError> {
            try judge("{\"sub\":\"alice\",\(claims)}", at: time)
        }
        #expect(try judge("{\"sub\":\"alice\"}") == .failure(.expiryMissing))
        #expect(try at(1059, "\"exp\":1000") == .success("alice"))
        #expect(try at(1060, "\"exp\":1000") == .failure(.expired))
        #expect(try at(1060, "\"exp\":1000.5") == .failure(.expired))
        #expect(try at(1060, "\"exp\":1.1e3") == .success("alice"))
        #expect(try at(0, "\"exp\":-61") == .failure(.expired))
        #expect(try at(0, "\"exp\":9223372036854775807") == .success("alice"))
        for name in ["nbf", "iat"] {
            #expect(try at(940, "\"exp\":2000,\"\(name)\":1000") == .success("alice"))
            #expect(try at(939, "\"exp\":2000,\"\(name)\":1000") == .failure(.notYetValid))
            #expect(try at(0, "\"exp\":2000,\"\(name)\":\"0\"") == .failure(.malformed))
        }
        let strict = TokenRules(leeway: 0)
        let claims = "{\"sub\":\"alice\",\"exp\":1000}"
        #expect(try judge(claims, rules: strict, at: 999) == .success("alice"))
        #expect(try judge(claims, rules: strict, at: 1000) == .failure(.expired))
    }

    @Test("issuer and audience must be those configured; an audience may stand in an array")
    func parties() throws {
        let rules = TokenRules(issuer: "https://a.example", audience: "shop")
        func judge(_ claims: String) throws -> Result<String, TokenError> {
            try self.judge("{\"sub\":\"alice\",\"exp\":1800000100\(claims)}", rules: rules)
        }
        let issuer = ",\"iss\":\"https://a.example\""
        #expect(try judge(issuer + ",\"aud\":\"shop\"") == .success("alice"))
        #expect(try judge(issuer + ",\"aud\":[\"x\",\"sh\\u006fp\"]") == .success("alice"))
        for audience in [
            "", ",\"aud\":\"Shop\"", ",\"aud\":[]", ",\"aud\":[\"x\",1]", ",\"aud\":[[\"shop\"]]",
        ] {
            #expect(try judge(issuer + audience) == .failure(.audience), "\(audience)")
        }
        #expect(try judge(issuer + ",\"aud\":{\"shop\":1}") == .failure(.malformed))
        for issuer in [
            "", ",\"iss\":\"https://a.example/\"", ",\"iss\":[\"https://a.example\"]",
        ] {
            #expect(try judge(issuer + ",\"aud\":\"shop\"") == .failure(.issuer), "\(issuer)")
        }
    }

    @Test("the account is a string of 1 to 256 bytes without controls, or an integer")
    func claim() throws {
        func judge(_ value: String, _ claim: String = "uid") throws -> Result<String, TokenError> {
            try self.judge(
                "{\"exp\":1800000100,\"uid\":\(value)}", rules: TokenRules(claim: claim))
        }
        #expect(try judge("\"alice\"") == .success("alice"))
        #expect(try judge("42") == .success("42"))
        #expect(try judge("\"42\"") == .success("42"))
        let longest = String(repeating: "a", count: 256)
        #expect(try judge("\"\(longest)\"") == .success(longest))
        for value in [
            "\"\"", "\"\(longest)a\"", "\"a\\u0000b\"", "\"a\\nb\"", "\"\\u007f\"", "null", "4.2",
            "1e3", "true", "[\"alice\"]", "{\"a\":1}", "\"a\u{85}b\"", "\"\\u009f\"",
        ] {
            #expect(try judge(value) == .failure(.claim), "\(value)")
        }
        #expect(try judge("\"\\u00a0\u{c5}\u{e9}\"") == .success("\u{a0}\u{c5}\u{e9}"))
        #expect(try judge("\"alice\"", "sub") == .failure(.claim))
        let byIssuer = TokenRules(issuer: "me", claim: "iss")
        #expect(
            try self.judge("{\"iss\":\"me\",\"exp\":1800000100}", rules: byIssuer)
                == .success("me"))
    }
}

@Suite("Accounts: key sets")
struct AccountKeySetTests {
    private let signer = Signer()

    @Test("keys that verify no token are left out, each with its reason")
    func omissions() throws {
        let numbers = signer.numbers
        let ec = "\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"\(numbers.x)\",\"y\":\"\(numbers.y)\""
        let cases = [
            ("{\(ec),\"use\":\"enc\"}", "its \"use\" is not \"sig\""),
            ("{\(ec),\"key_ops\":[\"sign\"]}", "its \"key_ops\" do not have \"verify\""),
            ("{\(ec),\"key_ops\":\"verify\"}", "its \"key_ops\" do not have \"verify\""),
            ("{\(ec),\"alg\":\"RS256\"}", "its \"alg\" is not one that fits it"),
            ("{\(ec),\"alg\":\"HS256\"}", "its \"alg\" is not one that fits it"),
            ("{\(ec),\"d\":\"AA\"}", "it is no public key"),
            ("{\"kty\":\"oct\",\"k\":\"AAAA\"}", "it is no public key"),
            ("{\(ec),\"kid\":1}", "\"kid\" is no string"),
            (
                "{\(ec),\"kid\":\"\(String(repeating: "a", count: 257))\"}",
                "its \"kid\" has over 256 bytes"
            ),
            (
                "{\"kty\":\"EC\",\"crv\":\"P-384\",\"x\":\"AA\",\"y\":\"AA\"}",
                "no algorithm here is for its \"kty\" and \"crv\""
            ),
            ("{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"\(numbers.x)\"}", "\"y\" is missing"),
            (
                "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"\(numbers.x)=\",\"y\":\"AA\"}",
                "\"x\" is no base64url"
            ),
            (
                "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"\(numbers.y)\",\"y\":\"AAAA\"}",
                "its numbers are no public key"
            ),
            (
                "{\"kty\":\"RSA\",\"n\":\"AQAB\",\"e\":\"AQAB\"}",
                "an RSA key of 17 bits is none of 2048 to 8192"
            ),
            ("{\(ec),\"kty\":\"EC\"}", ""), ("[]", "it is no object"),
            ("{\"crv\":\"P-256\"}", "\"kty\" is missing"),
        ]
        for (text, reason) in cases where !reason.isEmpty {
            let set = try keySet(text, signer.jwk())
            #expect(set.count == 1)
            #expect(set.omissions == ["key 1: \(reason)"])
        }
    }

    @Test("alg of a key binds it to that algorithm")
    func algorithm() throws {
        let rsa = "\"kty\":\"RSA\",\"kid\":\"r1\",\"n\":\"\(Tokens.modulus)\",\"e\":\"AQAB\""
        let set = try keySet("{\(rsa),\"alg\":\"PS256\"}")
        #expect(judge(Tokens.ps256, set) == .success("alice"))
        #expect(judge(Tokens.rs256, set) == .failure(.signature))
    }

    @Test("a text that is no set says why")
    func faults() {
        func message(_ text: String) -> String {
            do {
                return "\(try TokenKeySet.parse(set: Array(text.utf8)).count) keys"
            } catch {
                return "\(error)"
            }
        }
        #expect(message("{\"keys\":[]}") == "0 keys")
        #expect(message("{}") == "it has no member \"keys\"")
        #expect(message("{\"keys\":{}}") == "its member \"keys\" is no array")
        #expect(message("{\"keys\":[],\"keys\":[]}").hasPrefix("it is no strict JSON object"))
        #expect(message("<html>").hasPrefix("it is no strict JSON object"))
        let many = Array(repeating: signer.jwk(), count: 65).joined(separator: ",")
        #expect(message("{\"keys\":[\(many)]}") == "it has more than 64 keys")
        let long = String(repeating: " ", count: TokenKeySet.textBytesMax)
        #expect(message(long + "{}") == "it has more than 262144 bytes")
    }
}
