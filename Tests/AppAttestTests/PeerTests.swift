import AppAttest
import AppAttestDevice
import Foundation
import GateBytes
import GateCrypto
import Testing

@Suite(
    "Second opinion: the Python device and verifier",
    .enabled(if: Peers.arePresent, "no interpreter: run ./dev test, or set ATTESTGATE_TEST_PYTHON"))
struct PeerTests {
    typealias Request = [String: Any]

    static func attestationRequest(
        _ object: [UInt8], of device: Device, at now: Int64 = DeviceFixture.now
    ) -> Request {
        [
            "command": "verify-attestation", "object": Base64.encode(object),
            "clientDataHash": Base64.encode(DeviceFixture.hash),
            "keyID": Base64.encode(device.keyID.array), "appIDs": [device.appID],
            "environment": device.isProduction ? "production" : "development",
            "root": device.root.pem, "at": now,
        ]
    }

    static func assertionRequest(_ object: [UInt8], of device: Device) -> Request {
        [
            "command": "verify-assertion", "object": Base64.encode(object),
            "clientDataHash": Base64.encode(DeviceFixture.hash),
            "publicKey": Base64.encode(device.key.point.x963), "appID": device.appID,
            "previousCounter": 0,
        ]
    }

    @Test(
        "the Python verifier accepts our device's objects in every shape, and says the same of them"
    )
    func oursAccepted() throws {
        var requests: [Request] = []
        var expected: [OSExtensions] = []
        for shape in DeviceShape.allCases {
            for isProduction in [false, true] {
                var device = DeviceFixture.device(shape, isProduction: isProduction)
                let object = device.attest(
                    clientDataHash: DeviceFixture.hash, at: DeviceFixture.now)
                requests.append(PeerTests.attestationRequest(object, of: device))
                requests.append(
                    PeerTests.assertionRequest(
                        device.assert(clientDataHash: DeviceFixture.hash), of: device))
                expected.append(try DeviceFixture.verify(object, of: device).extensions)
            }
        }
        let answers = try Peers.run("peer_attest.py", ["lines"], requests)
        #expect(answers.count == requests.count)
        for (index, answer) in answers.enumerated() {
            #expect(answer.isAccepted == true, "\(answer)")
            let members = answer["extensions"] as? Request
            let ours = expected[index / 2].readable
            #expect(members?.text("bundleVersion") == ours?.bundleVersion)
            #expect(
                (members?["category"] as? Int).map { UInt32($0) }
                    == ours?.validationCategory?.rawValue)
            #expect(members?.text("cdHash") == ours?.codeDirectoryHash.map { Hex.encode($0) })
        }
    }

    @Test("we accept the Python device's objects in every shape")
    func theirsAccepted() throws {
        let shapes = try #require(
            try Peers.run("peer_attest.py", ["lines"], [["command": "shapes"]])[0]["shapes"]
                as? [String])
        #expect(Set(shapes) == Set(DeviceShape.allCases.map(\.rawValue)))
        let root = try Peers.run("peer_attest.py", ["lines"], [["command": "new"]])[0]["root"]
        for environment in Environment.allCases {
            let states = try Peers.run(
                "peer_attest.py", ["lines"],
                shapes.map { shape in
                    [
                        "command": "new", "shape": shape, "environment": environment.rawValue,
                        "root": root as Any,
                    ]
                })
            let now = Int64(Date.now.timeIntervalSince1970)
            let hash = Base64.encode(DeviceFixture.hash)
            let objects = try Peers.run(
                "peer_attest.py", ["lines"],
                states.flatMap { state -> [Request] in
                    [
                        ["command": "attest", "state": state, "clientDataHash": hash, "at": now],
                        [
                            "command": "assert", "state": state, "clientDataHash": hash,
                            "counter": 5,
                        ],
                    ]
                })
            for (index, state) in states.enumerated() {
                try judge(
                    state, objects[2 * index], objects[2 * index + 1], environment, at: now)
            }
        }
    }

    private func judge(
        _ state: Request, _ attestation: Request, _ assertion: Request, _ environment: Environment,
        at now: Int64
    ) throws {
        let pem = try #require((state["root"] as? Request)?.text("certificate"))
        let root = try TrustRoot(pem: Array(pem.utf8))
        let appID = try #require(state.text("appID"))
        let keyID = try #require(state.text("keyID").flatMap { KeyID(base64: $0) })
        let object = try #require(attestation.bytes("object"))
        let verified = try Attestation.verify(
            object: object, clientDataHash: DeviceFixture.hash, keyID: keyID, appIDs: [appID],
            environment: environment, root: root, at: now)
        #expect(verified.publicKeyX963 == state.bytes("publicKey"))
        let key = try #require(PublicKey(x963: verified.publicKeyX963))
        let signed = try #require(assertion.bytes("object"))
        let counter = try Assertion.verify(
            object: signed, clientDataHash: DeviceFixture.hash, publicKey: key, appID: appID,
            previousCounter: 4
        ).signCounter
        #expect(counter == 5)
        // And none of it once a byte has changed.
        var changed = object
        changed[changed.count - 40] ^= 1
        #expect(
            reason {
                try Attestation.verify(
                    object: changed, clientDataHash: DeviceFixture.hash, keyID: keyID,
                    appIDs: [appID], environment: environment, root: root, at: now)
            } != nil)
        #expect(
            reason {
                _ = try Assertion.verify(
                    object: signed, clientDataHash: [], publicKey: key, appID: appID,
                    previousCounter: 4)
            } == "signature_invalid")
    }

    @Test("both verifiers name the same step for the same fault")
    func sameFault() throws {
        let device = DeviceFixture.device(.iOS27)
        var requests: [Request] = []
        var ours: [String?] = []
        var names: [String] = []
        func add(
            _ name: String, at now: Int64 = DeviceFixture.now, rebinding: Bool = true,
            _ change: (inout AttestationRecipe) -> Void
        ) {
            var recipe = device.recipe(clientDataHash: DeviceFixture.hash, at: DeviceFixture.now)
            change(&recipe)
            if rebinding { recipe.bind(DeviceFixture.hash) }
            let object = recipe.encoded { _ in [1] }
            names.append(name)
            requests.append(PeerTests.attestationRequest(object, of: device, at: now))
            ours.append(reason { try DeviceFixture.verify(object, of: device, at: now) })
        }
        add("good") { _ in }
        add("format") { $0.format = "apple" }
        add("one certificate") { $0.issuers = [] }
        add("issuer key") { $0.issuerKey = .generate(.p384) }
        add("leaf an authority") {
            $0.leaf.extensions[0] = .basicConstraints(isAuthority: true)
        }
        add("critical") { $0.leaf.extensions.append(DeviceRecipes.unknown(isCritical: true)) }
        add("expired", at: DeviceFixture.now + 2 * 86_400 + 301) { _ in }
        add("early", at: DeviceFixture.now - 86_400 - 301) { _ in }
        add("skew", at: DeviceFixture.now + 2 * 86_400 + 299) { _ in }
        add("no nonce", rebinding: false) { $0.setNonce(nil) }
        add("nonce form", rebinding: false) {
            let nonce = SHA256.hash($0.authenticatorData + DeviceFixture.hash).array
            $0.setNonce(DER.sequence(DER.octetString(nonce)))
        }
        add("other hash", rebinding: false) { $0.bind([0]) }
        add("other key") {
            let point = P256PrivateKey().point.x963
            $0.leaf.publicKey = CertificateRecipe.publicKey(.p256, point: point)
        }
        add("short data") { $0.authenticatorData.removeLast(150) }
        add("relying party") { $0.authenticatorData[3] ^= 1 }
        add("counter") { $0.authenticatorData[36] = 1 }
        add("environment") { $0.authenticatorData[50] ^= 1 }
        add("credential ID") { $0.authenticatorData[60] ^= 1 }
        add("COSE key") { $0.authenticatorData[100] ^= 1 }
        add("extensions") { $0.authenticatorData.removeLast() }
        let answers = try Peers.run("peer_attest.py", ["lines"], requests)
        for (index, answer) in answers.enumerated() {
            #expect(answer.text("reason") == ours[index], "\(names[index])")
            #expect(answer.isAccepted == (ours[index] == nil), "\(names[index])")
        }
        #expect(Set(ours.compactMap { $0 }).count == 11)
    }

    @Test("an assertion tampered with is refused by both, by the same step")
    func tamperedAssertions() throws {
        var device = DeviceFixture.device(.macOS27)
        let object = device.assert(clientDataHash: DeviceFixture.hash)
        var requests: [Request] = []
        var ours: [String?] = []
        for index in stride(from: 0, to: object.count, by: 3) {
            var changed = object
            changed[index] ^= 0x20
            requests.append(PeerTests.assertionRequest(changed, of: device))
            ours.append(reason { try DeviceFixture.verify(assertion: changed, of: device) })
        }
        let answers = try Peers.run("peer_attest.py", ["lines"], requests)
        for (index, answer) in answers.enumerated() {
            #expect(answer.isAccepted == false)
            #expect(ours[index] != nil)
            #expect(answer.text("reason") == ours[index], "byte \(3 * index)")
        }
    }

    @Test("the receipt's signature and chain hold, by the Python reading of CMS")
    func receipts() throws {
        let device = DeviceFixture.device(isProduction: false)
        let object = device.attest(clientDataHash: DeviceFixture.hash, at: DeviceFixture.now)
        let receipt = try DeviceFixture.verify(object, of: device).receipt
        var requests: [Request] = [["command": "receipt", "receipt": Base64.encode(receipt)]]
        if Vectors.arePresent {
            let vector: AttestationVector = try Vectors.load(
                "attestation", "2026-10-ios27.0.1-dev-ricardo")
            let real = try vector.verify().receipt
            requests.append(["command": "receipt", "receipt": Base64.encode(real)])
        }
        let answers = try Peers.run("peer_attest.py", ["lines"], requests)
        for answer in answers {
            #expect(answer.isAccepted == true, "\(answer)")
            let fields = answer["fields"] as? [String: String]
            #expect(fields.map { Set($0.keys) } == ["2", "3", "4", "5", "6", "7", "12", "21"])
        }
        let fields = answers[0]["fields"] as? [String: String]
        func text(_ name: String) -> String? {
            fields?[name].flatMap { Base64.decode($0) }.map { String(decoding: $0, as: UTF8.self) }
        }
        #expect(text("2") == DeviceFixture.appID)
        #expect(text("6") == "ATTEST")
        #expect(text("7") == "sandbox")
        #expect(fields?["4"].flatMap { Base64.decode($0) } == DeviceFixture.hash)
        #expect(text("12")?.hasPrefix("2026-09-21T14:13:20") == true)
        #expect(text("21")?.hasPrefix("2026-12-20T14:13:20") == true)
    }

    @Test("we accept the Python device's receipts, and those its exchange gives for ours")
    func theirReceipts() throws {
        let now = Int64(Date.now.timeIntervalSince1970)
        let state = try Peers.run("peer_attest.py", ["lines"], [["command": "new"]])[0]
        let root = try #require(state["root"] as? Request)
        let made = try Peers.run(
            "peer_attest.py", ["lines"],
            [
                [
                    "command": "attest", "state": state, "at": now,
                    "clientDataHash": Base64.encode(DeviceFixture.hash),
                ]
            ])[0]
        let pem = try #require(root.text("certificate"))
        let appID = try #require(state.text("appID"))
        let attestation = try Attestation.verify(
            object: try #require(made.bytes("object")), clientDataHash: DeviceFixture.hash,
            keyID: try #require(state.text("keyID").flatMap { KeyID(base64: $0) }),
            appIDs: [appID], environment: .development,
            root: try TrustRoot(pem: Array(pem.utf8)), at: now)
        var terms = ReceiptTerms(
            appIDs: [appID], publicKeyX963: attestation.publicKeyX963, kind: .attest,
            clientDataHash: DeviceFixture.hash, environment: .development,
            root: try TrustRoot(pem: Array(pem.utf8)), at: now)
        let first = try Receipt.verify(attestation.receipt, terms)
        #expect(first.expiration == first.creation + 90 * 86_400_000)
        let refreshed = try Peers.run(
            "peer_attest.py", ["lines"],
            [
                [
                    "command": "refresh-receipt", "root": root, "metric": 4,
                    "receipt": Base64.encode(attestation.receipt), "at": Double(now) + 0.46,
                    "notBefore": Double(now) + 10.5,
                ]
            ])[0]
        terms.kind = .receipt
        let second = try Receipt.verify(try #require(refreshed.bytes("receipt")), terms)
        #expect(second.riskMetric == 4)
        #expect(second.creation == now * 1000 + 460)
        #expect(second.notBefore == now * 1000 + 10_500)
    }
}

@Suite(
    "Second opinion: pyattest",
    .enabled(if: Peers.arePresent, "no interpreter: run ./dev test, or set ATTESTGATE_TEST_PYTHON"))
struct PyattestTests {
    typealias Request = [String: Any]

    @Test("its verifier accepts our device's objects in every shape, and refuses them changed")
    func oursAccepted() throws {
        // It reads the clock itself.
        let now = Int64(Date.now.timeIntervalSince1970)
        let root = DeviceRoot.generate(at: now)
        let challenge = Array("challenge".utf8)
        var requests: [Request] = []
        for shape in DeviceShape.allCases {
            for isProduction in [false, true] {
                var device = Device(
                    root: root, appID: DeviceFixture.appID, isProduction: isProduction, shape: shape
                )
                let object = device.attest(clientDataHash: DeviceFixture.hash, at: now)
                let attestation: Request = [
                    "command": "verify-attestation", "object": Base64.encode(object),
                    "challenge": Base64.encode(challenge),
                    "keyID": Base64.encode(device.keyID.array), "appID": device.appID,
                    "environment": isProduction ? "production" : "development", "root": root.pem,
                ]
                let signed = device.assert(clientDataHash: DeviceFixture.hash)
                let assertion: Request = [
                    "command": "verify-assertion", "object": Base64.encode(signed),
                    "clientDataHash": Base64.encode(DeviceFixture.hash),
                    "publicKey": Base64.encode(device.key.point.x963), "appID": device.appID,
                    "root": root.pem,
                ]
                requests.append(attestation)
                requests.append(assertion)
                requests.append(
                    attestation.merging(["challenge": Base64.encode([1])]) { _, new in new })
                requests.append(
                    assertion.merging(["clientDataHash": Base64.encode([1])]) { _, new in new })
            }
        }
        let answers = try Peers.run("peer_pyattest.py", [], requests)
        #expect(answers.count == requests.count)
        for (index, answer) in answers.enumerated() {
            #expect(answer.isAccepted == (index % 4 < 2), "\(index): \(answer)")
        }
    }

    @Test("its factory's objects are refused by name: an RSA leaf, no nonce in DER, an ended root")
    func theirsRefused() throws {
        let appID = DeviceFixture.appID
        let challenge = Array("challenge".utf8)
        let answer = try Peers.run(
            "peer_pyattest.py", [],
            [["command": "factory", "appID": appID, "challenge": Base64.encode(challenge)]])[0]
        let object = try #require(answer.bytes("object"))
        let keyID = try #require(answer.text("keyID").flatMap { KeyID(base64: $0) })
        let now = Int64(Date.now.timeIntervalSince1970)
        let report = AttestationReport(
            object: object, challenge: challenge, keyID: keyID, appIDs: [appID],
            environment: .development, root: DeviceFixture.trust, at: now)
        #expect(report.verified == nil)
        let outcomes = Dictionary(uniqueKeysWithValues: report.steps.map { ($0.step, $0.outcome) })
        #expect(outcomes[.object] == .passed)
        #expect(outcomes[.certificates] == .passed)
        #expect(outcomes[.chain] == .failed(.certificate(.leaf, .keyUnsupported)))
        guard case .failed(.certificateExpired(.intermediate, _, at: now)) = outcomes[.validity]
        else {
            Issue.record("the ended root: \(String(describing: outcomes[.validity]))")
            return
        }
        guard case .failed(.nonceMalformed) = outcomes[.nonce] else {
            Issue.record("the nonce: \(String(describing: outcomes[.nonce]))")
            return
        }
        #expect(outcomes[.keyID] == .failed(.certificate(.leaf, .keyUnsupported)))
        guard case .failed(.authenticatorData(.credentialKey)) = outcomes[.authenticatorData] else {
            Issue.record("the COSE key: \(String(describing: outcomes[.authenticatorData]))")
            return
        }
        #expect(
            reason {
                try Attestation.verify(
                    object: object, challenge: challenge, keyID: keyID, appIDs: [appID],
                    environment: .development, root: DeviceFixture.trust, at: now)
            } == "certificate_chain")
        // Nor can its root be one of ours: it is no authority, and its key is RSA.
        let root = try #require(answer.bytes("root"))
        #expect(throws: TrustRootError.self) { try TrustRoot(der: root) }
    }
}
