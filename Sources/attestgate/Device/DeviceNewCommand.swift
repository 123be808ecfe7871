internal import AppAttestDevice
internal import AppAttestWire
internal import GateBytes
internal import GateCrypto
internal import Glibc

/// `attestgate device new`: a device with a key and a private root of its own.
enum DeviceNewCommand {
    private static let appID = OptionSpecification(
        "app-id", value: "ID", help: "the App ID, PREFIX.bundle.identifier")
    private static let environment = OptionSpecification(
        "environment", value: "NAME", choices: ["production", "development"],
        help: "where the key is good (default production)")
    private static let shape = OptionSpecification(
        "shape", value: "NAME", choices: DeviceShape.allCases.map(\.rawValue),
        help: "the system it looks like (default ios27)")
    private static let counterGap = OptionSpecification(
        "counter-gap", value: "N",
        help: "the most counter values to leave out at a time (default 0)")
    private static let rootOf = OptionSpecification(
        "root-of", value: "FILE", help: "take the private root of this device")
    private static let force = OptionSpecification(
        "force", help: "replace a device that is there")

    static let specification = CommandSpecification(
        "device", "new", summary: "make a simulated device with a private root",
        required: [appID],
        optional: [
            environment, shape, counterGap, rootOf, DeviceOptions.state, force, SharedOptions.json,
        ],
        notes: [
            "Writes the device, private keys included, to the state file, and its root beside it. "
                + "A gate trusts the device only where the app's block in proxy.conf says "
                + "root file:PATH with that root."
        ]
    ) { (arguments, console) throws(CommandError) in
        let root = try root(arguments)
        let appID = arguments[appID] ?? ""
        guard appID.contains("."), !appID.contains(where: \.isWhitespace) else {
            throw arguments.fault("--app-id: expected PREFIX.bundle.identifier, got \"\(appID)\"")
        }
        let shape = arguments[shape].flatMap(DeviceShape.init(rawValue:)) ?? .iOS27
        var device = Device(
            root: root, appID: appID,
            isProduction: arguments[environment] != "development", shape: shape)
        device.counterGapMax =
            try arguments.resolved(counterGap, expected: "a number up to 1000000") { text in
                UInt32(text).flatMap { $0 <= 1_000_000 ? $0 : nil }
            } ?? 0
        let path = arguments.statePath
        guard arguments.has(force) || !FileAccess.exists(path) else {
            throw .environment(
                "\(path): exists; name another with --state, or replace it with --force")
        }
        let rootPath = path + ".root.pem"
        try DeviceState(device).save(path, isReplacing: arguments.has(force))
        try FileAccess.write(
            Array(root.pem.utf8), to: rootPath, mode: 0o644, isReplacing: true)
        report(device, path: path, rootPath: absolute(rootPath), arguments, console)
        return .done
    }

    private static func root(_ arguments: ParsedArguments) throws(CommandError) -> DeviceRoot {
        guard let path = arguments[rootOf] else { return DeviceRoot.generate(at: Now.seconds) }
        return try DeviceState.load(path).device.root
    }

    private static func report(
        _ device: Device, path: String, rootPath: String, _ arguments: ParsedArguments,
        _ console: Console
    ) {
        let keyID = Base64.encode(device.keyID.array)
        let publicKey = Base64.encode(device.key.point.x963)
        guard !arguments.has(SharedOptions.json) else {
            var json = JSONWriter()
            json.beginObject()
            json.member("state", path)
            json.member("root", rootPath)
            json.member("keyID", keyID)
            json.member("publicKey", publicKey)
            json.member("appID", device.appID)
            json.member("environment", device.isProduction ? "production" : "development")
            json.member("shape", device.shape.rawValue)
            json.endObject()
            return console.printJSON(json)
        }
        console.printTable([
            ("state", path), ("key ID", keyID), ("public key", publicKey),
            ("App ID", device.appID),
            ("environment", device.isProduction ? "production" : "development"),
            ("shape", device.shape.rawValue), ("root", rootPath),
        ])
        console.print("\nfor the app's block in proxy.conf:\n    root file:\(rootPath)")
    }

    /// The path from the root of the file system on; as it is where that cannot be told.
    private static func absolute(_ path: String) -> String {
        guard let resolved = unsafe realpath(path, nil) else { return path }
        defer { unsafe free(resolved) }
        return unsafe String(cString: resolved)
    }
}
