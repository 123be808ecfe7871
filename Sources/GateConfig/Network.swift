package import GateBytes

/// An IP network: `10.0.0.0/8`, `::1/128`. IPv4 is kept as IPv4-mapped IPv6, so both compare alike.
package struct Network: Sendable, Equatable {
    /// The first address, sixteen bytes.
    package var address: IPAddress
    /// The prefix length over the sixteen bytes: an IPv4 `/8` is 104.
    package var prefixLength: Int

    /// A network of the first `prefixLength` bits of `address`.
    package init(address: IPAddress, prefixLength: Int) {
        self.address = address
        self.prefixLength = prefixLength
    }

    /// Whether `candidate` is inside.
    package func contains(_ candidate: IPAddress) -> Bool {
        candidate.masked(prefixLength) == address.masked(prefixLength)
    }
}
