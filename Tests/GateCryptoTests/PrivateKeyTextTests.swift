import GateBytes
import GateCrypto
import Testing

@Suite("Private keys as text")
struct PrivateKeyTextTests {
    /// Keys made by `openssl genpkey` for these tests alone.
    private static let p256 = """
        -----BEGIN PRIVATE KEY-----
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgAIm/+8mGG8MTqYXq
        nixUpYLgPyTzQMNnqFUbSgE509yhRANCAASWbHTPRTpXAUi6y13oIx7lGo+6wS8V
        6HfevpqNcQzWs0GMeJUIVN6H+s1AiV+c6yAzPElVhzpGo4qO94GfekzC
        -----END PRIVATE KEY-----
        """
    private static let p384 = """
        -----BEGIN PRIVATE KEY-----
        MIG2AgEAMBAGByqGSM49AgEGBSuBBAAiBIGeMIGbAgEBBDDk1DPST4KL5uK/0tPl
        3nSQMHIEB2kF2usbyKbZd1ehbqUKTkVdhSkU1ldsKBd+rw+hZANiAATcF+8qNdak
        wGfV3NjpmtZaaKc9q2fHy0CwWQVnnvV2XibxA6NDEf+blk6tzzJAsCnDOZYei5iP
        HVi1NxZpEto7KnK+vWNOlmI5a32f5fp0avPU7Avn1ulpfUl6csiIHHU=
        -----END PRIVATE KEY-----
        """
    private static let encrypted = """
        -----BEGIN ENCRYPTED PRIVATE KEY-----
        AAAA
        -----END ENCRYPTED PRIVATE KEY-----
        """

    private func error(_ text: String) -> PrivateKeyTextError? {
        do throws(PrivateKeyTextError) {
            _ = try ServiceSigningKey(pem: Array(text.utf8))
            return nil
        } catch {
            return error
        }
    }

    @Test("a P-256 key signs, and its signature is r and s")
    func signs() throws {
        let key = try ServiceSigningKey(pem: Array(PrivateKeyTextTests.p256.utf8))
        let point = try #require(P256Point(x963: key.point))
        let publicKey = try #require(P256PublicKey(point))
        // Numbers with leading zeros come one time in 256.
        for number in 0..<600 {
            let message = SHA256.hash([UInt8(truncatingIfNeeded: number), UInt8(number / 256)])
            let raw = key.sign(message.array)
            #expect(raw.count == 64)
            let der = PrivateKeyTextTests.der(raw)
            #expect(publicKey.isValidSignature(der, 0..<der.count, message: message))
        }
    }

    private static func der(_ raw: [UInt8]) -> [UInt8] {
        func integer(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
            var number = Array(bytes.drop { $0 == 0 })
            if number.first.map({ $0 >= 0x80 }) ?? true { number.insert(0, at: 0) }
            return [0x02, UInt8(number.count)] + number
        }
        let both = integer(raw[..<32]) + integer(raw[32...])
        return [0x30, UInt8(both.count)] + both
    }

    @Test("what is no such key is named")
    func faults() {
        #expect(error(PrivateKeyTextTests.p256) == nil)
        #expect(error(PrivateKeyTextTests.p384) == .otherKind)
        #expect(error(PrivateKeyTextTests.encrypted) == .encrypted)
        #expect(error("") == .missing)
        #expect(error("-----BEGIN PUBLIC KEY-----") == .missing)
        #expect(
            error("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----") == .unreadable)
    }

    @Test("no message shows the key")
    func hidden() throws {
        let key = try ServiceSigningKey(pem: Array(PrivateKeyTextTests.p256.utf8))
        #expect("\(key)" == "a signing key")
        #expect(Mirror(reflecting: key).children.isEmpty)
    }
}
