import AppAttest
import AppAttestDevice
import GateBytes
import GateCrypto
import Testing

/// An object of a fresh device after `change`, judged: nil when it verifies.
private func failure(
    _ shape: DeviceShape = .iOS26, rebinding: Bool = true, root: TrustRoot = DeviceFixture.trust,
    at now: Int64 = DeviceFixture.now, _ change: (inout AttestationRecipe, Device) -> Void
) -> AttestationError? {
    let device = DeviceFixture.device(shape)
    var recipe = device.recipe(clientDataHash: DeviceFixture.hash, at: DeviceFixture.now)
    change(&recipe, device)
    if rebinding { recipe.bind(DeviceFixture.hash) }
    let object = recipe.encoded { _ in [0x30, 0x00] }
    do {
        _ = try DeviceFixture.verify(object, of: device, root: root, at: now)
        return nil
    } catch let error as AttestationError {
        return error
    } catch {
        fatalError("another error: \(error)")
    }
}

@Suite("Attestation: certificate chain")
struct AttestationChainTests {
    @Test("an unchanged object verifies")
    func unchanged() {
        #expect(failure { _, _ in } == nil)
    }

    @Test("a leaf signed by another key is refused")
    func leafSignature() {
        let error = failure { recipe, _ in recipe.issuerKey = .generate(.p384) }
        #expect(error == .certificate(.leaf, .signatureInvalid))
        #expect(error?.reason == "certificate_chain")
    }

    @Test("a leaf signed with SHA-384 verifies: the curve does not tell the hash")
    func otherHash() {
        #expect(failure { recipe, _ in recipe.leaf.digest = .sha384 } == nil)
    }

    @Test("a chain to another root is refused, also to one of the same name")
    func otherRoot() throws {
        let other = try TrustRoot(der: DeviceRoot.generate(at: DeviceFixture.now).certificate)
        #expect(
            failure(root: other) { _, _ in }
                == .certificate(.intermediate, .signatureInvalid))
        #expect(
            failure(root: .apple) { _, _ in } == .certificate(.intermediate, .issuerMismatch))
    }

    @Test("an issuer's name that is not the next subject is refused")
    func issuerName() {
        let error = failure { recipe, _ in recipe.leaf.issuer = DeviceRecipes.name("Another CA") }
        #expect(error == .certificate(.leaf, .issuerMismatch))
    }

    @Test("the intermediate must be an authority")
    func intermediateConstraints() {
        func judged(_ extensions: [CertificateRecipe.Extension]) -> AttestationError? {
            failure { recipe, _ in
                recipe.issuers = [DeviceRecipes.intermediate(extensions: extensions)]
            }
        }
        let authority = CertificateRecipe.Extension.basicConstraints(isAuthority: true)
        #expect(judged([authority, .authorityUsage]) == nil)
        #expect(judged([authority]) == nil)
        #expect(
            judged([.basicConstraints(isAuthority: true, pathLength: 0), .authorityUsage]) == nil)
        #expect(
            judged([.basicConstraints(isAuthority: false)])
                == .certificate(.intermediate, .authorityMissing))
        #expect(
            judged([.authorityUsage]) == .certificate(.intermediate, .authorityMissing))
        #expect(judged([]) == .certificate(.intermediate, .authorityMissing))
        #expect(
            judged([authority, .leafUsage]) == .certificate(.intermediate, .keyUsageLacksSigning))
    }

    @Test("the leaf must not be an authority")
    func leafConstraints() {
        let error = failure { recipe, _ in
            recipe.leaf.extensions[0] = .basicConstraints(isAuthority: true)
        }
        #expect(error == .certificate(.leaf, .authorityUnexpected))
        #expect(failure { recipe, _ in recipe.leaf.extensions.removeFirst() } == nil)
    }

    @Test("a root that allows no authority below it, or none at all, is refused as a root")
    func rootPathLength() {
        func judged(_ extensions: [CertificateRecipe.Extension]) -> TrustRootError? {
            let der = DeviceRecipes.root(extensions: extensions)
            do {
                _ = try TrustRoot(der: der)
                return nil
            } catch {
                return error
            }
        }
        #expect(judged([.basicConstraints(isAuthority: true, pathLength: 1)]) == nil)
        #expect(
            judged([.basicConstraints(isAuthority: true, pathLength: 0)])
                == .certificate(.pathTooLong))
        #expect(judged([]) == .certificate(.authorityMissing))
        #expect(
            judged([.basicConstraints(isAuthority: true), .leafUsage])
                == .certificate(.keyUsageLacksSigning))
        #expect(
            judged([.basicConstraints(isAuthority: true), DeviceRecipes.unknown(isCritical: true)])
                == .certificate(
                    .extensionCritical(DeviceRecipes.unknownOID)))
    }

    @Test("an unknown critical extension is refused in either certificate, a plain one is not")
    func criticalExtensions() {
        let oid = DeviceRecipes.unknownOID
        for isCritical in [false, true] {
            let item = DeviceRecipes.unknown(isCritical: isCritical)
            #expect(
                failure { recipe, _ in recipe.leaf.extensions.append(item) }
                    == (isCritical ? .certificate(.leaf, .extensionCritical(oid)) : nil))
            #expect(
                failure { recipe, _ in
                    recipe.issuers = [
                        DeviceRecipes.intermediate(extensions: [
                            .basicConstraints(isAuthority: true), item,
                        ])
                    ]
                } == (isCritical ? .certificate(.intermediate, .extensionCritical(oid)) : nil))
        }
    }

    @Test("an extended key usage is allowed and never asked for")
    func extendedKeyUsage() {
        for isCritical in [false, true] {
            #expect(
                failure(.iOS17) { recipe, _ in
                    var usage = CertificateRecipe.Extension.purpose
                    usage.isCritical = isCritical
                    recipe.leaf.extensions.append(usage)
                } == nil)
        }
    }

    @Test("an extension that is there twice is refused")
    func duplicateExtension() {
        let item = DeviceRecipes.unknown(isCritical: false)
        let error = failure { recipe, _ in recipe.leaf.extensions += [item, item] }
        #expect(
            error
                == .certificate(.leaf, .extensionDuplicate(DeviceRecipes.unknownOID)))
    }

    @Test(
        "constraints and usage that are no DER are refused",
        arguments: [
            "30060101000201 00", "3003010100", "3003010101", "3006 0101ff 0201ff",
            "3007 0101ff 02020001", "3003020100", "30060101ff02010000", "0101ff", "",
        ])
    func malformedConstraints(value: String) throws {
        let value = try #require(Hex.decode(value.filter { $0 != " " }))
        func judged(_ change: (inout CertificateRecipe.Extension) -> Void) -> AttestationError? {
            failure { recipe, _ in
                var item = CertificateRecipe.Extension.basicConstraints(isAuthority: true)
                change(&item)
                recipe.issuers = [DeviceRecipes.intermediate(extensions: [item])]
            }
        }
        guard
            case .certificate(.intermediate, .extensionMalformed) = judged({ $0.value = value })
        else {
            Issue.record("accepted, or refused otherwise")
            return
        }
    }

    @Test(
        "a key usage that is no DER is refused",
        arguments: ["030100", "03", "", "0500", "03020806"])
    func malformedUsage(value: String) throws {
        let value = try #require(Hex.decode(value))
        let error = failure { recipe, _ in
            var usage = CertificateRecipe.Extension.authorityUsage
            usage.value = value
            recipe.issuers = [
                DeviceRecipes.intermediate(extensions: [
                    .basicConstraints(isAuthority: true), usage,
                ])
            ]
        }
        guard case .certificate(.intermediate, .extensionMalformed) = error else {
            Issue.record("accepted, or refused otherwise")
            return
        }
    }

    @Test("a leaf key on another curve, or on none, is refused")
    func leafKey() {
        let error = failure { recipe, _ in
            let key = ECPrivateKey.generate(.p384)
            recipe.leaf.publicKey = CertificateRecipe.publicKey(.p384, point: key.point)
        }
        #expect(error == .certificate(.leaf, .keyUnsupported))
        let off = failure { recipe, device in
            var point = device.key.point.x963
            point[64] ^= 1
            recipe.leaf.publicKey = CertificateRecipe.publicKey(.p256, point: point)
        }
        #expect(off == .certificate(.leaf, .keyInvalid))
        let short = failure { recipe, device in
            recipe.leaf.publicKey = CertificateRecipe.publicKey(
                .p256, point: Array(device.key.point.x963.dropLast()))
        }
        #expect(short == .certificate(.leaf, .keyInvalid))
    }

    @Test("a certificate that no chain has room for is refused")
    func count() {
        #expect(failure { recipe, _ in recipe.issuers = [] } == .certificateCount(1))
        #expect(
            failure { recipe, device in recipe.issuers.append(device.root.certificate) }
                == .certificateCount(3))
        #expect(
            failure { recipe, device in recipe.issuers = [device.root.certificate] }
                == .certificate(.leaf, .issuerMismatch))
    }
}

@Suite("Attestation: validity")
struct AttestationValidityTests {
    @Test("each certificate's dates count, with five minutes at either end")
    func dates() {
        let now = DeviceFixture.now
        let day: Int64 = 86_400
        #expect(failure(at: now + 2 * day + 300) { _, _ in } == nil)
        #expect(
            failure(at: now + 2 * day + 301) { _, _ in }?.reason == "certificate_expired")
        #expect(failure(at: now - day - 300) { _, _ in } == nil)
        #expect(
            failure(at: now - day - 301) { _, _ in }?.reason == "certificate_not_yet_valid")
    }

    @Test("an intermediate that has ended or not begun is refused")
    func intermediate() {
        let now = DeviceFixture.now
        let extensions = [CertificateRecipe.Extension.basicConstraints(isAuthority: true)]
        func judged(_ notBefore: Int64, _ notAfter: Int64) -> AttestationError? {
            failure { recipe, _ in
                recipe.issuers = [
                    DeviceRecipes.intermediate(
                        extensions: extensions, notBefore: notBefore, notAfter: notAfter)
                ]
            }
        }
        #expect(judged(now - 10, now + 10) == nil)
        #expect(
            judged(now - 1000, now - 301)
                == .certificateExpired(.intermediate, notAfter: now - 301, at: now))
        #expect(
            judged(now + 301, now + 1000)
                == .certificateNotYetValid(.intermediate, notBefore: now + 301, at: now))
    }

    @Test("a root that has ended or not begun is refused")
    func root() throws {
        let now = DeviceFixture.now
        func judged(_ notBefore: Int64, _ notAfter: Int64) throws -> AttestationError? {
            let root = try TrustRoot(
                der: DeviceRecipes.root(
                    extensions: [.basicConstraints(isAuthority: true)], notBefore: notBefore,
                    notAfter: notAfter))
            return failure(root: root) { _, _ in }
        }
        #expect(try judged(now - 10, now + 10) == nil)
        #expect(
            try judged(now - 1000, now - 301)
                == .certificateExpired(.root, notAfter: now - 301, at: now))
        #expect(
            try judged(now + 301, now + 1000)
                == .certificateNotYetValid(.root, notBefore: now + 301, at: now))
    }

    @Test("dates after 2049 are read as well")
    func generalizedTime() {
        #expect(failure { recipe, _ in recipe.leaf.notAfter = 4_000_000_000 } == nil)
        #expect(
            failure { recipe, _ in recipe.leaf.notBefore = 4_000_000_000 }?.reason
                == "certificate_not_yet_valid")
    }

    @Test("an instant at either end of time is refused and traps nothing")
    func extremes() {
        #expect(failure(at: .max) { _, _ in }?.reason == "certificate_expired")
        #expect(failure(at: .min) { _, _ in }?.reason == "certificate_not_yet_valid")
    }
}

@Suite("Attestation: nonce")
struct AttestationNonceTests {
    @Test("a leaf without the extension is refused")
    func absent() {
        let error = failure(rebinding: false) { recipe, _ in recipe.setNonce(nil) }
        #expect(error == .nonceAbsent)
        #expect(error?.reason == "nonce_mismatch")
    }

    @Test("the nonce of other client data is refused")
    func otherHash() {
        let error = failure(rebinding: false) { recipe, _ in recipe.bind([1, 2, 3]) }
        guard case .nonceMismatch(let expected, let found) = error else {
            Issue.record("accepted, or refused otherwise")
            return
        }
        #expect(expected != found)
    }

    @Test("authenticator data changed after the nonce is refused")
    func changedData() {
        let error = failure(rebinding: false) { recipe, _ in recipe.authenticatorData[32] ^= 1 }
        #expect(error?.reason == "nonce_mismatch")
    }

    @Test("the extension has one form, and the right nonce in another is refused")
    func form() {
        let forms: [([UInt8]) -> [UInt8]] = [
            { nonce in nonce },
            { nonce in DER.octetString(nonce) },
            { nonce in DER.sequence(DER.octetString(nonce)) },
            { nonce in DER.sequence(DER.tagged(2, DER.octetString(nonce))) },
            { nonce in DER.sequence(DER.tagged(1, DER.octetString(nonce))) + [0] },
            { nonce in DER.sequence(DER.tagged(1, DER.octetString(nonce)), DER.null) },
            { nonce in DER.sequence(DER.tagged(1, DER.octetString(nonce) + DER.null)) },
            { nonce in DER.sequence(DER.tagged(1, DER.octetString(nonce + [0]))) },
            { nonce in DER.sequence(DER.tagged(1, DER.octetString(Array(nonce.dropLast())))) },
            { nonce in DER.sequence(DER.tagged(1, DER.bitString(nonce))) },
            { nonce in DER.sequence(DER.tagged(1, DER.null)) },
            { nonce in [0x30, 0x81, 0x24, 0xa1, 0x22, 0x04, 0x20] + nonce },
            { nonce in [0x30, 0x80, 0xa1, 0x22, 0x04, 0x20] + nonce + [0, 0] },
            { _ in [] },
        ]
        for (index, form) in forms.enumerated() {
            let error = failure(rebinding: false) { recipe, _ in
                let nonce = SHA256.hash(recipe.authenticatorData + DeviceFixture.hash).array
                recipe.setNonce(form(nonce))
            }
            guard case .nonceMalformed = error else {
                Issue.record("form \(index) accepted, or refused otherwise")
                continue
            }
        }
    }

    @Test("the nonce elsewhere in the certificate is not looked for")
    func elsewhere() {
        let error = failure(rebinding: false) { recipe, _ in
            let nonce = SHA256.hash(recipe.authenticatorData + DeviceFixture.hash).array
            recipe.setNonce(nil)
            recipe.leaf.extensions.append(
                .apple(8, 3, DER.sequence(DER.tagged(1, DER.octetString(nonce)))))
        }
        #expect(error == .nonceAbsent)
    }

    @Test("a second nonce extension is refused")
    func twice() {
        let error = failure(rebinding: false) { recipe, _ in
            let nonce = SHA256.hash(recipe.authenticatorData + DeviceFixture.hash).array
            recipe.leaf.extensions.append(
                .apple(8, 2, DER.sequence(DER.tagged(1, DER.octetString(nonce)))))
        }
        guard case .certificate(.leaf, .extensionDuplicate) = error else {
            Issue.record("accepted, or refused otherwise")
            return
        }
    }

    @Test("a client data hash of any length verifies", arguments: [0, 1, 21, 24, 32, 1000])
    func anyLength(count: Int) throws {
        let device = DeviceFixture.device()
        let hash = SystemRandom.bytes(count)
        let object = device.attest(clientDataHash: hash, at: DeviceFixture.now)
        #expect(throws: Never.self) { try DeviceFixture.verify(object, of: device, hash: hash) }
    }
}

@Suite("Attestation: key and authenticator data")
struct AttestationDataTests {
    @Test("a key ID that is not the leaf key's hash is refused")
    func keyID() {
        let other = P256PrivateKey()
        let error = failure { recipe, _ in
            recipe.leaf.publicKey = CertificateRecipe.publicKey(.p256, point: other.point.x963)
        }
        #expect(error?.reason == "key_id_mismatch")
    }

    @Test("authenticator data cut off anywhere before the extensions is refused")
    func cuts() {
        for count in 0..<164 {
            let error = failure { recipe, _ in
                recipe.authenticatorData = Array(recipe.authenticatorData[..<count])
            }
            #expect(error?.reason == "attestation_malformed", "\(count) bytes")
        }
    }

    @Test("the relying party ID hash is compared in all its bytes")
    func relyingParty() {
        for index in [0, 15, 31] {
            let error = failure { recipe, _ in recipe.authenticatorData[index] ^= 1 }
            #expect(error == .relyingPartyIDMismatch)
        }
    }

    @Test("a counter above 0 is refused, in each of its bytes")
    func counter() {
        for index in 0..<4 {
            let error = failure { recipe, _ in recipe.authenticatorData[33 + index] = 1 }
            #expect(error == .counterNotZero(1 << UInt32(24 - 8 * index)))
            #expect(error?.reason == "counter_not_zero")
        }
    }

    @Test(
        "an AAGUID is compared in all sixteen bytes, and the sandbox one of Apple's article is none"
    )
    func aaguid() {
        for text in ["appattestdevelop", "appattestsandbox", "appattest\0\0\0\0\0\0\u{1}"] {
            let error = failure { recipe, _ in
                recipe.authenticatorData.replaceSubrange(37..<53, with: text.utf8)
            }
            #expect(error?.reason == "aaguid_mismatch")
        }
        for index in 37..<53 {
            let error = failure { recipe, _ in recipe.authenticatorData[index] ^= 1 }
            #expect(error?.reason == "aaguid_mismatch")
        }
    }

    @Test("a credential ID of another length or value is refused")
    func credentialID() {
        #expect(
            failure { recipe, _ in recipe.authenticatorData[54] = 31 }
                == .authenticatorData(.credentialIDLength(31)))
        #expect(
            failure { recipe, _ in recipe.authenticatorData[53] = 1 }
                == .authenticatorData(.credentialIDLength(256 + 32)))
        for index in [55, 70, 86] {
            let error = failure { recipe, _ in recipe.authenticatorData[index] ^= 1 }
            #expect(error?.reason == "credential_id_mismatch")
        }
    }

    @Test("a COSE key with other numbers than the leaf's is refused")
    func coseNumbers() {
        for index in [97, 128, 132, 163] {
            let error = failure { recipe, _ in recipe.authenticatorData[index] ^= 1 }
            #expect(error == .credentialKeyMismatch)
            #expect(error?.reason == "cose_key_mismatch")
        }
    }

    @Test("a COSE key is the five members of a P-256 key, in any order, and nothing else")
    func coseForm() {
        let point = P256PrivateKey().point
        let x = CBORValue.bytes(point.x.array)
        let y = CBORValue.bytes(point.y.array)
        typealias Pair = (key: CBORValue, value: CBORValue)
        let good: [Pair] = [
            (.integer(1), .integer(2)), (.integer(3), .integer(-7)), (.integer(-1), .integer(1)),
            (.integer(-2), x), (.integer(-3), y),
        ]
        func judged(_ pairs: [Pair]) -> AttestationError? {
            failure { recipe, device in
                // The device's own numbers where the list has the placeholders.
                let pairs = pairs.map { pair -> Pair in
                    guard case .bytes(let bytes) = pair.value, bytes.count == 32 else {
                        return pair
                    }
                    let own = bytes == point.x.array ? device.key.point.x : device.key.point.y
                    return (pair.key, .bytes(own.array))
                }
                let rest = device.extensions()
                recipe.authenticatorData =
                    recipe.authenticatorData[..<87] + CBORValue.map(pairs).encoded + rest
            }
        }
        #expect(judged(good) == nil)
        #expect(judged(good.reversed()) == nil)
        var bad: [[Pair]] = (0..<5).map { index in
            var pairs = good
            pairs.remove(at: index)
            return pairs
        }
        bad.append(good + [(.integer(2), .bytes([1]))])
        bad.append(good + [(.integer(4), .integer(1))])
        bad.append(good + [(.integer(1), .integer(2))])
        bad.append(good + [(.integer(-2), x)])
        bad.append([(.integer(1), .integer(3))] + good.dropFirst())
        bad.append([good[0], (.integer(3), .integer(-8))] + good.dropFirst(2))
        bad.append([good[0], good[1], (.integer(-1), .integer(2))] + good.dropFirst(3))
        bad.append(good.dropLast() + [(.integer(-3), .bytes([0] + point.y.array))])
        bad.append(good.dropLast() + [(.integer(-3), .bytes(Array(point.y.array.dropFirst())))])
        bad.append(good.dropLast() + [(.integer(-3), .text("y"))])
        bad.append(good.dropLast() + [(.text("y"), y)])
        for (index, pairs) in bad.enumerated() {
            guard case .authenticatorData(.credentialKey) = judged(pairs) else {
                Issue.record("key \(index) accepted, or refused otherwise")
                continue
            }
        }
    }

    @Test("flags change nothing but the nonce")
    func flags() {
        for flags in UInt8.min...UInt8.max {
            #expect(failure { recipe, _ in recipe.authenticatorData[32] = flags } == nil)
        }
    }
}

@Suite("Attestation: what the leaf says of the device")
struct AttestedDeviceTests {
    /// What is read of a leaf whose system fields are `fields`; it verifies whatever they are.
    func read(_ fields: [UInt8]) throws -> AttestedDevice {
        let device = DeviceFixture.device(.iOS14)
        var recipe = device.recipe(clientDataHash: DeviceFixture.hash, at: DeviceFixture.now)
        let oid = DER.oid(1, 2, 840, 113635, 100, 8, 7)
        let index = try #require(recipe.leaf.extensions.firstIndex { $0.oid == oid })
        recipe.leaf.extensions[index].value = fields
        return try DeviceFixture.verify(recipe.encoded { _ in [] }, of: device).device
    }

    @Test("fields are found by their tag numbers, and refuse nothing where they cannot be read")
    func fields() throws {
        let version = DER.octetString(Array("14.2".utf8))
        #expect(try read(DER.sequence(DER.tagged(1400, version))).systemVersion == "14.2")
        #expect(try read(DER.sequence(DER.tagged(1405, version))).systemVersion == "14.2")
        #expect(try read(DER.sequence(DER.tagged(1403, version))).systemBuild == "14.2")
        #expect(try read(DER.sequence(DER.tagged(1026, version))).platform == "14.2")
        let bad: [[UInt8]] = [
            [], [0x30], DER.null, DER.sequence(DER.tagged(1400, [])), DER.sequence([0xbf]),
            DER.sequence(DER.tagged(1400, DER.octetString([0xff]))),
            Array(DER.sequence(DER.tagged(1400, version)).dropLast()),
        ]
        for fields in bad {
            #expect(try read(fields).systemVersion == nil)
        }
    }

    @Test("a tag number has one form")
    func tagNumbers() throws {
        let version = DER.octetString(Array("14.2".utf8))
        let count = UInt8(version.count)
        // 1400 is 8a 78 in base 128.
        #expect(
            try read(DER.sequence([0xbf, 0x8a, 0x78, count] + version)).systemVersion == "14.2")
        #expect(
            try read(DER.sequence([0xbf, 0x80, 0x8a, 0x78, count] + version)).systemVersion == nil)
        let low: [UInt8] = [0xbf, 0x04, count] + version
        #expect(
            try read(DER.sequence(low, DER.tagged(1400, version))).systemVersion == nil)
        let long: [UInt8] = [0xbf, 0x81, 0x81, 0x81, 0x81, 0x01, count] + version
        #expect(
            try read(DER.sequence(long, DER.tagged(1400, version))).systemVersion == nil)
    }
}

/// Certificates and extensions that the device does not make by itself.
enum DeviceRecipes {
    /// 1.2.840.113635.100.99.1, which means nothing.
    static let unknownOID: OID = {
        guard let oid = OID(DER.oid(1, 2, 840, 113635, 100, 99, 1).dropFirst(2)) else {
            fatalError("an identifier that is none")
        }
        return oid
    }()

    static func unknown(isCritical: Bool) -> CertificateRecipe.Extension {
        var item = CertificateRecipe.Extension.apple(99, 1, DER.null)
        item.isCritical = isCritical
        return item
    }

    static func name(_ common: String) -> [UInt8] {
        CertificateRecipe.name(common: common)
    }

    /// The fixture's intermediate with other extensions and dates, by the fixture's root.
    static func intermediate(
        extensions: [CertificateRecipe.Extension], notBefore: Int64 = DeviceFixture.now - 86_400,
        notAfter: Int64 = DeviceFixture.now + 86_400
    ) -> [UInt8] {
        let root = DeviceFixture.root
        return CertificateRecipe(
            serialNumber: [1], issuer: name("Simulated App Attestation Root CA"),
            subject: root.intermediateName, notBefore: notBefore, notAfter: notAfter,
            publicKey: CertificateRecipe.publicKey(.p384, point: root.intermediateKey.point),
            extensions: extensions, digest: .sha384
        ).signed(by: root.key)
    }

    /// The fixture's root with other extensions and dates.
    static func root(
        extensions: [CertificateRecipe.Extension], notBefore: Int64 = DeviceFixture.now - 86_400,
        notAfter: Int64 = DeviceFixture.now + 86_400
    ) -> [UInt8] {
        let root = DeviceFixture.root
        let subject = name("Simulated App Attestation Root CA")
        return CertificateRecipe(
            serialNumber: [1], issuer: subject, subject: subject, notBefore: notBefore,
            notAfter: notAfter,
            publicKey: CertificateRecipe.publicKey(.p384, point: root.key.point),
            extensions: extensions, digest: .sha384
        ).signed(by: root.key)
    }
}
