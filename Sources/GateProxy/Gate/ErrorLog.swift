package import GateConfig
internal import GateLock
package import GateRuntime

/// The error log: one line a message on standard error, with a journal priority under systemd.
///
/// The same message is written at most once a second, and no more than ``messagesMax`` different
/// ones: clients have a part in some of them. How many were left out is said with the next.
package final class ErrorLog: Sendable {
    fileprivate struct State: Sendable {
        var second: Int64 = 0
        var seen: [String: Seen] = [:]
        /// Different messages beyond the bound.
        var othersLeft = 0
    }

    fileprivate struct Seen: Sendable {
        let severity: LogSettings.Level
        var count: Int
    }

    /// Different messages in a second: more than a gate has to say of itself, and a log's fill if
    /// each names another client.
    package static let messagesMax = 256

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
        guard let left = state.withLock({ $0.note(severity, message, second) }) else { return }
        let lines = left + [(severity, message)]
        writer.write(Array(lines.map { prefix($0) + $1 + "\n" }.joined().utf8))
    }

    private func prefix(_ severity: LogSettings.Level) -> String {
        hasPriorities ? "<\(severity.priority)>" : "attestgate: \(severity.rawValue): "
    }
}

extension ErrorLog.State {
    /// Notes a message.
    /// - Returns: Nil where it is left out; otherwise what was left out in the second before.
    fileprivate mutating func note(
        _ severity: LogSettings.Level, _ message: String, _ second: Int64
    ) -> [(LogSettings.Level, String)]? {
        var left: [(LogSettings.Level, String)] = []
        if self.second != second {
            left = seen.filter { $0.value.count > 1 }.map { text, seen in
                (seen.severity, "\(text) (\(seen.count - 1) times more)")
            }
            if othersLeft > 0 { left.append((.warn, "\(othersLeft) other messages left out")) }
            self = ErrorLog.State(second: second)
        }
        if let before = seen[message]?.count {
            seen[message]?.count = before + 1
            return nil
        }
        guard seen.count < ErrorLog.messagesMax else {
            othersLeft += 1
            return nil
        }
        seen[message] = ErrorLog.Seen(severity: severity, count: 1)
        return left
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
