internal import AppAttest
internal import AppAttestWire

/// The steps of a verification as they are printed: a row each, passed or failed and why.
struct StepTable {
    /// One step.
    struct Row {
        /// `relying_party_id`.
        let name: String
        /// Nil when an earlier failure left nothing to check.
        let hasPassed: Bool?
        /// The internal name of the refusal, for a failed step.
        let reason: String?
        /// The fault as a clause, for a failed step.
        let detail: String?
    }

    let rows: [Row]

    init(_ steps: [StepResult<AttestationStep, AttestationError>]) {
        rows = steps.map { StepTable.row($0, \.reason) }
    }

    init(_ steps: [StepResult<AssertionStep, AssertionError>]) {
        rows = steps.map { StepTable.row($0, \.reason) }
    }

    init(_ steps: [StepResult<ReceiptStep, ReceiptError>]) {
        rows = steps.map { StepTable.row($0, \.reason) }
    }

    private static func row<Step: RawRepresentable<String>, Failure>(
        _ result: StepResult<Step, Failure>, _ reason: (Failure) -> String
    ) -> Row {
        let name = result.step.rawValue
        switch result.outcome {
        case .failed(let error):
            return Row(name: name, hasPassed: false, reason: reason(error), detail: "\(error)")
        case .notReached: return Row(name: name, hasPassed: nil, reason: nil, detail: nil)
        case .passed: return Row(name: name, hasPassed: true, reason: nil, detail: nil)
        }
    }

    /// The reason of the first failed step.
    var reason: String? { rows.first { $0.hasPassed == false }?.reason }

    func print(on console: Console) {
        let width = rows.map(\.name.count).max() ?? 0
        for row in rows {
            let name = "  " + row.name.padded(to: width) + "  "
            switch row.hasPassed {
            case true?: console.print(name + console.styled("passed", .good))
            case false?:
                let why = "\(row.reason ?? ""): \(row.detail ?? "")".printable
                console.print(name + console.styled("failed", .bad) + "  " + why)
            case nil: console.print(name + console.styled("not reached", .faint))
            }
        }
    }

    func append(to json: inout JSONWriter) {
        json.beginArray("steps")
        for row in rows {
            json.beginObject()
            json.member("step", row.name)
            let result = row.hasPassed.map { $0 ? "passed" : "failed" } ?? "not_reached"
            json.member("result", result)
            if let reason = row.reason { json.member("reason", reason) }
            if let detail = row.detail { json.member("detail", detail) }
            json.endObject()
        }
        json.endArray()
    }
}

extension OSExtensions {
    /// Rows for what the signed extensions say.
    var rows: [(name: String, value: String)] {
        switch self {
        case .absent: return []
        case .members(let members):
            var rows: [(name: String, value: String)] = []
            if let version = members.bundleVersion {
                rows.append(("bundle version", version.printable))
            }
            if let category = members.validationCategory {
                rows.append(("validation category", "\(category)"))
            }
            return rows
        case .unreadable: return [("extensions", "unreadable")]
        }
    }

    func append(to json: inout JSONWriter) {
        guard let members = readable else { return }
        if let version = members.bundleVersion { json.member("bundleVersion", version) }
        if let category = members.validationCategory {
            json.member("validationCategory", "\(category)")
        }
    }
}
