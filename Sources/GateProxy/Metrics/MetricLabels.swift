internal import GateLock

/// The label values that the configuration has given, each with a number that stays the same over
/// reloads: counters are kept by numbers, not by texts.
package final class MetricLabels: Sendable {
    private struct State: Sendable {
        var texts: [String] = [""]
        var numbers: [String: UInt16] = ["": 0]
    }

    private let state = Lock(State())

    /// Beyond it, which takes reloads with tens of thousands of new routes, all count as one.
    private static let countMax = Int(UInt16.max)
    private static let overflow = "other"

    /// No labels but the empty one, whose number is 0.
    package init() {}

    /// The number of `text`.
    package func number(of text: String) -> UInt16 {
        state.withLock { state in
            if let known = state.numbers[text] { return known }
            let isFull = state.texts.count >= MetricLabels.countMax
            let text = isFull ? MetricLabels.overflow : text
            if let known = state.numbers[text] { return known }
            let number = UInt16(clamping: state.texts.count)
            state.texts.append(text)
            state.numbers[text] = number
            return number
        }
    }

    /// All texts, by number.
    var texts: [String] { state.withLock { $0.texts } }
}
