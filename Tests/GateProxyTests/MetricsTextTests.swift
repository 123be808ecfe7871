import GateProxy
import Testing

@Suite("Metrics")
struct MetricsTextTests {
    @Test("a histogram's buckets are cumulated, in seconds, and end with +Inf")
    func histogram() {
        var histogram = LatencyHistogram()
        histogram.note(nanoseconds: 50_000)
        histogram.note(nanoseconds: 50_001)
        histogram.note(nanoseconds: 40_000_000_000)
        var text = MetricsText()
        text.begin("wait_seconds", "histogram", "A wait.")
        text.sample([("route", "a")], histogram)
        let lines = String(decoding: text.bytes, as: UTF8.self).split(separator: "\n")
        #expect(lines[0] == "# HELP attestgate_wait_seconds A wait.")
        #expect(lines[1] == "# TYPE attestgate_wait_seconds histogram")
        #expect(lines[2] == "attestgate_wait_seconds_bucket{route=\"a\",le=\"0.00005\"} 1")
        #expect(lines[3] == "attestgate_wait_seconds_bucket{route=\"a\",le=\"0.0001\"} 2")
        #expect(lines.contains("attestgate_wait_seconds_bucket{route=\"a\",le=\"30\"} 2"))
        #expect(lines.contains("attestgate_wait_seconds_bucket{route=\"a\",le=\"+Inf\"} 3"))
        #expect(lines.contains("attestgate_wait_seconds_sum{route=\"a\"} 40.000100001"))
        #expect(lines.last == "attestgate_wait_seconds_count{route=\"a\"} 3")
    }

    @Test("histograms add up bucket by bucket")
    func sum() {
        var left = LatencyHistogram()
        var right = LatencyHistogram()
        left.note(.milliseconds(1))
        right.note(.milliseconds(1))
        right.note(.seconds(-1))
        left.add(right)
        #expect(left.counts.reduce(0, +) == 3)
        #expect(left.counts[0] == 1)
        #expect(left.sum == 2_000_000)
    }

    @Test("a label's quotes, backslashes and line ends are escaped")
    func escapes() {
        var text = MetricsText()
        text.begin("x", "gauge", "X.")
        text.sample([("a", "q\"b\\c\nd")], 7)
        #expect(
            String(decoding: text.bytes, as: UTF8.self).hasSuffix(
                "attestgate_x{a=\"q\\\"b\\\\c\\nd\"} 7\n"))
    }

    @Test("a label keeps its number, and beyond 65,535 of them all count as one")
    func labels() {
        let labels = MetricLabels()
        #expect(labels.number(of: "") == 0)
        let first = labels.number(of: "a")
        #expect(labels.number(of: "b") != first)
        for index in 0..<70_000 { _ = labels.number(of: "n\(index)") }
        #expect(labels.number(of: "a") == first)
        #expect(labels.number(of: "new") == labels.number(of: "newer"))
    }
}
