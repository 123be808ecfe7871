import AppAttest
import GateBytes
import GateCrypto
import Testing

@Suite(
    "Attestation: real objects", .enabled(if: Vectors.arePresent, "no vectors beside the package"))
struct AttestationVectorTests {
    @Test("every real object verifies at its instant", arguments: Vectors.names("attestation"))
    func accepted(name: String) throws {
        let vector: AttestationVector = try Vectors.load("attestation", name)
        #expect(vector.expected.hasPrefix("accept at validAt"))
        let verified = try vector.verify()
        #expect(verified.keyID == (try vector.keyID))
        #expect(verified.publicKeyX963 == (try bytes(vector.publicKeyX963)))
        #expect(verified.appID == vector.appId)
        #expect(verified.environment == (try vector.place))
        #expect(verified.extensions == (try expectedExtensions(vector.extensions)))
        #expect(verified.device.systemVersion == vector.osVersionInLeaf)
        #expect(verified.device.systemBuild == vector.osBuildInLeaf)
        #expect(verified.device.platform == vector.platformInLeaf)
        #expect(verified.device.accessControl == vector.aclBlobInLeaf.flatMap { Hex.decode($0) })
        #expect(verified.receipt.count > 3000)
    }

    @Test("the leaf's dates hold to five minutes", arguments: Vectors.names("attestation"))
    func dates(name: String) throws {
        let vector: AttestationVector = try Vectors.load("attestation", name)
        let end = try seconds(vector.leafNotAfter)
        let start = try seconds(vector.leafNotBefore)
        #expect(throws: Never.self) { try vector.verify(at: end + 300) }
        #expect(throws: Never.self) { try vector.verify(at: start - 300) }
        #expect(throws: AttestationError.certificateExpired(.leaf, notAfter: end, at: end + 301)) {
            try vector.verify(at: end + 301)
        }
        #expect(
            throws: AttestationError.certificateNotYetValid(
                .leaf, notBefore: start, at: start - 301)
        ) {
            try vector.verify(at: start - 301)
        }
    }

    @Test("other arguments are refused, each by its step", arguments: Vectors.names("attestation"))
    func arguments(name: String) throws {
        let vector: AttestationVector = try Vectors.load("attestation", name)
        let other = KeyID(SystemRandom.bytes32())
        let environment: Environment = try vector.place == .production ? .development : .production
        #expect(throws: AttestationError.relyingPartyIDMismatch) {
            try vector.verify(appIDs: [vector.appId + "x"])
        }
        #expect(throws: AttestationError.relyingPartyIDMismatch) { try vector.verify(appIDs: []) }
        #expect(try vector.verify(appIDs: ["A.b", vector.appId]).appID == vector.appId)
        #expect(reason { try vector.verify(environment: environment) } == "aaguid_mismatch")
        #expect(reason { try vector.verify(keyID: other) } == "key_id_mismatch")
        #expect(reason { try vector.verify(hash: vector.hash + [0]) } == "nonce_mismatch")
    }

    @Test(
        "the challenge is hashed by the entry that takes one",
        arguments: Vectors.names("attestation"))
    func challenge(name: String) throws {
        let vector: AttestationVector = try Vectors.load("attestation", name)
        guard let challenge = try vector.challenge.map({ try bytes($0) }) else { return }
        func verify() throws -> VerifiedAttestation {
            try Attestation.verify(
                object: vector.object, challenge: challenge, keyID: vector.keyID,
                appIDs: [vector.appId], environment: vector.place, at: vector.validSeconds)
        }
        switch vector.clientDataHashRule {
        case "sha256": #expect(try verify().appID == vector.appId)
        case "raw": #expect(reason { try verify() } == "nonce_mismatch")
        default: Issue.record("a challenge with an unknown rule")
        }
    }

    @Test("any of them is expired today")
    func today() throws {
        for name in Vectors.names("attestation") {
            let vector: AttestationVector = try Vectors.load("attestation", name)
            #expect(reason { try vector.verify(at: 1_796_000_000) } == "certificate_expired")
        }
    }

    @Test("a look-alike root is refused, and as a root it is none")
    func lookAlike() throws {
        let text = try read("roots/NEGATIVE-altered-root-do-not-trust.pem")
        #expect(throws: TrustRootError.certificate(.signatureInvalid)) { try TrustRoot(pem: text) }
    }

    @Test("Apple's root in PEM is the embedded one, and other Apple roots do not end the chain")
    func roots() throws {
        let same = try TrustRoot(pem: read("roots/Apple_App_Attestation_Root_CA.pem"))
        #expect(same.der == TrustRoot.apple.der)
        let other = try TrustRoot(pem: read("roots/Apple_Root_CA_G3.pem"))
        let vector: AttestationVector = try Vectors.load(
            "attestation", "2026-10-ios27.0.1-dev-ricardo")
        #expect(throws: AttestationError.certificate(.intermediate, .issuerMismatch)) {
            try vector.verify(root: other)
        }
    }

    @Test("the two signed captures without a signature parse", arguments: Vectors.names("authdata"))
    func captures(name: String) throws {
        let vector: AuthenticatorDataVector = try Vectors.load("authdata", name)
        let data = try bytes(vector.authenticatorData)
        let fields = Inspection.authenticatorData(data)
        let hash = fields.first { $0.name == "relying party ID hash" }?.value
        #expect(hash == Hex.encode(Array(data[..<32])))
        #expect(fields.first { $0.name == "sign counter" }?.value == String(vector.counter))
        #expect(
            fields.contains { $0.name == "credential ID" } == (vector.of == "attestation"))
        let version = vector.extensions["apple_bundle_version_01"]
        #expect(fields.first { $0.name == "bundle version" }?.value == version)
        #expect(
            fields.first { $0.name == "validation category" }?.value == "3 (development)")
    }

    private func read(_ path: String) throws -> [UInt8] {
        try Array(readFile(Vectors.folder.appending(path: path)))
    }
}

@Suite("Trust root: Apple's")
struct AppleRootTests {
    @Test("the embedded root has the published fingerprint")
    func fingerprint() {
        #expect(
            Hex.encode(TrustRoot.apple.fingerprint)
                == "1cb9823ba28ba6ad2d33a006941de2ae4f513ef1d4e831b9f7e0fa7b6242c932")
        #expect(TrustRoot.apple.der.count == 549)
    }

    @Test("text without exactly one certificate is no root")
    func pem() throws {
        let good = Array(DeviceFixture.root.pem.utf8)
        #expect(throws: Never.self) { try TrustRoot(pem: good) }
        #expect(throws: Never.self) { try TrustRoot(pem: Array("# ours\r\n".utf8) + good) }
        for bad in [[], good + good, Array(good.dropLast(27)), Array(good.dropFirst(28))] {
            #expect(throws: TrustRootError.pem) { try TrustRoot(pem: bad) }
        }
    }
}
