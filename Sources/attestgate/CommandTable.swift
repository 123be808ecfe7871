internal import GateConfig

/// Every command and every option: the one table behind parser, help and completion.
package enum CommandTable {
    /// The commands, in the order of the help.
    package static let commands: [CommandSpecification] =
        [
            run, check, DemoCommand.specification, DeviceNewCommand.specification,
            DeviceEnrolCommand.specification, DeviceRequestCommand.specification,
            DeviceAttestCommand.specification, DeviceAssertCommand.specification,
            VerifyAttestationCommand.specification, VerifyAssertionCommand.specification,
            VerifyReceiptCommand.specification, InspectCommand.specification,
            VersionCommand.specification, completion,
        ]

    private static let configuration = OptionSpecification(
        "config", letter: "c", value: "FILE", help: "the configuration (default proxy.conf)")
    private static let dump = OptionSpecification(
        "dump", help: "print the resolved configuration, and the line that set each value")

    private static let directives = OptionSpecification(
        "directives", help: "print every directive with its place, values and default instead")

    private static let run = CommandSpecification(
        "run", summary: "serve", optional: [configuration],
        notes: [
            "SIGHUP loads the configuration again, SIGTERM drains and stops, SIGUSR1 reopens the "
                + "logs. Readiness is told to systemd.",
            "Exit code 0 after a stop, 2 for a faulty configuration, 3 where it could not start.",
        ]
    ) { (arguments, _) throws(CommandError) in
        let status = RunCommand.run(configurationPath: try path(arguments))
        return ExitCode(rawValue: status) ?? .environment
    }

    private static let check = CommandSpecification(
        "check", summary: "resolve the configuration and print every fault",
        optional: [configuration, dump, directives, SharedOptions.json],
        notes: [
            "Exit code 0 without errors, 2 with any, 3 where the file cannot be read; warnings do "
                + "not count."
        ]
    ) { (arguments, console) throws(CommandError) in
        if arguments.has(directives) {
            if let other = [dump, SharedOptions.json].first(where: { arguments.has($0) }) {
                throw arguments.fault(
                    "--directives and \(other.flag) exclude each other; give one")
            }
            console.output.write(ConfigurationLoader.directiveReference)
            return .done
        }
        let outcome = CheckCommand.run(
            path: try path(arguments), isDumping: arguments.has(dump),
            isJSON: arguments.has(SharedOptions.json))
        console.output.write(outcome.output)
        console.errors.write(outcome.errors)
        return ExitCode(rawValue: outcome.status) ?? .environment
    }

    private static func path(_ arguments: ParsedArguments) throws(CommandError) -> String {
        try arguments.resolved(configuration, expected: "a file") { $0.isEmpty ? nil : $0 }
            ?? "proxy.conf"
    }

    private static let completion = CommandSpecification(
        "completion", summary: "print the completion script for bash",
        notes: ["source <(attestgate completion)"]
    ) { (_, console) throws(CommandError) in
        console.output.write(Completion.bash(CommandTable.commands))
        return .done
    }
}
