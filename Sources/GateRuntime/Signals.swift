internal import Dispatch
internal import Glibc

/// Signals as Dispatch sources, on a queue of their own.
package final class Signals {
    private var sources: [any DispatchSourceSignal] = []
    private let queue = DispatchQueue(label: "attestgate.signals")
    private let registrations = DispatchGroup()

    package init() {
        // A peer that closes early must be an error of the write, not the end of the process.
        signal(SIGPIPE, SIG_IGN)
    }

    /// A signal the gate acts on.
    package enum Name: Sendable {
        case hangup
        case interrupt
        case terminate
        case user1

        fileprivate var number: Int32 {
            switch self {
            case .hangup: return SIGHUP
            case .interrupt: return SIGINT
            case .terminate: return SIGTERM
            case .user1: return SIGUSR1
            }
        }
    }

    /// Waits until every signal named so far is heard: one that comes earlier is lost, since the
    /// default action is off by then.
    package func waitUntilHeard() {
        registrations.wait()
    }

    /// Runs `action` each time `name` arrives, in place of the default action.
    package func on(_ name: Name, _ action: @escaping @Sendable () -> Void) {
        signal(name.number, SIG_IGN)
        let source = DispatchSource.makeSignalSource(signal: name.number, queue: queue)
        source.setEventHandler { @Sendable in action() }
        registrations.enter()
        source.setRegistrationHandler { @Sendable [registrations] in registrations.leave() }
        source.resume()
        sources.append(source)
    }
}
