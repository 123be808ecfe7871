internal import AppAttest
internal import GateBytes
internal import GateConfig
internal import GateStore

/// Verifies an attestation and its receipt and makes the store's record of them: run on the
/// verification pool.
enum AttestationCheck {
    /// - Parameters:
    ///   - clientDataHash: What the device was given for the challenge.
    ///   - now: Seconds of UTC since 1970.
    ///   - log: Where a receipt that is not kept is named.
    static func run(
        _ request: EnrolmentRequest.Enrolment, clientDataHash: Bytes32, app: AppRuntime,
        account: [UInt8], now: Int64, log: ErrorLog? = nil
    ) -> Result<NewKey, Reason> {
        do throws(AttestationError) {
            let verified = try Attestation.verify(
                object: request.object, clientDataHash: clientDataHash.array,
                keyID: KeyID(request.keyID), appIDs: app.app.appIDs,
                environment: app.environment, root: app.root, at: now)
            let extensions = verified.extensions.readable
            var key = NewKey(
                keyID: request.keyID, publicKey: verified.publicKey, account: account,
                app: verified.appID, environment: app.environmentCode,
                category: extensions?.validationCategory.flatMap { UInt8(exactly: $0.rawValue) },
                bundleVersion: extensions?.bundleVersion)
            if let fault = fault(of: verified, clientDataHash, app, now: now) {
                log?.write(.info, "app \(app.app.name): receipt of a new key: \(fault)")
                return app.app.receipts == .require ? .failure(.receiptInvalid) : .success(key)
            }
            key.receipt = verified.receipt
            key.refreshAt = RefreshPlan.first(of: request.keyID, now: now)
            return .success(key)
        } catch {
            return .failure(Reason(error))
        }
    }

    /// Why the receipt that came with an attestation is not good; nil where it is, or is not
    /// looked at.
    private static func fault(
        of verified: VerifiedAttestation, _ clientDataHash: Bytes32, _ app: AppRuntime, now: Int64
    ) -> ReceiptError? {
        guard app.app.receipts != .off else { return nil }
        do throws(ReceiptError) {
            _ = try Receipt.verify(
                verified.receipt,
                ReceiptTerms(
                    appIDs: [verified.appID], publicKeyX963: verified.publicKeyX963,
                    kind: .attest, clientDataHash: clientDataHash.array,
                    environment: verified.environment, root: app.receiptRoot, at: now))
            return nil
        } catch {
            return error
        }
    }
}
