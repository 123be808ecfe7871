import AppAttest
import AppAttestDevice
import GateBytes
import GateCrypto
import Testing

@Suite("CBOR: one strict form")
struct CBORTests {
    /// The fault of an assertion with a further member whose value is `hex`; nil when it parses.
    func fault(member hex: String) throws -> CBORError? {
        let value = try #require(Hex.decode(hex.filter { $0 != " " }))
        let bytes = [0xa3, 0x61, 0x78] + value + members
        return objectFault(bytes)
    }

    func objectFault(_ bytes: [UInt8]) -> CBORError? {
        do {
            _ = try AssertionObject.parse(bytes)
            return nil
        } catch .object(let error) {
            return error
        } catch {
            return nil
        }
    }

    /// `signature` and `authenticatorData` with one byte each.
    let members: [UInt8] =
        [0x69] + Array("signature".utf8) + [0x41, 0x00, 0x71] + Array("authenticatorData".utf8)
        + [0x41, 0x00]

    @Test(
        "values of the subset are skipped in a member nobody asks for",
        arguments: [
            "00", "17", "1818", "18ff", "190100", "1a00010000", "1b0000000100000000",
            "1bffffffffffffffff", "20", "3818", "3bffffffffffffffff", "40", "4100",
            "5818" + String(repeating: "00", count: 24),
            "60", "6161", "62c3a9", "64f09f8dba", "80", "820102", "8180", "a0", "a10102",
            "a2010202 03",
            "a1616101", "f4", "f5", "f6", "81818181818180", "a24101014100 02", "a1a0a0", "a18001",
        ])
    func accepted(value: String) throws {
        #expect(try fault(member: value) == nil)
    }

    @Test(
        "longer forms of a length or an integer are refused",
        arguments: [
            "1817", "190017", "1900ff", "1a0000ffff", "1b00000000ffffffff", "3800", "5800",
            "590001 00",
            "7800", "9800", "b800", "1a00000000", "580100",
        ])
    func notShortest(value: String) throws {
        guard case .lengthNotShortest = try fault(member: value) else {
            Issue.record("accepted, or refused otherwise")
            return
        }
    }

    @Test(
        "tags, floating point, indefinite lengths and reserved values are refused",
        arguments: [
            "c000", "d81800", "f90000", "fa00000000", "fb0000000000000000", "f7", "e0", "f0",
            "f814", "f8ff", "ff",
            "5f4100ff", "7f6161ff", "9f00ff", "bf0000ff", "1c", "1d", "1e", "1f", "3c", "5c", "7d",
            "9e", "bc",
        ])
    func unsupported(value: String) throws {
        guard case .itemUnsupported = try fault(member: value) else {
            Issue.record("accepted, or refused otherwise")
            return
        }
    }

    @Test(
        "a key twice is refused at every level, whatever its kind",
        arguments: [
            "a201010102", "a2616101616102", "a2410101410102", "81a201010102", "a101a201010102",
            "a2a00181a0a001", "a22001 2002", "a2f401f402", "a2800180 02",
        ])
    func duplicates(value: String) throws {
        if value == "a2a00181a0a001" {
            #expect(try fault(member: "a2a001a001") == .duplicateKey(offset: 6))
            return
        }
        guard case .duplicateKey = try fault(member: value) else {
            Issue.record("accepted, or refused otherwise")
            return
        }
    }

    @Test("a member twice is refused, also one that nobody asks for")
    func duplicateMembers() {
        let signature = [0x69] + Array("signature".utf8) + [0x41, 0x00]
        let data = [0x71] + Array("authenticatorData".utf8) + [0x41, 0x00]
        let other: [UInt8] = [0x61, 0x78, 0x00]
        #expect(objectFault([0xa2] + signature + data) == nil)
        #expect(objectFault([0xa2] + data + signature) == nil)
        #expect(objectFault([0xa4] + other + data + [0x61, 0x79, 0x00] + signature) == nil)
        for bytes in [
            [0xa3] + signature + data + signature, [0xa3] + signature + data + data,
            [0xa4] + other + signature + data + other,
        ] {
            guard case .duplicateKey = objectFault(bytes) else {
                Issue.record("accepted, or refused otherwise")
                continue
            }
        }
    }

    @Test("nesting ends at eight levels")
    func depth() throws {
        // The object itself is the first level.
        #expect(try fault(member: String(repeating: "81", count: 7) + "00") == nil)
        #expect(
            try fault(member: String(repeating: "81", count: 8) + "00")
                == .depthExceeded(offset: 10)
        )
        #expect(
            try fault(member: String(repeating: "a100", count: 8) + "00")
                == .depthExceeded(offset: 17))
        let deep = String(repeating: "81", count: 2000) + "00"
        guard case .depthExceeded = try fault(member: deep) else {
            Issue.record("accepted, or refused otherwise")
            return
        }
    }

    @Test("a map ends at sixteen members, at the top and inside")
    func membersMax() throws {
        func map(_ count: Int) -> String {
            Hex.encode(
                CBORValue.map((0..<count).map { (.integer(Int64($0)), .integer(0)) }).encoded)
        }
        #expect(try fault(member: map(16)) == nil)
        #expect(try fault(member: map(17)) == .membersExceeded(offset: 3))
        func object(_ others: Int) -> [UInt8] {
            var pairs: [(key: CBORValue, value: CBORValue)] = [
                (.text("signature"), .bytes([])), (.text("authenticatorData"), .bytes([])),
            ]
            for index in 0..<others { pairs.append((.text("x\(index)"), .integer(0))) }
            return CBORValue.map(pairs).encoded
        }
        #expect(objectFault(object(14)) == nil)
        #expect(objectFault(object(15)) == .membersExceeded(offset: 0))
    }

    @Test(
        "text that is not UTF-8 is refused",
        arguments: ["61ff", "61c3", "62c080", "63eda080", "64f4908080", "a161ff00"])
    func notUTF8(value: String) throws {
        guard case .textNotUTF8 = try fault(member: value) else {
            Issue.record("accepted, or refused otherwise")
            return
        }
    }

    @Test("a member's name that is not UTF-8 is refused")
    func nameNotUTF8() {
        let bytes: [UInt8] = [0xa3, 0x62, 0xc3, 0x28, 0x00] + members
        #expect(objectFault(bytes) == .textNotUTF8(offset: 1))
    }

    @Test(
        "lengths beyond the bytes are refused without a trap",
        arguments: [
            "5bffffffffffffffff", "5b7fffffffffffffff", "7bffffffffffffffff", "9bffffffffffffffff",
            "9b7fffffffffffffff", "5a7fffffff", "9affffffff", "19", "58", "5900", "1b00",
        ])
    func beyond(value: String) throws {
        let value = try #require(Hex.decode(value))
        guard case .truncated = objectFault([0xa1, 0x61, 0x78] + value) else {
            Issue.record("accepted, or refused otherwise")
            return
        }
    }

    @Test("bytes behind the object, and an object of another kind, are refused")
    func trailing() {
        let good = [0xa2] + members
        #expect(objectFault(good + [0]) == .trailingBytes(offset: good.count))
        #expect(objectFault([]) == .truncated(offset: 0))
        #expect(objectFault([0x80]) == .typeMismatch(expected: .map, offset: 0))
        #expect(objectFault([0x01]) == .typeMismatch(expected: .map, offset: 0))
        #expect(objectFault([0xa1, 0x01, 0x01]) == .typeMismatch(expected: .text, offset: 1))
        #expect(objectFault([0xa1, 0x41, 0x01]) == .typeMismatch(expected: .text, offset: 1))
    }

    @Test("members that are no byte strings, and missing ones, are refused")
    func assertionMembers() {
        func failure(_ bytes: [UInt8]) -> AssertionError? {
            do {
                _ = try AssertionObject.parse(bytes)
                return nil
            } catch {
                return error
            }
        }
        let signature = [0x69] + Array("signature".utf8)
        let data = [0x71] + Array("authenticatorData".utf8)
        #expect(failure([0xa1] + signature + [0x40]) == .memberMissing(.authenticatorData))
        #expect(failure([0xa1] + data + [0x40]) == .memberMissing(.signature))
        #expect(failure([0xa0]) == .memberMissing(.signature))
        for value: UInt8 in [0x00, 0x60, 0x80, 0xa0, 0xf6] {
            #expect(
                failure([0xa2] + signature + [value] + data + [0x40])?.reason
                    == "assertion_malformed")
            #expect(
                failure([0xa2] + signature + [0x40] + data + [value])?.reason
                    == "assertion_malformed")
        }
    }

    @Test("an assertion ends at 4 KiB, an attestation at 16 KiB")
    func sizes() {
        func assertion(_ padding: Int) -> [UInt8] {
            CBORValue.map([
                (.text("signature"), .bytes([UInt8](repeating: 0, count: padding))),
                (.text("authenticatorData"), .bytes([])),
            ]).encoded
        }
        let overhead = assertion(1000).count - 1000
        #expect(throws: Never.self) { try AssertionObject.parse(assertion(4096 - overhead)) }
        #expect(throws: AssertionError.objectTooLarge(count: 4097)) {
            try AssertionObject.parse(assertion(4097 - overhead))
        }
        let device = DeviceFixture.device()
        var recipe = device.recipe(clientDataHash: DeviceFixture.hash, at: DeviceFixture.now)
        recipe.receipt = [UInt8](repeating: 0, count: 10_000)
        let large = recipe.encoded { _ in [] }
        recipe.receipt = [UInt8](repeating: 0, count: 10_000 + 16_384 - large.count)
        // Signatures differ by a byte or two in length, so the size is looked at again.
        let near = recipe.encoded { _ in [] }
        if near.count <= 16_384 {
            #expect(throws: Never.self) { try DeviceFixture.verify(near, of: device) }
        }
        recipe.receipt = [UInt8](repeating: 0, count: 16_000)
        let over = recipe.encoded { _ in [] }
        #expect(throws: AttestationError.objectTooLarge(count: over.count)) {
            try DeviceFixture.verify(over, of: device)
        }
    }
}

@Suite("Attestation: object")
struct AttestationObjectTests {
    typealias Pair = (key: CBORValue, value: CBORValue)

    /// The members of a good object, to be put together differently.
    struct Members {
        let device = DeviceFixture.device(.iOS17)
        let leaf: [UInt8]
        let data: [UInt8]

        init() {
            let recipe = device.recipe(clientDataHash: DeviceFixture.hash, at: DeviceFixture.now)
            leaf = recipe.leaf.signed(by: recipe.issuerKey)
            data = recipe.authenticatorData
        }

        var x5c: Pair {
            (.text("x5c"), .array([.bytes(leaf), .bytes(device.root.intermediate)]))
        }
        var receipt: Pair { (.text("receipt"), .bytes([1])) }
        var format: Pair { (.text("fmt"), .text("apple-appattest")) }
        var statement: Pair { (.text("attStmt"), .map([x5c, receipt])) }
        var authData: Pair { (.text("authData"), .bytes(data)) }

        func failure(_ pairs: [Pair]) -> AttestationError? {
            do {
                _ = try DeviceFixture.verify(CBORValue.map(pairs).encoded, of: device)
                return nil
            } catch let error as AttestationError {
                return error
            } catch {
                fatalError("another error: \(error)")
            }
        }
    }

    let good = Members()

    @Test("members may come in any order, with others between them")
    func order() {
        let all = [good.format, good.statement, good.authData]
        #expect(good.failure(all) == nil)
        #expect(good.failure(all.reversed()) == nil)
        #expect(good.failure([good.authData, good.format, good.statement]) == nil)
        let hash: Pair = (
            .text("cdHash"), .map([(.text("h"), .bytes([1])), (.text("t"), .bytes([2]))])
        )
        #expect(good.failure([hash] + all + [(.text("more"), .array([.integer(1)]))]) == nil)
        #expect(
            good.failure([
                good.format, good.authData,
                (.text("attStmt"), .map([good.receipt, (.text("alg"), .integer(-7)), good.x5c])),
            ]) == nil)
    }

    @Test("a missing member is named")
    func missing() {
        #expect(
            good.failure([good.statement, good.authData]) == .memberMissing(.format))
        #expect(good.failure([good.format, good.authData]) == .memberMissing(.statement))
        #expect(
            good.failure([good.format, good.statement]) == .memberMissing(.authenticatorData))
        #expect(
            good.failure([good.format, good.authData, (.text("attStmt"), .map([good.x5c]))])
                == .memberMissing(.receipt))
        #expect(
            good.failure([good.format, good.authData, (.text("attStmt"), .map([good.receipt]))])
                == .memberMissing(.certificates))
    }

    @Test("another format is refused")
    func format() {
        for text in ["apple", "apple-appattes", "apple-appattest ", "Apple-appattest", ""] {
            #expect(
                good.failure([(.text("fmt"), .text(text)), good.statement, good.authData])
                    == .formatMismatch)
        }
    }

    @Test("a member twice is refused")
    func twice() {
        let all = [good.format, good.statement, good.authData]
        for pair in all {
            #expect(good.failure(all + [pair])?.reason == "attestation_malformed")
        }
        for pair in [good.x5c, good.receipt] {
            let statement: Pair = (.text("attStmt"), .map([good.x5c, good.receipt, pair]))
            #expect(
                good.failure([good.format, statement, good.authData])?.reason
                    == "attestation_malformed")
        }
    }

    @Test("a member of another kind is refused")
    func kinds() {
        let values: [CBORValue] = [.integer(1), .text("x"), .array([]), .map([]), .bytes([])]
        for value in values {
            if case .text = value {
            } else {
                #expect(
                    good.failure([(.text("fmt"), value), good.statement, good.authData])?.reason
                        == "attestation_malformed")
            }
            if case .bytes = value {
            } else {
                #expect(
                    good.failure([good.format, good.statement, (.text("authData"), value)])?.reason
                        == "attestation_malformed")
                let statement: Pair = (
                    .text("attStmt"), .map([good.x5c, (.text("receipt"), value)])
                )
                #expect(
                    good.failure([good.format, statement, good.authData])?.reason
                        == "attestation_malformed")
                let items: Pair = (.text("x5c"), .array([.bytes(good.leaf), value]))
                #expect(
                    good.failure([
                        good.format, (.text("attStmt"), .map([items, good.receipt])), good.authData,
                    ])?.reason == "attestation_malformed")
            }
            let statement: Pair = (.text("attStmt"), .map([(.text("x5c"), value), good.receipt]))
            #expect(
                good.failure([good.format, statement, good.authData])?.reason
                    == "attestation_malformed")
            #expect(
                good.failure([good.format, (.text("attStmt"), value), good.authData])?.reason
                    == "attestation_malformed")
        }
    }
}

@Suite("Extensions of OS 27: read, never required")
struct OSExtensionTests {
    /// The extensions of an attestation whose authenticator data ends in `tail`; it always
    /// verifies.
    func read(_ tail: [UInt8]) throws -> OSExtensions {
        var device = DeviceFixture.device(.iOS26)
        var recipe = device.recipe(clientDataHash: DeviceFixture.hash, at: DeviceFixture.now)
        recipe.authenticatorData += tail
        recipe.bind(DeviceFixture.hash)
        let verified = try DeviceFixture.verify(recipe.encoded { _ in [] }, of: device)
        // An assertion reads them the same way.
        device.bundleVersion = nil
        let data = device.head(counter: 1) + tail
        let nonce = SHA256.hash(data + DeviceFixture.hash)
        let assertion = CBORValue.map([
            (.text("signature"), .bytes(device.key.sign(nonce.array))),
            (.text("authenticatorData"), .bytes(data)),
        ]).encoded
        let key = try #require(PublicKey(x963: device.key.point.x963))
        let signed = try Assertion.verify(
            object: assertion, clientDataHash: DeviceFixture.hash, publicKey: key,
            appID: device.appID, previousCounter: 0)
        #expect(signed.extensions == verified.extensions)
        return verified.extensions
    }

    func map(_ members: [(String, CBORValue)]) -> [UInt8] {
        CBORValue.map(members.map { (.text($0.0), $0.1) }).encoded
    }

    @Test("nothing behind the fixed part is absence")
    func absent() throws {
        #expect(try read([]) == .absent)
    }

    @Test("members are read one by one, and unknown ones left out")
    func members() throws {
        var expected = OSExtensions.Members()
        #expect(try read(map([])) == .members(expected))
        #expect(try read(map([("new", .array([.integer(1), .text("x")]))])) == .members(expected))
        expected.bundleVersion = "1314"
        #expect(try read(map([("apple_bundle_version_01", .text("1314"))])) == .members(expected))
        expected.validationCategory = ValidationCategory(rawValue: 0x0403_0201)
        #expect(
            try read(
                map([
                    ("apple_validation_category_01", .bytes([1, 2, 3, 4])),
                    ("apple_bundle_version_01", .text("1314")),
                ])) == .members(expected))
    }

    @Test("a category is four bytes, little endian, or an integer")
    func category() throws {
        func category(_ value: CBORValue) throws -> ValidationCategory? {
            try read(map([("apple_validation_category_01", value)])).readable?.validationCategory
        }
        #expect(try category(.bytes([4, 0, 0, 0])) == ValidationCategory(name: "app_store"))
        #expect(try category(.integer(4)) == ValidationCategory(name: "app_store"))
        #expect(try category(.integer(0xffff_ffff))?.rawValue == 0xffff_ffff)
        for value: CBORValue in [
            .bytes([4, 0, 0]), .bytes([4, 0, 0, 0, 0]), .bytes([]), .integer(-1),
            .integer(0x1_0000_0000), .text("4"),
        ] {
            #expect(try read(map([("apple_validation_category_01", value)])) == .unreadable)
        }
    }

    @Test(
        "no strict map, or a known member of another kind, is unreadable and refuses nothing"
    )
    func unreadable() throws {
        let version: (String, CBORValue) = ("apple_bundle_version_01", .text("1"))
        for tail in [
            [0x00], [0xff], [0xa1], [0x80], [0xbf, 0xff], map([version]) + [0],
            map([version, version]),
            map([("apple_bundle_version_01", .integer(1))]),
            map([("apple_cd_hash_hash_01", .text("x"))]),
            map([("apple_cd_hash_type_01", .integer(2))]),
            map([("new", .integer(1)), ("new", .integer(2))]),
            CBORValue.map([(.integer(1), .integer(2))]).encoded,
            Array(map([version]).dropLast()),
            Array(map([version]).dropLast()) + [0xff],
        ] {
            #expect(try read(tail) == .unreadable)
        }
    }

    @Test("every cut is unreadable, every flipped bit traps nothing")
    func cutsAndFlips() throws {
        let tail = DeviceFixture.device(.macOS27).extensions()
        for count in 1..<tail.count {
            #expect(try read(Array(tail[..<count])) == .unreadable)
        }
        for index in tail.indices {
            var flipped = tail
            flipped[index] ^= 1 << UInt8(index % 8)
            _ = try read(flipped)
        }
    }

    @Test("categories have Apple's numbers and our names")
    func names() {
        for (number, name) in [
            "invalid", "os", "testflight", "development", "app_store", "enterprise", "developer_id",
            "local", "rosetta", "jit", "none",
        ].enumerated() {
            #expect(ValidationCategory(rawValue: UInt32(number)).name == name)
            #expect(ValidationCategory(name: name)?.rawValue == UInt32(number))
        }
        #expect(ValidationCategory(rawValue: 11).name == nil)
        #expect(ValidationCategory(rawValue: 11).description == "11")
        #expect(ValidationCategory(name: "appstore") == nil)
    }
}
