internal import AppAttestDevice
internal import GateLock
internal import GateRuntime
internal import Glibc

/// `attestgate demo`: gate, service and device in one process; shows what passes and what does not,
/// and checks that it is so.
enum DemoCommand {
    private static let serve = OptionSpecification(
        "serve", help: "leave it running afterwards and print commands to try")

    static let specification = CommandSpecification(
        "demo", summary: "show a gate at work: a verified request, and attacks refused",
        optional: [serve, SharedOptions.json],
        notes: [
            "Needs no configuration and leaves nothing behind: a temporary directory, free ports "
                + "of the loopback, a service that echoes, and a simulated device whose private "
                + "root this gate alone trusts.",
            "Exit code 0 when every answer is the expected one, 1 otherwise.",
        ]
    ) { (arguments, console) throws(CommandError) in
        let directory = try TemporaryDirectory(prefix: "attestgate-demo")
        defer { directory.remove() }
        let interruption = Interruption(directory)
        return try run(
            in: directory, interruption, isServing: arguments.has(serve),
            isJSON: arguments.has(SharedOptions.json), console: console)
    }

    private static func run(
        in directory: TemporaryDirectory, _ interruption: Interruption, isServing: Bool,
        isJSON: Bool, console: Console
    ) throws(CommandError) -> ExitCode {
        let upstream = try DemoUpstream.start()
        defer { upstream.stop() }
        // Holds the port until the gate has bound it too.
        let reservation = try LoopbackSocket.bind(isShared: true)
        defer { close(reservation.descriptor) }
        let configuration = DemoConfiguration(
            directory: directory.path, port: reservation.port, upstreamPort: upstream.port)
        let device = Device(
            root: DeviceRoot.generate(at: Now.seconds), appID: DemoConfiguration.appID,
            isProduction: false, shape: .iOS27)
        try FileAccess.write(
            Array(device.root.pem.utf8), to: configuration.rootPath, isReplacing: false)
        try FileAccess.write(
            Array(configuration.text.utf8), to: configuration.path, isReplacing: false)
        let gate = try DemoGate.start(configuration)
        defer { gate.stop() }
        var report = DemoReport(console, isJSON: isJSON)
        report.begin(configuration)
        var scenario = DemoScenario(
            configuration, device: device, upstream: upstream, report: report)
        report = try scenario.run()
        report.end(forwarded: upstream.count)
        if isServing {
            var state = DeviceState(scenario.device)
            state.enrolPath = DemoConfiguration.prefix
            try state.save(configuration.statePath, isReplacing: false)
            console.errors.write(DemoInvitation.text(configuration))
            interruption.wait()
        }
        return report.isAsExpected ? .done : .notHeld
    }
}

/// What Ctrl-C does: ends the wait of `--serve`; before that, the process, without leaving files.
private final class Interruption {
    private struct State: Sendable {
        var isWaiting = false
        var hasCome = false
    }

    private let state = Lock(State())
    private let signals = Signals()

    init(_ directory: TemporaryDirectory) {
        for name in [Signals.Name.interrupt, .terminate] {
            signals.on(name) { [state] in
                let isWaiting = state.withLock { state in
                    state.hasCome = true
                    return state.isWaiting
                }
                if isWaiting { return state.wake() }
                directory.remove()
                _exit(130)
            }
        }
    }

    /// Waits for it.
    func wait() {
        state.withLock { $0.isWaiting = true }
        state.wait(seconds: nil, until: { $0.hasCome }, then: { _ in })
    }
}

/// What can be tried while the demo is left running.
private enum DemoInvitation {
    static func text(_ configuration: DemoConfiguration) -> String {
        let origin = "http://\(DemoConfiguration.host):\(configuration.port)"
        let account = "-H '\(DemoConfiguration.accountField): alice'"
        let program = CurlLine.quoted(CommandLine.arguments.first ?? "attestgate")
        let request =
            "\(program) device request POST '\(origin)/v1/orders' "
            + "--state \(configuration.statePath) \(account) -d '{\"item\":\"tea\"}'"
        return """

            left running until Ctrl-C; configuration: \(configuration.path)

              # a protected route without a proof: 401 proof_required
              curl -i -X POST \(account) -d '{"item":"tea"}' \(origin)/v1/orders

              # the same, signed by the demo's device: 200
              \(request)

              # as a curl command that is good once: run what it prints twice
              \(request) --curl

              # a route that is off
              curl -i \(origin)/public/hello

              # what the gate has to say
              cat \(configuration.accessLogPath)


            """
    }
}
