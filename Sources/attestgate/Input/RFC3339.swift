internal import GateBytes

/// Instants as text: `2026-10-09T07:25:51Z`, `2026-10-09T09:25:51.25+02:00` (RFC 3339 §5.6).
package enum RFC3339 {
    /// Seconds since 1970 of the instant that `text` is; a fraction is cut off, the leap second is
    /// the second after it. Nil when `text` is no such instant.
    package static func seconds(_ text: String) -> Int64? {
        var scanner = Scanner(text)
        guard let year = scanner.number(4), scanner.take("-"),
            let month = scanner.number(2), scanner.take("-"),
            let day = scanner.number(2),
            scanner.take("T") || scanner.take("t") || scanner.take(" "),
            let hour = scanner.number(2), scanner.take(":"),
            let minute = scanner.number(2), scanner.take(":"),
            let second = scanner.number(2), scanner.skipFraction(),
            let offset = scanner.offset(), scanner.isAtEnd,
            let date = CivilDate(year: year, month: month, day: day),
            hour < 24, minute < 60, second <= 60
        else { return nil }
        let clock = hour * 3600 + minute * 60 + second
        return Int64(date.daysSince1970 * 86_400 + clock - offset)
    }

    /// `milliseconds` since 1970 as text, in UTC.
    package static func text(milliseconds: Int64) -> String {
        let day = milliseconds.quotient(floored: 86_400_000)
        let rest = Int(milliseconds - day * 86_400_000)
        let date = CivilDate(daysSince1970: Int(day))
        func padded(_ value: Int, _ width: Int) -> String {
            let digits = String(value)
            return String(repeating: "0", count: max(0, width - digits.count)) + digits
        }
        return padded(date.year, 4) + "-" + padded(date.month, 2) + "-" + padded(date.day, 2) + "T"
            + padded(rest / 3_600_000, 2) + ":" + padded(rest / 60_000 % 60, 2) + ":"
            + padded(rest / 1000 % 60, 2) + "." + padded(rest % 1000, 3) + "Z"
    }

    private struct Scanner {
        private let bytes: [UInt8]
        private var position = 0

        init(_ text: String) {
            bytes = Array(text.utf8)
        }

        var isAtEnd: Bool { position == bytes.count }

        mutating func take(_ character: Unicode.Scalar) -> Bool {
            guard position < bytes.count, UInt32(bytes[position]) == character.value else {
                return false
            }
            position += 1
            return true
        }

        mutating func number(_ digits: Int) -> Int? {
            guard position + digits <= bytes.count else { return nil }
            var value = 0
            for byte in bytes[position..<(position + digits)] {
                guard (0x30...0x39).contains(byte) else { return nil }
                value = value * 10 + Int(byte - 0x30)
            }
            position += digits
            return value
        }

        /// Skips `.25`; false when there is a point without a digit.
        mutating func skipFraction() -> Bool {
            guard take(".") else { return true }
            guard number(1) != nil else { return false }
            while number(1) != nil {}
            return true
        }

        /// `Z`, `z` or `±hh:mm` in seconds east.
        mutating func offset() -> Int? {
            if take("Z") || take("z") { return 0 }
            let sign = take("+") ? 1 : take("-") ? -1 : 0
            guard sign != 0, let hours = number(2), take(":"), let minutes = number(2),
                hours < 24, minutes < 60
            else { return nil }
            return sign * (hours * 3600 + minutes * 60)
        }
    }
}

extension Int64 {
    /// The quotient by a positive divisor, rounded down.
    fileprivate func quotient(floored divisor: Int64) -> Int64 {
        let (quotient, rest) = quotientAndRemainder(dividingBy: divisor)
        return rest < 0 ? quotient - 1 : quotient
    }
}
