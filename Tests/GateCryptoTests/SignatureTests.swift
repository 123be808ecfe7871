import GateBytes
import GateCrypto
import Testing

@Suite("P-256: signatures over a message")
struct SignatureTests {
    let key = P256PrivateKey()
    let message = SystemRandom.bytes32()

    func verifies(_ der: [UInt8], over message: Bytes32) throws -> Bool {
        let publicKey = try #require(P256PublicKey(key.point))
        return publicKey.isValidSignature(der, 0..<der.count, message: message)
    }

    @Test("a signature over the message verifies, inside a larger array as well")
    func valid() throws {
        let der = key.sign(message.array)
        #expect(try verifies(der, over: message))
        let publicKey = try #require(P256PublicKey(key.point))
        let framed = [1, 2, 3] + der + [4]
        #expect(publicKey.isValidSignature(framed, 3..<(3 + der.count), message: message))
        #expect(!publicKey.isValidSignature(framed, 3..<(4 + der.count), message: message))
        #expect(!publicKey.isValidSignature(framed, 2..<(3 + der.count), message: message))
        #expect(!publicKey.isValidSignature(framed, 3..<3, message: message))
    }

    @Test("the message is hashed: its hash in its place does not verify")
    func hashedOnce() throws {
        let der = key.sign(message.array)
        #expect(try !verifies(der, over: SHA256.hash(message.array)))
    }

    @Test("every byte flipped is refused, in the signature and in the message")
    func flips() throws {
        let der = key.sign(message.array)
        for index in der.indices {
            for bit in 0..<8 {
                var other = der
                other[index] ^= 1 << UInt8(bit)
                #expect(try !verifies(other, over: message))
            }
        }
        for index in 0..<32 {
            var other = message
            other[index] ^= 1
            #expect(try !verifies(der, over: other))
        }
    }

    @Test("every cut of the signature is refused")
    func cuts() throws {
        let der = key.sign(message.array)
        for length in 0..<der.count {
            #expect(try !verifies(Array(der[..<length]), over: message))
        }
    }

    @Test("a signature that is not strict DER is refused")
    func strictDER() throws {
        let der = key.sign(message.array)
        let body = Array(der[2...])
        let firstLength = Int(body[1])
        let first = Array(body[2..<(2 + firstLength)])
        let rest = Array(body[(2 + firstLength)...])
        let padded = [0x02, UInt8(firstLength + 1), 0x00] + first + rest
        #expect(try !verifies([0x30, UInt8(padded.count)] + padded, over: message))
        #expect(try !verifies([0x30, 0x81, UInt8(body.count)] + body, over: message))
        #expect(try !verifies([0x30, 0x80] + body + [0, 0], over: message))
        #expect(try !verifies(der + [0], over: message))
    }

    @Test("another key does not verify")
    func otherKey() throws {
        let der = P256PrivateKey().sign(message.array)
        #expect(try !verifies(der, over: message))
    }

    @Test("a point off the curve makes no key")
    func offCurve() {
        var point = key.point
        point.y[31] ^= 1
        #expect(P256PublicKey(point) == nil)
        #expect(P256PublicKey(P256Point(x: Bytes32(), y: Bytes32())) == nil)
        let ones = Bytes32([UInt8](repeating: 0xff, count: 32))
        #expect(P256PublicKey(P256Point(x: ones ?? Bytes32(), y: ones ?? Bytes32())) == nil)
    }

    @Test("one key verifies from many tasks at once")
    func concurrent() async throws {
        let publicKey = try #require(P256PublicKey(key.point))
        let der = key.sign(message.array)
        let message = message
        let good = await withTaskGroup(of: Int.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    (0..<50).count { round in
                        var other = message
                        other[0] ^= UInt8(round & 1)
                        return publicKey.isValidSignature(der, 0..<der.count, message: other)
                    }
                }
            }
            return await group.reduce(0, +)
        }
        #expect(good == 8 * 25)
    }

    @Test("an exported key comes back and signs; halves that do not belong together are refused")
    func export() throws {
        let again = try #require(P256PrivateKey(point: key.point, scalar: key.scalar))
        #expect(try verifies(again.sign(message.array), over: message))
        #expect(P256PrivateKey(point: key.point, scalar: P256PrivateKey().scalar) == nil)
        #expect(P256PrivateKey(point: key.point, scalar: []) == nil)
    }
}

@Suite("Certificate keys: both curves, both hashes")
struct CertificateKeyTests {
    @Test("a signature verifies under its own curve, hash and message alone")
    func matrix() throws {
        let message = Array("to be signed".utf8)
        for curve in [ECCurve.p256, .p384] {
            let key = ECPrivateKey.generate(curve)
            #expect(key.point.count == curve.pointBytes)
            #expect(key.scalar.count == curve.coordinateBytes)
            let publicKey = try #require(ECPublicKey(curve, point: key.point))
            for digest in [ECDigest.sha256, .sha384] {
                let der = key.sign(message, digest: digest)
                func verifies(_ der: [UInt8], _ message: [UInt8], _ digest: ECDigest) -> Bool {
                    publicKey.isValidSignature(
                        der, 0..<der.count, message: message, 0..<message.count, digest: digest)
                }
                #expect(verifies(der, message, digest))
                #expect(!verifies(der, message, digest == .sha256 ? .sha384 : .sha256))
                #expect(!verifies(der, message + [0], digest))
                #expect(!verifies(Array(der.dropLast()), message, digest))
                #expect(!verifies([], message, digest))
            }
        }
    }

    @Test("a point of the wrong size, form or curve makes no key")
    func points() {
        let key = ECPrivateKey.generate(.p384)
        #expect(ECPublicKey(.p256, point: key.point) == nil)
        #expect(ECPublicKey(.p384, point: Array(key.point.dropLast())) == nil)
        #expect(ECPublicKey(.p384, point: [0x02] + key.point[1...48]) == nil)
        var hybrid = key.point
        hybrid[0] = 0x06 | (key.point[96] & 1)
        #expect(ECPublicKey(.p384, point: hybrid) == nil)
        var off = key.point
        off[96] ^= 1
        #expect(ECPublicKey(.p384, point: off) == nil)
        #expect(ECPublicKey(.p384, point: []) == nil)
    }

    @Test("a private key comes back from its halves")
    func export() throws {
        let key = ECPrivateKey.generate(.p384)
        let again = try #require(ECPrivateKey(.p384, point: key.point, scalar: key.scalar))
        #expect(again.point == key.point)
        #expect(ECPrivateKey(.p256, point: key.point, scalar: key.scalar) == nil)
    }
}
