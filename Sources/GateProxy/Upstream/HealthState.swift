/// What a server's health checks say of it: up at first, down after `fall` failed checks in a row,
/// up again after `rise` passed ones in a row.
package struct HealthState: Sendable, Equatable {
    /// Whether it may be chosen.
    package private(set) var isUp = true
    /// Checks in a row that spoke against ``isUp``.
    private var streak = 0

    package init() {}

    /// Notes a check.
    /// - Returns: Whether the server has turned.
    package mutating func note(isPassed: Bool, rise: Int, fall: Int) -> Bool {
        guard isPassed != isUp else {
            streak = 0
            return false
        }
        streak += 1
        guard streak >= (isUp ? fall : rise) else { return false }
        isUp.toggle()
        streak = 0
        return true
    }
}
