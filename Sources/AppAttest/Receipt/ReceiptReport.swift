/// A receipt judged step by step, for people: the same steps as the verdict, each with its result.
public struct ReceiptReport: Sendable {
    /// Every step in order; one that the terms leave out is not reached.
    public let steps: [StepResult<ReceiptStep, ReceiptError>]
    /// The proof; nil unless every step passed.
    public let verified: VerifiedReceipt?

    /// Judges `bytes`; the arguments are those of ``Receipt/verify(_:_:)``.
    public init(_ bytes: [UInt8], _ terms: ReceiptTerms) {
        var log = StepLog<ReceiptStep, ReceiptError>.report
        do throws(ReceiptError) {
            verified = try ReceiptExamination(bytes: bytes, terms: terms).run(&log)
        } catch {
            // The log has it, in its place.
            verified = nil
        }
        steps = log.complete(ReceiptStep.allCases)
    }
}
