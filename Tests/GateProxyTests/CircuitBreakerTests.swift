import GateProxy
import GateRuntime
import Testing

@Suite("Circuit breaker")
struct CircuitBreakerTests {
    private func at(_ seconds: Double) -> Moment {
        Moment(nanoseconds: Int64(seconds * 1e9))
    }

    /// Fails a call that was asked at `seconds`; whether that opened the breaker.
    private func fail(
        _ breaker: inout CircuitBreaker, at seconds: Double, pause: Duration? = nil
    ) -> Bool {
        breaker.noteFailure(of: .ask, pause: pause, at: at(seconds))
    }

    /// Notes an answer; whether that closed the breaker.
    private func answer(
        _ breaker: inout CircuitBreaker, _ decision: CircuitBreaker.Decision
    ) -> Bool {
        breaker.noteAnswer(to: decision)
    }

    private func decide(
        _ breaker: inout CircuitBreaker, _ seconds: Double
    ) -> CircuitBreaker.Decision {
        breaker.decide(at: at(seconds))
    }

    private func open() -> CircuitBreaker {
        var breaker = CircuitBreaker()
        for second in [0.0, 1, 2, 3, 4] { _ = fail(&breaker, at: second) }
        return breaker
    }

    @Test("it opens with the fifth failure within ten seconds")
    func opens() {
        var breaker = CircuitBreaker()
        for second in [0.0, 1, 2, 3] { #expect(!fail(&breaker, at: second)) }
        #expect(decide(&breaker, 3) == .ask)
        #expect(fail(&breaker, at: 4))
        #expect(decide(&breaker, 4) == .wait(seconds: 11))
        #expect(decide(&breaker, 13.5) == .wait(seconds: 1))
        #expect(!breaker.isClosed)
    }

    @Test("failures that are over do not count, nor those before an answer")
    func forgets() {
        var breaker = CircuitBreaker()
        for second in [0.0, 1, 2, 3] { _ = fail(&breaker, at: second) }
        #expect(!fail(&breaker, at: 10.5))
        breaker = CircuitBreaker()
        for second in [0.0, 1, 2, 3] { _ = fail(&breaker, at: second) }
        #expect(!answer(&breaker, .ask))
        #expect(!fail(&breaker, at: 4))
    }

    @Test("after the pause one call is let through, and its answer closes it")
    func closes() {
        var breaker = open()
        #expect(decide(&breaker, 14) == .probe)
        #expect(decide(&breaker, 14) != .probe)
        // What was asked before it opened says nothing now.
        #expect(!answer(&breaker, .ask))
        #expect(!breaker.isClosed)
        #expect(answer(&breaker, .probe))
        #expect(decide(&breaker, 15) == .ask)
    }

    @Test("a probe that fails opens it anew; one that is lost is followed by another")
    func probes() {
        var breaker = open()
        #expect(decide(&breaker, 14) == .probe)
        let isOpened = breaker.noteFailure(of: .probe, at: at(15))
        #expect(!isOpened)
        #expect(decide(&breaker, 24) == .wait(seconds: 2))
        #expect(decide(&breaker, 25) == .probe)
        #expect(decide(&breaker, 34) == .wait(seconds: 2))
        #expect(decide(&breaker, 35) == .probe)
    }

    @Test("a service that asks for a pause gets it, within reason")
    func pauses() {
        var breaker = CircuitBreaker()
        #expect(fail(&breaker, at: 0, pause: .seconds(20)))
        #expect(decide(&breaker, 19) == .wait(seconds: 2))
        #expect(decide(&breaker, 20) == .probe)
        breaker = CircuitBreaker()
        #expect(fail(&breaker, at: 0, pause: .seconds(100_000)))
        #expect(decide(&breaker, 300) == .probe)
        breaker = CircuitBreaker()
        #expect(fail(&breaker, at: 0, pause: .seconds(1)))
        #expect(decide(&breaker, 9) == .wait(seconds: 2))
    }
}
