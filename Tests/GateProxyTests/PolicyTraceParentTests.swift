import GateHTTP
import GateProxy
import Testing

private let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

@Suite("Trace context: a good one passes, any other is replaced")
struct TraceParentTests {
    private func isWellFormed(_ text: String) -> Bool {
        let bytes = Array("x\(text)x".utf8)
        return TraceParent.isWellFormed(bytes, 1..<(bytes.count - 1))
    }

    @Test("the form of W3C Trace Context, and nothing else")
    func form() {
        #expect(isWellFormed(good))
        #expect(isWellFormed(good.replacing("-01", with: "-ff")))
        #expect(isWellFormed("01" + good.dropFirst(2) + "-what-follows"))
        #expect(isWellFormed("fe" + good.dropFirst(2)))
        for text in [
            "", "00", String(good.dropLast()), good + "0", good + "-", good + "-00",
            "ff" + good.dropFirst(2), "0g" + good.dropFirst(2), good.uppercased(),
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            good.replacing("-", with: "_"), "01" + good.dropFirst(2) + "x",
            "01" + good.dropFirst(2) + "-" + String(repeating: "a", count: 300),
        ] {
            #expect(!isWellFormed(text), "\(text)")
        }
        for index in good.indices {
            var wrong = good
            wrong.replaceSubrange(index...index, with: "g")
            #expect(!isWellFormed(wrong), "\(wrong)")
        }
    }

    @Test("what is made has the form, and is another each time")
    func made() {
        var random = SystemRandomNumberGenerator()
        var seen: Set<[UInt8]> = []
        for _ in 0..<100 {
            let value = TraceParent.make(using: &random)
            #expect(TraceParent.isWellFormed(value, 0..<value.count), "\(text(value))")
            #expect(text(value).hasSuffix("-00"), "the gate records nothing")
            seen.insert(value)
        }
        #expect(seen.count == 100)
    }

    private func replacement(_ lines: [String]) throws -> [UInt8]? {
        var random = SystemRandomNumberGenerator()
        return TraceParent.replacement(try request("GET /", lines), using: &random)
    }

    @Test("one good value is not replaced; none, a bad one and two are")
    func replaced() throws {
        #expect(try replacement(["traceparent: \(good)"]) == nil)
        #expect(try replacement(["TraceParent: \(good)"]) == nil)
        #expect(try replacement([]) != nil)
        #expect(try replacement(["traceparent: x"]) != nil)
        #expect(try replacement(["traceparent: \(good)", "traceparent: \(good)"]) != nil)
    }

    @Test("a replaced one goes with its state, a kept one keeps it")
    func upstream() throws {
        let lines = ["traceparent: \(good)", "tracestate: a=b", "Tracestate: c=d"]
        func written(_ replacement: [UInt8]?) throws -> [UInt8] {
            let context = UpstreamContext(
                isPeerTrusted: false, peer: [], scheme: .http, requestID: [0x61], verdict: .off,
                traceParent: replacement, body: .none)
            return try UpstreamHead.bytes(
                try request("GET /", lines), makeFields(), context, setFields: SetFields([]))
        }
        let kept = try written(nil)
        #expect(values("traceparent", kept) == [good])
        #expect(values("tracestate", kept) == ["a=b", "c=d"])
        let replaced = try written(Array("new".utf8))
        #expect(values("traceparent", replaced) == ["new"])
        #expect(values("tracestate", replaced) == [])
    }
}
