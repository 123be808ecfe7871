internal import GateConfig
internal import GateLock
internal import GateProxy
internal import GateRuntime
internal import Glibc

/// The gate of the demo, in this process.
struct DemoGate {
    private let gate: Gate
    private let services: GateServices

    /// Starts the gate that `configuration` describes.
    static func start(_ configuration: DemoConfiguration) throws(CommandError) -> DemoGate {
        let report = ConfigurationLoader.load(
            path: configuration.path, source: FileConfigurationSource())
        guard let resolved = report.configuration else {
            throw .usage(report.render(), command: "demo")
        }
        do throws(StartError) {
            let services = try GateServices.open(
                resolved, hasPriorities: false, version: VersionCommand.version)
            do throws(StartError) {
                return DemoGate(
                    gate: try Gate.start(resolved, services: services), services: services)
            } catch {
                services.close()
                throw error
            }
        } catch {
            throw .environment(error.description)
        }
    }

    /// Stops it, and waits for its end.
    func stop() {
        let hasStopped = Lock(false)
        gate.stop {
            hasStopped.withLock { $0 = true }
            hasStopped.wake()
        }
        hasStopped.wait(seconds: 10, until: { $0 }, then: { _ in })
        services.close()
    }
}
