/// What a listener's `tls` block says, read.
package struct TLSServerSettings {
    /// What clients show.
    package enum ClientCertificates: Sendable, Equatable {
        case none
        /// A certificate is asked for; one that is shown must chain to these authorities (PEM).
        case optional([UInt8])
        /// As above, and without one there is no connection.
        case require([UInt8])
    }

    /// At least one; the first answers where no name fits.
    package var identities: [TLSIdentity]
    package var minVersion: TLSVersion
    package var clientCertificates: ClientCertificates
    /// How long a key seals tickets; nil gives none out.
    package var ticketPeriod: Duration?
    /// The protocols of ALPN, the dearest first.
    package var protocols: [String]
    /// Sets the sessions of this listener apart from those of others.
    package var name: String

    package init(
        identities: [TLSIdentity], minVersion: TLSVersion = .tls12,
        clientCertificates: ClientCertificates = .none, ticketPeriod: Duration? = .seconds(43_200),
        protocols: [String] = ["http/1.1"], name: String = ""
    ) {
        self.identities = identities
        self.minVersion = minVersion
        self.clientCertificates = clientCertificates
        self.ticketPeriod = ticketPeriod
        self.protocols = protocols
        self.name = name
    }
}
