import GateBytes
import GateCrypto
import Testing

@Suite("SHA-256 and HMAC: published values")
struct HashTests {
    @Test(
        "the hash of a text is FIPS 180-4's",
        arguments: [
            ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            (
                "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
            ),
        ])
    func published(text: String, hash: String) {
        #expect(Hex.encode(SHA256.hash(Array(text.utf8)).array) == hash)
    }

    @Test("SHA-1 is FIPS 180-4's, and what RFC 6455 §1.3 makes of its example")
    func sha1() {
        #expect(
            SHA1.hash(Array("abc".utf8)).map(Hex.encode)
                == "a9993e364706816aba3e25717850c26c9cd0d89d")
        #expect(
            SHA1.hash([]).map(Hex.encode) == "da39a3ee5e6b4b0d3255bfef95601890afd80709")
        let text = "dGhlIHNhbXBsZSBub25jZQ==258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        #expect(
            SHA1.hash(Array(text.utf8)).map(Base64.encode) == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
    }

    @Test("pieces hash as the whole does, wherever the cuts are")
    func pieces() {
        let bytes = (0..<200).map { UInt8($0) }
        for cut in 0...200 {
            var hasher = SHA256Hasher()
            hasher.update(bytes, 0..<cut)
            hasher.update(bytes, cut..<200)
            #expect(hasher.finish() == SHA256.hash(bytes))
        }
    }

    @Test("a range hashes as the same bytes alone")
    func range() {
        let bytes = (0..<100).map { UInt8($0) }
        #expect(SHA256.hash(bytes, 10..<20) == SHA256.hash(Array(bytes[10..<20])))
        #expect(SHA256.hash(bytes, 10..<10) == SHA256.hash([]))
    }

    @Test("thirty-two bytes by value hash as the same bytes in an array")
    func byValue() {
        let value = SystemRandom.bytes32()
        var hasher = SHA256Hasher()
        hasher.update(value)
        #expect(hasher.finish() == SHA256.hash(value.array))
    }

    @Test(
        "the code of a message is RFC 4231's",
        arguments: [
            (
                String(repeating: "0b", count: 20), Hex.encode(Array("Hi There".utf8)),
                "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
            ),
            (
                Hex.encode(Array("Jefe".utf8)),
                Hex.encode(Array("what do ya want for nothing?".utf8)),
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
            ),
            (
                String(repeating: "aa", count: 131),
                Hex.encode(Array("Test Using Larger Than Block-Size Key - Hash Key First".utf8)),
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
            ),
        ])
    func hmac(key: String, message: String, code: String) throws {
        let hmac = HMACSHA256(key: try #require(Hex.decode(key)))
        #expect(Hex.encode(hmac.authenticate(try #require(Hex.decode(message))).array) == code)
    }

    @Test("equal and unequal secrets are told apart at every place")
    func constantTime() {
        let secret = SystemRandom.bytes(40)
        #expect(ConstantTime.equal(secret, secret))
        #expect(ConstantTime.equal([], []))
        #expect(!ConstantTime.equal(secret, Array(secret.dropLast())))
        for index in secret.indices {
            var other = secret
            other[index] ^= 1
            #expect(!ConstantTime.equal(secret, other))
        }
    }

    @Test("random bytes do not repeat and fill what is asked for")
    func random() {
        var seen: Set<[UInt8]> = []
        for _ in 0..<100 { seen.insert(SystemRandom.bytes(16)) }
        #expect(seen.count == 100)
        #expect(SystemRandom.bytes(0).isEmpty)
        #expect(SystemRandom.bytes(1000).count == 1000)
        #expect(SystemRandom.bytes32() != SystemRandom.bytes32())
    }

    @Test("the library says its version")
    func version() {
        #expect(LibraryVersion.openSSL.hasPrefix("OpenSSL 3"))
    }
}
