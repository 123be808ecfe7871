internal import GateConfig
internal import GateLock
internal import GateProxy
internal import GateRuntime

/// A reload (`conf.md` §6): everything is read, resolved and bound before anything changes; on any
/// fault nothing does, and the faults are told as a start would tell them. Runs on the queue of the
/// signals, so one at a time.
final class Reload: Sendable {
    private let path: String
    private let gate: Gate
    private let services: GateServices
    private let supervisor: Supervisor
    /// When the configuration in force was loaded, for messages.
    private let loadedAt: Lock<String>

    init(path: String, _ gate: Gate, _ services: GateServices, _ supervisor: Supervisor) {
        self.path = path
        self.gate = gate
        self.services = services
        self.supervisor = supervisor
        loadedAt = Lock(Reload.now())
    }

    /// The time in UTC, `2026-11-30 09:12:03`.
    private static func now() -> String {
        var text: [UInt8] = []
        CivilTime.appendRFC3339(SystemClock().unixNanoseconds() / 1_000_000, to: &text)
        return String(decoding: text.prefix(19), as: UTF8.self)
            .split(separator: "T").joined(separator: " ")
    }

    /// Loads the configuration again and puts it in force.
    func run() {
        guard !gate.isStopping else {
            return services.errorLog.write(.warn, "reload: not done, the gate is stopping")
        }
        supervisor.reloading(now: SystemClock().now())
        let standing = loadedAt.withLock { $0 }
        let report = ConfigurationLoader.load(path: path, source: FileConfigurationSource())
        if !report.diagnostics.isEmpty {
            Console.standard.errors.write(report.render(standing: standing))
        }
        guard let configuration = report.configuration else {
            return refused("the configuration has faults", standing)
        }
        let running = gate.context.configuration
        for name in running.needingRestart(in: configuration) {
            services.errorLog.write(
                .warn, "reload: \"\(name)\" has changed; it takes a restart to take effect")
        }
        do throws(StartError) {
            try gate.reload(configuration) { [services, supervisor, loadedAt] in
                loadedAt.withLock { $0 = Reload.now() }
                services.metrics.noteReload(
                    now: SystemClock().unixNanoseconds() / 1_000_000_000)
                services.errorLog.write(.info, "reloaded")
                supervisor.ready(status: "serving")
            }
        } catch {
            refused("\(error)", standing)
        }
    }

    private func refused(_ reason: String, _ standing: String) {
        services.metrics.noteRefusedReload()
        services.errorLog.write(
            .error,
            "reload: \(reason); the running configuration (loaded \(standing)) stays in force")
        supervisor.ready(status: "serving; the last reload was refused")
    }
}
