import AppAttest
import AppAttestDevice
import GateBytes
import GateCrypto
import Testing

@Suite("Report: each step with its result")
struct ReportTests {
    let device = DeviceFixture.device()

    func report(
        _ object: [UInt8], hash: [UInt8] = DeviceFixture.hash, keyID: KeyID? = nil,
        appIDs: [String] = [DeviceFixture.appID], environment: Environment = .production,
        root: TrustRoot = DeviceFixture.trust, at now: Int64 = DeviceFixture.now
    ) -> AttestationReport {
        AttestationReport(
            object: object, clientDataHash: hash, keyID: keyID ?? KeyID(device.keyID),
            appIDs: appIDs, environment: environment, root: root, at: now)
    }

    func failed(_ report: AttestationReport) -> [AttestationStep] {
        report.steps.filter {
            if case .failed = $0.outcome { return true }
            return false
        }.map(\.step)
    }

    var object: [UInt8] { device.attest(clientDataHash: DeviceFixture.hash, at: DeviceFixture.now) }

    @Test("a good object passes every step, in order, and is the proof")
    func good() {
        let report = report(object)
        #expect(report.steps.map(\.step) == AttestationStep.allCases)
        #expect(report.steps.allSatisfy { $0.outcome == .passed })
        #expect(report.verified?.keyID == KeyID(device.keyID))
        #expect(report.hint == nil)
    }

    @Test("every failure is shown, not the first alone")
    func several() {
        let report = report(
            object, hash: [1], keyID: KeyID(SystemRandom.bytes32()), appIDs: ["A.b"],
            environment: .development, root: .apple, at: 0)
        #expect(
            failed(report) == [
                .chain, .validity, .nonce, .keyID, .relyingPartyID, .environment, .credentialID,
            ])
        #expect(report.verified == nil)
    }

    @Test("what a failure leaves nothing to check for is not reached")
    func notReached() {
        let none = report([0xa0])
        #expect(failed(none) == [.object])
        #expect(none.steps.dropFirst().allSatisfy { $0.outcome == .notReached })
        var recipe = device.recipe(clientDataHash: DeviceFixture.hash, at: DeviceFixture.now)
        recipe.authenticatorData.removeLast(200)
        recipe.bind(DeviceFixture.hash)
        let short = report(recipe.encoded { _ in [] })
        #expect(failed(short) == [.authenticatorData])
        #expect(short.steps.suffix(5).allSatisfy { $0.outcome == .notReached })
        #expect(short.steps.prefix(6).allSatisfy { $0.outcome == .passed })
    }

    @Test("the verdict throws the first failure of the report")
    func sameVerdict() throws {
        let object = object
        var changes: [[UInt8]] = [[], [0xa0], object + [0]]
        for index in stride(from: 0, to: object.count, by: 61) {
            var changed = object
            changed[index] ^= 0x10
            changes.append(changed)
        }
        for changed in changes {
            let report = report(changed)
            var first: AttestationError?
            for case .failed(let error) in report.steps.map(\.outcome) {
                first = first ?? error
            }
            var thrown: AttestationError?
            do {
                _ = try DeviceFixture.verify(changed, of: device)
            } catch let error as AttestationError {
                thrown = error
            }
            #expect(thrown == first)
            #expect((report.verified == nil) == (first != nil))
        }
    }

    @Test("where the nonce does not match, it says what the app hashed instead")
    func hints() {
        let challenge = SystemRandom.bytes(32)
        func hint(_ hash: [UInt8]) -> NonceHint? {
            let object = device.attest(clientDataHash: hash, at: DeviceFixture.now)
            return AttestationReport(
                object: object, challenge: challenge, keyID: KeyID(device.keyID),
                appIDs: [DeviceFixture.appID], environment: .production, root: DeviceFixture.trust,
                at: DeviceFixture.now
            ).hint
        }
        func hashed(_ text: String) -> [UInt8] { SHA256.hash(Array(text.utf8)).array }
        #expect(hint(SHA256.hash(challenge).array) == nil)
        #expect(hint(SystemRandom.bytes(32)) == nil)
        #expect(hint(challenge) == .challengeUnhashed)
        let base64 = Base64.encode(challenge)
        #expect(hint(hashed(base64)) == .challengeText(.base64))
        #expect(hint(Array(base64.utf8)) == .challengeTextUnhashed(.base64))
        #expect(hint(hashed(String(base64.dropLast()))) == .challengeText(.base64Unpadded))
        let url = Base64.encodeURL(challenge)
        let spelled = base64.dropLast() == url ? NonceHint.ChallengeText.base64Unpadded : .base64URL
        #expect(hint(hashed(url)) == .challengeText(spelled))
        let padded = base64 == url + "=" ? NonceHint.ChallengeText.base64 : .base64URLPadded
        #expect(hint(hashed(url + "=")) == .challengeText(padded))
        #expect(hint(hashed(Hex.encode(challenge))) == .challengeText(.hex))
        #expect(hint(hashed(Hex.encode(challenge).uppercased())) == .challengeText(.hexUpperCase))
    }

    @Test("for a client data hash it says whether it was hashed once more")
    func hashedAgain() {
        let hash = SystemRandom.bytes(32)
        let object = device.attest(
            clientDataHash: SHA256.hash(hash).array, at: DeviceFixture.now)
        let hint = report(object, hash: hash).hint
        #expect(hint == .clientDataHashHashed)
        #expect(hint?.description.contains("hashed once more") == true)
    }

    @Test(
        "Apple's samples are the challenge unhashed", .enabled(if: Vectors.arePresent),
        arguments: ["2024-04-ios18.0-prod-apple-guide", "2026-04-ios27.0-prod-apple-guide"])
    func appleSamples(name: String) throws {
        let vector: AttestationVector = try Vectors.load("attestation", name)
        let challenge = try bytes(try #require(vector.challenge))
        let report = try AttestationReport(
            object: vector.object, challenge: challenge, keyID: vector.keyID,
            appIDs: [vector.appId], environment: vector.place, at: vector.validSeconds)
        #expect(failed(report) == [.nonce])
        #expect(report.hint == .challengeUnhashed)
    }

    @Test("an assertion's report has its steps, and its extensions only when signed")
    func assertion() throws {
        var device = DeviceFixture.device(.iOS27)
        let object = device.assert(clientDataHash: DeviceFixture.hash, counter: 7)
        let key = try #require(PublicKey(x963: device.key.point.x963))
        func report(
            _ object: [UInt8], hash: [UInt8] = DeviceFixture.hash, appID: String = device.appID,
            previous: UInt32 = 6
        ) -> AssertionReport {
            AssertionReport(
                object: object, clientDataHash: hash, publicKey: key, appID: appID,
                previousCounter: previous)
        }
        func failed(_ report: AssertionReport) -> [AssertionStep] {
            report.steps.filter {
                if case .failed = $0.outcome { return true }
                return false
            }.map(\.step)
        }
        let good = report(object)
        #expect(good.isVerified)
        #expect(good.steps.map(\.step) == AssertionStep.allCases)
        #expect(good.signCounter == 7)
        #expect(good.extensions?.readable?.bundleVersion == "1314")
        let bad = report(object, hash: [], appID: "A.b", previous: 7)
        #expect(failed(bad) == [.relyingPartyID, .counter, .signature])
        #expect(!bad.isVerified)
        #expect(bad.signCounter == 7)
        #expect(bad.extensions == nil)
        let none = report([0xa0])
        #expect(failed(none) == [.object])
        #expect(none.signCounter == nil)
        #expect(none.steps.last?.outcome == .notReached)
        for previous: UInt32 in [6, 7, 8] {
            #expect(report(object, previous: previous).isVerified == (previous < 7))
        }
    }
}

@Suite("Errors: a name for the log and words for people")
struct ErrorNameTests {
    @Test("every failure has one of the documented names")
    func reasons() {
        let names = Set(
            [
                AttestationError.aaguidMismatch(expected: .production, found: []),
                .authenticatorData(.tooShort(count: 0)), .certificate(.leaf, .signatureInvalid),
                .certificateCount(1), .certificateExpired(.leaf, notAfter: 0, at: 1),
                .certificateNotYetValid(.leaf, notBefore: 1, at: 0), .counterNotZero(1),
                .credentialIDMismatch(
                    expected: KeyID(SystemRandom.bytes32()), found: KeyID(SystemRandom.bytes32())),
                .credentialKeyMismatch, .formatMismatch,
                .keyIDMismatch(
                    presented: KeyID(SystemRandom.bytes32()),
                    attested: KeyID(SystemRandom.bytes32())),
                .memberMissing(.receipt), .nonceAbsent, .nonceMalformed(.truncated(offset: 0)),
                .nonceMismatch(expected: [], found: []), .object(.truncated(offset: 0)),
                .objectTooLarge(count: 20_000), .relyingPartyIDMismatch,
            ].map(\.reason))
        #expect(
            names == [
                "attestation_malformed", "certificate_chain", "certificate_expired",
                "certificate_not_yet_valid", "nonce_mismatch", "key_id_mismatch", "aaguid_mismatch",
                "counter_not_zero", "credential_id_mismatch", "cose_key_mismatch", "rp_id_mismatch",
            ])
        let others = Set(
            [
                AssertionError.authenticatorDataTooShort(count: 1),
                .counterNotGreater(stored: 1, presented: 1), .memberMissing(.signature),
                .object(.truncated(offset: 0)), .objectTooLarge(count: 5000),
                .relyingPartyIDMismatch,
                .signatureInvalid,
            ].map(\.reason))
        #expect(
            others == [
                "assertion_malformed", "counter_not_greater", "rp_id_mismatch", "signature_invalid",
            ])
    }

    @Test("the words say what was expected and what came")
    func words() {
        #expect(
            AttestationError.aaguidMismatch(
                expected: .production, found: Array("appattestdevelop".utf8)
            ).description == "expected environment production, got development")
        #expect(
            AttestationError.certificateExpired(.leaf, notAfter: 0, at: 1_790_000_000).description
                == "leaf certificate ended 1970-01-01T00:00:00Z, now is 2026-09-21T14:13:20Z")
        #expect(
            AssertionError.counterNotGreater(stored: 7, presented: 7).description
                == "expected a counter above 7, got 7")
        #expect(
            AttestationError.certificate(
                .intermediate, .extensionCritical(DeviceRecipes.unknownOID)
            )
            .description
                == "intermediate certificate: unknown critical extension 1.2.840.113635.100.99.1")
    }

    @Test("a key ID is 32 bytes, in either alphabet")
    func keyIDs() throws {
        let id = KeyID(SystemRandom.bytes32())
        #expect(KeyID(base64: id.base64) == id)
        #expect(KeyID(base64: Base64.encodeURL(id.bytes)) == id)
        #expect(KeyID(bytes: id.bytes) == id)
        #expect(KeyID(bytes: id.bytes + [0]) == nil)
        #expect(KeyID(bytes: []) == nil)
        #expect(KeyID(base64: String(id.base64.dropLast(2))) == nil)
        #expect(KeyID(base64: "") == nil)
    }
}

@Suite("Inspection: fields without a judgement")
struct InspectionTests {
    @Test("each kind of object is told from the others")
    func kinds() {
        var device = DeviceFixture.device(.iOS26CodeDirectory)
        let object = device.attest(clientDataHash: DeviceFixture.hash, at: DeviceFixture.now)
        let recipe = device.recipe(clientDataHash: DeviceFixture.hash, at: DeviceFixture.now)
        #expect(Inspection.kind(of: object) == .attestation)
        #expect(Inspection.kind(of: device.assert(clientDataHash: [])) == .assertion)
        #expect(Inspection.kind(of: recipe.authenticatorData) == .authenticatorData)
        #expect(Inspection.kind(of: []) == .unknown)
        #expect(Inspection.kind(of: [0x30]) == .unknown)
        let assertion = Array(recipe.authenticatorData.prefix(37))
        #expect(Inspection.kind(of: assertion) == .authenticatorData)
        #expect(Inspection.kind(of: assertion + [0xa0]) == .authenticatorData)
        #expect(Inspection.kind(of: assertion + [0x00]) == .unknown)
        #expect(Inspection.kind(of: Array("loops auto\n# of text".utf8) + assertion) == .unknown)
    }

    @Test("a receipt is told from the others", .enabled(if: Vectors.arePresent))
    func receipts() throws {
        for name in Vectors.names("attestation") {
            let vector: AttestationVector = try Vectors.load("attestation", name)
            #expect(Inspection.kind(of: try vector.verify().receipt) == .receipt)
        }
        let device = DeviceFixture.device()
        let object = device.attest(clientDataHash: DeviceFixture.hash, at: DeviceFixture.now)
        let receipt = try DeviceFixture.verify(object, of: device).receipt
        #expect(Inspection.kind(of: receipt) == .receipt)
    }

    @Test("what no verifier accepts is shown as far as it goes")
    func lenient() {
        let device = DeviceFixture.device()
        var recipe = device.recipe(clientDataHash: DeviceFixture.hash, at: DeviceFixture.now)
        recipe.format = "another"
        recipe.issuers.append([0x30])
        recipe.authenticatorData.removeLast(100)
        let object = recipe.encoded { _ in [1, 2] }
        let fields = Inspection.fields(of: object)
        func value(_ name: String) -> String? { fields.first { $0.name == name }?.value }
        #expect(value("format") == "another")
        #expect(value("leaf subject") != nil)
        #expect(value("certificate 2 fault") != nil)
        #expect(value("receipt") == "2 bytes")
        #expect(value("sign counter") == "0")
        #expect(fields.contains { $0.name == "fault" })
        let cut = Inspection.attestation(Array(object.dropLast(10)))
        #expect(cut.first?.name == "format")
        #expect(cut.last?.name == "fault")
    }

    @Test("every cut of an object is shown without a trap")
    func cuts() {
        let device = DeviceFixture.device(.macOS27)
        let object = device.attest(clientDataHash: DeviceFixture.hash, at: DeviceFixture.now)
        for count in stride(from: 0, to: object.count, by: 13) {
            _ = Inspection.fields(of: Array(object[..<count]))
        }
    }
}
