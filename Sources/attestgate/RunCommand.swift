internal import Dispatch
internal import GateConfig
internal import GateProxy
internal import GateRuntime
internal import Glibc

/// `attestgate run`: serves until it is told to stop.
enum RunCommand {
    /// Runs the gate of the configuration at `configurationPath`.
    /// - Returns: The exit status, where the gate could not start; otherwise the process ends by
    ///   itself once it has drained.
    static func run(configurationPath: String) -> Int32 {
        let report = ConfigurationLoader.load(
            path: configurationPath, source: FileConfigurationSource())
        let text = report.render()
        if !report.diagnostics.isEmpty { Console.standard.errors.write(text) }
        guard let configuration = report.configuration else { return report.isReadable ? 2 : 3 }
        SystemFacts.raiseDescriptorLimit()
        let variables = Variables()
        let signals = Signals()
        let supervisor = Supervisor(notifySocket: variables["NOTIFY_SOCKET"])
        do throws(StartError) {
            let services = try GateServices.open(
                configuration, hasPriorities: variables["JOURNAL_STREAM"] != nil,
                version: VersionCommand.version)
            let gate: Gate
            do throws(StartError) {
                gate = try Gate.start(
                    configuration, services: services,
                    passedSockets: Supervisor.passedSockets(
                        pid: variables["LISTEN_PID"], count: variables["LISTEN_FDS"],
                        names: variables["LISTEN_FDNAMES"]))
            } catch {
                services.close()
                throw error
            }
            serve(
                gate, services, signals, supervisor,
                Reload(path: configurationPath, gate, services, supervisor))
        } catch {
            Console.standard.report("\(error)")
            return 3
        }
    }

    private static func serve(
        _ gate: Gate, _ services: GateServices, _ signals: Signals, _ supervisor: Supervisor,
        _ reload: Reload
    ) -> Never {
        let stop: @Sendable () -> Void = {
            supervisor.stopping()
            services.errorLog.write(.info, "stopping")
            gate.stop {
                services.close()
                exit(0)
            }
        }
        signals.on(.terminate, stop)
        signals.on(.interrupt, stop)
        signals.on(.user1) { services.reopenLogs() }
        signals.on(.hangup) { reload.run() }
        // From "ready" on the service manager may stop or reload.
        signals.waitUntilHeard()
        services.errorLog.write(.info, "serving")
        supervisor.ready(status: "serving")
        // The sources live as long as the process.
        withExtendedLifetime(signals) { dispatchMain() }
    }
}

/// The process's environment variables.
struct Variables {
    /// The value of `name`; nil when it is not set.
    subscript(name: String) -> String? {
        unsafe getenv(name).map { unsafe String(cString: $0) }
    }
}
