/// `attestgate device enrol`: asks for a challenge, attests the key and registers it.
enum DeviceEnrolCommand {
    private static let challengeHash = OptionSpecification(
        "challenge-hash", value: "WHAT", choices: ["bytes", "text"],
        help: "what of the challenge is hashed, as the app's challenge_hash says (default bytes)")

    static let specification = CommandSpecification(
        "device", "enrol", summary: "attest the device's key and register it at a gate",
        operands: [
            OperandSpecification(
                "URL",
                help:
                    "the enrolment prefix, http://host:port/v1/app-attest; without a path, that one"
            )
        ],
        optional: [
            DeviceOptions.header, challengeHash, DeviceOptions.state, DeviceOptions.enroll,
            DeviceOptions.connect, DeviceOptions.include, DeviceOptions.verbose, SharedOptions.json,
        ],
        notes: ["Exit code 0 when the gate registered the key, 1 when it refused."]
    ) { (arguments, console) throws(CommandError) in
        var state = try DeviceState.load(arguments.statePath)
        let url = try arguments.url(0)
        let prefix = try arguments.prefix(url.path == "/" ? state.enrolPath : url.path)
        let client = try arguments.client(url)
        let challenge = try client.challenge(prefix: prefix, purpose: "attestation")
        let (request, response) = try client.enrol(
            state.device, prefix: prefix, challenge: challenge,
            hashesText: arguments[challengeHash] == "text")
        console.printExchange(request, response, arguments)
        guard (200..<300).contains(response.status) else { return .notHeld }
        state.enrolPath = prefix
        try state.save(arguments.statePath)
        return .done
    }
}
