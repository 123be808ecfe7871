internal import AppAttest
internal import AppAttestWire
internal import GateBytes

/// `attestgate verify receipt`: the gate's own steps, offline, each with its result.
enum VerifyReceiptCommand {
    private static let publicKey = OptionSpecification(
        "public-key", value: "B64", help: "the key's uncompressed point, 65 bytes")
    private static let environment = OptionSpecification(
        "environment", value: "NAME", choices: ["production", "development"],
        help: "the environment it must be of (default either)")
    private static let time = OptionSpecification(
        "at", value: "RFC3339",
        help: "the time it arrived, 2026-10-09T07:25:51Z (default now)")
    private static let root = OptionSpecification(
        "root", value: "FILE", help: "the root, in PEM or DER, in place of Apple's")

    static let specification = CommandSpecification(
        "verify", "receipt", summary: "verify a receipt, offline, step by step",
        operands: [
            OperandSpecification(
                "FILE", help: "the receipt: raw bytes or base64 text; - is standard input")
        ],
        required: [SharedOptions.appID],
        optional: [publicKey, environment, root, time, SharedOptions.json],
        notes: [
            "Exit code 0 when every step passed, 1 otherwise; a step for which nothing is given is "
                + "not reached. A receipt is fresh for five minutes: give the time it arrived with "
                + "--at."
        ]
    ) { (arguments, console) throws(CommandError) in
        let resolved = try Resolved(arguments, console: console)
        return resolved.run(console: console)
    }

    private struct Resolved {
        let receipt: [UInt8]
        let terms: ReceiptTerms
        let isTimeGiven: Bool
        let isJSON: Bool

        init(_ arguments: ParsedArguments, console: Console) throws(CommandError) {
            let point = try arguments.resolved(
                VerifyReceiptCommand.publicKey,
                expected: "base64 of an uncompressed point, 65 bytes that begin with 04"
            ) { text in
                Base64.decode(text).flatMap { $0.count == 65 && $0[0] == 4 ? $0 : nil }
            }
            let environment = try arguments.resolved(
                VerifyReceiptCommand.environment, expected: "an environment"
            ) { Environment(rawValue: $0) }
            let given = try arguments.resolved(
                VerifyReceiptCommand.time, expected: "a time such as 2026-10-09T07:25:51Z"
            ) { RFC3339.seconds($0) }
            isTimeGiven = given != nil
            terms = ReceiptTerms(
                appIDs: try arguments.appIDs(), publicKeyX963: point, environment: environment,
                root: try RootFile.read(
                    arguments[VerifyReceiptCommand.root], or: .appleReceipts, console: console,
                    command: "verify receipt"),
                at: given ?? Now.seconds)
            isJSON = arguments.has(SharedOptions.json)
            receipt = try InputFile.object(arguments.operands[0], console: console)
        }

        func run(console: Console) -> ExitCode {
            let report = ReceiptReport(receipt, terms)
            let steps = StepTable(report.steps)
            if isJSON {
                printJSON(report, steps, console)
            } else {
                steps.print(on: console)
                if let hint = hint(report) { console.print("  hint: \(hint)") }
                console.print(
                    report.verified == nil
                        ? console.styled("not verified", .bad) : console.styled("verified", .good))
                if let verified = report.verified { console.printTable(rows(verified)) }
            }
            return report.verified == nil ? .notHeld : .done
        }

        private func hint(_ report: ReceiptReport) -> String? {
            let isStale = report.steps.contains { result in
                guard case .failed(.stale) = result.outcome else { return false }
                return true
            }
            return isStale && !isTimeGiven ? "give the time the receipt arrived with --at" : nil
        }

        private func rows(_ verified: VerifiedReceipt) -> [(name: String, value: String)] {
            var rows = [
                (name: "kind", value: verified.kind.rawValue),
                (name: "App ID", value: verified.appID.printable),
                (name: "public key", value: Base64.encode(verified.publicKeyX963)),
                (name: "creation time", value: RFC3339.text(milliseconds: verified.creation)),
            ]
            if let metric = verified.riskMetric { rows.append(("risk metric", "\(metric)")) }
            if let time = verified.notBefore {
                rows.append(("not before", RFC3339.text(milliseconds: time)))
            }
            if let time = verified.expiration {
                rows.append(("expiration time", RFC3339.text(milliseconds: time)))
            }
            return rows
        }

        private func printJSON(
            _ report: ReceiptReport, _ steps: StepTable, _ console: Console
        ) {
            var json = JSONWriter()
            json.beginObject()
            json.member("verified", report.verified != nil)
            if let reason = steps.reason { json.member("reason", reason) }
            steps.append(to: &json)
            if let hint = hint(report) { json.member("hint", hint) }
            if let verified = report.verified {
                json.member("kind", verified.kind.rawValue)
                json.member("appID", verified.appID)
                json.member("publicKey", Base64.encode(verified.publicKeyX963))
                json.member("creationTime", RFC3339.text(milliseconds: verified.creation))
                if let metric = verified.riskMetric { json.member("riskMetric", Int(metric)) }
                if let time = verified.notBefore {
                    json.member("notBefore", RFC3339.text(milliseconds: time))
                }
                if let time = verified.expiration {
                    json.member("expirationTime", RFC3339.text(milliseconds: time))
                }
            }
            json.endObject()
            console.printJSON(json)
        }
    }
}
