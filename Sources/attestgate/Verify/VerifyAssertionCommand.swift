internal import AppAttest
internal import AppAttestWire
internal import GateBytes
internal import GateCrypto

/// `attestgate verify assertion`: the gate's own steps, offline, each with its result.
enum VerifyAssertionCommand {
    private static let publicKey = OptionSpecification(
        "public-key", value: "B64", help: "the key's uncompressed point, 65 bytes")
    private static let clientData = OptionSpecification(
        "client-data", value: "B64", help: "the client data, whose SHA-256 was signed")
    private static let previousCounter = OptionSpecification(
        "previous-counter", value: "N", help: "the counter of the key's last assertion (default 0)")

    static let specification = CommandSpecification(
        "verify", "assertion", summary: "verify an assertion, offline, step by step",
        operands: [
            OperandSpecification(
                "FILE", help: "the assertion: raw bytes or base64 text; - is standard input")
        ],
        required: [SharedOptions.appID, publicKey],
        exactlyOneOf: [[clientData, SharedOptions.clientDataHash]],
        optional: [previousCounter, SharedOptions.json],
        notes: ["Exit code 0 when every step passed, 1 otherwise."]
    ) { (arguments, console) throws(CommandError) in
        let resolved = try Resolved(arguments, console: console)
        return resolved.run(console: console)
    }

    private struct Resolved {
        let object: [UInt8]
        let clientData: [UInt8]?
        let clientDataHash: [UInt8]
        let publicKey: PublicKey
        let appID: String
        let previousCounter: UInt32
        let isJSON: Bool

        init(_ arguments: ParsedArguments, console: Console) throws(CommandError) {
            let point = try arguments.resolved(
                VerifyAssertionCommand.publicKey,
                expected: "base64 of an uncompressed point, 65 bytes that begin with 04"
            ) { text in
                Base64.decode(text).flatMap { $0.count == 65 && $0[0] == 4 ? $0 : nil }
            }
            guard let point else { throw arguments.fault("--public-key is missing") }
            guard let key = PublicKey(x963: point) else {
                throw arguments.fault("--public-key: the point is not on P-256")
            }
            publicKey = key
            clientData = try arguments.base64(VerifyAssertionCommand.clientData)
            if let clientData {
                clientDataHash = SHA256.hash(clientData).array
            } else {
                clientDataHash = try arguments.base64(SharedOptions.clientDataHash) ?? []
            }
            let appIDs = try arguments.appIDs()
            guard appIDs.count == 1 else {
                throw arguments.fault("--app-id: a key belongs to one App ID; give one")
            }
            appID = appIDs[0]
            previousCounter =
                try arguments.resolved(
                    VerifyAssertionCommand.previousCounter, expected: "a number below 2^32"
                ) { UInt32($0) } ?? 0
            isJSON = arguments.has(SharedOptions.json)
            object = try InputFile.object(arguments.operands[0], console: console)
        }

        func run(console: Console) -> ExitCode {
            let report = report(clientDataHash)
            let steps = StepTable(report.steps)
            let hint = steps.reason == "signature_invalid" ? hint() : nil
            if isJSON {
                printJSON(report, steps, hint, console)
            } else {
                steps.print(on: console)
                if let hint { console.print("  hint: \(hint)") }
                console.print(
                    report.isVerified
                        ? console.styled("verified", .good)
                        : console.styled("not verified", .bad))
                var rows: [(name: String, value: String)] = []
                if let counter = report.signCounter { rows.append(("sign counter", "\(counter)")) }
                console.printTable(rows + (report.extensions?.rows ?? []))
            }
            return report.isVerified ? .done : .notHeld
        }

        private func report(_ hash: [UInt8]) -> AssertionReport {
            AssertionReport(
                object: object, clientDataHash: hash, publicKey: publicKey, appID: appID,
                previousCounter: previousCounter)
        }

        /// What the app signed in place of the hash of the client data, where that verifies.
        private func hint() -> String? {
            let once = SHA256.hash(clientDataHash).array
            if report(once).isVerified {
                return "the client data hash hashed once more would have matched"
            }
            guard let clientData else { return nil }
            if report(clientData).isVerified {
                return "the client data itself, not hashed, would have matched"
            }
            for text in [Base64.encode(clientData), Base64.encodeURL(clientData)]
            where report(SHA256.hash(Array(text.utf8)).array).isVerified {
                return "the hash of the client data as base64 text would have matched"
            }
            return nil
        }

        private func printJSON(
            _ report: AssertionReport, _ steps: StepTable, _ hint: String?, _ console: Console
        ) {
            var json = JSONWriter()
            json.beginObject()
            json.member("verified", report.isVerified)
            if let reason = steps.reason { json.member("reason", reason) }
            steps.append(to: &json)
            if let hint { json.member("hint", hint) }
            if let counter = report.signCounter { json.member("signCounter", Int(counter)) }
            report.extensions?.append(to: &json)
            json.endObject()
            console.printJSON(json)
        }
    }
}
