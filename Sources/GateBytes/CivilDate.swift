/// A date of the Gregorian calendar, extended backwards; times of day and zones are the caller's.
///
/// The arithmetic counts years from March, so that the leap day is a year's last, and in eras of
/// 400 years, after which the calendar repeats.
package struct CivilDate: Equatable, Sendable {
    /// 0 to 9999.
    package let year: Int
    /// 1 to 12.
    package let month: Int
    /// 1 to 31.
    package let day: Int

    /// Days of an era, and from 0000-03-01 to 1970-01-01.
    private static let daysOfEra = 146_097
    private static let daysTo1970 = 719_468

    /// The date; nil when there is no such day. Years 0 to 9999.
    package init?(year: Int, month: Int, day: Int) {
        guard (0...9999).contains(year), (1...12).contains(month),
            (1...CivilDate.days(in: month, of: year)).contains(day)
        else { return nil }
        self.year = year
        self.month = month
        self.day = day
    }

    /// The date that many days after 1970-01-01; before it where negative, from year 0 on.
    package init(daysSince1970 days: Int) {
        let shifted = days + CivilDate.daysTo1970
        // January and February of year 0 are in the era before.
        let era = shifted < 0 ? -1 : shifted / CivilDate.daysOfEra
        let dayOfEra = shifted - era * CivilDate.daysOfEra
        let yearOfEra =
            (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
        month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
        year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    }

    /// Days from 1970-01-01; negative before.
    package var daysSince1970: Int {
        let yearFromMarch = month <= 2 ? year - 1 : year
        let era = yearFromMarch < 0 ? -1 : yearFromMarch / 400
        let yearOfEra = yearFromMarch - era * 400
        let monthFromMarch = month > 2 ? month - 3 : month + 9
        let dayOfYear = (153 * monthFromMarch + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return era * CivilDate.daysOfEra + dayOfEra - CivilDate.daysTo1970
    }

    /// The days of a month, 1 to 12.
    private static func days(in month: Int, of year: Int) -> Int {
        switch month {
        case 4, 6, 9, 11: return 30
        case 2: return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        default: return 31
        }
    }
}
