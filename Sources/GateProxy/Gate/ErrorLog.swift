package import GateConfig
internal import GateLock
package import GateRuntime

/// The error log: one line a message on standard error, with a journal priority under systemd.
///
/// The same message is written at most once a second; how many were left out is said with the next.
package final class ErrorLog: Sendable {
    private struct State: Sendable {
        var second: Int64 = 0
        var seen: [String: Int] = [:]
    }

    private let level: LogSettings.Level
    private let writer: LineWriter
    private let hasPriorities: Bool
    private let clock: any Clock
    private let state = Lock(State())

    /// - Parameter hasPriorities: Whether lines begin with `<4>` and so on (sd-daemon(3)).
    package init(
        level: LogSettings.Level, writer: LineWriter, hasPriorities: Bool, clock: any Clock
    ) {
        self.level = level
        self.writer = writer
        self.hasPriorities = hasPriorities
        self.clock = clock
    }

    /// Writes `message` when `severity` is kept.
    package func write(_ severity: LogSettings.Level, _ message: String) {
        guard severity.rank >= level.rank else { return }
        let second = clock.unixNanoseconds() / 1_000_000_000
        let repeated: [(String, Int)]? = state.withLock { state in
            var left: [(String, Int)] = []
            if state.second != second {
                state.second = second
                left = state.seen.filter { $0.value > 1 }.map { ($0.key, $0.value - 1) }
                state.seen = [:]
            }
            state.seen[message, default: 0] += 1
            return state.seen[message] == 1 ? left : nil
        }
        guard let repeated else { return }
        let prefix = hasPriorities ? "<\(severity.priority)>" : "attestgate: \(severity.rawValue): "
        var text = ""
        for (message, count) in repeated { text += "\(prefix)\(message) (\(count) times more)\n" }
        writer.write(Array((text + "\(prefix)\(message)\n").utf8))
    }
}

extension LogSettings.Level {
    fileprivate var rank: Int {
        switch self {
        case .debug: return 0
        case .info: return 1
        case .warn: return 2
        case .error: return 3
        }
    }

    /// The syslog priority.
    fileprivate var priority: Int {
        switch self {
        case .debug: return 7
        case .info: return 6
        case .warn: return 4
        case .error: return 3
        }
    }
}
