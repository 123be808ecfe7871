import AppAttest
import AppAttestDevice
import GateBytes
import GateCrypto
import Testing

/// One object with its judge, and where its bytes are signed by nobody.
private struct Target {
    let name: String
    let object: [UInt8]
    let judge: ([UInt8]) -> String?
    /// The receipt, which only its own signature authenticates and a later step verifies, and the
    /// `cdHash` member, which nothing signs.
    let unsigned: [Range<Int>]

    static func device(_ shape: DeviceShape) -> Target {
        let device = DeviceFixture.device(shape)
        let object = device.attest(clientDataHash: DeviceFixture.hash, at: DeviceFixture.now)
        return Target(name: shape.rawValue, object: object) { bytes in
            reason { try DeviceFixture.verify(bytes, of: device) }
        } receipt: {
            try DeviceFixture.verify(object, of: device).receipt
        }
    }

    static func vector(_ name: String) throws -> Target {
        let vector: AttestationVector = try Vectors.load("attestation", name)
        let object = try vector.object
        return Target(name: name, object: object) { bytes in
            reason { try vector.verify(object: bytes) }
        } receipt: {
            try vector.verify().receipt
        }
    }

    private init(
        name: String, object: [UInt8], judge: @escaping ([UInt8]) -> String?,
        receipt: () throws -> [UInt8]
    ) {
        self.name = name
        self.object = object
        self.judge = judge
        var unsigned: [Range<Int>] = []
        if let receipt = try? receipt(), let range = object.firstRange(of: receipt) {
            unsigned.append(range)
        }
        if let start = object.firstRange(of: Array("\u{66}cdHash".utf8))?.lowerBound,
            let end = object.firstRange(of: Array("\u{67}attStmt".utf8))?.lowerBound
        {
            unsigned.append(start..<end)
        }
        self.unsigned = unsigned
    }

    func isUnsigned(_ index: Int) -> Bool {
        unsigned.contains { $0.contains(index) }
    }
}

@Suite("Attestation: tampering")
struct TamperTests {
    @Test("a simulated object cut anywhere is refused", arguments: DeviceShape.allCases)
    func deviceCuts(shape: DeviceShape) {
        let target = Target.device(shape)
        #expect(target.judge(target.object) == nil)
        #expect(target.judge(target.object + [0]) == "attestation_malformed")
        for count in target.object.indices
        where target.judge(Array(target.object[..<count])) != "attestation_malformed" {
            Issue.record("cut at \(count)")
        }
    }

    @Test(
        "a real object cut anywhere is refused", .enabled(if: Vectors.arePresent),
        arguments: Vectors.names("attestation"))
    func vectorCuts(name: String) throws {
        let target = try Target.vector(name)
        // Every byte of three, every seventh of the others: all share one parser.
        let isWhole =
            name.hasPrefix("2020-09") || name.hasPrefix("2026-1") || name.hasPrefix("2026-07")
        for count in stride(from: 0, to: target.object.count, by: isWhole ? 1 : 7)
        where target.judge(Array(target.object[..<count])) != "attestation_malformed" {
            Issue.record("cut at \(count)")
        }
    }

    @Test("a simulated object with any signed byte changed is refused")
    func deviceFlips() {
        flip(Target.device(.macOS27), step: 1)
    }

    @Test(
        "a real object with any signed byte changed is refused", .enabled(if: Vectors.arePresent),
        arguments: [("2020-11-ios14.2-dev-veehaitch", 3), ("2026-10-ios27.0.1-dev-ricardo", 1)])
    func vectorFlips(name: String, step: Int) throws {
        flip(try Target.vector(name), step: step)
    }

    /// One bit of every byte, or of every `step`th, another bit for each; in the unsigned ranges,
    /// where a change may pass, every eleventh byte, to see that nothing traps. A change in a
    /// certificate costs two P-384 verifications, which is what the steps are for.
    private func flip(_ target: Target, step: Int) {
        #expect(!target.unsigned.isEmpty)
        for index in stride(from: 0, to: target.object.count, by: step) {
            let isUnsigned = target.isUnsigned(index)
            if isUnsigned, index % 11 != 0 { continue }
            var flipped = target.object
            flipped[index] ^= 1 << UInt8(index % 8)
            let verdict = target.judge(flipped)
            if verdict == nil, !isUnsigned { Issue.record("\(target.name): byte \(index)") }
        }
    }

    @Test("of the parts that frame an object, every bit of every byte is refused")
    func everyBit() {
        let target = Target.device(.iOS26CodeDirectory)
        let frames = target.frames
        for index in target.object.indices
        where !target.isUnsigned(index) && (index < 64 || frames.contains { $0.contains(index) }) {
            for bit in 0..<8 {
                var flipped = target.object
                flipped[index] ^= 1 << UInt8(bit)
                if target.judge(flipped) == nil { Issue.record("byte \(index), bit \(bit)") }
            }
        }
    }

    @Test("the receipt is given on as it came, good or not")
    func receipt() throws {
        let device = DeviceFixture.device()
        var recipe = device.recipe(clientDataHash: DeviceFixture.hash, at: DeviceFixture.now)
        recipe.receipt = [1, 2, 3]
        let verified = try DeviceFixture.verify(recipe.encoded { _ in [] }, of: device)
        #expect(verified.receipt == [1, 2, 3])
    }

    @Test("random bytes of any length are refused by everything that parses")
    func noise() {
        let device = DeviceFixture.device()
        for count in 0..<400 {
            let bytes = SystemRandom.bytes(count)
            #expect(
                reason { try DeviceFixture.verify(bytes, of: device) } == "attestation_malformed")
            #expect(
                reason { try DeviceFixture.verify(assertion: bytes, of: device) }
                    == "assertion_malformed")
            _ = Inspection.fields(of: bytes)
            _ = Inspection.attestation(bytes)
            _ = Inspection.assertion(bytes)
            _ = Inspection.certificate(bytes, name: "leaf")
        }
    }
}

extension Target {
    /// A few bytes around each certificate's head and each member's name.
    var frames: [Range<Int>] {
        var frames: [Range<Int>] = []
        for marker in [[0x30, 0x82], Array("authData".utf8), Array("receipt".utf8)] as [[UInt8]] {
            var start = 0
            while let range = object[start...].firstRange(of: marker) {
                frames.append((range.lowerBound - 12)..<(range.upperBound + 12))
                start = range.upperBound
            }
        }
        return frames
    }
}

@Suite("Certificate: one strict form")
struct CertificateTests {
    let der = DeviceFixture.root.certificate

    func failure(_ bytes: [UInt8]) -> CertificateError? {
        do {
            _ = try TrustRoot(der: bytes)
            return nil
        } catch .certificate(let error) {
            return error
        } catch {
            return nil
        }
    }

    @Test("a root cut anywhere is refused")
    func cuts() {
        #expect(failure(der) == nil)
        for count in der.indices where failure(Array(der[..<count])) == nil {
            Issue.record("cut at \(count)")
        }
        #expect(failure(der + [0]) == .der(.trailingBytes(offset: der.count)))
    }

    @Test("a root with any bit changed is refused")
    func flips() {
        for index in der.indices {
            var flipped = der
            flipped[index] ^= 1 << UInt8(index % 8)
            if failure(flipped) == nil { Issue.record("byte \(index)") }
        }
    }

    /// The root's parts, to be put together differently and signed anew.
    func resigned(
        version: [UInt8] = DER.tagged(0, DER.integer(2)), serialNumber: [UInt8] = DER.integer(7),
        inner: [UInt8]? = nil, outer: [UInt8]? = nil, validity: [UInt8]? = nil,
        issuer: [UInt8]? = nil, tail: [UInt8]? = nil, signature: (([UInt8]) -> [UInt8])? = nil
    ) -> [UInt8] {
        let name = DeviceRecipes.name("Root")
        let algorithm = DER.sequence(DER.oid(1, 2, 840, 10045, 4, 3, 3))
        let key = DeviceFixture.root.key
        let constraints = DER.sequence(
            DER.oid(2, 5, 29, 19), DER.isTrue, DER.octetString(DER.sequence(DER.isTrue)))
        let signedPart = DER.sequence(
            version, serialNumber, inner ?? algorithm, issuer ?? name,
            validity ?? DER.sequence(DER.time(1_700_000_000), DER.time(1_800_000_000)), name,
            CertificateRecipe.publicKey(.p384, point: key.point),
            tail ?? DER.tagged(3, DER.sequence(constraints)))
        let value = key.sign(signedPart, digest: .sha384)
        return DER.sequence(
            signedPart, outer ?? algorithm, signature?(value) ?? DER.bitString(value))
    }

    @Test("a certificate signed anew verifies")
    func good() {
        #expect(failure(resigned()) == nil)
    }

    @Test("a root names itself as its issuer")
    func selfIssued() {
        #expect(failure(resigned(issuer: DeviceRecipes.name("Other"))) == .issuerMismatch)
    }

    @Test("other versions than 3 are refused")
    func version() {
        for version in [
            [], DER.tagged(0, DER.integer(0)), DER.tagged(0, DER.integer(1)),
            DER.tagged(0, DER.integer(3)), DER.tagged(0, DER.integer(2) + DER.null),
            DER.tagged(0, [0x02, 0x02, 0x00, 0x02]),
        ] {
            guard case .der = failure(resigned(version: version)) else {
                Issue.record("accepted: \(version)")
                continue
            }
        }
    }

    @Test("the two names of the signature algorithm must be the same")
    func algorithms() {
        let sha256 = DER.sequence(DER.oid(1, 2, 840, 10045, 4, 3, 2))
        #expect(failure(resigned(outer: sha256)) != nil)
        #expect(failure(resigned(inner: sha256)) != nil)
        #expect(failure(resigned(inner: sha256, outer: sha256)) == .signatureInvalid)
        let rsa = DER.sequence(DER.oid(1, 2, 840, 113549, 1, 1, 11), DER.null)
        guard case .signatureUnsupported = failure(resigned(inner: rsa, outer: rsa)) else {
            Issue.record("accepted, or refused otherwise")
            return
        }
        let parameters = DER.sequence(DER.oid(1, 2, 840, 10045, 4, 3, 3), DER.null)
        #expect(failure(resigned(inner: parameters, outer: parameters)) != nil)
    }

    @Test("numbers have one form")
    func integers() {
        for number: [UInt8] in [
            [0x02, 0x00], [0x02, 0x02, 0x00, 0x01], [0x02, 0x02, 0xff, 0xff], [0x05, 0x00],
        ] {
            #expect(failure(resigned(serialNumber: number)) != nil)
        }
        #expect(failure(resigned(serialNumber: [0x02, 0x02, 0x00, 0x80])) == nil)
        #expect(failure(resigned(serialNumber: [0x02, 0x01, 0x80])) == nil)
    }

    @Test(
        "times have one form",
        arguments: [
            "2603010000Z", "260301000000", "260301000000z", "26030100000Z0", "2603010000000",
            "261301000000Z",
            "260230000000Z", "260001000000Z", "260300000000Z", "260301240000Z", "260301006000Z",
            "260301000060Z",
            "260301000000+0100", "2 0301000000Z", "",
        ])
    func times(text: String) {
        let time = DER.element(0x17, Array(text.utf8))
        guard case .der = failure(resigned(validity: DER.sequence(time, DER.time(1_800_000_000))))
        else {
            Issue.record("accepted, or refused otherwise")
            return
        }
    }

    @Test("times of both kinds and of leap days are read, others not")
    func timeKinds() {
        func judged(_ tag: UInt8, _ text: String) -> CertificateError? {
            failure(
                resigned(
                    validity: DER.sequence(
                        DER.element(tag, Array(text.utf8)), DER.time(1_800_000_000))))
        }
        #expect(judged(0x17, "240229000000Z") == nil)
        #expect(judged(0x17, "250229000000Z") != nil)
        #expect(judged(0x18, "20240229000000Z") == nil)
        #expect(judged(0x18, "21000229000000Z") != nil)
        #expect(judged(0x18, "20000229000000Z") == nil)
        #expect(judged(0x18, "20240229000000.5Z") != nil)
        #expect(judged(0x18, "00000101000000Z") != nil)
        #expect(judged(0x16, "240229000000Z") != nil)
    }

    @Test("a signature is a bit string of whole octets")
    func signatureBits() {
        #expect(failure(resigned { DER.element(0x03, [1] + $0) }) != nil)
        #expect(failure(resigned { _ in DER.element(0x03, []) }) != nil)
        #expect(failure(resigned { DER.octetString($0) }) != nil)
        #expect(failure(resigned { _ in DER.bitString([]) }) == .signatureInvalid)
    }

    @Test("nothing stands in the place of extensions but extensions")
    func tails() {
        let constraints = DER.sequence(
            DER.oid(2, 5, 29, 19), DER.isTrue, DER.octetString(DER.sequence(DER.isTrue)))
        let extensions = DER.tagged(3, DER.sequence(constraints))
        let isFalse: [UInt8] = [0x01, 0x01, 0x00]
        let brokenOID: [UInt8] = [0x06, 0x01, 0x80]
        let basic = DER.oid(2, 5, 29, 19)
        for tail in [
            DER.element(0x81, [0]) + extensions,
            extensions + DER.null,
            DER.tagged(3, DER.sequence()),
            DER.tagged(3, DER.sequence(constraints) + DER.null),
            DER.tagged(3, DER.sequence(DER.sequence(basic))),
            DER.tagged(
                3,
                DER.sequence(
                    DER.sequence(basic, [0x01, 0x01, 0x01], DER.octetString([])))),
            DER.tagged(
                3,
                DER.sequence(
                    DER.sequence(
                        basic, isFalse, DER.octetString(DER.sequence(DER.isTrue))))),
            DER.tagged(
                3,
                DER.sequence(
                    constraints, DER.sequence([0x06, 0x02, 0x80, 0x01], DER.octetString([])))),
            DER.tagged(
                3, DER.sequence(constraints, DER.sequence(brokenOID, DER.octetString([])))),
            DER.tagged(
                3, DER.sequence(constraints, DER.sequence([0x06, 0x00], DER.octetString([])))),
        ] {
            guard case .der = failure(resigned(tail: tail)) else {
                Issue.record("accepted: \(Hex.encode(tail))")
                continue
            }
        }
        #expect(failure(resigned(tail: [])) == .authorityMissing)
    }

    @Test("lengths have one form")
    func lengths() {
        func swap(_ old: [UInt8], _ new: [UInt8]) -> [UInt8] {
            // In the last element, the signature, so that nothing signed moves.
            var bytes = resigned()
            let content = Array(bytes[4...])
            guard let range = content.lastRange(of: old) else { return bytes }
            var changed = content
            changed.replaceSubrange(range, with: new)
            bytes = [0x30, 0x82, UInt8(changed.count >> 8), UInt8(changed.count & 0xff)] + changed
            return bytes
        }
        let algorithm = DER.sequence(DER.oid(1, 2, 840, 10045, 4, 3, 3))
        let body = Array(algorithm.dropFirst(2))
        let count = UInt8(body.count)
        #expect(
            failure(swap(algorithm, [0x30, 0x81, count] + body))
                == .der(.lengthNotShortest(offset: lengthOffset)))
        #expect(
            failure(swap(algorithm, [0x30, 0x82, 0x00, count] + body))
                == .der(.lengthNotShortest(offset: lengthOffset)))
        #expect(
            failure(swap(algorithm, [0x30, 0x80] + body + [0, 0]))
                == .der(.lengthIndefinite(offset: lengthOffset)))
        #expect(failure(swap(algorithm, [0x30, 0x85, 0, 0, 0, 0, count] + body)) != nil)
        let whole = resigned()
        let padded = [0x30, 0x83, 0x00] + whole[2...]
        #expect(failure(padded) == .der(.lengthNotShortest(offset: 0)))
    }

    /// Where the outer signature algorithm stands in a certificate of ``resigned()``.
    private var lengthOffset: Int {
        let bytes = resigned()
        let algorithm = DER.sequence(DER.oid(1, 2, 840, 10045, 4, 3, 3))
        return bytes.lastRange(of: algorithm)?.lowerBound ?? 0
    }
}

extension Array where Element == UInt8 {
    fileprivate func lastRange(of other: [UInt8]) -> Range<Int>? {
        guard count >= other.count else { return nil }
        for start in (0...(count - other.count)).reversed()
        where self[start..<(start + other.count)].elementsEqual(other) {
            return start..<(start + other.count)
        }
        return nil
    }
}
