import GateConfig
import GateProxy
import GateRuntime
import Testing

private func moment(_ seconds: Double) -> Moment {
    Moment(nanoseconds: Int64(seconds * 1_000_000_000))
}

@Suite("Health: rise and fall")
struct HealthStateTests {
    @Test("down after so many failures in a row, up after so many passes in a row")
    func counts() {
        var state = HealthState()
        let checks: [(Bool, turns: Bool, isUp: Bool)] = [
            (true, false, true), (false, false, true), (false, false, true), (true, false, true),
            (false, false, true), (false, false, true), (false, true, false),
            (false, false, false), (true, false, false), (false, false, false),
            (true, false, false), (true, true, true), (false, false, true), (false, false, true),
            (false, true, false),
        ]
        for (index, check) in checks.enumerated() {
            #expect(state.note(isPassed: check.0, rise: 2, fall: 3) == check.turns, "\(index)")
            #expect(state.isUp == check.isUp, "\(index)")
        }
    }
}

@Suite("Ejection: failures in a window")
struct EjectionWindowTests {
    private let terms = Upstream.Ejection(
        failures: 3, within: .seconds(10), duration: .seconds(30))

    private func fail(_ window: inout EjectionWindow, at seconds: Double) -> Bool {
        window.noteFailure(at: moment(seconds), terms)
    }

    @Test("the last of so many within the time ejects, for as long as it says")
    func ejects() {
        var window = EjectionWindow()
        #expect(!fail(&window, at: 1))
        #expect(!fail(&window, at: 5))
        #expect(!window.isEjected(at: moment(5)))
        #expect(fail(&window, at: 10.9))
        #expect(window.isEjected(at: moment(10.9)))
        #expect(window.isEjected(at: moment(40.8)))
        #expect(!window.isEjected(at: moment(40.9)))
    }

    @Test("failures outside the time are forgotten")
    func forgets() {
        var window = EjectionWindow()
        for second in stride(from: 1.0, to: 100, by: 5.0) {
            #expect(!fail(&window, at: second), "\(second)")
        }
    }

    @Test("back again, it begins anew; what fails meanwhile counts for nothing")
    func anew() {
        var window = EjectionWindow()
        for second in [1.0, 2, 3] { _ = fail(&window, at: second) }
        #expect(window.isEjected(at: moment(4)))
        #expect(!fail(&window, at: 32))
        #expect(!window.isEjected(at: moment(33)))
        #expect(!fail(&window, at: 33))
        #expect(!fail(&window, at: 34))
        #expect(fail(&window, at: 35))
    }
}

@Suite("Health: the request")
struct HealthRequestTests {
    private func text(_ path: String, _ server: Upstream.Server.Endpoint) throws -> String {
        let fields = SetFields([makeSetField("s")])
        let health = Upstream.Health(
            path: path, status: 200, every: .seconds(5), timeout: .seconds(1), rise: 2, fall: 3)
        let bytes = try HealthRequest.make(health, isHTTP2: false)
            .bytes(to: server, setFields: fields)
        return String(decoding: bytes, as: UTF8.self)
    }

    @Test("names the server and carries the upstream's fields")
    func fields() throws {
        #expect(
            try text("/healthz", .host("10.0.2.10", port: 8080))
                == "GET /healthz HTTP/1.1\r\nHost: 10.0.2.10:8080\r\n"
                + "User-Agent: attestgate-health\r\nConnection: close\r\nX-Gate-Secret: s\r\n\r\n")
        #expect(try text("/", .host("::1", port: 1)).contains("\r\nHost: [::1]:1\r\n"))
        #expect(try text("/", .host("a.test", port: 1)).contains("\r\nHost: a.test:1\r\n"))
        #expect(try text("/", .unix("/s")).contains("\r\nHost: localhost\r\n"))
    }

    @Test("escapes what no target may hold")
    func escapes() throws {
        #expect(
            try text("/a b/é\"<{^|`}>-._~!$&'()*+,=:@", .unix("/s"))
                .hasPrefix("GET /a%20b/%C3%A9%22%3C%7B%5E%7C%60%7D%3E-._~!$&'()*+,=:@ HTTP/1.1"))
    }
}
