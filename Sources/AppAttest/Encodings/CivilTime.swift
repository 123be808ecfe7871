internal import GateBytes

/// Seconds since 1970 in UTC, from and to the calendar; leap seconds do not count.
enum CivilTime {
    /// The instant of a date and time; nil when a part is out of its range. Years 1 to 9999.
    static func seconds(
        year: Int, month: Int, day: Int, hour: Int, minute: Int, second: Int
    ) -> Int64? {
        guard year > 0, let date = CivilDate(year: year, month: month, day: day),
            (0...23).contains(hour), (0...59).contains(minute), (0...59).contains(second)
        else { return nil }
        return Int64(date.daysSince1970 * 86_400 + hour * 3600 + minute * 60 + second)
    }

    /// `seconds` as RFC 3339, e.g. `2026-10-09T07:25:51Z`; years 1 to 9999, else the number itself.
    static func text(_ seconds: Int64) -> String {
        guard (-62_135_596_800...253_402_300_799).contains(seconds) else { return String(seconds) }
        let secondOfDay = Int(((seconds % 86_400) + 86_400) % 86_400)
        let date = CivilDate(
            daysSince1970: Int((seconds - Int64(secondOfDay)) / 86_400))
        func padded(_ value: Int, _ width: Int) -> String {
            let digits = String(value)
            return String(repeating: "0", count: max(0, width - digits.count)) + digits
        }
        return padded(date.year, 4) + "-" + padded(date.month, 2) + "-" + padded(date.day, 2) + "T"
            + padded(secondOfDay / 3600, 2) + ":" + padded(secondOfDay / 60 % 60, 2) + ":"
            + padded(secondOfDay % 60, 2) + "Z"
    }
}
