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

    fileprivate init(
        _ verdict: Verdict, operationID: [UInt8]? = nil, risk: RiskSignals? = nil
    ) {
        self.verdict = verdict
        self.operationID = operationID
        self.risk = risk
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
        let scope: ChallengeScope
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

    /// The one durable step: what the store is asked to spend and advance.
    struct Commitment {
        let challenge: SpentChallenge
        let keyID: Bytes32
        let counter: UInt32
    }

    let key: KeyRecord
    private let challenge: OpenedChallenge
    private let statement: Proof.Statement
    private var operationID: [UInt8]?
    private let checked: CheckedAssertion
    private var verified: VerifiedAssertion?
    private let requirements: Requirements
    private let now: Int64

    private init(
        _ statement: Proof.Statement, challenge: OpenedChallenge, key: KeyRecord,
        checked: CheckedAssertion, requirements: Requirements, now: Int64
    ) {
        self.requirements = requirements
        self.statement = statement
        self.challenge = challenge
        self.key = key
        self.checked = checked
        self.now = now
        operationID = nil
        verified = nil
    }

    /// Judges challenge, key, the assertion's own fields, and what client data says of the request.
    /// - Throws: The reason of the first check that failed, in the order of `protocol.md` §4.
    static func begin(
        _ proof: Proof, head: RequestHead, terms: borrowing Terms
    ) throws(Reason) -> Admission {
        let challenge = try open(proof, terms)
        let key = try find(proof.keyID, terms)
        guard let relyingPartyIDHash = terms.app.relyingPartyIDHash(of: key.app) else {
            throw .keyForeign
        }
        let checked = try check(proof.assertion, relyingPartyIDHash, key.signCounter)
        if case .clientData(let clientData, _) = proof.statement,
            let mismatch = SignedRequest.mismatch(clientData, head)
        {
            throw mismatch
        }
        return Admission(
            proof.statement, challenge: challenge, key: key, checked: checked,
            requirements: terms.requirements, now: terms.now)
    }

    private static func check(
        _ assertion: AssertionObject, _ relyingPartyIDHash: Bytes32, _ stored: UInt32
    ) throws(Reason) -> CheckedAssertion {
        do throws(AssertionError) {
            return try assertion.check(
                relyingPartyIDHash: relyingPartyIDHash, previousCounter: stored)
        } catch {
            throw Reason(error)
        }
    }

    private static func open(
        _ proof: Proof, _ terms: borrowing Terms
    ) throws(Reason) -> OpenedChallenge {
        let opened: OpenedChallenge
        do throws(ChallengeError) {
            switch proof.statement {
            case .clientData(let clientData, _):
                opened = try terms.challenges.open(
                    id: clientData.challengeID, bytes: clientData.challenge, terms.scope,
                    account: terms.account, epoch: terms.store.epoch, now: terms.now)
            case .request(let challenge):
                opened = try terms.challenges.open(
                    challenge, terms.scope, account: terms.account, epoch: terms.store.epoch,
                    now: terms.now)
            }
        } catch {
            throw error.reason
        }
        guard !terms.store.isSpent(opened.spent) else { throw .challengeSpent }
        return opened
    }

    private static func find(
        _ keyID: Bytes32, _ terms: borrowing Terms
    ) throws(Reason) -> KeyRecord {
        guard let key = terms.store.key(keyID) else { throw .keyUnknown }
        guard terms.app.takes(key, of: terms.account) else { throw .keyForeign }
        guard !key.isRevoked else { throw .keyRevoked }
        return key
    }

    /// Whether the signature can be verified before the body is complete.
    var isBodyIndependent: Bool {
        if case .clientData = statement { return true }
        return false
    }

    /// Verifies the signature, and then what only a signature makes worth reading.
    /// - Parameter bodyHash: SHA-256 of the body, needed where the binding is `request`.
    mutating func verifySignature(
        head: RequestHead, bodyHash: Bytes32?, key: P256PublicKey
    ) throws(Refusal) {
        let signed: [UInt8]
        switch statement {
        case .clientData(_, let bytes):
            signed = bytes
        case .request:
            guard let bodyHash else { throw Refusal(.signatureInvalid, at: .checks) }
            signed = RequestBinding.clientData(
                method: Array(head.bytes[head.method]),
                target: Array(head.bytes[head.pathAndQuery]), challengeID: challenge.id,
                challenge: challenge.bytes, bodySHA256: bodyHash)
        }
        do throws(AssertionError) {
            verified = try checked.verify(clientDataHash: SHA256.hash(signed), key: key)
        } catch {
            throw Refusal(Reason(error), at: .checks)
        }
        if case .clientData(let clientData, _) = statement {
            operationID = try SignedRequest.operationID(clientData)
        }
        guard !requirements.isEmpty, let extensions = verified?.extensions else { return }
        let signals = RiskSignals(self.key, extensions, others: [], now: now / 1000)
        if let reason = requirements.unmet(by: signals) { throw Refusal(reason, at: .checks) }
    }

    /// What to commit, once the signature holds.
    var commitment: Commitment? {
        switch verified {
        case .none:
            return nil
        case .some(let verified):
            return Commitment(
                challenge: challenge.spent, keyID: key.keyID, counter: verified.signCounter)
        }
    }

    /// Whether a body with this hash is the one that was signed. The binding `request` has it in
    /// the signature.
    func checkBody(_ hash: Bytes32) throws(Reason) {
        guard case .clientData(let clientData, _) = statement else { return }
        guard SignedRequest.isBody(hash, of: clientData) else { throw .bodyMismatch }
    }

    /// The permit, for a commit that the store has made durable and a body that is complete. Once.
    /// - Throws: The reason the commit refused for, or `bodyMismatch`.
    mutating func permit(
        outcome: AdmitOutcome, bodyHash: Bytes32, store: Store
    ) throws(Reason) -> Permit {
        try Admission.require(outcome)
        try checkBody(bodyHash)
        guard let verified = verified.take() else { throw .signatureInvalid }
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
            operationID: operationID)
    }

    /// Nothing where the commit admitted the request.
    /// - Throws: The reason it did not.
    static func require(_ outcome: AdmitOutcome) throws(Reason) {
        if let refusal = Refusal(outcome) { throw refusal.reason }
    }
}
