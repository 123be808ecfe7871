/// Numbers and their units: a value without its unit is refused, so that none is guessed.
enum NumberText {
    /// The digits at the start of `text` and what follows; nil without digits or over 63 bits.
    private static func split(_ text: String) -> (number: Int, unit: Substring)? {
        let digits = text.prefix { ("0"..."9").contains($0) && $0.isASCII }
        guard !digits.isEmpty, let number = Int(digits) else { return nil }
        return (number, text[digits.endIndex...])
    }

    private static func isNumber(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy { (0x30...0x39).contains($0) }
    }

    /// A whole number inside `bounds`.
    static func count(_ text: String, bounds: ClosedRange<Int>) throws(ValueError) -> Int {
        guard isNumber(text) else {
            throw ValueError(message: "\(text.quoted) is no count", remedy: "write a whole number")
        }
        guard let number = Int(text), bounds.contains(number) else {
            throw outside(text, bounds.lowerBound, bounds.upperBound)
        }
        return number
    }

    private static func outside(
        _ text: String, _ least: some CustomStringConvertible, _ most: some CustomStringConvertible
    ) -> ValueError {
        ValueError(
            message: "\(text.quoted) is out of range",
            remedy: "write a value from \(least) to \(most)")
    }

    /// `250ms 5s 2m 1h 7d`; `bounds` are seconds.
    static func duration(
        _ text: String, bounds: ClosedRange<Int>?
    ) throws(ValueError) -> Duration {
        guard let (number, unit) = split(text) else {
            throw ValueError(
                message: "\(text.quoted) is no duration",
                remedy: "write a whole number and a unit: \(ValueKind.duration.example)")
        }
        let milliseconds: Int
        switch unit {
        case "ms": milliseconds = 1
        case "s": milliseconds = 1000
        case "m": milliseconds = 60_000
        case "h": milliseconds = 3_600_000
        case "d": milliseconds = 86_400_000
        case "":
            throw ValueError(
                message: "\(text.quoted) needs a unit",
                remedy: "write \(number)s, \(number)m or \(number)ms")
        default:
            throw ValueError(
                message: "unknown unit \(String(unit).quoted) in \(text.quoted)",
                remedy: "write \(number)s, \(number)m or \(number)ms")
        }
        let (total, isOverflow) = number.multipliedReportingOverflow(by: milliseconds)
        guard !isOverflow, total > 0, total <= Limits.durationSecondsMax * 1000 else {
            throw outside(text, "1ms", "365d")
        }
        if let bounds, total < bounds.lowerBound * 1000 || total > bounds.upperBound * 1000 {
            throw outside(text, "\(bounds.lowerBound)s", "\(bounds.upperBound)s")
        }
        return .milliseconds(total)
    }

    /// `64k 1m 2g`, in bytes.
    static func size(_ text: String, bounds: ClosedRange<Int>?) throws(ValueError) -> Int {
        guard let (number, unit) = split(text) else {
            throw ValueError(
                message: "\(text.quoted) is no size",
                remedy: "write a whole number and a unit: \(ValueKind.size.example)")
        }
        let shift: Int
        switch unit {
        case "k": shift = 10
        case "m": shift = 20
        case "g": shift = 30
        case "":
            throw ValueError(
                message: "\(text.quoted) needs a unit",
                remedy: "write \(number)k, \(number)m or \(number)g")
        default:
            throw ValueError(
                message: "unknown unit \(String(unit).quoted) in \(text.quoted)",
                remedy: "write \(number)k, \(number)m or \(number)g")
        }
        let bounds = bounds ?? Limits.bodyBytes
        let (total, isOverflow) = number.multipliedReportingOverflow(by: 1 << shift)
        guard !isOverflow, bounds.contains(total) else {
            throw outside(
                text, sizeText(bounds.lowerBound), sizeText(bounds.upperBound))
        }
        return total
    }

    /// A number of bytes as a configuration writes it.
    private static func sizeText(_ bytes: Int) -> String {
        for (shift, unit) in [(30, "g"), (20, "m")] where bytes % (1 << shift) == 0 {
            if bytes >> shift > 0 { return "\(bytes >> shift)\(unit)" }
        }
        return "\(bytes >> 10)k"
    }

    /// `60/1m`.
    static func rate(_ text: String) throws(ValueError) -> Rate {
        let parts = text.cut(at: "/")
        guard let window = parts.after else {
            throw ValueError(
                message: "\(text.quoted) needs a window",
                remedy: isNumber(text)
                    ? "write \(text)/1s, \(text)/1m or \(text)/1h" : "write 60/1m")
        }
        let number = try count(String(parts.before), bounds: Limits.count)
        let per = try duration(String(window), bounds: nil)
        return Rate(count: number, per: per)
    }

    /// `25%`, in hundredths.
    static func share(_ text: String) throws(ValueError) -> Int {
        guard text.hasSuffix("%") else {
            throw ValueError(
                message: "\(text.quoted) needs a unit",
                remedy: isNumber(text) ? "write \(text)%" : "write 25%")
        }
        return try count(String(text.dropLast()), bounds: 0...100)
    }

    /// The mode bits of a file, `0660`.
    static func octal(_ text: String) throws(ValueError) -> Int {
        guard (3...4).contains(text.utf8.count), let bits = Int(text, radix: 8), bits >= 0,
            bits <= 0o777
        else {
            throw ValueError(message: "\(text.quoted) is no file mode", remedy: "write 0660")
        }
        return bits
    }
}
