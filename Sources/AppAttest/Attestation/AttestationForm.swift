package import GateBytes

/// What can be told of an attestation object by its form alone, before anything of it is believed.
package struct AttestationForm: Sendable {
    /// The key ID it says it is of; nil where it does not come to saying so.
    package let keyID: Bytes32?

    /// The form of `bytes`; nil when they are not the CBOR of an attestation, with its members.
    package init?(_ bytes: [UInt8]) {
        do throws(AttestationError) {
            let object = try AttestationObject(bytes)
            keyID = AttestationForm.keyID(object)
        } catch {
            switch error {
            case .memberMissing, .object, .objectTooLarge: return nil
            // Well formed, and not what it should be: for the verification to say.
            default: keyID = nil
            }
        }
    }

    private static func keyID(_ object: AttestationObject) -> Bytes32? {
        do throws(AuthenticatorDataError) {
            return try AttestationAuthenticatorData(object.bytes, object.authenticatorData)
                .credentialID
        } catch {
            return nil
        }
    }
}
