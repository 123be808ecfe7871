package import GateConfig
package import GateRuntime

/// The failures of one server: as many as the conf says within the time it says, and the server is
/// left out for a while. Then it begins anew.
package struct EjectionWindow: Sendable, Equatable {
    /// The newest failures, oldest first; fewer than eject it, so at most `Limits.ejectFailures`.
    private var failures: [Moment] = []
    private var end: Moment?

    package init() {}

    /// Whether it is left out now.
    package func isEjected(at now: Moment) -> Bool {
        end.map { now < $0 } ?? false
    }

    /// Notes a failure.
    /// - Returns: Whether it is the one that ejects the server.
    package mutating func noteFailure(at now: Moment, _ terms: Upstream.Ejection) -> Bool {
        // What was on its way when the server was ejected says nothing new.
        guard !isEjected(at: now) else { return false }
        failures.removeAll { $0 + terms.within <= now }
        failures.append(now)
        guard failures.count >= terms.failures else { return false }
        failures = []
        end = now + terms.duration
        return true
    }
}
