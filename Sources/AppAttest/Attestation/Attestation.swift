package import GateBytes
internal import GateCrypto

/// Verifying an attestation: the object that registers a key.
///
/// Everything that can change is an argument: the time, the App IDs, the environment, the root.
/// Nothing is kept. What only a caller can know stays with it: that the challenge was issued and is
/// spent once, that the key is not another account's, and what the receipt is worth.
public enum Attestation {
    /// Verifies `object` for a client data hash that the caller has.
    ///
    /// - Parameters:
    ///   - object: the attestation object, at most 16 KiB.
    ///   - clientDataHash: the bytes that the app gave to DeviceCheck: normally a SHA-256, but a
    ///     device takes any.
    ///   - keyID: the key ID that the app sent.
    ///   - appIDs: the App IDs that are allowed, `PREFIX.bundle.identifier`.
    ///   - environment: the one environment that is allowed; the server decides it, never the
    ///     object.
    ///   - root: where the chain must end.
    ///   - now: seconds since 1970. A leaf lives days to months and is checked here once, never
    ///     again.
    /// - Returns: the key, its App ID and environment, and what is to be stored; made by nothing
    ///   else.
    /// - Throws: the first step that failed, in the order of ``AttestationStep``.
    ///
    /// Source: Apple, "Validating apps that connect to your server", Verify the attestation.
    public static func verify(
        object: [UInt8], clientDataHash: [UInt8], keyID: KeyID, appIDs: [String],
        environment: Environment, root: TrustRoot = .apple, at now: Int64
    ) throws(AttestationError) -> VerifiedAttestation {
        var log = StepLog<AttestationStep, AttestationError>.verdict
        return try AttestationExamination(
            object: object, clientDataHash: clientDataHash, keyID: keyID, appIDs: appIDs,
            environment: environment, root: root, now: now
        ).run(&log)
    }

    /// Verifies `object` for the challenge whose SHA-256 the app gave to DeviceCheck; arguments,
    /// result and errors are otherwise those of the form with a client data hash.
    public static func verify(
        object: [UInt8], challenge: [UInt8], keyID: KeyID, appIDs: [String],
        environment: Environment, root: TrustRoot = .apple, at now: Int64
    ) throws(AttestationError) -> VerifiedAttestation {
        try verify(
            object: object, clientDataHash: SHA256.hash(challenge).array, keyID: keyID,
            appIDs: appIDs, environment: environment, root: root, at: now)
    }
}

/// A key that a genuine device attested for one of the allowed apps: the proof that every step of
/// ``Attestation/verify(object:clientDataHash:keyID:appIDs:environment:root:at:)`` held. Only that
/// makes one.
public struct VerifiedAttestation: Sendable {
    /// The key.
    public let keyID: KeyID
    /// The key's point.
    package let publicKey: P256Point
    /// The App ID it belongs to, one of those allowed.
    public let appID: String
    /// The environment it is good in.
    public let environment: Environment
    /// The receipt as it came. The attestation does not authenticate it: it has a signature of its
    /// own.
    public let receipt: [UInt8]
    /// The signed extensions of OS 27.
    public let extensions: OSExtensions
    /// What the leaf says about the device.
    public let device: AttestedDevice

    /// The uncompressed point, `04 ‖ x ‖ y`, 65 bytes: what an assertion is verified with.
    public var publicKeyX963: [UInt8] { publicKey.x963 }

    fileprivate init(
        keyID: KeyID, publicKey: P256Point, appID: String, environment: Environment,
        receipt: [UInt8], extensions: OSExtensions, device: AttestedDevice
    ) {
        self.keyID = keyID
        self.publicKey = publicKey
        self.appID = appID
        self.environment = environment
        self.receipt = receipt
        self.extensions = extensions
        self.device = device
    }
}

/// The steps of an attestation's verification, in their order.
public enum AttestationStep: String, CaseIterable, Sendable {
    /// The object is the strict CBOR it should be, with two certificates.
    case object
    /// Both certificates can be read.
    case certificates
    /// The chain ends at the root.
    case chain
    /// The certificates are valid now.
    case validity
    /// The leaf holds the nonce.
    case nonce
    /// The key ID is the leaf key's hash.
    case keyID = "key_id"
    /// The authenticator data can be read.
    case authenticatorData = "authenticator_data"
    /// The relying party ID hash is that of an allowed App ID.
    case relyingPartyID = "rp_id"
    /// The counter is 0.
    case counter
    /// The AAGUID is that of the allowed environment.
    case environment
    /// The credential ID is the key ID.
    case credentialID = "credential_id"
    /// The COSE key is the leaf's.
    case credentialKey = "credential_key"
}

/// One attestation and all it is judged by.
struct AttestationExamination {
    let object: [UInt8]
    let clientDataHash: [UInt8]
    let keyID: KeyID
    let appIDs: [String]
    let environment: Environment
    let root: TrustRoot
    let now: Int64

    /// Runs the steps.
    func run(
        _ log: inout StepLog<AttestationStep, AttestationError>
    ) throws(AttestationError) -> VerifiedAttestation {
        let object = try log.require(.object) { () throws(AttestationError) in
            try AttestationObject(self.object)
        }
        let chain = try log.require(.certificates) { () throws(AttestationError) in
            try CertificateChain(
                leaf: Array(object.bytes[object.leaf]),
                intermediate: Array(object.bytes[object.intermediate]), root: root)
        }
        try log.check(.chain) { () throws(AttestationError) in try chain.verify() }
        try log.check(.validity) { () throws(AttestationError) in
            try chain.verifyValidity(at: now)
        }
        try log.check(.nonce) { () throws(AttestationError) in
            try checkNonce(in: chain.leaf, of: object)
        }
        let point = try log.check(.keyID) { () throws(AttestationError) in
            try checkKeyID(of: chain)
        }
        let data = try log.require(.authenticatorData) { () throws(AttestationError) in
            do throws(AuthenticatorDataError) {
                return try AttestationAuthenticatorData(object.bytes, object.authenticatorData)
            } catch {
                throw .authenticatorData(error)
            }
        }
        let appID = try log.check(.relyingPartyID) { () throws(AttestationError) in
            try checkRelyingParty(of: data)
        }
        try log.check(.counter) { () throws(AttestationError) in
            guard data.head.signCounter == 0 else { throw .counterNotZero(data.head.signCounter) }
        }
        try log.check(.environment) { () throws(AttestationError) in
            guard data.aaguid == environment.aaguid else {
                throw .aaguidMismatch(expected: environment, found: data.aaguid)
            }
        }
        try log.check(.credentialID) { () throws(AttestationError) in
            guard data.credentialID == keyID.value else {
                throw .credentialIDMismatch(expected: keyID, found: KeyID(data.credentialID))
            }
        }
        try log.check(.credentialKey) { () throws(AttestationError) in
            guard data.publicKey.x963 == chain.leafPoint else { throw .credentialKeyMismatch }
        }
        if let failure = log.failure { throw failure }
        guard let point, let appID else { throw .credentialKeyMismatch }
        return VerifiedAttestation(
            keyID: keyID, publicKey: point, appID: appID, environment: environment,
            receipt: Array(object.bytes[object.receipt]),
            extensions: OSExtensions(object.bytes, data.extensions),
            device: AttestedDevice(leaf: chain.leaf))
    }

    /// SHA-256 of authenticator data, as received, and client data hash.
    static func nonce(
        _ bytes: [UInt8], _ authenticatorData: Range<Int>, _ clientDataHash: [UInt8]
    ) -> Bytes32 {
        var hasher = SHA256Hasher()
        hasher.update(bytes, authenticatorData)
        hasher.update(clientDataHash)
        return hasher.finish()
    }

    private func checkNonce(
        in leaf: Certificate, of object: AttestationObject
    ) throws(AttestationError) {
        let expected = AttestationExamination.nonce(
            object.bytes, object.authenticatorData, clientDataHash)
        let found = try leaf.attestationNonce()
        guard found == expected.array else {
            throw .nonceMismatch(expected: expected.array, found: found)
        }
    }

    private func checkKeyID(of chain: CertificateChain) throws(AttestationError) -> P256Point {
        guard let bytes = chain.leafPoint, let point = P256Point(x963: bytes) else {
            throw .certificate(.leaf, .keyUnsupported)
        }
        let attested = KeyID(SHA256.hash(bytes))
        guard attested == keyID else {
            throw .keyIDMismatch(presented: keyID, attested: attested)
        }
        return point
    }

    private func checkRelyingParty(
        of data: AttestationAuthenticatorData
    ) throws(AttestationError) -> String {
        for appID in appIDs where SHA256.hash(Array(appID.utf8)) == data.head.relyingPartyIDHash {
            return appID
        }
        throw .relyingPartyIDMismatch
    }
}

extension Certificate {
    /// The nonce of the extension 1.2.840.113635.100.8.2, whose value is exactly
    /// `30 24 a1 22 04 20 ‹32 bytes›`: SEQUENCE { [1] EXPLICIT OCTET STRING }.
    func attestationNonce() throws(AttestationError) -> [UInt8] {
        guard let range = value(of: .appleNonce) else { throw .nonceAbsent }
        do throws(DERError) {
            var outer = DERReader(bytes, range)
            var sequence = try outer.enter(DERReader.Tag.sequence)
            try outer.finish()
            var wrapper = try sequence.enter(DERReader.Tag.explicit(1))
            try sequence.finish()
            let nonce = try wrapper.read(DERReader.Tag.octetString)
            try wrapper.finish()
            guard nonce.contents.count == Bytes32.count else {
                throw DERError.valueMalformed(offset: nonce.whole.lowerBound)
            }
            return Array(bytes[nonce.contents])
        } catch {
            throw .nonceMalformed(error)
        }
    }
}
