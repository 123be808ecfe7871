/// Why no TLS context can be made of what the configuration gave.
package enum TLSSetupError: Error, Equatable, CustomStringConvertible {
    /// No certificate can be read from a chain or from a file of authorities.
    case certificate(String)
    /// The key belongs to another certificate.
    case foreignKey
    /// No private key can be read.
    case key(String)
    /// OpenSSL does not take a setting, or a certificate it could read.
    case rejected(String)

    /// The reason alone, for those who name the file themselves.
    package var clause: String {
        switch self {
        case .certificate(let reason), .key(let reason), .rejected(let reason): reason
        case .foreignKey: description
        }
    }

    /// One lowercase clause.
    package var description: String {
        switch self {
        case .certificate(let reason): "no certificate can be read: \(reason)"
        case .foreignKey: "the key does not belong to the certificate"
        case .key(let reason): "no private key can be read: \(reason)"
        case .rejected(let reason): reason
        }
    }
}
