internal import GateBytes
internal import GateConfig

/// Tells HTTP/2 by prior knowledge from HTTP/1.1 on a listener that speaks both in clear text: by
/// the 24 octets that every HTTP/2 client sends first (RFC 9113 §3.4), of which no HTTP/1.1 request
/// has the first three.
final class PrefaceStep: IntakeStep {
    private static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)

    func timeout(_ timeouts: ListenerTimeouts) -> Duration { timeouts.header }

    func advance(_ intake: Intake) throws(IntakeError) -> Bool {
        while true {
            let start = intake.input.readable.lowerBound
            let count = min(intake.input.count, PrefaceStep.preface.count)
            let isSame = intake.input.storage[start..<(start + count)].elementsEqual(
                PrefaceStep.preface[..<count])
            guard isSame else { return true }
            if count == PrefaceStep.preface.count {
                intake.client.isHTTP2 = true
                return true
            }
            guard try intake.read() else { return false }
        }
    }
}
