import GateBytes
import GateCrypto
import Testing

@Suite("Tokens: keys and their signatures")
struct TokenKeyTests {
    let message = TokenVectors.message

    func bytes(_ text: String) throws -> [UInt8] {
        try #require(Base64.decode(text))
    }

    func key(_ text: String) throws -> TokenKey {
        try TokenKey.parse(pem: Array(text.utf8))
    }

    func rsa() throws -> TokenKey {
        try .rsa(modulus: bytes(TokenVectors.rsaModulus), exponent: [1, 0, 1])
    }

    func verifies(
        _ key: TokenKey, _ signature: String, _ algorithm: TokenAlgorithm
    ) throws -> Bool {
        let signature = try bytes(signature)
        let framed = [1] + message + [2]
        return key.isValidSignature(signature, over: framed, 1..<(1 + message.count), algorithm)
    }

    @Test("each algorithm verifies what another library signed, by PEM and by numbers")
    func knownAnswers() throws {
        for key in [try key(TokenKeyTexts.rsa), try rsa()] {
            #expect(key.kind == .rsa(bits: 2048))
            #expect(try verifies(key, TokenVectors.rs256, .rs256))
            #expect(try verifies(key, TokenVectors.ps256, .ps256))
        }
        let point = try TokenKey.p256(
            x: bytes(TokenVectors.p256X), y: bytes(TokenVectors.p256Y))
        for key in [try key(TokenKeyTexts.p256), point] {
            #expect(key.kind == .p256)
            #expect(try verifies(key, TokenVectors.es256, .es256))
            #expect(try verifies(key, TokenVectors.es256ShortR, .es256))
        }
        let edwards = try TokenKey.ed25519(x: bytes(TokenVectors.ed25519X))
        for key in [try key(TokenKeyTexts.ed25519), edwards] {
            #expect(key.kind == .ed25519)
            #expect(try verifies(key, TokenVectors.eddsa, .edDSA))
        }
        #expect(try verifies(key(TokenKeyTexts.rsa2056), TokenVectors.rs256Of2056, .rs256))
    }

    @Test("the example of RFC 8037, A.4 verifies")
    func rfc8037() throws {
        let key = try TokenKey.ed25519(x: bytes("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"))
        let text = Array("eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc".utf8)
        let signature = try bytes(
            "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg"
        )
        #expect(key.isValidSignature(signature, over: text, 0..<text.count, .edDSA))
    }

    @Test("a key verifies by no algorithm of another type")
    func confusion() throws {
        let keys = try [TokenKeyTexts.rsa, TokenKeyTexts.p256, TokenKeyTexts.ed25519].map(key)
        let own: [[TokenAlgorithm]] = [[.rs256, .ps256], [.es256], [.edDSA]]
        let signatures = [
            TokenVectors.rs256, TokenVectors.ps256, TokenVectors.es256, TokenVectors.eddsa,
        ]
        for (key, own) in zip(keys, own) {
            for algorithm in TokenAlgorithm.allCases {
                #expect(key.fits(algorithm) == own.contains(algorithm))
                let passed = try signatures.filter { try verifies(key, $0, algorithm) }
                #expect(passed.count == (own.contains(algorithm) ? 1 : 0))
            }
        }
    }

    @Test("other hashes, other salts and DER are refused")
    func variants() throws {
        let rsa = try rsa()
        for signature in [
            TokenVectors.rs256SHA1, TokenVectors.rs512, TokenVectors.ps256,
            TokenVectors.rs256Of2056,
        ] {
            #expect(try !verifies(rsa, signature, .rs256))
        }
        for signature in [
            TokenVectors.ps256Salt20, TokenVectors.ps256SaltMax, TokenVectors.ps256MGFSHA1,
            TokenVectors.rs256,
        ] {
            #expect(try !verifies(rsa, signature, .ps256))
        }
        #expect(try !verifies(key(TokenKeyTexts.p256), TokenVectors.es256DER, .es256))
    }

    @Test("a flipped bit, a cut and a longer signature are refused")
    func damage() throws {
        let cases: [(TokenKey, String, TokenAlgorithm)] = try [
            (rsa(), TokenVectors.rs256, .rs256), (rsa(), TokenVectors.ps256, .ps256),
            (key(TokenKeyTexts.p256), TokenVectors.es256, .es256),
            (key(TokenKeyTexts.ed25519), TokenVectors.eddsa, .edDSA),
        ]
        for (key, text, algorithm) in cases {
            let signature = try bytes(text)
            func passes(_ other: [UInt8]) -> Bool {
                key.isValidSignature(other, over: message, 0..<message.count, algorithm)
            }
            #expect(passes(signature))
            for index in stride(from: 0, to: signature.count, by: 7) {
                var other = signature
                other[index] ^= 1
                #expect(!passes(other))
                #expect(!passes(Array(signature[..<index])))
            }
            #expect(!passes(signature + [0]) && !passes([0] + signature))
            var text = message
            text[0] ^= 1
            #expect(!key.isValidSignature(signature, over: text, 0..<text.count, algorithm))
        }
        let zero = [UInt8](repeating: 0, count: 64)
        let point = try key(TokenKeyTexts.p256)
        #expect(!point.isValidSignature(zero, over: message, 0..<message.count, .es256))
        let edwards = try key(TokenKeyTexts.ed25519)
        #expect(!edwards.isValidSignature(zero, over: message, 0..<message.count, .edDSA))
    }

    @Test("keys of other sizes, curves and types are refused")
    func kinds() throws {
        for text in [
            TokenKeyTexts.rsa1024, TokenKeyTexts.p384, TokenKeyTexts.secp256k1,
            TokenKeyTexts.ed448,
        ] {
            #expect(throws: TokenKeyError.self) { try key(text) }
        }
        let modulus = try bytes(TokenVectors.rsaModulus)
        #expect(throws: TokenKeyError.kind("an RSA key of 2040 bits is none of 2048 to 8192")) {
            try TokenKey.rsa(modulus: Array(modulus.dropLast()), exponent: [1, 0, 1])
        }
        let long = [UInt8](repeating: 0xff, count: 1025)
        #expect(throws: TokenKeyError.self) { try TokenKey.rsa(modulus: long, exponent: [3]) }
        for exponent: [UInt8] in [[], [0], [1], [2], [1, 0, 0], [1, 0, 0, 0, 1]] {
            #expect(throws: TokenKeyError.numbers) {
                try TokenKey.rsa(modulus: modulus, exponent: exponent)
            }
        }
        var even = modulus
        even[even.count - 1] &= 0xfe
        #expect(throws: TokenKeyError.numbers) { try TokenKey.rsa(modulus: even, exponent: [3]) }
        var y = try bytes(TokenVectors.p256Y)
        let x = try bytes(TokenVectors.p256X)
        #expect(throws: TokenKeyError.numbers) { try TokenKey.p256(x: [0] + x, y: y) }
        y[31] ^= 1
        #expect(throws: TokenKeyError.numbers) { try TokenKey.p256(x: x, y: y) }
        #expect(throws: TokenKeyError.numbers) { try TokenKey.ed25519(x: Array(x.dropLast())) }
    }

    @Test("a text that is not one PUBLIC KEY says what it is")
    func texts() throws {
        func message(_ text: String) -> String {
            do {
                _ = try key(text)
                return "a key"
            } catch {
                return "\(error)"
            }
        }
        let good = TokenKeyTexts.p256
        #expect(message(good.replacing("\n", with: "\r\n")) == "a key")
        #expect(message("") == "no PEM stands in it")
        #expect(message(good + "\n" + good) == "more than one key stands in it")
        #expect(
            message(good.replacing("PUBLIC", with: "PRIVATE")) == "it holds a private key")
        #expect(
            message(good.replacing("PUBLIC KEY", with: "CERTIFICATE"))
                == "it holds a certificate and no bare key")
        #expect(
            message(good.replacing("PUBLIC KEY", with: "RSA PUBLIC KEY"))
                == "it holds no \"PUBLIC KEY\"")
        #expect(message(String(good.prefix(80))) == "its PEM is damaged")
        #expect(
            message(good.replacing("MFkw", with: "MFgw"))
                == "its PEM holds no public key that can be read")
        #expect(
            message(String(repeating: "a", count: 20_000)) == "it is too long for a public key")
    }
}
