import AppAttest
import AppAttestDevice
import Foundation
import GateBytes
import Testing

struct ReceiptVector: Decodable {
    let receipt: String
    let appId: String
    let environment7: String
    let publicKeyX963: String
    let creationTime: String
    let riskMetric: String
    let notBefore: String
    let expirationTime: String
    let expected: String

    var object: [UInt8] { get throws { try bytes(receipt) } }
    var key: [UInt8] { get throws { try bytes(publicKeyX963) } }

    /// The terms of its arrival, `seconds` after it was made.
    func terms(after seconds: Int64 = 0) throws -> ReceiptTerms {
        ReceiptTerms(
            appIDs: [appId], publicKeyX963: try key, kind: .receipt,
            clientDataHash: [1, 2, 3],
            environment: environment7 == "sandbox" ? .development : .production,
            at: try milliseconds(creationTime) / 1000 + seconds)
    }
}

/// Milliseconds since 1970 of a time with a fraction, read by Foundation.
func milliseconds(_ text: String) throws -> Int64 {
    let parts = text.dropLast().split(separator: ".")
    let fraction = parts.count > 1 ? String(parts[1]) : ""
    let digits = try #require(Int64(fraction.padding(toLength: 3, withPad: "0", startingAt: 0)))
    return try seconds(parts[0] + "Z") * 1000 + digits
}

/// The receipts inside attestations that do not verify, and why.
private let badReceipts: [String: ReceiptError] = [
    "2020-09-ios14.0.1-prod-kayak": .signedAttributes,
    "2026-01-ios26.2-dev-attestdecoder": .certificate(.signer, .signatureInvalid),
]

private func failure(_ bytes: [UInt8], _ terms: ReceiptTerms) -> ReceiptError? {
    do throws(ReceiptError) {
        _ = try Receipt.verify(bytes, terms)
        return nil
    } catch {
        return error
    }
}

@Suite("Receipt: real ones", .enabled(if: Vectors.arePresent, "no vectors beside the package"))
struct ReceiptVectorTests {
    @Test("every refreshed receipt verifies on arrival", arguments: Vectors.names("receipt"))
    func refreshed(name: String) throws {
        let vector: ReceiptVector = try Vectors.load("receipt", name)
        #expect(vector.expected.hasPrefix("accept at validAt"))
        let verified = try Receipt.verify(vector.object, vector.terms())
        #expect(verified.kind == .receipt)
        #expect(verified.appID == vector.appId)
        #expect(verified.publicKeyX963 == (try vector.key))
        #expect(verified.creation == (try milliseconds(vector.creationTime)))
        #expect(verified.riskMetric.map { String($0) } == vector.riskMetric)
        #expect(verified.notBefore == (try milliseconds(vector.notBefore)))
        #expect(verified.expiration == (try milliseconds(vector.expirationTime)))
        #expect(verified.notBefore == verified.creation + 86_400_000)
    }

    @Test(
        "each is stale five minutes on, and good again as one that was kept",
        arguments: Vectors.names("receipt"))
    func stale(name: String) throws {
        let vector: ReceiptVector = try Vectors.load("receipt", name)
        let object = try vector.object
        #expect(failure(object, try vector.terms(after: 300)) == nil)
        var late = try vector.terms(after: 302)
        let creation = try milliseconds(vector.creationTime)
        #expect(failure(object, late) == .stale(creation: creation, at: late.now))
        late.ageSecondsMax = nil
        #expect(failure(object, late) == nil)
        let early = try vector.terms(after: -302)
        #expect(failure(object, early) == .notYetMade(creation: creation, at: early.now))
    }

    @Test("other terms are refused, each by its step", arguments: Vectors.names("receipt"))
    func terms(name: String) throws {
        let vector: ReceiptVector = try Vectors.load("receipt", name)
        let object = try vector.object
        func refusal(_ change: (inout ReceiptTerms) -> Void) throws -> ReceiptError? {
            var terms = try vector.terms()
            change(&terms)
            return failure(object, terms)
        }
        #expect(try refusal { $0.appIDs = ["A.b"] } == .appIDMismatch(found: vector.appId))
        #expect(try refusal { $0.publicKeyX963?[64] ^= 1 } == .publicKeyMismatch)
        #expect(
            try refusal { $0.kind = .attest } == .kindMismatch(expected: .attest, found: .receipt))
        #expect(
            try refusal { $0.environment = .production }
                == .environmentMismatch(expected: .production, found: "sandbox"))
        #expect(
            try refusal { $0.root = .apple } == .certificate(.intermediate, .issuerMismatch))
    }

    @Test(
        "the receipt in every attestation verifies, but for the two that are bad",
        arguments: Vectors.names("attestation"))
    func attested(name: String) throws {
        let vector: AttestationVector = try Vectors.load("attestation", name)
        let attestation = try vector.verify()
        var terms = ReceiptTerms(
            appIDs: [vector.appId], publicKeyX963: attestation.publicKeyX963, kind: .attest,
            clientDataHash: try vector.hash, environment: try vector.place,
            at: try vector.validSeconds)
        #expect(failure(attestation.receipt, terms) == badReceipts[name])
        guard badReceipts[name] == nil else { return }
        let verified = try Receipt.verify(attestation.receipt, terms)
        #expect(verified.kind == .attest)
        #expect(verified.riskMetric == nil)
        #expect(verified.notBefore == nil)
        #expect(verified.expiration == verified.creation + 90 * 86_400_000)
        terms.clientDataHash = [0]
        #expect(failure(attestation.receipt, terms) == .clientDataHashMismatch)
    }

    @Test("the root that receipts end at is Apple Root CA - G3, and no other of Apple's")
    func root() throws {
        let same = try TrustRoot(
            pem: Array(readFile(Vectors.folder.appending(path: "roots/Apple_Root_CA_G3.pem"))))
        #expect(same.der == TrustRoot.appleReceipts.der)
    }

    @Test("a real receipt cut anywhere is refused, and one with a changed byte is never another's")
    func tampered() throws {
        let vector: ReceiptVector = try Vectors.load(
            "receipt", "2021-01-ios14.4b2-dev-veehaitch-r1")
        let object = try vector.object
        let terms = try vector.terms()
        let whole = try Receipt.verify(object, terms)
        for count in object.indices {
            guard case .structure = failure(Array(object[..<count]), terms) else {
                Issue.record("cut at \(count)")
                continue
            }
        }
        for index in stride(from: 0, to: object.count, by: 7) {
            var changed = object
            changed[index] ^= 0x04
            guard let verified = try? Receipt.verify(changed, terms) else { continue }
            // Not all of the wrapping is signed, but all that is said is.
            #expect(verified.publicKeyX963 == whole.publicKeyX963, "byte \(index)")
            #expect(verified.riskMetric == whole.riskMetric, "byte \(index)")
            #expect(verified.notBefore == whole.notBefore, "byte \(index)")
        }
    }
}

@Suite("Trust root: of receipts")
struct AppleReceiptRootTests {
    @Test("the embedded root has the published fingerprint")
    func fingerprint() {
        #expect(
            Hex.encode(TrustRoot.appleReceipts.fingerprint)
                == "63343abfb89a6a03ebb57e9b3f5fa7be7c4f5c756f3017b3a8c488c3653e9179")
    }
}
