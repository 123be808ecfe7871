/// The `apple` block: how the gate asks Apple's servers.
package struct AppleSettings: Sendable, Equatable {
    /// One of Apple's services for one environment.
    package struct Service: Sendable, Equatable {
        /// Where its calls begin; a call's own path is appended.
        package var url: ServiceURL
        /// The name of its upstream among ``Configuration/implicitUpstreams``.
        package var upstream: String
    }

    /// The team, `iss` of the token.
    package var teamID: String
    /// The key's ID, `kid` of the token.
    package var keyID: String
    /// The signing key, PKCS #8 in PEM; a secret, never logged or dumped.
    package var key: [UInt8]
    /// DeviceCheck by environment; empty where nothing asks it.
    package var deviceCheck: [App.Environment: Service]
    /// The exchange of receipts by environment; empty where nothing asks it.
    package var attestData: [App.Environment: Service]
}

/// The DeviceCheck bits that `set_bits` sets; nil leaves one as it is.
package struct DeviceBits: Sendable, Equatable {
    package var bit0: Bool?
    package var bit1: Bool?

    /// Bits by their parts.
    package init(bit0: Bool? = nil, bit1: Bool? = nil) {
        self.bit0 = bit0
        self.bit1 = bit1
    }
}

/// Apple's services and where they are.
enum AppleHosts {
    static func deviceCheck(_ environment: App.Environment) -> String {
        switch environment {
        case .development: "https://api.development.devicecheck.apple.com"
        case .production: "https://api.devicecheck.apple.com"
        }
    }

    static func attestData(_ environment: App.Environment) -> String {
        switch environment {
        case .development: "https://data-development.appattest.apple.com"
        case .production: "https://data.appattest.apple.com"
        }
    }
}
