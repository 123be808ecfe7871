import AppAttest

/// Receipts out of any bytes: never a trap, none is verified, since nobody but Apple can make one,
/// and each is shown field by field.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzReceipt(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let bytes = Array(UnsafeBufferPointer(start: data, count: count))
    let terms = ReceiptTerms(
        appIDs: ["A.b"], environment: .production, ageSecondsMax: nil, at: 1_700_000_000)
    let report = ReceiptReport(bytes, terms)
    precondition(report.verified == nil)
    precondition(report.steps.count == ReceiptStep.allCases.count)
    precondition(!Inspection.receipt(bytes).isEmpty)
    return 0
}
