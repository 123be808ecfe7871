internal import AppAttest
internal import GateBytes
internal import GateConfig
internal import GateStore

/// Verifies an attestation and makes the store's record of it: pure, and run on the verification
/// pool.
enum AttestationCheck {
    /// - Parameters:
    ///   - clientDataHash: What the device was given for the challenge.
    ///   - now: Seconds of UTC since 1970.
    static func run(
        _ request: EnrolmentRequest.Enrolment, clientDataHash: Bytes32, app: AppRuntime,
        account: [UInt8], now: Int64
    ) -> Result<NewKey, Reason> {
        do throws(AttestationError) {
            let verified = try Attestation.verify(
                object: request.object, clientDataHash: clientDataHash.array,
                keyID: KeyID(request.keyID), appIDs: app.app.appIDs,
                environment: app.environment, root: app.root, at: now)
            let extensions = verified.extensions.readable
            return .success(
                NewKey(
                    keyID: request.keyID, publicKey: verified.publicKey, account: account,
                    app: verified.appID, environment: app.environmentCode,
                    receipt: verified.receipt,
                    category: extensions?.validationCategory.flatMap {
                        UInt8(exactly: $0.rawValue)
                    },
                    bundleVersion: extensions?.bundleVersion))
        } catch {
            return .failure(Reason(error))
        }
    }
}
