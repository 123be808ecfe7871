import GateBytes
import Testing

@Suite("Civil dates: days and calendar agree")
struct CivilDateTests {
    @Test("every day from year 0 to 9999 follows the one before and comes back")
    func everyDay() {
        var expected = (year: 0, month: 1, day: 1)
        for days in -719_528..<2_932_897 {
            let date = CivilDate(daysSince1970: days)
            guard date.year == expected.year, date.month == expected.month,
                date.day == expected.day, date.daysSince1970 == days
            else {
                Issue.record("day \(days) is \(date), expected \(expected)")
                return
            }
            expected.day += 1
            if CivilDate(year: expected.year, month: expected.month, day: expected.day) == nil {
                expected.day = 1
                expected.month += 1
            }
            if expected.month == 13 { expected = (expected.year + 1, 1, 1) }
        }
        #expect(expected == (10_000, 1, 1))
    }

    @Test(
        "days that are none are refused",
        arguments: [
            (2023, 2, 29), (1900, 2, 29), (2024, 2, 30), (2024, 4, 31), (2024, 13, 1),
            (2024, 0, 1), (2024, 1, 0), (-1, 1, 1), (10_000, 1, 1),
        ])
    func none(year: Int, month: Int, day: Int) {
        #expect(CivilDate(year: year, month: month, day: day) == nil)
    }

    @Test("leap days are there")
    func leapDays() {
        #expect(CivilDate(year: 2000, month: 2, day: 29)?.daysSince1970 == 11_016)
        #expect(CivilDate(year: 2024, month: 2, day: 29)?.daysSince1970 == 19_782)
        #expect(CivilDate(daysSince1970: 0) == CivilDate(year: 1970, month: 1, day: 1))
    }
}
