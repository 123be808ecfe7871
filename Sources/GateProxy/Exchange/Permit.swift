// The gate's first invariant: nothing opens an upstream exchange without a `Permit`, and a permit
// is made in this file alone.
//
//   route off ─────────────────── Permit.unguarded ──────────────► verdict off
//   preflight let through ─────── Permit.preflight ──────────────► verdict off
//   proof whose checks all passed, commit durable, body equal
//                          ────── Admission.permit ──────────────► verdict verified
//   no proof, the device cannot attest, its DeviceCheck token taken by Apple and spent for good
//                          ────── Permit.fallback ───────────────► verdict fallback
//   no proof, the device cannot attest, and the route says allow_unverified
//                          ────── Permit.unverified ─────────────► verdict unverified
//   monitored route, whatever was found
//                          ────── Permit.monitored ──────────────► verdict monitored
//
// A route that enforces a share is off or monitored for those outside of it.
//
// `Admission` is the order of verification of `protocol.md` §4, from the well-formed proof on. Each
// step throws the reason it refused for; the caller does the waiting (body, commit).

internal import AppAttest
internal import AppAttestWire
internal import GateBytes
internal import GateConfig
internal import GateCrypto
internal import GateHTTP
internal import GateStore

/// The right to open one upstream exchange.
struct Permit: ~Copyable {
    /// What the upstream is told of the request.
    let verdict: Verdict
    /// The signed `operationID`, nil without.
    let operationID: [UInt8]?
    /// What is known of a device that has no key here; what is known of a key is in the verdict.
    let risk: RiskSignals?
    /// The media type of a body that came in an envelope, nil for any other.
    let contentType: [UInt8]?

    fileprivate init(
        _ verdict: Verdict, operationID: [UInt8]? = nil, risk: RiskSignals? = nil,
        contentType: [UInt8]? = nil
    ) {
        self.verdict = verdict
        self.operationID = operationID
        self.risk = risk
        self.contentType = contentType
    }

    /// For a request without proof that says its device cannot attest, whose DeviceCheck token
    /// Apple has taken and the store has durably spent, where that is the route's fallback.
    /// - Throws: The reason why not.
    static func fallback(
        _ route: Route, _ pending: PendingDeviceCheck, _ outcome: TokenOutcome
    ) throws(Reason) -> Permit {
        guard case .deviceCheck(let terms) = route.fallback, pending.reading.isUnsupported,
            case .absent = pending.reading.outcome
        else { throw .unsupported }
        guard pending.isPassed else { throw .deviceTokenInvalid }
        guard (pending.bits ?? DeviceCheckMessage.Bits()).meet(terms) else { throw .deviceBits }
        switch outcome {
        case .alreadySpent: throw .deviceTokenSpent
        case .unavailable: throw .storeUnavailable
        case .spent: break
        }
        return Permit(
            .fallback, risk: RiskSignals(bit0: pending.bits?.bit0, bit1: pending.bits?.bit1))
    }

    /// For a request that a route with mode off takes, or one outside a share whose `else` is off;
    /// nil for any other.
    static func unguarded(_ route: Route, _ placement: SharePlacement? = nil) -> Permit? {
        route.mode == .off || isOutside(route, placement, .off) ? Permit(.off) : nil
    }

    private static func isOutside(
        _ route: Route, _ placement: SharePlacement?, _ otherwise: Share.Otherwise
    ) -> Bool {
        route.share?.otherwise == otherwise && placement?.outside == otherwise
    }

    /// For a CORS preflight that ``RouteTable`` lets pass; nil for any other match.
    static func preflight(_ match: RouteMatch) -> Permit? {
        guard case .preflight = match else { return nil }
        return Permit(.off)
    }

    /// For a request to a monitored route, or one outside a share whose `else` is monitor, that
    /// would have been refused; nil for any other.
    static func monitored(_ route: Route, _ placement: SharePlacement? = nil) -> Permit? {
        route.mode == .monitor || isOutside(route, placement, .monitor) ? Permit(.monitored) : nil
    }

    /// For a request without proof that says its device cannot attest, where the route's fallback
    /// is `allow_unverified`; nil for any other.
    static func unverified(_ route: Route, _ reading: ProofReading) -> Permit? {
        guard route.fallback == .allowUnverified, reading.isUnsupported,
            case .absent = reading.outcome
        else { return nil }
        return Permit(.unverified)
    }
}

/// One request's proof on its way to a permit: challenge, key and assertion have passed what can be
/// told without the signature.
struct Admission: ~Copyable {
    /// What the proof is judged against.
    struct Terms {
        /// What its challenge may be bound to: the route's purpose, and that of attestations where
        /// the request brought one.
        let scopes: [ChallengeScope]
        let app: AppRuntime
        /// Empty under `account none`.
        let account: [UInt8]
        let challenges: Challenges
        /// What else the route asks for.
        var requirements = Requirements()
        let store: Store
        /// Milliseconds of UTC since 1970.
        let now: Int64
    }

    /// The one durable step: what the store is asked to spend and advance, or to enrol.
    struct Commitment {
        /// Nil where the route takes none.
        let challenge: SpentChallenge?
        let keyID: Bytes32
        let counter: UInt32
        /// The key that is enrolled with it, its counter included.
        let enrolment: NewKey?
    }

    /// The key that signed; until the signature is verified, the first that may have.
    private(set) var key: KeyRecord
    private let challenge: OpenedChallenge?
    private let statement: Proof.Statement
    /// The key's enrolment, where it comes with this request.
    private let enrolment: NewKey?
    private var operationID: [UInt8]?
    private var contentType: [UInt8]?
    private let candidates: KeyCandidates
    private var verified: VerifiedAssertion?
    private let requirements: Requirements
    private let now: Int64

    private init(
        _ statement: Proof.Statement, challenge: OpenedChallenge?, _ candidates: KeyCandidates,
        enrolment: NewKey? = nil, _ terms: borrowing Terms
    ) {
        self.statement = statement
        self.challenge = challenge
        self.candidates = candidates
        self.enrolment = enrolment
        key = candidates.first
        requirements = terms.requirements
        now = terms.now
        operationID = nil
        contentType = nil
        verified = nil
    }

    /// Judges challenge, key, the assertion's own fields, and what client data says of the request.
    /// - Throws: The refusal of the first check that failed, in the order of `protocol.md` §4.
    static func begin(
        _ proof: Proof, head: RequestHead, terms: borrowing Terms
    ) throws(Refusal) -> Admission {
        let challenge = try open(proof.statement, terms)
        let candidates = try KeyCandidates(proof, isChallenged: challenge != nil, terms)
        try checkTarget(proof.statement, head)
        return Admission(proof.statement, challenge: challenge, candidates, terms)
    }

    /// The same for a key that is not enrolled yet, once its attestation over `challenge` has been
    /// verified and has become `newKey`.
    static func begin(
        _ proof: Proof, enrolling newKey: NewKey, challenge: OpenedChallenge, head: RequestHead,
        terms: borrowing Terms
    ) throws(Refusal) -> Admission {
        let candidates = try KeyCandidates(proof.assertion, newKey, terms)
        try checkTarget(proof.statement, head)
        return Admission(
            proof.statement, challenge: challenge, candidates, enrolment: newKey, terms)
    }

    /// The challenge of a proof that brings an attestation: of its own purpose alone.
    static func openForEnrolment(
        _ proof: Proof, _ terms: borrowing Terms, scope: ChallengeScope
    ) throws(Refusal) -> OpenedChallenge {
        guard let opened = try open(proof.statement, terms, scopes: [scope]) else {
            throw Refusal(.challengeUnknown, at: .checks)
        }
        return opened
    }

    private static func checkTarget(
        _ statement: Proof.Statement, _ head: RequestHead
    ) throws(Refusal) {
        switch statement {
        case .body, .request: return
        case .clientData(let clientData, _), .envelope(let clientData, _):
            guard let mismatch = SignedRequest.mismatch(clientData, head) else { return }
            throw Refusal(mismatch, at: .checks)
        }
    }

    /// The proof's challenge, good so far; nil where the route takes none.
    private static func open(
        _ statement: Proof.Statement, _ terms: borrowing Terms, scopes: [ChallengeScope]? = nil
    ) throws(Refusal) -> OpenedChallenge? {
        if case .body(challenge: nil) = statement { return nil }
        var failure = ChallengeError.unknown
        for scope in scopes ?? terms.scopes {
            let opened: OpenedChallenge
            do throws(ChallengeError) {
                opened = try open(statement, terms, scope)
            } catch {
                failure = error
                // Of another purpose, it is unknown to this one.
                guard error == .unknown else { break }
                continue
            }
            guard !terms.store.isSpent(opened.spent) else {
                throw Refusal(.challengeSpent, at: .checks)
            }
            return opened
        }
        throw Refusal(failure.reason, at: .checks)
    }

    private static func open(
        _ statement: Proof.Statement, _ terms: borrowing Terms, _ scope: ChallengeScope
    ) throws(ChallengeError) -> OpenedChallenge {
        let (account, epoch, now) = (terms.account, terms.store.epoch, terms.now)
        switch statement {
        case .body(let text):
            return try terms.challenges.open(
                value: text ?? [], scope, account: account, epoch: epoch, now: now)
        case .clientData(let clientData, _), .envelope(let clientData, _):
            return try terms.challenges.open(
                id: clientData.challengeID, bytes: clientData.challenge, scope, account: account,
                epoch: epoch, now: now)
        case .request(let text):
            return try terms.challenges.open(
                text, scope, account: account, epoch: epoch, now: now)
        }
    }

    /// Whether signature and commit can come before the body is complete.
    var isBodyIndependent: Bool {
        if case .clientData = statement { return enrolment == nil }
        return false
    }

    /// Verifies the signature, and then what only a signature makes worth reading.
    /// - Parameters:
    ///   - bodyHash: SHA-256 of the body, needed unless the client data came apart from it.
    ///   - verifyingKey: The key of a record, ready to verify with; nil when it is none.
    mutating func verifySignature(
        head: RequestHead, bodyHash: Bytes32?,
        verifyingKey: (KeyRecord) -> P256PublicKey?
    ) throws(Refusal) {
        let hash = try clientDataHash(head, bodyHash)
        verified = try candidates.verify(
            clientDataHash: hash, signer: &key, verifyingKey: verifyingKey)
        switch statement {
        case .body, .request: break
        case .clientData(let clientData, _):
            operationID = try SignedRequest.operationID(clientData)
        case .envelope(let clientData, _):
            operationID = try SignedRequest.operationID(clientData)
            contentType = try SignedRequest.contentType(clientData)
        }
        guard !requirements.isEmpty, let extensions = verified?.extensions else { return }
        let signals = RiskSignals(key, extensions, others: [], now: now / 1000)
        if let reason = requirements.unmet(by: signals) { throw Refusal(reason, at: .checks) }
    }

    private func clientDataHash(
        _ head: RequestHead, _ bodyHash: Bytes32?
    ) throws(Refusal) -> Bytes32 {
        switch statement {
        case .clientData(_, let bytes), .envelope(_, let bytes):
            return SHA256.hash(bytes)
        case .body:
            guard let bodyHash else { throw Refusal(.signatureInvalid, at: .checks) }
            return bodyHash
        case .request:
            guard let bodyHash, let challenge else {
                throw Refusal(.signatureInvalid, at: .checks)
            }
            return SHA256.hash(
                RequestBinding.clientData(
                    method: Array(head.bytes[head.method]),
                    target: Array(head.bytes[head.pathAndQuery]), challengeID: challenge.id,
                    challenge: challenge.bytes, bodySHA256: bodyHash))
        }
    }

    /// What to commit, once the signature holds.
    var commitment: Commitment? {
        switch verified {
        case .none:
            return nil
        case .some(let verified):
            var enrolment = enrolment
            enrolment?.signCounter = verified.signCounter
            return Commitment(
                challenge: challenge?.spent, keyID: key.keyID, counter: verified.signCounter,
                enrolment: enrolment)
        }
    }

    /// Whether a body with this hash is the one that was signed. The bindings `body` and `request`
    /// have it in the signature.
    func checkBody(_ hash: Bytes32) throws(Refusal) {
        switch statement {
        case .body, .request: return
        case .clientData(let clientData, _), .envelope(let clientData, _):
            guard SignedRequest.isBody(hash, of: clientData) else {
                throw Refusal(.bodyMismatch, at: .checks)
            }
        }
    }

    /// The permit, for a commit that the store has made durable and a body that is complete. Once.
    /// - Throws: What the commit refused for, or `bodyMismatch`.
    mutating func permit(
        outcome: CommitOutcome, bodyHash: Bytes32, store: Store
    ) throws(Refusal) -> Permit {
        try Admission.require(outcome)
        try checkBody(bodyHash)
        guard let verified = verified.take() else { throw Refusal(.signatureInvalid, at: .checks) }
        let now = now / 1000
        // Whether the account had another key matters only while this one is new.
        let isYoung = now - Int64(key.enrolledAt) < Int64(RiskSignals.newKeySeconds)
        let others =
            isYoung && !key.account.isEmpty
            ? store.keys(ofAccount: key.account, app: key.app) : []
        let risk = RiskSignals(key, verified.extensions, others: others, now: now)
        return Permit(
            .verified(
                VerifiedKey(keyID: key.keyID, counter: verified.signCounter, risk: risk)),
            operationID: operationID, contentType: contentType)
    }

    /// Whether a refusal of ``verifySignature(head:bodyHash:verifyingKey:)`` says that no key was
    /// found to have signed: what the limit of failed signatures counts.
    static func isSignatureFailure(_ reason: Reason) -> Bool {
        reason == .signatureInvalid || reason == .counterNotGreater || reason == .challengeEpoch
    }

    /// Nothing where the commit admitted the request.
    /// - Throws: The refusal of one that did not.
    static func require(_ outcome: CommitOutcome) throws(Refusal) {
        if let refusal = outcome.refusal { throw refusal }
    }
}

/// What became of the one durable step.
enum CommitOutcome {
    case admit(AdmitOutcome)
    /// The key was enrolled with it.
    case enrol(EnrolOutcome)

    /// Why the request may not pass; nil where it was admitted.
    var refusal: Refusal? {
        switch self {
        case .admit(let outcome): return Refusal(outcome)
        case .enrol(let outcome): return Refusal(outcome)
        }
    }
}
