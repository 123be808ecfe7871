/// One step of a verification and how it went.
public struct StepResult<Step: Sendable, Failure: Error & Equatable>: Sendable {
    /// The step.
    public let step: Step
    /// How it went.
    public let outcome: Outcome

    /// How a step went.
    public enum Outcome: Equatable, Sendable {
        /// The step did not hold.
        case failed(Failure)
        /// An earlier failure left nothing to check here.
        case notReached
        /// The step held.
        case passed
    }
}

/// Runs the steps of a verification: for a verdict, up to the first failure; for a report, on past
/// failures as far as there is something to look at. One list of steps serves both, so a report
/// cannot show a check that the verdict lacks.
struct StepLog<Step: Sendable & Equatable, Failure: Error & Equatable> {
    private let isReport: Bool
    private(set) var results: [StepResult<Step, Failure>] = []
    /// The first failure; with one there is no verdict but refusal.
    private(set) var failure: Failure?

    /// A log that stops at the first failure and keeps nothing.
    static var verdict: StepLog { StepLog(isReport: false) }
    /// A log that goes on and keeps everything.
    static var report: StepLog { StepLog(isReport: true) }

    private init(isReport: Bool) {
        self.isReport = isReport
    }

    /// Runs a step that the rest can do without: nil when it failed and a report goes on.
    mutating func check<Value>(
        _ step: Step, _ body: () throws(Failure) -> Value
    ) throws(Failure) -> Value? {
        do throws(Failure) {
            return try require(step, body)
        } catch {
            if isReport { return nil }
            throw error
        }
    }

    /// Runs a step whose value the rest needs.
    mutating func require<Value>(
        _ step: Step, _ body: () throws(Failure) -> Value
    ) throws(Failure) -> Value {
        do throws(Failure) {
            let value = try body()
            if isReport { results.append(StepResult(step: step, outcome: .passed)) }
            return value
        } catch {
            if failure == nil { failure = error }
            if isReport { results.append(StepResult(step: step, outcome: .failed(error))) }
            throw error
        }
    }

    /// The results with `.notReached` for those of `steps` that did not run.
    func complete(_ steps: [Step]) -> [StepResult<Step, Failure>] {
        steps.map { step in
            results.first { $0.step == step } ?? StepResult(step: step, outcome: .notReached)
        }
    }
}
