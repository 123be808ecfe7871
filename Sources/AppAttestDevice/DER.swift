internal import GateBytes

/// Writes DER (X.690 §10), one function for each kind of element.
package enum DER {
    /// An element with the identifier octet `tag`.
    package static func element(_ tag: UInt8, _ contents: [UInt8]) -> [UInt8] {
        [tag] + length(contents.count) + contents
    }

    /// A SEQUENCE of elements.
    package static func sequence(_ elements: [UInt8]...) -> [UInt8] {
        element(0x30, Array(elements.joined()))
    }

    /// A SET of one element, or of several in an order that the caller answers for.
    package static func set(_ elements: [UInt8]...) -> [UInt8] {
        element(0x31, Array(elements.joined()))
    }

    /// A BOOLEAN that is true; false is a default everywhere here, which DER leaves out.
    package static let isTrue: [UInt8] = [0x01, 0x01, 0xff]

    /// NULL.
    package static let null: [UInt8] = [0x05, 0x00]

    /// A non-negative INTEGER of big-endian bytes.
    package static func integer(_ magnitude: [UInt8]) -> [UInt8] {
        var bytes = Array(magnitude.drop { $0 == 0 })
        if bytes.isEmpty || bytes[0] & 0x80 != 0 { bytes.insert(0, at: 0) }
        return element(0x02, bytes)
    }

    /// A non-negative INTEGER.
    package static func integer(_ number: UInt64) -> [UInt8] {
        integer((0..<8).map { UInt8(truncatingIfNeeded: number >> UInt64(56 - 8 * $0)) })
    }

    /// A BIT STRING of whole octets.
    package static func bitString(_ octets: [UInt8]) -> [UInt8] {
        element(0x03, [0] + octets)
    }

    /// An OCTET STRING.
    package static func octetString(_ octets: [UInt8]) -> [UInt8] {
        element(0x04, octets)
    }

    /// A UTF8String.
    package static func utf8String(_ text: String) -> [UInt8] {
        element(0x0c, Array(text.utf8))
    }

    /// An OBJECT IDENTIFIER of at least two arcs.
    package static func oid(_ arcs: UInt32...) -> [UInt8] {
        precondition(arcs.count >= 2)
        var contents = base128(arcs[0] * 40 + arcs[1])
        for arc in arcs.dropFirst(2) { contents += base128(arc) }
        return element(0x06, contents)
    }

    /// An explicit context tag around `contents`, in the high form from 31 on.
    package static func tagged(_ number: UInt32, _ contents: [UInt8]) -> [UInt8] {
        if number < 31 { return element(0xa0 | UInt8(number), contents) }
        return [0xbf] + base128(number) + length(contents.count) + contents
    }

    /// A Time of RFC 5280: UTCTime through 2049, GeneralizedTime from 2050 on.
    package static func time(_ seconds: Int64) -> [UInt8] {
        let text = CalendarTime(seconds).digits + "Z"
        if text < "2050" { return element(0x17, Array(text.utf8.dropFirst(2))) }
        return element(0x18, Array(text.utf8))
    }

    private static func base128(_ number: UInt32) -> [UInt8] {
        var groups = [UInt8(number & 0x7f)]
        var rest = number >> 7
        while rest > 0 {
            groups.insert(UInt8(rest & 0x7f) | 0x80, at: 0)
            rest >>= 7
        }
        return groups
    }

    private static func length(_ count: Int) -> [UInt8] {
        if count < 0x80 { return [UInt8(count)] }
        var octets: [UInt8] = []
        var rest = count
        while rest > 0 {
            octets.insert(UInt8(truncatingIfNeeded: rest), at: 0)
            rest >>= 8
        }
        return [0x80 | UInt8(octets.count)] + octets
    }
}

/// A UTC date and time of day; years 1970 to 9999.
struct CalendarTime {
    let year: Int
    let month: Int
    let day: Int
    let secondOfDay: Int

    init(_ seconds: Int64) {
        precondition((0..<253_402_300_800).contains(seconds))
        secondOfDay = Int(seconds % 86_400)
        let date = CivilDate(daysSince1970: Int(seconds / 86_400))
        year = date.year
        month = date.month
        day = date.day
    }

    /// `YYYYMMDDhhmmss`.
    var digits: String {
        CalendarTime.padded(year, 4) + CalendarTime.padded(month) + CalendarTime.padded(day)
            + CalendarTime.padded(secondOfDay / 3600) + CalendarTime.padded(secondOfDay / 60 % 60)
            + CalendarTime.padded(secondOfDay % 60)
    }

    /// RFC 3339 with `milliseconds` as Apple's receipts have it: trailing zeros dropped.
    func text(milliseconds: Int) -> String {
        var fraction = CalendarTime.padded(milliseconds, 3)
        while fraction.hasSuffix("0") { fraction.removeLast() }
        let date = [
            CalendarTime.padded(year, 4), CalendarTime.padded(month), CalendarTime.padded(day),
        ]
        let time = [secondOfDay / 3600, secondOfDay / 60 % 60, secondOfDay % 60]
        return date.joined(separator: "-") + "T"
            + time.map { CalendarTime.padded($0) }.joined(separator: ":")
            + (fraction.isEmpty ? "" : "." + fraction) + "Z"
    }

    private static func padded(_ value: Int, _ width: Int = 2) -> String {
        let digits = String(value)
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }
}
