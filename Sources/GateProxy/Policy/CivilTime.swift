internal import GateBytes

/// Times as text, from unix time; the arithmetic is of the proleptic Gregorian calendar, in UTC.
package enum CivilTime {
    /// Appends RFC 3339 with milliseconds, `2026-11-30T03:22:00.690Z`; times before 1970 or
    /// after 9999 are cut to those years.
    package static func appendRFC3339(_ milliseconds: Int64, to text: inout [UInt8]) {
        let time = Fields(milliseconds: milliseconds)
        append(time.year, digits: 4, to: &text)
        text.append(UInt8(ascii: "-"))
        append(time.month, digits: 2, to: &text)
        text.append(UInt8(ascii: "-"))
        append(time.day, digits: 2, to: &text)
        text.append(UInt8(ascii: "T"))
        appendClock(time, to: &text)
        text.append(UInt8(ascii: "."))
        append(time.millisecond, digits: 3, to: &text)
        text.append(UInt8(ascii: "Z"))
    }

    /// The value of `Date` (RFC 9110 §5.6.7), `Mon, 30 Nov 2026 03:22:00 GMT`, for unix `seconds`.
    package static func httpDate(_ seconds: Int64) -> [UInt8] {
        let (milliseconds, overflow) = seconds.multipliedReportingOverflow(by: 1000)
        let time = Fields(milliseconds: overflow ? .max : milliseconds)
        var text = Array(weekdays[time.weekday].utf8)
        text.append(contentsOf: ", ".utf8)
        append(time.day, digits: 2, to: &text)
        text.append(UInt8(ascii: " "))
        text.append(contentsOf: months[time.month - 1].utf8)
        text.append(UInt8(ascii: " "))
        append(time.year, digits: 4, to: &text)
        text.append(UInt8(ascii: " "))
        appendClock(time, to: &text)
        text.append(contentsOf: " GMT".utf8)
        return text
    }

    private struct Fields {
        var year: Int
        var month: Int
        var day: Int
        var weekday: Int
        var hour: Int
        var minute: Int
        var second: Int
        var millisecond: Int

        /// The last millisecond of 9999.
        private static let lastMillisecond: Int64 = 253_402_300_799_999

        init(milliseconds: Int64) {
            let bounded = Int(max(0, min(milliseconds, Fields.lastMillisecond)))
            let dayPart = bounded % 86_400_000
            millisecond = dayPart % 1000
            second = dayPart / 1000 % 60
            minute = dayPart / 60_000 % 60
            hour = dayPart / 3_600_000
            // 1970-01-01 was a Thursday.
            weekday = (bounded / 86_400_000 + 4) % 7
            let date = CivilDate(daysSince1970: bounded / 86_400_000)
            year = date.year
            month = date.month
            day = date.day
        }
    }

    private static let weekdays = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    private static func appendClock(_ time: Fields, to text: inout [UInt8]) {
        append(time.hour, digits: 2, to: &text)
        text.append(UInt8(ascii: ":"))
        append(time.minute, digits: 2, to: &text)
        text.append(UInt8(ascii: ":"))
        append(time.second, digits: 2, to: &text)
    }

    private static func append(_ value: Int, digits: Int, to text: inout [UInt8]) {
        var divisor = 1
        for _ in 1..<digits { divisor *= 10 }
        while divisor > 0 {
            text.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: value / divisor % 10))
            divisor /= 10
        }
    }
}
