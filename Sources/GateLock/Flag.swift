/// A truth of one bit that any thread sets and clears.
package final class Flag: Sendable {
    private let value = Lock(false)

    /// One that is clear.
    package init() {}

    /// Whether it is set.
    package var isSet: Bool { value.withLock { $0 } }

    /// Sets it.
    /// - Returns: Whether it was clear before.
    @discardableResult
    package func set() -> Bool {
        value.withLock { value in
            defer { value = true }
            return !value
        }
    }

    /// Clears it.
    package func clear() {
        value.withLock { $0 = false }
    }
}
