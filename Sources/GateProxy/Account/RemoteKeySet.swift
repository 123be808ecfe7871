internal import GateConfig
internal import GateLock

/// The keys of a URL, as every loop sees them: the last good set, whatever became of later fetches.
/// ``KeySetRefresh`` brings the next one. Behind a lock.
final class RemoteKeySet: Sendable {
    /// Where they come from.
    let location: TokenAccount.KeySetURL
    private let state = Lock(State())

    private struct State {
        var keys: TokenKeySet?
        /// Requests that wait for the outcome of a fetch.
        var waiting: [@Sendable () -> Void] = []
        /// Asks for a fetch before its time; nil while nobody keeps the set fresh.
        var ask: (@Sendable () -> Void)?
    }

    /// The most requests that wait at one time: a fetch takes a moment, and each is a client's
    /// connection.
    static let waitingMax = 4096

    /// - Parameter keys: What was fetched from the same place under other terms.
    init(_ location: TokenAccount.KeySetURL, keys: TokenKeySet? = nil) {
        self.location = location
        state.withLock { $0.keys = keys }
    }

    /// The last good set; nil before there was one.
    var keys: TokenKeySet? { state.withLock { $0.keys } }

    /// Asks for a fetch before its time; `then` runs somewhere once it has ended, or at once where
    /// one is not due yet.
    /// - Returns: False where too many wait already; `then` is not called.
    func refresh(then: @escaping @Sendable () -> Void) -> Bool {
        let ask: (@Sendable () -> Void)? = state.withLock { state in
            guard state.waiting.count < RemoteKeySet.waitingMax, let ask = state.ask else {
                return nil
            }
            state.waiting.append(then)
            return ask
        }
        guard let ask else { return false }
        ask()
        return true
    }

    /// Says who fetches; nil for nobody, which lets go of who waits.
    func setFetcher(_ ask: (@Sendable () -> Void)?) {
        state.withLock { $0.ask = ask }
        if ask == nil { settle() }
    }

    /// Takes the set that was fetched.
    func adopt(_ keys: TokenKeySet) {
        state.withLock { $0.keys = keys }
    }

    /// Lets go of who waits: the fetch has ended, however it did.
    func settle() {
        let waiting = state.withLock { state in
            defer { state.waiting = [] }
            return state.waiting
        }
        for then in waiting { then() }
    }
}
