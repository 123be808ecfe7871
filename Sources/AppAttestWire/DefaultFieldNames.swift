/// The names of the HTTP fields between app and gate; those of a proof can be renamed in
/// `proxy.conf`.
package enum DefaultFieldNames {
    /// The key ID, base64.
    package static let keyID = "App-Attest-Key-Id"
    /// The assertion object, base64.
    package static let assertion = "App-Attest-Assertion"
    /// The client data, base64.
    package static let clientData = "App-Attest-Client-Data"
    /// The challenge, by id or by value.
    package static let challenge = "App-Attest-Challenge"
    /// The attestation object, base64; inline enrolment.
    package static let attestation = "App-Attest-Attestation"
    /// `?1`: this app on this device cannot attest.
    package static let unsupported = "App-Attest-Unsupported"
    /// A DeviceCheck token, base64.
    package static let deviceToken = "App-Attest-Device-Token"
    /// In an answer: the challenge of the next request, by value.
    package static let nextChallenge = "App-Attest-Next-Challenge"
    /// The fields of which one alone makes a proof attempt.
    package static let proof = [keyID, assertion, clientData, challenge, attestation]
}
