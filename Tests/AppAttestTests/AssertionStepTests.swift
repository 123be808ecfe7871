import AppAttest
import AppAttestDevice
import GateBytes
import GateCrypto
import Testing

@Suite("Assertion: steps")
struct AssertionStepTests {
    let device = DeviceFixture.device(.iOS27)

    /// An assertion over any authenticator data, signed as the device would.
    func signed(_ data: [UInt8], hash: [UInt8] = DeviceFixture.hash) -> [UInt8] {
        let nonce = SHA256.hash(data + hash)
        return CBORValue.map([
            (.text("signature"), .bytes(device.key.sign(nonce.array))),
            (.text("authenticatorData"), .bytes(data)),
        ]).encoded
    }

    func failure(_ object: [UInt8], previous: UInt32 = 0) throws -> AssertionError? {
        do {
            _ = try DeviceFixture.verify(assertion: object, of: device, previousCounter: previous)
            return nil
        } catch let error as AssertionError {
            return error
        }
    }

    @Test("authenticator data of fewer than 37 bytes is refused, of 37 it is whole")
    func short() throws {
        let data = device.head(counter: 1)
        for count in 0..<37 {
            #expect(
                try failure(signed(Array(data[..<count])))
                    == .authenticatorDataTooShort(count: count))
        }
        #expect(try failure(signed(data)) == nil)
    }

    @Test("parsing says nothing of what the members hold")
    func parsing() throws {
        #expect(throws: Never.self) { try AssertionObject.parse(signed([])) }
    }

    @Test("the relying party ID hash is compared in all its bytes")
    func relyingParty() throws {
        for index in 0..<32 {
            var data = device.head(counter: 1)
            data[index] ^= 1
            #expect(try failure(signed(data)) == .relyingPartyIDMismatch)
        }
    }

    @Test("the counter is unsigned, big endian, and must be greater")
    func counter() throws {
        for counter: UInt32 in [1, 2, 0x0100, 0x7fff_ffff, 0x8000_0000, .max] {
            let object = signed(device.head(counter: counter))
            #expect(try failure(object, previous: counter - 1) == nil)
            for stored in [counter, .max] {
                #expect(
                    try failure(object, previous: stored)
                        == .counterNotGreater(stored: stored, presented: counter))
            }
        }
        #expect(
            try failure(signed(device.head(counter: 0)))
                == .counterNotGreater(stored: 0, presented: 0))
    }

    @Test("flags change nothing but the nonce")
    func flags() throws {
        for flags in stride(from: 0, through: 255, by: 5) {
            var data = device.head(counter: 1)
            data[32] = UInt8(flags)
            #expect(try failure(signed(data)) == nil)
        }
    }

    @Test("the signature is over this data, this hash and by this key")
    func signature() throws {
        let data = device.head(counter: 1)
        #expect(try failure(signed(data, hash: [1])) == .signatureInvalid)
        let other = DeviceFixture.device(.iOS27)
        let nonce = SHA256.hash(data + DeviceFixture.hash)
        for der in [
            other.key.sign(nonce.array), device.key.sign(SHA256.hash(nonce.array).array), [],
        ] {
            let object = CBORValue.map([
                (.text("signature"), .bytes(der)), (.text("authenticatorData"), .bytes(data)),
            ]).encoded
            #expect(try failure(object) == .signatureInvalid)
        }
    }

    @Test("the stages give what the one call gives, by value and by array")
    func stages() throws {
        var device = device
        let object = device.assert(clientDataHash: DeviceFixture.hash, counter: 9)
        let key = try #require(P256PublicKey(device.key.point))
        let relyingPartyIDHash = SHA256.hash(Array(device.appID.utf8))
        let checked = try AssertionObject.parse(object).check(
            relyingPartyIDHash: relyingPartyIDHash, previousCounter: 8)
        #expect(checked.signCounter == 9)
        let hash = try #require(Bytes32(DeviceFixture.hash))
        let byValue = try checked.verify(clientDataHash: hash, key: key)
        #expect(byValue.signCounter == 9)
        let byArray = try checked.verify(clientDataHash: DeviceFixture.hash, key: key)
        #expect(byArray.extensions == byValue.extensions)
        #expect(throws: AssertionError.signatureInvalid) {
            _ = try checked.verify(clientDataHash: Bytes32(), key: key)
        }
        #expect(throws: AssertionError.signatureInvalid) {
            _ = try checked.verify(clientDataHash: [], key: key)
        }
    }

    @Test("a point that is none makes no public key")
    func publicKey() {
        let point = device.key.point.x963
        #expect(PublicKey(x963: point)?.x963 == point)
        #expect(PublicKey(x963: Array(point.dropLast())) == nil)
        #expect(PublicKey(x963: [0x02] + point.dropFirst()) == nil)
        var off = point
        off[64] ^= 1
        #expect(PublicKey(x963: off) == nil)
        #expect(PublicKey(x963: []) == nil)
    }
}
