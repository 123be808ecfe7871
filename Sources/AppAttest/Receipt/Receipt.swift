internal import GateBytes
internal import GateCrypto

/// Verifying a receipt: what Apple's fraud metric is asked with, and what it answers with.
///
/// A receipt comes with each attestation (kind ``ReceiptKind/attest``) and from Apple's exchange
/// (kind ``ReceiptKind/receipt``, with the metric). Apple signs it on a chain of its own, not on
/// the attestation's, so a receipt and its attestation are judged apart.
public enum Receipt {
    /// Real receipts take 3,600 to 4,000 bytes.
    public static let bytesMax = 16_384

    /// Verifies a receipt.
    ///
    /// - Parameters:
    ///   - bytes: the receipt, CMS SignedData in BER.
    ///   - terms: what it is judged by.
    /// - Returns: what the receipt says; made by nothing else.
    /// - Throws: the first step that failed, in the order of ``ReceiptStep``.
    ///
    /// Source: Apple, "Assessing fraud risk".
    public static func verify(
        _ bytes: [UInt8], _ terms: ReceiptTerms
    ) throws(ReceiptError) -> VerifiedReceipt {
        var log = StepLog<ReceiptStep, ReceiptError>.verdict
        return try ReceiptExamination(bytes: bytes, terms: terms).run(&log)
    }
}

/// What a receipt is: field 6.
public enum ReceiptKind: String, CaseIterable, Sendable {
    /// It came with an attestation.
    case attest = "ATTEST"
    /// It came from Apple's exchange.
    case receipt = "RECEIPT"
}

/// What a receipt is judged by. A member that is nil leaves its step out.
public struct ReceiptTerms: Sendable {
    /// The App IDs that are allowed.
    public var appIDs: [String]
    /// The attested key's uncompressed point, 65 bytes, that field 3 must be of.
    public var publicKeyX963: [UInt8]?
    /// The kind it must be of.
    public var kind: ReceiptKind?
    /// The client data hash of the attestation it came with. Compared in receipts of kind
    /// ``ReceiptKind/attest`` alone: refreshed ones have been seen with it garbled by Apple.
    public var clientDataHash: [UInt8]?
    /// The environment it must be of, where it says one.
    public var environment: Environment?
    /// Where its chain must end.
    public var root: TrustRoot
    /// How many seconds ago it may have been made; nil for a receipt that was kept, which is old by
    /// design.
    public var ageSecondsMax: Int64?
    /// Seconds since 1970.
    public var now: Int64

    /// How old a receipt may be when it arrives, by Apple's rule.
    public static let arrivalSeconds: Int64 = 300

    /// Terms by their parts; without others those of a receipt that has just arrived.
    public init(
        appIDs: [String], publicKeyX963: [UInt8]? = nil, kind: ReceiptKind? = nil,
        clientDataHash: [UInt8]? = nil, environment: Environment? = nil,
        root: TrustRoot = .appleReceipts, ageSecondsMax: Int64? = ReceiptTerms.arrivalSeconds,
        at now: Int64
    ) {
        self.appIDs = appIDs
        self.publicKeyX963 = publicKeyX963
        self.kind = kind
        self.clientDataHash = clientDataHash
        self.environment = environment
        self.root = root
        self.ageSecondsMax = ageSecondsMax
        self.now = now
    }
}

/// What Apple said in a receipt: the proof that every step of ``Receipt/verify(_:_:)`` held. Only
/// that makes one. Times are milliseconds since 1970.
public struct VerifiedReceipt: Sendable {
    /// With an attestation, or from the exchange.
    public let kind: ReceiptKind
    /// The App ID, one of those allowed.
    public let appID: String
    /// The attested key's point, `04 ‖ x ‖ y`.
    public let publicKeyX963: [UInt8]
    /// When it was made.
    public let creation: Int64
    /// Approximately how many keys have been attested on this device for this app in the last 30
    /// days; up and down. Only of kind ``ReceiptKind/receipt``.
    public let riskMetric: UInt32?
    /// The earliest time that the exchange takes it; only of kind ``ReceiptKind/receipt``.
    public let notBefore: Int64?
    /// The end of its life.
    public let expiration: Int64?

    fileprivate init(_ values: ReceiptExamination.Values) {
        kind = values.kind
        appID = values.appID
        publicKeyX963 = values.point
        creation = values.creation
        riskMetric = values.riskMetric
        notBefore = values.notBefore
        expiration = values.expiration
    }
}

/// The steps of a receipt's verification, in their order.
public enum ReceiptStep: String, CaseIterable, Sendable {
    /// The bytes are the CMS structure they should be.
    case structure
    /// There is one signer, who signs the bare content with ECDSA and SHA-256.
    case signer
    /// The certificates that came along can be read, and the chain's are among them.
    case certificates
    /// The chain ends at the root.
    case chain
    /// Its certificates are marked for receipts.
    case marks
    /// The signature is the signer's over the content.
    case signature
    /// The fields can be read.
    case fields
    /// The certificates were valid when the receipt was made.
    case validity
    /// It was made just now.
    case freshness
    /// It is of an allowed App ID.
    case appID = "app_id"
    /// It is of the stored key.
    case publicKey = "public_key"
    /// It is of the expected kind.
    case kind
    /// It belongs to the attestation it came with.
    case clientDataHash = "client_data_hash"
    /// It is of the allowed environment.
    case environment
}

/// One receipt and all it is judged by.
struct ReceiptExamination {
    let bytes: [UInt8]
    let terms: ReceiptTerms

    /// The fields that steps compare and a caller reads.
    struct Values {
        let kind: ReceiptKind
        let appID: String
        let point: [UInt8]
        let clientDataHash: [UInt8]?
        let environment: String?
        let creation: Int64
        let riskMetric: UInt32?
        let notBefore: Int64?
        let expiration: Int64?
    }

    /// Runs the steps.
    func run(
        _ log: inout StepLog<ReceiptStep, ReceiptError>
    ) throws(ReceiptError) -> VerifiedReceipt {
        let data = try log.require(.structure) { () throws(ReceiptError) in try parse() }
        let signer = try log.require(.signer) { () throws(ReceiptError) in try onlySigner(of: data)
        }
        let chain = try log.require(.certificates) { () throws(ReceiptError) in
            try ReceiptChain(data, signer, root: terms.root)
        }
        try log.check(.chain) { () throws(ReceiptError) in try chain.verify() }
        try log.check(.marks) { () throws(ReceiptError) in try chain.verifyMarks() }
        try log.check(.signature) { () throws(ReceiptError) in
            try chain.verifySignature(signer.signature, over: data.content)
        }
        let values = try log.require(.fields) { () throws(ReceiptError) in
            try Values(ReceiptFields(data.content))
        }
        try log.check(.validity) { () throws(ReceiptError) in
            try chain.verifyValidity(at: values.creation)
        }
        try compare(values, &log)
        if let failure = log.failure { throw failure }
        return VerifiedReceipt(values)
    }

    private func parse() throws(ReceiptError) -> SignedData {
        guard bytes.count <= Receipt.bytesMax else { throw .tooLarge(count: bytes.count) }
        do throws(BERError) {
            return try SignedData(bytes)
        } catch {
            throw .structure(error)
        }
    }

    private func onlySigner(of data: SignedData) throws(ReceiptError) -> SignedData.Signer {
        guard data.signers.count == 1 else { throw .signerCount(data.signers.count) }
        let signer = data.signers[0]
        guard !signer.hasSignedAttributes else { throw .signedAttributes }
        guard signer.digestAlgorithm == .sha256 else {
            throw .algorithmUnsupported(signer.digestAlgorithm)
        }
        guard signer.signatureAlgorithm == .ecdsaWithSHA256 else {
            throw .algorithmUnsupported(signer.signatureAlgorithm)
        }
        return signer
    }

    /// The steps that compare a field; those that the terms leave out are not run.
    private func compare(
        _ values: Values, _ log: inout StepLog<ReceiptStep, ReceiptError>
    ) throws(ReceiptError) {
        if let ageMax = terms.ageSecondsMax {
            try log.check(.freshness) { () throws(ReceiptError) in
                try checkFreshness(values.creation, ageMax)
            }
        }
        try log.check(.appID) { () throws(ReceiptError) in
            guard terms.appIDs.contains(values.appID) else {
                throw .appIDMismatch(found: values.appID)
            }
        }
        if let expected = terms.publicKeyX963 {
            try log.check(.publicKey) { () throws(ReceiptError) in
                guard values.point == expected else { throw .publicKeyMismatch }
            }
        }
        if let expected = terms.kind {
            try log.check(.kind) { () throws(ReceiptError) in
                guard values.kind == expected else {
                    throw .kindMismatch(expected: expected, found: values.kind)
                }
            }
        }
        if let expected = terms.clientDataHash, values.kind == .attest {
            try log.check(.clientDataHash) { () throws(ReceiptError) in
                guard let found = values.clientDataHash else {
                    throw .fieldMissing(.clientDataHash)
                }
                guard found == expected else { throw .clientDataHashMismatch }
            }
        }
        if let expected = terms.environment, let found = values.environment {
            try log.check(.environment) { () throws(ReceiptError) in
                guard found == expected.receiptName else {
                    throw .environmentMismatch(expected: expected, found: found)
                }
            }
        }
    }

    private func checkFreshness(_ creation: Int64, _ ageMax: Int64) throws(ReceiptError) {
        // A receipt's times lie in years 1 to 9999; what the caller gives may lie anywhere.
        let (now, isOver) = terms.now.multipliedReportingOverflow(by: 1000)
        let (age, isBeyond) = now.subtractingReportingOverflow(creation)
        let (limit, isUnlimited) = ageMax.multipliedReportingOverflow(by: 1000)
        guard !isOver, !isBeyond, isUnlimited || age <= limit else {
            throw .stale(creation: creation, at: terms.now)
        }
        guard age >= -CertificateChain.skewSeconds * 1000 else {
            throw .notYetMade(creation: creation, at: terms.now)
        }
    }
}

extension ReceiptExamination.Values {
    /// What the fields say; App ID, certificate, kind and creation time must be there.
    init(_ fields: ReceiptFields) throws(ReceiptError) {
        guard let appID = try fields.text(.appID) else { throw .fieldMissing(.appID) }
        guard let name = try fields.text(.kind) else { throw .fieldMissing(.kind) }
        guard let kind = ReceiptKind(rawValue: name) else { throw .fieldMalformed(.kind) }
        guard let creation = try fields.time(.creationTime) else {
            throw .fieldMissing(.creationTime)
        }
        guard let der = fields[.certificate] else { throw .fieldMissing(.certificate) }
        // Why it cannot be read is of no use to anyone: Apple signed it.
        guard let certificate = try? Certificate(der),
            case .ellipticCurve(.p256, let point) = certificate.publicKey
        else { throw .fieldMalformed(.certificate) }
        self.init(
            kind: kind, appID: appID, point: point, clientDataHash: fields[.clientDataHash],
            environment: try fields.text(.environment), creation: creation,
            riskMetric: try fields.number(.riskMetric), notBefore: try fields.time(.notBefore),
            expiration: try fields.time(.expirationTime))
    }
}

extension Environment {
    /// What field 7 of a receipt calls it.
    var receiptName: String {
        switch self {
        case .development: return "sandbox"
        case .production: return "production"
        }
    }
}
