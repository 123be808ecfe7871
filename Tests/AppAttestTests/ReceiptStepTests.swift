import AppAttest
import AppAttestDevice
import GateBytes
import GateCrypto
import Testing

/// A device, the leaf it was attested with, and its receipts.
struct ReceiptFixture {
    static let now: Int64 = DeviceFixture.now
    let device: Device
    let leaf: [UInt8]

    init() {
        device = DeviceFixture.device()
        let recipe = device.recipe(clientDataHash: DeviceFixture.hash, at: ReceiptFixture.now)
        leaf = recipe.leaf.signed(by: recipe.issuerKey)
    }

    func recipe(at time: Int64 = now * 1000 + 123) -> ReceiptRecipe {
        device.receipt(leaf: leaf, clientDataHash: DeviceFixture.hash, at: time)
    }

    func terms(_ change: (inout ReceiptTerms) -> Void = { _ in }) -> ReceiptTerms {
        var terms = ReceiptTerms(
            appIDs: [DeviceFixture.appID], publicKeyX963: device.key.point.x963, kind: .attest,
            clientDataHash: DeviceFixture.hash, environment: .production,
            root: DeviceFixture.trust, at: ReceiptFixture.now)
        change(&terms)
        return terms
    }

    /// Why the recipe after `body` is refused; nil when it is not.
    func failure(_ body: (inout ReceiptRecipe) -> Void) -> ReceiptError? {
        failure(terms: { _ in }, body)
    }

    /// Why the recipe after `body` is refused under the terms after `change`; nil when it is not.
    func failure(
        terms change: (inout ReceiptTerms) -> Void,
        _ body: (inout ReceiptRecipe) -> Void = { _ in }
    ) -> ReceiptError? {
        var recipe = recipe()
        body(&recipe)
        return failure(recipe.encoded(), terms(change))
    }

    func failure(_ bytes: [UInt8], _ terms: ReceiptTerms) -> ReceiptError? {
        do throws(ReceiptError) {
            _ = try Receipt.verify(bytes, terms)
            return nil
        } catch {
            return error
        }
    }

    /// A certificate of the receipt chain made anew: the signer (0) or the intermediate (1).
    static func certificate(
        _ index: Int, key: ECPrivateKey, extensions: [CertificateRecipe.Extension],
        issuerKey: ECPrivateKey, notBefore: Int64 = now - 86_400, notAfter: Int64 = now + 86_400,
        subject: [UInt8]? = nil
    ) -> [UInt8] {
        let names = [
            DeviceRoot.receiptSignerName, DeviceRoot.receiptIssuerName, DeviceRoot.rootName,
        ]
        return CertificateRecipe(
            serialNumber: [7, 7, UInt8(index)], issuer: names[index + 1],
            subject: subject ?? names[index], notBefore: notBefore, notAfter: notAfter,
            publicKey: CertificateRecipe.publicKey(key.curve, point: key.point),
            extensions: extensions, digest: index == 0 ? .sha256 : .sha384
        ).signed(by: issuerKey)
    }

    /// What the chain is made of, to be changed.
    struct Chain {
        var signerExtensions: [CertificateRecipe.Extension] = [
            .basicConstraints(isAuthority: false), .apple(12, 15, DER.null),
        ]
        var intermediateExtensions: [CertificateRecipe.Extension] = [
            .basicConstraints(isAuthority: true, pathLength: 0), .authorityUsage,
            .integrationAuthority,
        ]
        var notBefore = now - 86_400
        var notAfter = now + 86_400
        var rootKey = DeviceFixture.root.key
        var signerKey = ECPrivateKey.generate(.p256)
        var signersIssuerKey: ECPrivateKey?
    }

    /// Why a receipt on the chain after `change` is refused.
    func chainFailure(_ change: (inout Chain) -> Void) -> ReceiptError? {
        var chain = Chain()
        change(&chain)
        let intermediateKey = ECPrivateKey.generate(.p256)
        return failure { recipe in
            recipe.key = chain.signerKey
            recipe.serialNumber = [7, 7, 0]
            recipe.certificates = [
                ReceiptFixture.certificate(
                    0, key: chain.signerKey, extensions: chain.signerExtensions,
                    issuerKey: chain.signersIssuerKey ?? intermediateKey,
                    notBefore: chain.notBefore, notAfter: chain.notAfter),
                ReceiptFixture.certificate(
                    1, key: intermediateKey, extensions: chain.intermediateExtensions,
                    issuerKey: chain.rootKey),
            ]
        }
    }
}

@Suite("Receipt: steps")
struct ReceiptStepTests {
    let fixture = ReceiptFixture()

    @Test("an unchanged receipt of either kind verifies, in pieces of open length or whole")
    func good() throws {
        for isIndefinite in [true, false] {
            var recipe = fixture.recipe()
            recipe.isIndefinite = isIndefinite
            let attest = try Receipt.verify(recipe.encoded(), fixture.terms())
            #expect(attest.kind == .attest)
            #expect(attest.creation == ReceiptFixture.now * 1000 + 123)
            #expect(attest.publicKeyX963 == fixture.device.key.point.x963)
            #expect(attest.riskMetric == nil && attest.notBefore == nil)
            recipe.refresh(metric: 17, at: ReceiptFixture.now * 1000 + 460)
            let refreshed = try Receipt.verify(
                recipe.encoded(), fixture.terms { $0.kind = .receipt })
            #expect(refreshed.kind == .receipt)
            #expect(refreshed.riskMetric == 17)
            #expect(refreshed.creation == ReceiptFixture.now * 1000 + 460)
            #expect(refreshed.notBefore == ReceiptFixture.now * 1000 + 460 + 86_400_000)
            #expect(refreshed.expiration == ReceiptFixture.now * 1000 + 460 + 90 * 86_400_000)
        }
    }

    @Test("the receipt that comes with a device's attestation verifies")
    func attested() throws {
        let object = fixture.device.attest(
            clientDataHash: DeviceFixture.hash, at: ReceiptFixture.now)
        let receipt = try DeviceFixture.verify(object, of: fixture.device).receipt
        #expect(fixture.failure(receipt, fixture.terms()) == nil)
    }

    @Test("what is larger than any receipt is not read")
    func size() {
        let count = Receipt.bytesMax + 1
        #expect(
            fixture.failure([UInt8](repeating: 0x30, count: count), fixture.terms())
                == .tooLarge(count: count))
    }

    @Test("there is exactly one signer, of the bare content")
    func signer() {
        #expect(fixture.failure { $0.signerCount = 0 } == .signerCount(0))
        #expect(fixture.failure { $0.signerCount = 2 } == .signerCount(2))
        let attributes = DER.tagged(0, DER.sequence(DER.oid(1, 2, 840, 113549, 1, 9, 3)))
        #expect(fixture.failure { $0.signedAttributes = attributes } == .signedAttributes)
    }

    @Test("signer and intermediate must come along; the root need not")
    func certificates() {
        #expect(fixture.failure { $0.certificates.removeLast() } == nil)
        #expect(fixture.failure { $0.certificates.swapAt(0, 2) } == nil)
        #expect(
            fixture.failure { $0.certificates.removeFirst() } == .certificateMissing(.signer))
        #expect(
            fixture.failure { $0.certificates.remove(at: 1) } == .certificateMissing(.intermediate))
        #expect(fixture.failure { $0.certificates = [] } == .certificateMissing(.signer))
        #expect(fixture.failure { $0.serialNumber = [1] } == .certificateMissing(.signer))
        #expect(
            fixture.failure { $0.issuerName = DeviceRoot.rootName } == .certificateMissing(.signer))
        guard
            case .certificateUnreadable = fixture.failure({
                $0.certificates.append(DER.sequence(DER.null))
            })
        else {
            Issue.record("accepted, or refused otherwise")
            return
        }
    }

    @Test("the chain ends at the root, each certificate signed by the next and fit to sign")
    func chain() {
        #expect(fixture.failure(terms: { _ in }) == nil)
        #expect(fixture.chainFailure { _ in } == nil)
        #expect(
            fixture.chainFailure({ $0.rootKey = .generate(.p384) })
                == .certificate(.intermediate, .signatureInvalid))
        #expect(
            fixture.chainFailure({ $0.signersIssuerKey = .generate(.p256) })
                == .certificate(.signer, .signatureInvalid))
        #expect(
            fixture.chainFailure({
                $0.intermediateExtensions[0] = .basicConstraints(isAuthority: false)
            }) == .certificate(.intermediate, .authorityMissing))
        #expect(
            fixture.chainFailure({
                $0.signerExtensions[0] = .basicConstraints(isAuthority: true)
            }) == .certificate(.signer, .authorityUnexpected))
        for keyPath in [
            \ReceiptFixture.Chain.signerExtensions, \.intermediateExtensions,
        ] {
            let error = fixture.chainFailure({
                $0[keyPath: keyPath].append(DeviceRecipes.unknown(isCritical: true))
            })
            guard case .certificate(_, .extensionCritical) = error else {
                Issue.record("accepted, or refused otherwise")
                continue
            }
        }
        #expect(
            fixture.failure(terms: { $0.root = .appleReceipts })
                == .certificate(.intermediate, .issuerMismatch))
    }

    @Test("a signer on another curve is refused")
    func curve() {
        #expect(
            fixture.chainFailure({ $0.signerKey = .generate(.p384) })
                == .certificate(.signer, .keyUnsupported))
    }

    @Test("the attestation's own chain signs no receipts: both certificates must be marked")
    func marks() throws {
        let signer = try #require(
            OID(DER.oid(1, 2, 840, 113635, 100, 12, 15).dropFirst(2)))
        #expect(
            fixture.chainFailure({ $0.signerExtensions.removeLast() })
                == .markMissing(.signer, signer))
        let intermediate = try #require(
            OID(DER.oid(1, 2, 840, 113635, 100, 6, 2, 3).dropFirst(2)))
        #expect(
            fixture.chainFailure({ $0.intermediateExtensions.removeLast() })
                == .markMissing(.intermediate, intermediate))
    }

    @Test("the signature is the signer's over the content")
    func signature() {
        #expect(fixture.failure { $0.key = .generate(.p256) } == .signatureInvalid)
    }

    @Test("the certificates must have been valid when the receipt was made")
    func validity() {
        #expect(
            fixture.chainFailure({ $0.notAfter = ReceiptFixture.now - 302 })
                == .certificateExpired(
                    .signer, notAfter: ReceiptFixture.now - 302, at: ReceiptFixture.now))
        #expect(fixture.chainFailure({ $0.notAfter = ReceiptFixture.now - 299 }) == nil)
        #expect(
            fixture.chainFailure({ $0.notBefore = ReceiptFixture.now + 302 })
                == .certificateNotYetValid(
                    .signer, notBefore: ReceiptFixture.now + 302, at: ReceiptFixture.now))
        // At the time it was made, not now: a receipt that was kept outlives its signer.
        #expect(
            fixture.failure(terms: {
                $0.now += 9 * 365 * 86_400
                $0.ageSecondsMax = nil
            }) == nil)
    }

    @Test("a receipt is fresh for five minutes, or as long as the caller says")
    func freshness() {
        func judged(_ seconds: Int64, _ ageMax: Int64? = 300) -> ReceiptError? {
            fixture.failure(terms: {
                $0.now = ReceiptFixture.now + seconds
                $0.ageSecondsMax = ageMax
            })
        }
        #expect(judged(300) == nil)
        let creation = ReceiptFixture.now * 1000 + 123
        #expect(judged(301) == .stale(creation: creation, at: ReceiptFixture.now + 301))
        #expect(judged(301, 310) == nil)
        #expect(judged(301, nil) == nil)
        #expect(judged(301, .max) == nil)
        #expect(judged(-299) == nil)
        #expect(judged(-301) == .notYetMade(creation: creation, at: ReceiptFixture.now - 301))
        for now in [Int64.max, .min] {
            #expect(
                fixture.failure(terms: { $0.now = now }) == .stale(creation: creation, at: now))
        }
    }

    @Test("App ID, key, kind, client data hash and environment are those expected")
    func comparisons() {
        #expect(
            fixture.failure(terms: { $0.appIDs = ["A.b", "C.d"] })
                == .appIDMismatch(found: DeviceFixture.appID))
        #expect(
            fixture.failure(terms: { $0.appIDs = ["A.b", DeviceFixture.appID] }) == nil)
        #expect(
            fixture.failure(terms: { $0.publicKeyX963 = P256PrivateKey().point.x963 })
                == .publicKeyMismatch)
        #expect(
            fixture.failure(terms: { $0.kind = .receipt })
                == .kindMismatch(expected: .receipt, found: .attest))
        #expect(
            fixture.failure(terms: { $0.clientDataHash = [0] }) == .clientDataHashMismatch)
        #expect(
            fixture.failure(terms: { $0.environment = .development })
                == .environmentMismatch(expected: .development, found: "production"))
        #expect(
            fixture.failure(terms: {
                $0.publicKeyX963 = nil
                $0.kind = nil
                $0.clientDataHash = nil
                $0.environment = nil
            }) == nil)
    }

    @Test("the client data hash of a refreshed receipt is not compared")
    func garbledHash() {
        #expect(
            fixture.failure(terms: { $0.kind = .receipt }) {
                $0.refresh(metric: 1, at: ReceiptFixture.now * 1000)
                $0[4] = [0xef, 0xbf, 0xbd]
            } == nil)
    }
}

@Suite("Receipt: fields")
struct ReceiptFieldTests {
    let fixture = ReceiptFixture()

    @Test("fields that are needed are missed, others not")
    func missing() {
        for field in [ReceiptField.appID, .certificate, .kind, .creationTime, .clientDataHash] {
            #expect(
                fixture.failure { $0[UInt64(field.rawValue)] = nil } == .fieldMissing(field))
        }
        for type: UInt64 in [5, 7, 21] { #expect(fixture.failure { $0[type] = nil } == nil) }
    }

    @Test("fields of an unknown type are skipped, in any order")
    func unknown() {
        #expect(
            fixture.failure {
                $0.fields.append((99, [1, 2, 3]))
                $0.fields.reverse()
            } == nil)
    }

    @Test("a field is there once")
    func duplicate() {
        for type: UInt64 in [2, 12, 99] {
            let error = fixture.failure {
                $0.fields.append((type, [1]))
                $0.fields.append((type, [1]))
            }
            guard case .payload = error else {
                Issue.record("\(type): \(String(describing: error))")
                continue
            }
        }
    }

    @Test("values that are not of their kind are refused")
    func malformed() {
        func malformed(_ field: ReceiptField, _ values: [[UInt8]]) {
            for value in values {
                #expect(
                    fixture.failure { $0[UInt64(field.rawValue)] = value }
                        == .fieldMalformed(field), "\(field) \(value)")
            }
        }
        malformed(.appID, [[0xff]])
        malformed(.certificate, [[], [0x30], fixture.leaf + [0]])
        malformed(.kind, [[], Array("attest".utf8), Array("ATTEST ".utf8)])
        malformed(.environment, [[0xff]])
        malformed(
            .riskMetric,
            ["", "-1", "+1", " 1", "1.0", "4294967296", "x"].map { Array($0.utf8) })
        for field in [ReceiptField.creationTime, .notBefore, .expirationTime] {
            malformed(
                field,
                [
                    "", "2026-10-09", "2026-10-09T07:25:51", "2026-10-09t07:25:51Z",
                    "2026-10-09T07:25:51z", "2026-10-09T07:25:51.Z", "2026-10-09T07:25:51,5Z",
                    "2026-10-09T07:25:51+00:00", "2026-13-09T07:25:51Z", "2026-02-30T07:25:51Z",
                    "2026-10-09T24:25:51Z", "2026-10-09T07:60:51Z", "2026-10-09T07:25:60Z",
                    "2026-10-09T07:25:51.5aZ", "2026-10-09 07:25:51Z", "26-10-09T07:25:51Z",
                    "2026-10-09T07:25:51.12345678901Z",
                ].map { Array($0.utf8) })
        }
    }

    @Test(
        "times have any number of digits behind the point, and are never read as earlier",
        arguments: [
            ("2026-09-21T14:13:20Z", 0), ("2026-09-21T14:13:20.4Z", 400),
            ("2026-09-21T14:13:20.46Z", 460), ("2026-09-21T14:13:20.466Z", 466),
            ("2026-09-21T14:13:20.4660Z", 466), ("2026-09-21T14:13:20.4661Z", 467),
            ("2026-09-21T14:13:20.000000001Z", 1), ("2026-09-21T14:13:20.9999Z", 1000),
        ] as [(String, Int64)])
    func times(text: String, milliseconds: Int64) throws {
        var recipe = fixture.recipe()
        recipe[12] = Array(text.utf8)
        let verified = try Receipt.verify(recipe.encoded(), fixture.terms())
        #expect(verified.creation == 1_790_000_000_000 + milliseconds)
    }

    @Test("a payload that is no SET of fields is refused")
    func payloads() {
        let value = DER.octetString([1])
        for payload in [
            [], DER.sequence(), DER.set() + [0], DER.set(DER.null),
            DER.set(DER.sequence(DER.integer(99), DER.integer(1))),
            DER.set(DER.sequence(DER.integer(99), DER.integer(1), value, value)),
            DER.set(DER.sequence(DER.integer(2), DER.integer(2), value)),
            DER.element(
                0x31,
                (100..<165).flatMap {
                    DER.sequence(DER.integer(UInt64($0)), DER.integer(1), value)
                }),
        ] {
            guard case .payload = fixture.failure({ $0.content = payload }) else {
                Issue.record("accepted, or refused otherwise: \(payload)")
                continue
            }
        }
        #expect(fixture.failure { $0.content = DER.set() } == .fieldMissing(.appID))
    }
}

@Suite("Receipt: tampering")
struct ReceiptTamperTests {
    let fixture = ReceiptFixture()

    @Test("a receipt cut anywhere, or with a byte behind it, is refused")
    func cuts() {
        for isIndefinite in [true, false] {
            var recipe = fixture.recipe()
            recipe.isIndefinite = isIndefinite
            let receipt = recipe.encoded()
            for count in receipt.indices {
                guard
                    case .structure = fixture.failure(Array(receipt[..<count]), fixture.terms())
                else {
                    Issue.record("cut at \(count)")
                    continue
                }
            }
            guard case .structure = fixture.failure(receipt + [0], fixture.terms()) else {
                Issue.record("a byte behind it")
                continue
            }
        }
    }

    @Test("no byte of the payload can be changed")
    func flips() throws {
        let receipt = fixture.recipe().encoded()
        // The payload lies in the pieces of the first octet string.
        let start = try #require(receipt.firstRange(of: [0x24, 0x80])).lowerBound
        let end = try #require(receipt.firstRange(of: Array("Z".utf8) + [0, 0])).lowerBound
        for index in start...end {
            var changed = receipt
            changed[index] ^= 1 << UInt8(index % 8)
            #expect(fixture.failure(changed, fixture.terms()) != nil, "byte \(index)")
        }
    }

    @Test("BER that is not well formed, or nests too deep, is refused without a trap")
    func malformed() {
        for bytes: [UInt8] in [
            [], [0x30], [0x30, 0x80], [0x30, 0x80, 0x00], [0x30, 0x80, 0x00, 0x01], [0x00, 0x00],
            [0x1f, 0x80, 0x00], [0x04, 0x80, 0x00, 0x00], [0x30, 0x85, 0, 0, 0, 0, 0],
            [0x30, 0x84, 0xff, 0xff, 0xff, 0xff], [0x30, 0x03, 0x06, 0x01, 0x80],
            [UInt8](repeating: 0x30, count: 4000),
            [[UInt8]](repeating: [0x30, 0x80], count: 4000).flatMap { $0 },
            [[UInt8]](repeating: [0x24, 0x80], count: 4000).flatMap { $0 },
        ] {
            guard case .structure = fixture.failure(bytes, fixture.terms()) else {
                Issue.record("accepted, or refused otherwise: \(bytes.prefix(8))")
                continue
            }
        }
    }
}

@Suite("Receipt: report and inspection")
struct ReceiptReportTests {
    let fixture = ReceiptFixture()

    @Test("a good receipt passes every step, and one that is not asked for is not reached")
    func good() {
        let report = ReceiptReport(fixture.recipe().encoded(), fixture.terms())
        #expect(report.steps.map(\.step) == ReceiptStep.allCases)
        #expect(report.steps.allSatisfy { $0.outcome == .passed })
        #expect(report.verified?.appID == DeviceFixture.appID)
        let bare = ReceiptReport(
            fixture.recipe().encoded(),
            ReceiptTerms(
                appIDs: [DeviceFixture.appID], root: DeviceFixture.trust, ageSecondsMax: nil, at: 0
            ))
        #expect(bare.verified != nil)
        #expect(
            bare.steps.filter { $0.outcome == .notReached }.map(\.step)
                == [.freshness, .publicKey, .kind, .clientDataHash, .environment])
    }

    @Test("every failure is shown, and there is no proof with one")
    func failures() {
        let report = ReceiptReport(
            fixture.recipe().encoded(),
            fixture.terms {
                $0.root = .appleReceipts
                $0.appIDs = []
                $0.now += 1000
            })
        let failed = report.steps.filter {
            if case .failed = $0.outcome { return true }
            return false
        }
        #expect(failed.map(\.step) == [.chain, .freshness, .appID])
        #expect(report.verified == nil)
        #expect(
            ReceiptReport([], fixture.terms()).steps.dropFirst().allSatisfy {
                $0.outcome == .notReached
            })
    }

    @Test("a receipt is shown field by field, and as far as it goes where it is none")
    func inspected() {
        var recipe = fixture.recipe()
        recipe.refresh(metric: 3, at: ReceiptFixture.now * 1000)
        recipe.fields.append((99, [0xab]))
        let receipt = recipe.encoded()
        #expect(Inspection.kind(of: receipt) == .receipt)
        let fields = Inspection.fields(of: receipt)
        func value(_ name: String) -> String? { fields.first { $0.name == name }?.value }
        #expect(value("App ID") == DeviceFixture.appID)
        #expect(value("kind") == "RECEIPT")
        #expect(value("environment") == "production")
        #expect(value("risk metric") == "3")
        #expect(value("creation time") == "2026-09-21T14:13:20Z")
        #expect(value("not before") == "2026-09-22T14:13:20Z")
        #expect(value("field 99") == "ab")
        #expect(value("leaf subject") != nil)
        #expect(value("certificate 0 subject")?.contains("Fraud Receipt Signing") == true)
        #expect(value("signed attributes") == "none")
        for count in stride(from: 0, to: receipt.count, by: 7) {
            _ = Inspection.receipt(Array(receipt[..<count]))
        }
        #expect(Inspection.receipt([0x30]).first?.name == "fault")
        recipe.content = [1]
        #expect(Inspection.receipt(recipe.encoded()).first?.name == "fault")
    }
}
