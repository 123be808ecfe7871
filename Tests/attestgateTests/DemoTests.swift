import Foundation
import Testing
import attestgate

private typealias Answer = DemoStep.Answer

private func step(
    _ answer: Answer = Answer(status: 401, code: "a", reason: "b"), wasForwarded: Bool = false,
    fault: String? = nil
) -> DemoStep {
    DemoStep(
        kind: .attack, name: "attack", expected: Answer(status: 401, code: "a", reason: "b"),
        answer: answer, isForwardingExpected: false, wasForwarded: wasForwarded, fault: fault)
}

@Suite("Demo: what counts as expected")
struct DemoReportTests {
    @Test("status, code, reason, forwarding and everything else must be as expected")
    func steps() {
        #expect(step().isAsExpected)
        #expect(!step(Answer(status: 403, code: "a", reason: "b")).isAsExpected)
        #expect(!step(Answer(status: 401, code: "c", reason: "b")).isAsExpected)
        #expect(!step(Answer(status: 401, code: nil, reason: "b")).isAsExpected)
        #expect(!step(Answer(status: 401, code: "a", reason: "c")).isAsExpected)
        #expect(!step(wasForwarded: true).isAsExpected)
        #expect(!step(fault: "something").isAsExpected)
    }

    @Test("one step that is not, or a request too many at the service, spoils the whole")
    func whole() {
        for (steps, forwarded, isAsExpected) in [
            ([step()], 0, true), ([step(), step(wasForwarded: true)], 0, false),
            ([step()], 1, false),
        ] {
            let output = TextOutput()
            let console = Console(
                output: output, errors: TextOutput(), input: 0, isColoured: false)
            var report = DemoReport(console, isJSON: false)
            steps.forEach { report.add($0) }
            report.end(forwarded: forwarded)
            #expect(report.isAsExpected == isAsExpected)
            #expect(output.text.contains("attacks refused") == isAsExpected)
        }
    }
}

@Suite("Demo: gate, service and device in one process", .serialized)
struct DemoTests {
    @Test("good requests pass, at least seven different attacks are refused")
    func demo() throws {
        let run = Run("demo", "--json")
        #expect(run.code == .done)
        #expect(run.json["passed"] as? Bool == true)
        let steps = try #require(run.json["steps"] as? [[String: Any]])
        let attacks = steps.filter { $0["kind"] as? String == "attack" }
        #expect(Set(attacks.compactMap { $0["name"] as? String }).count >= 8)
        #expect(attacks.allSatisfy { $0["forwarded"] as? Bool == false })
        #expect(attacks.allSatisfy { ($0["status"] as? Int ?? 0) >= 400 })
        #expect(steps.contains { $0["status"] as? Int == 200 && $0["forwarded"] as? Bool == true })
    }

    @Test("the text has a row for each step and says how it went; nothing is left behind")
    func text() throws {
        let run = Run("demo")
        #expect(run.code == .done)
        #expect(run.errors == "")
        #expect(run.output.contains("401 challenge_required   challenge_spent     not reached"))
        #expect(run.output.hasSuffix("4 good requests answered, 9 attacks refused\n"))
        for line in run.output.split(separator: "\n") { #expect(line.count <= 100) }
        let match = try #require(run.output.firstMatch(of: /files +(\/[^,]+), removed/))
        #expect(!FileManager.default.fileExists(atPath: String(match.1)))
    }
}
