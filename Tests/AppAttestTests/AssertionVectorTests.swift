import AppAttest
import GateBytes
import GateCrypto
import Testing

@Suite("Assertion: real objects", .enabled(if: Vectors.arePresent, "no vectors beside the package"))
struct AssertionVectorTests {
    func verify(
        _ vector: AssertionVector, object: [UInt8]? = nil, hash: [UInt8]? = nil, previous: UInt32
    ) throws -> (counter: UInt32, extensions: OSExtensions) {
        let verified = try Assertion.verify(
            object: object ?? vector.object, clientDataHash: hash ?? vector.hash,
            publicKey: vector.publicKey, appID: vector.appId, previousCounter: previous)
        return (verified.signCounter, verified.extensions)
    }

    @Test("every real assertion verifies below its counter", arguments: Vectors.names("assertion"))
    func accepted(name: String) throws {
        let vector: AssertionVector = try Vectors.load("assertion", name)
        #expect(vector.expected.hasPrefix("accept with stored counter <"))
        let verified = try verify(vector, previous: vector.counter - 1)
        #expect(verified.counter == vector.counter)
        #expect(verified.extensions == (try expectedExtensions(vector.extensions)))
    }

    @Test("a stored counter of its own or above refuses it", arguments: Vectors.names("assertion"))
    func replayed(name: String) throws {
        let vector: AssertionVector = try Vectors.load("assertion", name)
        for stored in [vector.counter, vector.counter + 1, UInt32.max] {
            #expect(
                throws: AssertionError.counterNotGreater(
                    stored: stored, presented: vector.counter)
            ) {
                try verify(vector, previous: stored)
            }
        }
    }

    @Test(
        "the nonce is hashed once more before it is signed", arguments: Vectors.names("assertion"))
    func hashedTwice(name: String) throws {
        let vector: AssertionVector = try Vectors.load("assertion", name)
        let nonce = try bytes(vector.nonce)
        #expect(SHA256.hash(nonce).array == (try bytes(vector.digestSigned)))
        let key = try vector.publicKey.key
        let object = try vector.object
        let fields = Inspection.assertion(object)
        let der = try #require(
            fields.first { $0.name == "signature" }.flatMap { Hex.decode($0.value) })
        let once = try #require(Bytes32(nonce))
        #expect(key.isValidSignature(der, 0..<der.count, message: once))
        #expect(!key.isValidSignature(der, 0..<der.count, message: SHA256.hash(nonce)))
    }

    @Test("the entry that takes client data hashes it", arguments: Vectors.names("assertion"))
    func clientData(name: String) throws {
        let vector: AssertionVector = try Vectors.load("assertion", name)
        guard let clientData = try vector.clientData.map({ try bytes($0) }) else { return }
        let counter = try Assertion.verify(
            object: vector.object, clientData: clientData, publicKey: vector.publicKey,
            appID: vector.appId, previousCounter: 0
        ).signCounter
        #expect(counter == vector.counter)
        #expect(throws: AssertionError.signatureInvalid) {
            _ = try Assertion.verify(
                object: vector.object, clientData: clientData + [0], publicKey: vector.publicKey,
                appID: vector.appId, previousCounter: 0)
        }
    }

    @Test("another App ID is refused before the signature", arguments: Vectors.names("assertion"))
    func otherApp(name: String) throws {
        let vector: AssertionVector = try Vectors.load("assertion", name)
        #expect(throws: AssertionError.relyingPartyIDMismatch) {
            _ = try Assertion.verify(
                object: vector.object, clientDataHash: [], publicKey: vector.publicKey,
                appID: vector.appId + "x", previousCounter: 0)
        }
    }

    @Test("every cut is refused", arguments: Vectors.names("assertion"))
    func cuts(name: String) throws {
        let vector: AssertionVector = try Vectors.load("assertion", name)
        let object = try vector.object
        for length in 0..<object.count {
            #expect(
                reason { try verify(vector, object: Array(object[..<length]), previous: 0) }
                    == "assertion_malformed")
        }
        #expect(
            reason { try verify(vector, object: object + [0], previous: 0) }
                == "assertion_malformed")
    }

    @Test("every bit flipped is refused", arguments: Vectors.names("assertion"))
    func flips(name: String) throws {
        let vector: AssertionVector = try Vectors.load("assertion", name)
        let object = try vector.object
        for index in object.indices {
            for bit in 0..<8 {
                var flipped = object
                flipped[index] ^= 1 << UInt8(bit)
                #expect(
                    reason { try verify(vector, object: flipped, previous: 0) } != nil,
                    "byte \(index), bit \(bit)")
            }
        }
        for index in 0..<32 {
            var hash = try vector.hash
            guard index < hash.count else { continue }
            hash[index] ^= 1
            #expect(
                reason { try verify(vector, hash: hash, previous: 0) } == "signature_invalid")
        }
    }
}
