/// A certificate with what stands behind it, and its key: two PEM texts that belong together.
package struct CertificatePair: Sendable, Equatable {
    /// The certificate and the chain behind it.
    package var chain: [UInt8]
    /// Its private key; a secret, never logged or dumped.
    package var key: [UInt8]

    /// A pair of these texts.
    package init(chain: [UInt8], key: [UInt8]) {
        self.chain = chain
        self.key = key
    }
}

/// The `tls` block of a listener.
package struct ListenerTLS: Sendable, Equatable {
    /// The oldest version that is spoken.
    package enum MinVersion: String, Sendable, Equatable {
        case tls12 = "1.2"
        case tls13 = "1.3"
    }

    /// What is asked of clients; the authorities are PEM.
    package enum ClientCA: Sendable, Equatable {
        case off
        case optional([UInt8])
        case require([UInt8])
    }

    /// At least one; the first answers where no name fits.
    package var certificates: [CertificatePair]
    /// The oldest version that is spoken.
    package var minVersion: MinVersion
    /// What is asked of clients.
    package var clientCA: ClientCA
    /// How long a key seals session tickets; nil gives none out.
    package var ticketPeriod: Duration?
}

/// The `tls` block of an upstream.
package struct UpstreamTLS: Sendable, Equatable {
    /// Whether the service's certificate is checked.
    package var isVerified: Bool
    /// The name it must have; empty for each server's own, as its line has it.
    package var name: String
    /// The authorities it may chain to, PEM; nil for the system's.
    package var authorities: [UInt8]?
    /// The gate's own certificate; nil shows none.
    package var certificate: CertificatePair?
}
