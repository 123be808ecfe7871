internal import AppAttest
internal import GateBytes
internal import GateRuntime

// Options that several commands share, and how their values are read.

/// The options of the table that more than one command has.
enum SharedOptions {
    static let appID = OptionSpecification(
        "app-id", value: "ID", isRepeatable: true,
        help: "an App ID that is allowed, PREFIX.bundle.identifier")
    static let environment = OptionSpecification(
        "environment", value: "NAME", choices: ["production", "development"],
        help: "the environment that is allowed (default production)")
    static let clientDataHash = OptionSpecification(
        "client-data-hash", value: "B64", help: "the client data hash, any length")
    static let json = OptionSpecification("json", help: "print JSON")
}

extension ParsedArguments {
    /// The bytes of an option that is base64.
    func base64(_ option: OptionSpecification) throws(CommandError) -> [UInt8]? {
        try resolved(option, expected: "base64") { Base64.decode($0) }
    }

    /// The environment, production unless told otherwise.
    func environment() throws(CommandError) -> Environment {
        let value = try resolved(SharedOptions.environment, expected: "an environment") {
            Environment(rawValue: $0)
        }
        return value ?? .production
    }

    /// The App IDs, each with a prefix and a bundle identifier.
    func appIDs() throws(CommandError) -> [String] {
        let appIDs = all(SharedOptions.appID)
        for appID in appIDs {
            guard let dot = appID.firstIndex(of: "."), dot != appID.startIndex,
                appID.index(after: dot) != appID.endIndex
            else {
                throw fault("--app-id: expected PREFIX.bundle.identifier, got \"\(appID)\"")
            }
        }
        return appIDs
    }
}

/// The time now.
enum Now {
    /// Seconds since 1970.
    static var seconds: Int64 { milliseconds / 1000 }
    /// Milliseconds since 1970.
    static var milliseconds: Int64 { SystemClock().unixNanoseconds() / 1_000_000 }
}
