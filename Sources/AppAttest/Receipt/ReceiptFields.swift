internal import GateBytes

/// A kind of field in a receipt's payload, by its number.
public enum ReceiptField: Int, CaseIterable, Sendable {
    /// The App ID.
    case appID = 2
    /// The attested key: Apple says "public key", and it is the leaf certificate.
    case certificate = 3
    /// What the app gave to DeviceCheck, in receipts of an attestation.
    case clientDataHash = 4
    /// A token of Apple's own.
    case token = 5
    /// `ATTEST` or `RECEIPT`.
    case kind = 6
    /// `production` or `sandbox`; undocumented.
    case environment = 7
    /// When it was made.
    case creationTime = 12
    /// The approximate number of keys attested on the device lately.
    case riskMetric = 17
    /// The earliest time of a refresh.
    case notBefore = 19
    /// The end of its life.
    case expirationTime = 21
}

/// The payload of a receipt: a SET of SEQUENCE { type INTEGER, version INTEGER, value OCTET
/// STRING }, in any order. Values are texts or bytes; unknown types are skipped.
struct ReceiptFields {
    /// All fields in their order, unknown ones too.
    private(set) var all: [(type: Int, value: [UInt8])] = []

    /// A receipt has ten.
    static let countMax = 64

    /// The fields of `content`, a SET with nothing behind it.
    init(_ content: [UInt8]) throws(ReceiptError) {
        do throws(BERError) {
            var outer = BERReader(content, 0..<content.count)
            var list = try outer.enter(BERReader.Tag.set)
            try outer.finish()
            while !list.isAtEnd {
                let position = list.position
                guard all.count < ReceiptFields.countMax, try readField(&list) else {
                    throw BERError.valueMalformed(offset: position)
                }
            }
        } catch {
            throw .payload(error)
        }
    }

    /// Takes one field; false for one that is there twice, and for a known one of another version
    /// than 1, which would mean something else.
    private mutating func readField(_ list: inout BERReader) throws(BERError) -> Bool {
        var parts = try list.enter(BERReader.Tag.sequence)
        let type = try parts.readSmallInteger()
        let version = try parts.readSmallInteger()
        let value = try parts.readOctetString()
        try parts.finish()
        let isKnown = ReceiptField(rawValue: type) != nil
        guard !all.contains(where: { $0.type == type }), !isKnown || version == 1 else {
            return false
        }
        all.append((type, value))
        return true
    }

    /// The value of a field; nil without it.
    subscript(field: ReceiptField) -> [UInt8]? {
        all.first { $0.type == field.rawValue }?.value
    }

    /// A field of text; nil without it.
    func text(_ field: ReceiptField) throws(ReceiptError) -> String? {
        guard let value = self[field] else { return nil }
        guard let text = String(validating: value, as: UTF8.self) else {
            throw .fieldMalformed(field)
        }
        return text
    }

    /// A field of time, in milliseconds since 1970; nil without it.
    func time(_ field: ReceiptField) throws(ReceiptError) -> Int64? {
        guard let value = self[field] else { return nil }
        guard let time = CivilTime.milliseconds(rfc3339: value) else {
            throw .fieldMalformed(field)
        }
        return time
    }

    /// A field of decimal digits; nil without it.
    func number(_ field: ReceiptField) throws(ReceiptError) -> UInt32? {
        guard let value = self[field] else { return nil }
        guard value.allSatisfy(ASCII.isDigit),
            let number = UInt32(String(decoding: value, as: UTF8.self))
        else { throw .fieldMalformed(field) }
        return number
    }
}

extension CivilTime {
    /// The milliseconds since 1970 of an RFC 3339 time in UTC, `2026-10-09T07:25:51.46Z`; nil for
    /// anything else.
    ///
    /// Apple drops trailing zeros of the fraction, so it may have any number of digits or be
    /// absent. Digits beyond the third round up: a time that something must not happen before is
    /// never read as an earlier one.
    static func milliseconds(rfc3339 text: [UInt8]) -> Int64? {
        let layout = Array("dddd-dd-ddTdd:dd:dd".utf8)
        guard text.count > layout.count, text.count <= layout.count + 11,
            text.last == UInt8(ascii: "Z")
        else { return nil }
        for (octet, expected) in zip(text, layout) {
            guard expected == UInt8(ascii: "d") ? ASCII.isDigit(octet) : octet == expected else {
                return nil
            }
        }
        func number(_ start: Int, _ count: Int) -> Int {
            text[start..<(start + count)].reduce(0) { $0 * 10 + Int($1 & 0x0f) }
        }
        guard
            let seconds = seconds(
                year: number(0, 4), month: number(5, 2), day: number(8, 2), hour: number(11, 2),
                minute: number(14, 2), second: number(17, 2))
        else { return nil }
        var fraction = text[layout.count..<(text.count - 1)]
        guard !fraction.isEmpty else { return seconds * 1000 }
        guard fraction.removeFirst() == UInt8(ascii: "."), !fraction.isEmpty,
            fraction.allSatisfy(ASCII.isDigit)
        else { return nil }
        var milliseconds: Int64 = 0
        var unit: Int64 = 100
        var hasMore = false
        for digit in fraction {
            milliseconds += Int64(digit & 0x0f) * unit
            if unit == 0, digit != UInt8(ascii: "0") { hasMore = true }
            unit /= 10
        }
        return seconds * 1000 + milliseconds + (hasMore ? 1 : 0)
    }
}
