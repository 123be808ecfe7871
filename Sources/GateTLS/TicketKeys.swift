// Keys of session tickets (RFC 5077 §4), one set for a listener, shared by its loops.
//
//   a period           the next               the one after
//   ├─ A encrypts ─────┼─ B encrypts ─────────┼─ C encrypts …
//                      │  A still decrypts    │  A is gone
//
// They are random, are never written anywhere and end with the process or the configuration: what
// was recorded cannot be read later than two periods after it was said.

internal import CGateOpenSSL
internal import GateLock
package import GateRuntime

/// The keys that seal and open one listener's tickets.
package final class TicketKeys: Sendable {
    /// One set of keys.
    package struct Key: Sendable {
        /// What a ticket says of the key it is under.
        package let name: [UInt8]
        let cipher: [UInt8]
        let mac: [UInt8]
        let since: Moment
    }

    private struct State: Sendable {
        var current: Key
        var previous: Key?
    }

    static let nameBytes = 16
    static let keyBytes = 32
    /// A block of the cipher.
    static let ivBytes = 16

    private let period: Duration
    private let clock: any Clock
    private let state: Lock<State>

    /// - Parameter period: How long a key seals; for as long again it opens.
    package init(period: Duration, clock: any Clock) {
        self.period = period
        self.clock = clock
        state = Lock(State(current: TicketKeys.makeKey(clock.now())))
    }

    /// The key that seals now.
    package func current() -> Key {
        state.withLock { state in
            rotate(&state)
            return state.current
        }
    }

    /// The key of `name` if it may still open, and whether the ticket should be made anew.
    package func find(_ name: [UInt8]) -> (key: Key, isOld: Bool)? {
        state.withLock { state in
            rotate(&state)
            if state.current.name == name { return (state.current, false) }
            guard let previous = state.previous, previous.name == name else { return nil }
            return (previous, true)
        }
    }

    /// Lets go of keys whose time is over, also where no client comes.
    package func rotate() {
        state.withLock { rotate(&$0) }
    }

    private func rotate(_ state: inout State) {
        let now = clock.now()
        if let previous = state.previous, previous.since + period + period <= now {
            state.previous = nil
        }
        guard state.current.since + period <= now else { return }
        let isFresh = state.current.since + period + period > now
        state.previous = isFresh ? state.current : nil
        state.current = TicketKeys.makeKey(now)
    }

    private static func makeKey(_ now: Moment) -> Key {
        Key(
            name: random(nameBytes), cipher: random(keyBytes), mac: random(keyBytes), since: now)
    }

    private static func random(_ count: Int) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        precondition(
            unsafe RAND_priv_bytes(&bytes, Int32(count)) == 1, "the random generator failed")
        return bytes
    }
}

extension TicketKeys.Key {
    /// Readies the two contexts to seal or open a ticket.
    func prepare(
        _ cipherContext: OpaquePointer?, _ macContext: OpaquePointer?,
        iv: UnsafeMutablePointer<UInt8>?, isSealing: Bool
    ) -> Bool {
        var digest = Array("SHA256".utf8CString)
        var macKey = mac
        let isMACReady = unsafe digest.withUnsafeMutableBufferPointer { digest in
            unsafe macKey.withUnsafeMutableBytes { macKey in
                let parameters = unsafe [
                    gate_param_mac_key(macKey.baseAddress, macKey.count),
                    gate_param_mac_digest(digest.baseAddress), OSSL_PARAM_construct_end(),
                ]
                return unsafe EVP_MAC_CTX_set_params(macContext, parameters) == 1
            }
        }
        guard isMACReady else { return false }
        let algorithm = unsafe EVP_aes_256_cbc()
        return isSealing
            ? unsafe EVP_EncryptInit_ex2(cipherContext, algorithm, cipher, iv, nil) == 1
            : unsafe EVP_DecryptInit_ex2(cipherContext, algorithm, cipher, iv, nil) == 1
    }
}
