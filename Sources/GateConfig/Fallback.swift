/// What becomes of a request that says its device cannot attest (`protocol.md` §8).
package enum Fallback: Sendable, Equatable {
    /// It is forwarded with the verdict `unverified`.
    case allowUnverified
    /// It is refused as `unsupported`.
    case deny
    /// Apple's DeviceCheck decides.
    case deviceCheck(DeviceCheck)

    /// The settings of `fallback devicecheck`.
    package struct DeviceCheck: Sendable, Equatable {
        /// What the device's first bit must be; nil for either.
        package var bit0: Bool?
        /// What the second must be.
        package var bit1: Bool?
        /// Requests of one account, of one client address under `account none`; nil is no limit.
        package var rate: Rate?
        /// Whether an account that has an enrolled or revoked key may use it.
        package var isAlsoEnrolled: Bool
        /// How long Apple's answer is waited for.
        package var timeout: Duration

        /// Settings by their parts.
        package init(
            bit0: Bool? = nil, bit1: Bool? = nil, rate: Rate? = nil, isAlsoEnrolled: Bool = false,
            timeout: Duration
        ) {
            self.bit0 = bit0
            self.bit1 = bit1
            self.rate = rate
            self.isAlsoEnrolled = isAlsoEnrolled
            self.timeout = timeout
        }
    }
}
