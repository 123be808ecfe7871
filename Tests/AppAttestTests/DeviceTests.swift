import AppAttest
import AppAttestDevice
import GateBytes
import GateCrypto
import Testing

@Suite("Device: its objects verify under its own root alone")
struct DeviceTests {
    @Test("every shape verifies, in both environments", arguments: DeviceShape.allCases)
    func shapes(shape: DeviceShape) throws {
        for isProduction in [false, true] {
            var device = DeviceFixture.device(shape, isProduction: isProduction)
            let object = device.attest(clientDataHash: DeviceFixture.hash, at: DeviceFixture.now)
            let verified = try DeviceFixture.verify(object, of: device)
            #expect(verified.environment == (isProduction ? .production : .development))
            #expect(verified.publicKeyX963 == device.key.point.x963)
            #expect(verified.device.systemVersion?.isEmpty == false)
            #expect((verified.device.accessControl != nil) == (verified.device.platform != nil))
            #expect(object.count < 6000)
            for counter in 1...3 as ClosedRange<UInt32> {
                let assertion = device.assert(clientDataHash: DeviceFixture.hash)
                #expect(
                    try DeviceFixture.verify(
                        assertion: assertion, of: device, previousCounter: counter - 1) == counter)
                #expect(assertion.count <= 260)
            }
        }
    }

    @Test("nothing of it verifies under Apple's root", arguments: DeviceShape.allCases)
    func notApple(shape: DeviceShape) {
        let device = DeviceFixture.device(shape)
        let object = device.attest(clientDataHash: DeviceFixture.hash, at: DeviceFixture.now)
        #expect(
            reason { try DeviceFixture.verify(object, of: device, root: .apple) }
                == "certificate_chain")
    }

    @Test(
        "flags, lengths and signed members are those of real objects",
        arguments: [
            (DeviceShape.iOS14, "0x40", 164, 37), (.iOS18CodeDirectory, "0x40", 164, 37),
            (.iOS26, "0x40", 164, 37), (.iOS27, "0xc0", 229, 102), (.iOS27Beta, "0x40", 226, 99),
            (.iOS27OldSDK, "0x40", 164, 37), (.macOS27, "0x40", 280, 153),
        ])
    func layout(shape: DeviceShape, flags: String, attestation: Int, assertion: Int) throws {
        var device = DeviceFixture.device(shape)
        let recipe = device.recipe(clientDataHash: DeviceFixture.hash, at: DeviceFixture.now)
        #expect(recipe.authenticatorData.count == attestation)
        let signed = device.assert(clientDataHash: DeviceFixture.hash)
        let fields = Inspection.assertion(signed)
        #expect(fields.first { $0.name == "flags" }?.value == flags)
        #expect(device.head(counter: 1).count + device.extensions().count == assertion)
        let hasMember = fields.contains { $0.name == "other member cdHash" }
        #expect(hasMember == (shape == .iOS18CodeDirectory))
    }

    @Test("the leaf lives three days from a day before its issue, numbered by the millisecond")
    func leaf() throws {
        let device = DeviceFixture.device()
        let object = device.attest(clientDataHash: DeviceFixture.hash, at: DeviceFixture.now)
        let fields = Inspection.attestation(object)
        func value(_ name: String) -> String? { fields.first { $0.name == name }?.value }
        #expect(value("leaf not before") == "2026-09-20T14:13:20Z")
        #expect(value("leaf not after") == "2026-09-23T14:13:20Z")
        let serial = try #require(value("leaf serial number").flatMap { UInt64($0, radix: 16) })
        #expect(serial / 1000 == UInt64(DeviceFixture.now))
        let subject = try #require(value("leaf subject"))
        #expect(
            subject.hasPrefix("CN=" + Hex.encode(device.keyID.array) + ", OU=AAA Certification"))
        #expect(value("leaf 1.2.840.113635.100.8.5 [1204]") == DeviceFixture.appID)
        #expect(value("intermediate extension 2.5.29.19 critical") == "30060101ff020100")
        #expect(value("intermediate key")?.hasPrefix("P-384") == true)
    }

    @Test("an object of one device is none of another's")
    func otherDevice() throws {
        let device = DeviceFixture.device()
        let other = DeviceFixture.device()
        let object = device.attest(clientDataHash: DeviceFixture.hash, at: DeviceFixture.now)
        #expect(reason { try DeviceFixture.verify(object, of: other) } == "key_id_mismatch")
        var signer = device
        let assertion = signer.assert(clientDataHash: DeviceFixture.hash)
        #expect(
            reason { try DeviceFixture.verify(assertion: assertion, of: other) }
                == "signature_invalid")
    }

    @Test("the counter rises by one, goes where it is told, and leaves gaps where it may")
    func counters() throws {
        var device = DeviceFixture.device()
        _ = device.assert(clientDataHash: [])
        #expect(device.signCounter == 1)
        let far = device.assert(clientDataHash: DeviceFixture.hash, counter: 4_000_000_000)
        #expect(try DeviceFixture.verify(assertion: far, of: device) == 4_000_000_000)
        _ = device.assert(clientDataHash: [])
        #expect(device.signCounter == 4_000_000_001)
        device.signCounter = 0
        device.counterGapMax = 3
        var previous: UInt32 = 0
        var gaps: Set<UInt32> = []
        for _ in 0..<200 {
            _ = device.assert(clientDataHash: [])
            gaps.insert(device.signCounter - previous)
            previous = device.signCounter
        }
        #expect(gaps == [1, 2, 3, 4])
        device.signCounter = .max
        _ = device.assert(clientDataHash: [])
    }

    @Test("the operator's version and category take the shape's place")
    func overrides() throws {
        var device = DeviceFixture.device(.iOS27)
        device.bundleVersion = "412"
        device.validationCategory = 4
        let object = device.attest(clientDataHash: DeviceFixture.hash, at: DeviceFixture.now)
        let members = try DeviceFixture.verify(object, of: device).extensions.readable
        #expect(members?.bundleVersion == "412")
        #expect(members?.validationCategory?.name == "app_store")
    }

    @Test("root and device come back from their text, in one file, and go on")
    func export() throws {
        var device = DeviceFixture.device(.macOS27, isProduction: false)
        _ = device.assert(clientDataHash: [])
        device.counterGapMax = 2
        let text = "note anything\n" + DeviceFixture.root.exported() + device.exported()
        let root = try #require(DeviceRoot(exported: text))
        #expect(root.certificate == DeviceFixture.root.certificate)
        #expect(root.pem == DeviceFixture.root.pem)
        var again = try #require(Device(exported: text, root: root))
        #expect(again.keyID == device.keyID)
        #expect(again.signCounter == 1)
        #expect(again.counterGapMax == 2)
        #expect(again.exported() == device.exported())
        let object = again.attest(clientDataHash: DeviceFixture.hash, at: DeviceFixture.now)
        #expect(throws: Never.self) { try DeviceFixture.verify(object, of: device) }
        again.counterGapMax = 0
        let assertion = again.assert(clientDataHash: DeviceFixture.hash)
        #expect(try DeviceFixture.verify(assertion: assertion, of: device) == 2)
    }

    @Test("text that lacks a line, or has another's key, makes no root and no device")
    func badExport() {
        let device = DeviceFixture.device()
        let lines = DeviceFixture.root.exported().split(separator: "\n")
        for index in lines.indices {
            var fewer = lines
            fewer.remove(at: index)
            #expect(DeviceRoot(exported: fewer.joined(separator: "\n")) == nil)
        }
        for line in ["app-id", "environment", "shape", "key", "counter"] {
            let fewer = device.exported().split(separator: "\n").filter {
                !$0.hasPrefix("device.\(line) ")
            }
            #expect(Device(exported: fewer.joined(separator: "\n"), root: device.root) == nil)
        }
        #expect(Device(exported: "", root: device.root) == nil)
    }

    @Test("a root's PEM makes the trust root that its devices verify under")
    func pem() throws {
        let root = try TrustRoot(pem: Array(DeviceFixture.root.pem.utf8))
        #expect(root.der == DeviceFixture.root.certificate)
    }

    @Test("calendar times are written as they are read, from 1970 to 9999")
    func times() throws {
        for seconds: Int64 in [
            0, 951_782_400, 951_868_800, 1_709_164_800, 1_709_251_199, 1_790_000_000,
            2_524_607_999, 2_524_608_000, 4_107_542_399, 4_107_542_400, 253_402_300_799,
        ] {
            let der = CertificateRecipe(
                serialNumber: [1], issuer: DeviceRecipes.name("A"),
                subject: DeviceRecipes.name("A"),
                notBefore: seconds, notAfter: seconds,
                publicKey: CertificateRecipe.publicKey(.p384, point: DeviceFixture.root.key.point),
                extensions: [], digest: .sha384
            ).signed(by: DeviceFixture.root.key)
            let text = Inspection.certificate(der, name: "x").first { $0.name == "x not after" }
            let value = try #require(text?.value)
            #expect(try AppAttestTests.seconds(value) == seconds)
        }
    }
}
