internal import CGateOpenSSL

/// The two curves of App Attest's certificates.
package enum ECCurve: Sendable {
    /// NIST P-256: attested keys, leaf certificates.
    case p256
    /// NIST P-384: the App Attest root and intermediate.
    case p384

    /// The size of one coordinate, of a private scalar and of half a signature.
    package var coordinateBytes: Int {
        switch self {
        case .p256: return 32
        case .p384: return 48
        }
    }

    /// The size of an uncompressed point, `04 ‖ x ‖ y`.
    package var pointBytes: Int { 1 + 2 * coordinateBytes }

    var name: String {
        switch self {
        case .p256: return "P-256"
        case .p384: return "P-384"
        }
    }
}

/// The hashes of ECDSA signatures in App Attest.
package enum ECDigest: Sendable {
    /// SHA-256: assertions, leaves' own keys, certificates signed `ecdsa-with-SHA256`.
    case sha256
    /// SHA-384: certificates signed `ecdsa-with-SHA384`.
    case sha384

    var name: String {
        switch self {
        case .sha256: return "SHA256"
        case .sha384: return "SHA384"
        }
    }
}
