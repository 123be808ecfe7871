/// The text format of Prometheus (exposition format 0.0.4): a `# HELP` and a `# TYPE` line for each
/// family, then its samples.
package struct MetricsText: Sendable {
    /// The text so far.
    package private(set) var bytes: [UInt8] = []
    private var family = ""

    /// An empty text.
    package init() {}

    /// Begins a family; its name is what follows `attestgate_`.
    package mutating func begin(_ name: String, _ type: StaticString, _ help: StaticString) {
        family = "attestgate_" + name
        bytes.append(contentsOf: "# HELP \(family) \(help)\n# TYPE \(family) \(type)\n".utf8)
    }

    /// A sample of the family.
    package mutating func sample(_ labels: [(String, String)], _ value: UInt64) {
        line("", labels, "\(value)")
    }

    /// A sample of the family.
    package mutating func sample(_ labels: [(String, String)], _ value: Int) {
        line("", labels, "\(value)")
    }

    /// A sample that is true or not.
    package mutating func sample(_ isTrue: Bool) {
        line("", [], isTrue ? "1" : "0")
    }

    /// The samples of a histogram, in seconds.
    package mutating func sample(
        _ labels: [(String, String)], _ histogram: LatencyHistogram
    ) {
        var count: UInt64 = 0
        for (bucket, bound) in LatencyHistogram.bounds.enumerated() {
            count += histogram.counts[bucket]
            line("_bucket", labels + [("le", MetricsText.seconds(bound))], "\(count)")
        }
        count += histogram.counts[LatencyHistogram.bounds.count]
        line("_bucket", labels + [("le", "+Inf")], "\(count)")
        line("_sum", labels, MetricsText.seconds(histogram.sum))
        line("_count", labels, "\(count)")
    }

    private mutating func line(_ suffix: String, _ labels: [(String, String)], _ value: String) {
        bytes.append(contentsOf: (family + suffix).utf8)
        for (index, (name, text)) in labels.enumerated() {
            bytes.append(UInt8(ascii: index == 0 ? "{" : ","))
            bytes.append(contentsOf: name.utf8)
            bytes.append(contentsOf: "=\"".utf8)
            append(escaping: text)
            bytes.append(UInt8(ascii: "\""))
        }
        if !labels.isEmpty { bytes.append(UInt8(ascii: "}")) }
        bytes.append(UInt8(ascii: " "))
        bytes.append(contentsOf: value.utf8)
        bytes.append(UInt8(ascii: "\n"))
    }

    private mutating func append(escaping text: String) {
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\\"): bytes.append(contentsOf: "\\\\".utf8)
            case UInt8(ascii: "\""): bytes.append(contentsOf: "\\\"".utf8)
            case 0x0a: bytes.append(contentsOf: "\\n".utf8)
            default: bytes.append(byte)
            }
        }
    }

    /// Nanoseconds as seconds, without a final zero: `0.00025`.
    private static func seconds(_ nanoseconds: UInt64) -> String {
        let whole = nanoseconds / 1_000_000_000
        let rest = nanoseconds % 1_000_000_000
        guard rest > 0 else { return "\(whole)" }
        var digits = String(String(rest + 1_000_000_000).dropFirst())
        while digits.hasSuffix("0") { digits.removeLast() }
        return "\(whole).\(digits)"
    }
}
