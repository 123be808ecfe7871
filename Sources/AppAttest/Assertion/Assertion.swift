internal import GateBytes
internal import GateCrypto

/// Verifying an assertion: the object that signs one request.
///
/// What only a caller can know stays with it: that the challenge in the client data is the issued
/// one, that the client data says what the request does, and the one atomic step that spends the
/// challenge and advances the counter.
public enum Assertion {
    /// Verifies `object` for a client data hash that the caller has.
    ///
    /// - Parameters:
    ///   - object: the assertion, at most 4 KiB.
    ///   - clientDataHash: the bytes that the app gave to DeviceCheck, normally SHA-256 of client
    ///   data.
    ///   - publicKey: the key that the attestation registered.
    ///   - appID: the App ID that the key belongs to.
    ///   - previousCounter: the stored counter, 0 before the key's first assertion.
    /// - Returns: the counter to store and the signed extensions; made by nothing else.
    /// - Throws: the first step that failed, in the order of ``AssertionStep``.
    ///
    /// Source: Apple, "Validating apps that connect to your server", Verify the assertion.
    public static func verify(
        object: [UInt8], clientDataHash: [UInt8], publicKey: PublicKey, appID: String,
        previousCounter: UInt32
    ) throws(AssertionError) -> VerifiedAssertion {
        try AssertionObject.parse(object)
            .check(
                relyingPartyIDHash: SHA256.hash(Array(appID.utf8)), previousCounter: previousCounter
            )
            .verify(clientDataHash: clientDataHash, key: publicKey.key)
    }

    /// Verifies `object` for the client data whose SHA-256 was signed; arguments, result and errors
    /// are otherwise those of the form with a hash.
    public static func verify(
        object: [UInt8], clientData: [UInt8], publicKey: PublicKey, appID: String,
        previousCounter: UInt32
    ) throws(AssertionError) -> VerifiedAssertion {
        try verify(
            object: object, clientDataHash: SHA256.hash(clientData).array, publicKey: publicKey,
            appID: appID, previousCounter: previousCounter)
    }
}

/// An assertion judged step by step, for people: the same steps as the verdict, each with its
/// result.
public struct AssertionReport: Sendable {
    /// Every step in order.
    public let steps: [StepResult<AssertionStep, AssertionError>]
    /// Whether every step passed.
    public let isVerified: Bool
    /// The counter, where it could be read.
    public let signCounter: UInt32?
    /// The signed extensions; nil unless the signature passed.
    public let extensions: OSExtensions?

    /// Judges `object`; the arguments are those of ``Assertion``.
    public init(
        object: [UInt8], clientDataHash: [UInt8], publicKey: PublicKey, appID: String,
        previousCounter: UInt32
    ) {
        var log = StepLog<AssertionStep, AssertionError>.report
        var counter: UInt32?
        var signed: OSExtensions?
        do throws(AssertionError) {
            let parsed = try log.require(.object) { () throws(AssertionError) in
                try AssertionObject.parse(object)
            }
            let checked = try parsed.check(
                &log, relyingPartyIDHash: SHA256.hash(Array(appID.utf8)),
                previousCounter: previousCounter)
            counter = checked.signCounter
            signed = try log.check(.signature) { () throws(AssertionError) in
                try checked.verify(clientDataHash: clientDataHash, key: publicKey.key).extensions
            }
        } catch {
            // The log has it, in its place.
        }
        steps = log.complete(AssertionStep.allCases)
        isVerified = steps.allSatisfy { $0.outcome == .passed }
        signCounter = counter
        extensions = signed
    }
}
