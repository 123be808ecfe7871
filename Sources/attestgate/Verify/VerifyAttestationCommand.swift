internal import AppAttest
internal import AppAttestWire
internal import GateBytes

/// `attestgate verify attestation`: the gate's own steps, offline, each with its result.
enum VerifyAttestationCommand {
    private static let keyID = OptionSpecification(
        "key-id", value: "B64", help: "the key ID that the app sent")
    private static let challenge = OptionSpecification(
        "challenge", value: "B64", help: "the challenge's bytes, whose SHA-256 the app attested")
    private static let root = OptionSpecification(
        "root", value: "FILE", help: "the root, in PEM or DER, in place of Apple's")
    private static let time = OptionSpecification(
        "at", value: "RFC3339",
        help: "the time to judge certificates by, 2026-10-09T07:25:51Z (default now)")

    static let specification = CommandSpecification(
        "verify", "attestation", summary: "verify an attestation object, offline, step by step",
        operands: [
            OperandSpecification(
                "FILE", help: "the object: raw bytes or base64 text; - is standard input")
        ],
        required: [SharedOptions.appID, keyID],
        exactlyOneOf: [[challenge, SharedOptions.clientDataHash]],
        optional: [SharedOptions.environment, root, time, SharedOptions.json],
        notes: [
            "Exit code 0 when every step passed, 1 otherwise. A leaf certificate lives for days to "
                + "months and is judged once, at enrolment: give the time of that with --at."
        ]
    ) { (arguments, console) throws(CommandError) in
        let resolved = try Resolved(arguments, console: console)
        return resolved.run(console: console)
    }

    /// What was attested.
    private enum Subject {
        case challenge([UInt8])
        case clientDataHash([UInt8])
    }

    private struct Resolved {
        let object: [UInt8]
        let subject: Subject
        let keyID: KeyID
        let appIDs: [String]
        let environment: Environment
        let root: TrustRoot
        let now: Int64
        let isTimeGiven: Bool
        let isJSON: Bool

        init(_ arguments: ParsedArguments, console: Console) throws(CommandError) {
            let key = try arguments.resolved(
                VerifyAttestationCommand.keyID, expected: "base64 of 32 bytes"
            ) { KeyID(base64: $0) }
            guard let key else { throw arguments.fault("--key-id is missing") }
            keyID = key
            if let challenge = try arguments.base64(VerifyAttestationCommand.challenge) {
                subject = .challenge(challenge)
            } else {
                subject = .clientDataHash(
                    try arguments.base64(SharedOptions.clientDataHash) ?? [])
            }
            appIDs = try arguments.appIDs()
            environment = try arguments.environment()
            let given = try arguments.resolved(
                VerifyAttestationCommand.time, expected: "a time such as 2026-10-09T07:25:51Z"
            ) { RFC3339.seconds($0) }
            now = given ?? Now.seconds
            isTimeGiven = given != nil
            root = try RootFile.read(
                arguments[VerifyAttestationCommand.root], or: .apple, console: console,
                command: "verify attestation")
            isJSON = arguments.has(SharedOptions.json)
            object = try InputFile.object(arguments.operands[0], console: console)
        }

        func run(console: Console) -> ExitCode {
            let report = report()
            let steps = StepTable(report.steps)
            if isJSON {
                printJSON(report, steps, console)
            } else {
                steps.print(on: console)
                if let hint = hint(report, steps) { console.print("  hint: \(hint)") }
                printVerdict(report, console)
            }
            return report.verified == nil ? .notHeld : .done
        }

        private func report() -> AttestationReport {
            switch subject {
            case .challenge(let challenge):
                return AttestationReport(
                    object: object, challenge: challenge, keyID: keyID, appIDs: appIDs,
                    environment: environment, root: root, at: now)
            case .clientDataHash(let hash):
                return AttestationReport(
                    object: object, clientDataHash: hash, keyID: keyID, appIDs: appIDs,
                    environment: environment, root: root, at: now)
            }
        }

        private func hint(_ report: AttestationReport, _ steps: StepTable) -> String? {
            if let hint = report.hint { return hint.description }
            if !isTimeGiven, steps.rows.contains(where: { $0.reason == "certificate_expired" }) {
                return "give the time of the attestation with --at"
            }
            return nil
        }

        private func printVerdict(_ report: AttestationReport, _ console: Console) {
            guard let verified = report.verified else {
                return console.print(console.styled("not verified", .bad))
            }
            console.print(console.styled("verified", .good))
            var rows = [
                (name: "key ID", value: verified.keyID.base64),
                (name: "public key", value: Base64.encode(verified.publicKeyX963)),
                (name: "App ID", value: verified.appID),
                (name: "environment", value: verified.environment.rawValue),
            ]
            let system = [
                verified.device.platform, verified.device.systemVersion,
                verified.device.systemBuild.map { "(\($0))" },
            ].compactMap { $0 }.filter { !$0.isEmpty }
            if !system.isEmpty {
                rows.append((name: "system", value: system.joined(separator: " ").printable))
            }
            rows += verified.extensions.rows
            rows.append(
                (name: "receipt", value: "\(verified.receipt.count) bytes, not judged here"))
            console.printTable(rows)
        }

        private func printJSON(
            _ report: AttestationReport, _ steps: StepTable, _ console: Console
        ) {
            var json = JSONWriter()
            json.beginObject()
            json.member("verified", report.verified != nil)
            if let reason = steps.reason { json.member("reason", reason) }
            steps.append(to: &json)
            if let hint = hint(report, steps) { json.member("hint", hint) }
            if let verified = report.verified {
                json.member("keyID", verified.keyID.base64)
                json.member("publicKey", Base64.encode(verified.publicKeyX963))
                json.member("appID", verified.appID)
                json.member("environment", verified.environment.rawValue)
                if let text = verified.device.platform { json.member("platform", text) }
                if let text = verified.device.systemVersion { json.member("systemVersion", text) }
                if let text = verified.device.systemBuild { json.member("systemBuild", text) }
                verified.extensions.append(to: &json)
                json.member("receipt", Base64.encode(verified.receipt))
            }
            json.endObject()
            console.printJSON(json)
        }
    }
}

/// The file that `--root` names.
enum RootFile {
    /// The root in the file at `path`, PEM or DER; `standard` for nil.
    static func read(
        _ path: String?, or standard: TrustRoot, console: Console, command: String
    ) throws(CommandError) -> TrustRoot {
        guard let path else { return standard }
        let bytes = try InputFile.bytes(path, console: console)
        do throws(TrustRootError) {
            // A certificate in DER is a SEQUENCE of more than 255 bytes; PEM is text.
            return try bytes.starts(with: [0x30, 0x82])
                ? TrustRoot(der: bytes) : TrustRoot(pem: bytes)
        } catch {
            throw .usage("\(path): \(error)", command: command)
        }
    }
}
