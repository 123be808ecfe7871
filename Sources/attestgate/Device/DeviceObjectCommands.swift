internal import AppAttestDevice
internal import AppAttestWire
internal import GateBytes
internal import GateCrypto

// The device's two objects alone, for whoever has another client or another verifier.

/// `attestgate device attest`: prints an attestation object.
enum DeviceAttestCommand {
    private static let challenge = OptionSpecification(
        "challenge", value: "B64", help: "the challenge's bytes, whose SHA-256 is attested")
    private static let challengeText = OptionSpecification(
        "challenge-text", value: "TEXT",
        help: "a challenge whose text is hashed, such as one by value")

    static let specification = CommandSpecification(
        "device", "attest", summary: "print an attestation object of the device's key",
        exactlyOneOf: [[challenge, challengeText, SharedOptions.clientDataHash]],
        optional: [DeviceOptions.state, DeviceObject.raw, SharedOptions.json],
        notes: ["The certificate is issued now and lives for three days."]
    ) { (arguments, console) throws(CommandError) in
        let device = try DeviceState.load(arguments.statePath).device
        let hash: [UInt8]
        if let bytes = try arguments.base64(challenge) {
            hash = SHA256.hash(bytes).array
        } else if let text = arguments[challengeText] {
            hash = SHA256.hash(Array(text.utf8)).array
        } else {
            hash = try arguments.base64(SharedOptions.clientDataHash) ?? []
        }
        let object = device.attest(clientDataHash: hash, at: Now.seconds)
        DeviceObject.print(object, of: device, arguments, console)
        return .done
    }
}

/// `attestgate device assert`: prints an assertion, and advances the device's counter.
enum DeviceAssertCommand {
    private static let clientData = OptionSpecification(
        "client-data", value: "DATA",
        help: "the client data, whose SHA-256 is signed: base64, @FILE, or @- for standard input")
    private static let counter = OptionSpecification(
        "counter", value: "N", help: "sign with this counter instead of the next")

    static let specification = CommandSpecification(
        "device", "assert", summary: "print an assertion over client data",
        exactlyOneOf: [[clientData, SharedOptions.clientDataHash]],
        optional: [counter, DeviceOptions.state, DeviceObject.raw, SharedOptions.json]
    ) { (arguments, console) throws(CommandError) in
        var state = try DeviceState.load(arguments.statePath)
        let hash: [UInt8]
        if let text = arguments[clientData], text.hasPrefix("@") {
            hash =
                SHA256.hash(
                    try InputFile.bytes(String(text.dropFirst()), console: console)
                ).array
        } else if let bytes = try arguments.base64(clientData) {
            hash = SHA256.hash(bytes).array
        } else {
            hash = try arguments.base64(SharedOptions.clientDataHash) ?? []
        }
        let counter = try arguments.resolved(counter, expected: "a number below 2^32") {
            UInt32($0)
        }
        let object = state.device.assert(clientDataHash: hash, counter: counter)
        // Kept before it is shown, so that no counter value is ever given out twice.
        try state.save(arguments.statePath)
        DeviceObject.print(object, of: state.device, arguments, console)
        return .done
    }
}

/// How both commands print.
private enum DeviceObject {
    static let raw = OptionSpecification("raw", help: "print the bytes instead of base64")

    static func print(
        _ object: [UInt8], of device: Device, _ arguments: ParsedArguments, _ console: Console
    ) {
        if arguments.has(SharedOptions.json) {
            var json = JSONWriter()
            json.beginObject()
            json.member("keyID", Base64.encode(device.keyID.array))
            json.member("publicKey", Base64.encode(device.key.point.x963))
            json.member("appID", device.appID)
            json.member("signCounter", Int(device.signCounter))
            json.member("object", Base64.encode(object))
            json.endObject()
            console.printJSON(json)
        } else if arguments.has(raw) {
            console.output.write(object)
        } else {
            console.print(Base64.encode(object))
        }
    }
}
