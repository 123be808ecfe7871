internal import AppAttestWire

/// One thing the demo tried: what was expected, and what came.
package struct DemoStep: Equatable {
    /// Whether it should pass.
    package enum Kind: String, Sendable {
        case attack
        case request
    }

    /// An answer: its status, its code where it is a refusal, and the reason that the log alone
    /// has.
    package struct Answer: Equatable {
        let status: Int
        let code: String?
        let reason: String?

        /// An answer.
        package init(status: Int, code: String?, reason: String?) {
            self.status = status
            self.code = code
            self.reason = reason
        }

        /// `401 challenge_required`.
        var text: String { code.map { "\(status) \($0)" } ?? "\(status)" }
    }

    let kind: Kind
    let name: String
    let expected: Answer
    let answer: Answer
    /// Whether the service should have seen it, and whether it did.
    let isForwardingExpected: Bool
    let wasForwarded: Bool
    /// What was wrong besides, a clause; nil for nothing.
    let fault: String?

    /// A step.
    package init(
        kind: Kind, name: String, expected: Answer, answer: Answer, isForwardingExpected: Bool,
        wasForwarded: Bool, fault: String?
    ) {
        self.kind = kind
        self.name = name
        self.expected = expected
        self.answer = answer
        self.isForwardingExpected = isForwardingExpected
        self.wasForwarded = wasForwarded
        self.fault = fault
    }

    /// Whether all of it is as expected.
    package var isAsExpected: Bool {
        expected == answer && isForwardingExpected == wasForwarded && fault == nil
    }
}

/// Prints the demo's steps as they come.
package struct DemoReport {
    private let console: Console
    private let isJSON: Bool
    private(set) var steps: [DemoStep] = []

    private static let nameWidth = 38
    private static let answerWidth = 25
    private static let reasonWidth = 20

    package init(_ console: Console, isJSON: Bool) {
        self.console = console
        self.isJSON = isJSON
    }

    /// What was wrong at the end, a clause; nil for nothing.
    private var fault: String?

    /// Whether everything was as expected so far.
    package var isAsExpected: Bool { fault == nil && steps.allSatisfy(\.isAsExpected) }

    func begin(_ configuration: DemoConfiguration) {
        guard !isJSON else { return }
        console.print(console.styled("attestgate demo", .heading))
        console.printTable([
            ("gate", "http://\(DemoConfiguration.host):\(configuration.port), in this process"),
            ("service", "127.0.0.1:\(configuration.upstreamPort), echoes what reaches it"),
            ("device", "simulated, iOS 27, \(DemoConfiguration.appID)"),
            ("files", "\(configuration.directory), removed at the end"),
        ])
    }

    func heading(_ text: String) {
        guard !isJSON else { return }
        console.print()
        let line =
            text.padded(to: Self.nameWidth + 6) + "answer".padded(to: Self.answerWidth)
            + "reason in the log".padded(to: Self.reasonWidth) + "service"
        console.print(console.styled(line, .heading))
    }

    package mutating func add(_ step: DemoStep) {
        steps.append(step)
        guard !isJSON else { return }
        let line = Self.line(step.name, step.answer, isForwarded: step.wasForwarded)
        guard !step.isAsExpected else {
            return console.print("  \(console.styled("ok", .good))  \(line)")
        }
        console.print("  \(console.styled("NO", .bad))  \(line)")
        let wish = Self.line("expected", step.expected, isForwarded: step.isForwardingExpected)
        console.print("      \(wish)")
        if let fault = step.fault { console.print("      \(fault)") }
    }

    private static func line(
        _ name: String, _ answer: DemoStep.Answer, isForwarded: Bool
    ) -> String {
        name.padded(to: nameWidth) + answer.text.padded(to: answerWidth)
            + (answer.reason ?? "").padded(to: reasonWidth)
            + (isForwarded ? "reached" : "not reached")
    }

    /// Prints the outcome. `forwarded` is what the service has seen in all: a request that went on
    /// to it behind an answer's back would show here at the latest.
    package mutating func end(forwarded: Int) {
        let expected = steps.count { $0.isForwardingExpected }
        if forwarded != expected {
            fault = "the service saw \(forwarded) requests, expected \(expected)"
        }
        guard !isJSON else { return printJSON() }
        let failed = steps.count { !$0.isAsExpected }
        let attacks = steps.count { $0.kind == .attack }
        console.print()
        if let fault { console.print(console.styled(fault, .bad)) }
        if isAsExpected {
            let text = "\(steps.count - attacks) good requests answered, \(attacks) attacks refused"
            console.print(console.styled(text, .good))
        } else {
            let text = "\(failed) of \(steps.count) not as expected"
            console.print(console.styled(text, .bad))
        }
    }

    private func printJSON() {
        var json = JSONWriter()
        json.beginObject()
        json.member("passed", isAsExpected)
        if let fault { json.member("fault", fault) }
        json.beginArray("steps")
        for step in steps {
            json.beginObject()
            json.member("kind", step.kind.rawValue)
            json.member("name", step.name)
            json.member("status", step.answer.status)
            if let code = step.answer.code { json.member("code", code) }
            if let reason = step.answer.reason { json.member("reason", reason) }
            json.member("forwarded", step.wasForwarded)
            json.member("passed", step.isAsExpected)
            if !step.isAsExpected {
                json.member("expectedStatus", step.expected.status)
                if let code = step.expected.code { json.member("expectedCode", code) }
                if let reason = step.expected.reason { json.member("expectedReason", reason) }
                json.member("expectedForwarded", step.isForwardingExpected)
                if let fault = step.fault { json.member("fault", fault) }
            }
            json.endObject()
        }
        json.endArray()
        json.endObject()
        console.printJSON(json)
    }
}
