// The keys that may have signed an assertion: the one it names or, under `key_id account`, the
// account's of that app, the one used last first (`protocol.md` §3). Each has passed what can be
// told without the signature; what was passed over is remembered, for it is then not the signature
// that failed.

internal import AppAttest
internal import GateBytes
internal import GateConfig
internal import GateCrypto
internal import GateStore

/// The keys that are tried for one assertion; at least one.
struct KeyCandidates {
    private struct Candidate {
        let key: KeyRecord
        let assertion: CheckedAssertion
    }

    /// The key tried first.
    var first: KeyRecord { head.key }

    private let head: Candidate
    private var rest: [Candidate] = []
    /// Why a key was not tried that may have signed; nil where none was passed over.
    private var passedOver: Refusal?

    /// The keys that `proof` may be by. Without a challenge, a key must have passed with one since
    /// the store's epoch moved on.
    init(
        _ proof: Proof, isChallenged: Bool, _ terms: borrowing Admission.Terms
    ) throws(Refusal) {
        let minEpoch = isChallenged ? 0 : terms.store.epoch
        guard let keyID = proof.keyID else {
            self = try KeyCandidates(ofAccount: proof.assertion, minEpoch, terms)
            return
        }
        do throws(Reason) {
            let key = try KeyCandidates.find(keyID, terms)
            guard key.challengeEpoch >= minEpoch else { throw .challengeEpoch }
            head = Candidate(
                key: key, assertion: try KeyCandidates.check(proof.assertion, key, terms.app))
        } catch {
            throw error == .challengeEpoch ? .epochBehind : Refusal(error, at: .checks)
        }
    }

    /// The one key that `assertion` may be by: `newKey`, enrolled with it.
    init(
        _ assertion: AssertionObject, _ newKey: NewKey, _ terms: borrowing Admission.Terms
    ) throws(Refusal) {
        let now = UInt32(clamping: terms.now / 1000)
        let key = KeyRecord(newKey, enrolledAt: now, epoch: terms.store.epoch)
        do throws(Reason) {
            head = Candidate(
                key: key, assertion: try KeyCandidates.check(assertion, key, terms.app))
        } catch {
            throw Refusal(error, at: .checks)
        }
    }

    private init(
        ofAccount assertion: AssertionObject, _ minEpoch: UInt32,
        _ terms: borrowing Admission.Terms
    ) throws(Refusal) {
        var found: [Candidate] = []
        var passedOver: Refusal?
        var failure = Reason.keyUnknown
        for key in KeyCandidates.keys(terms) {
            guard key.challengeEpoch >= minEpoch else {
                passedOver = passedOver ?? .epochBehind
                continue
            }
            do throws(Reason) {
                found.append(
                    Candidate(
                        key: key, assertion: try KeyCandidates.check(assertion, key, terms.app)))
            } catch {
                failure = error
                if error == .counterNotGreater { passedOver = Refusal(error, at: .checks) }
            }
        }
        guard let head = found.first else {
            throw passedOver ?? Refusal(failure, at: .checks)
        }
        self.head = head
        rest = Array(found.dropFirst())
        self.passedOver = passedOver
    }

    /// Finds the key that signed, and makes it `signer`.
    /// - Throws: `signatureInvalid`, or what a key was passed over for.
    func verify(
        clientDataHash: Bytes32, signer: inout KeyRecord,
        verifyingKey: (KeyRecord) -> P256PublicKey?
    ) throws(Refusal) -> VerifiedAssertion {
        var next: Candidate? = head
        var index = 0
        while let candidate = next {
            if let key = verifyingKey(candidate.key) {
                do throws(AssertionError) {
                    let verified = try candidate.assertion.verify(
                        clientDataHash: clientDataHash, key: key)
                    signer = candidate.key
                    return verified
                } catch {
                    // Another may have signed.
                }
            }
            next = index < rest.count ? rest[index] : nil
            index += 1
        }
        throw passedOver ?? Refusal(.signatureInvalid, at: .checks)
    }

    private static func find(
        _ keyID: Bytes32, _ terms: borrowing Admission.Terms
    ) throws(Reason) -> KeyRecord {
        guard let key = terms.store.key(keyID) else { throw .keyUnknown }
        guard terms.app.takes(key, of: terms.account) else { throw .keyForeign }
        guard !key.isRevoked else { throw .keyRevoked }
        return key
    }

    /// The good keys of the account, the one used last first.
    private static func keys(_ terms: borrowing Admission.Terms) -> [KeyRecord] {
        let (account, store) = (terms.account, terms.store)
        let environment = terms.app.environmentCode
        let appIDs = terms.app.app.appIDs
        var keys = appIDs.flatMap { store.keys(ofAccount: account, app: $0) }
            .filter { !$0.isRevoked && $0.environment == environment }
        if appIDs.count > 1 {
            keys.sort { ($0.lastUsedAt, $0.enrolledAt) > ($1.lastUsedAt, $1.enrolledAt) }
        }
        return Array(keys.prefix(KeySearchLimits.keysMax))
    }

    private static func check(
        _ assertion: AssertionObject, _ key: KeyRecord, _ app: AppRuntime
    ) throws(Reason) -> CheckedAssertion {
        guard let relyingPartyIDHash = app.relyingPartyIDHash(of: key.app) else {
            throw .keyForeign
        }
        do throws(AssertionError) {
            return try assertion.check(
                relyingPartyIDHash: relyingPartyIDHash, previousCounter: key.signCounter)
        } catch {
            throw Reason(error)
        }
    }
}

extension KeyRecord {
    /// The record that the enrolment of `key` will make, its counter still unused.
    fileprivate init(_ key: NewKey, enrolledAt: UInt32, epoch: UInt32) {
        self.init(
            keyID: key.keyID, publicKey: key.publicKey, account: key.account, app: key.app,
            environment: key.environment, signCounter: 0, isRevoked: false,
            enrolledAt: enrolledAt, lastUsedAt: enrolledAt, challengeEpoch: epoch,
            category: key.category, bundleVersion: key.bundleVersion)
    }
}
