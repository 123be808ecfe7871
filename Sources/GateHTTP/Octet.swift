/// Classes of octets in HTTP/1 messages (RFC 9110 §5.6.2, RFC 9112 §2).
enum Octet {
    static let tab: UInt8 = 0x09
    static let lineFeed: UInt8 = 0x0a
    static let carriageReturn: UInt8 = 0x0d
    static let space: UInt8 = 0x20
    static let asterisk: UInt8 = 0x2a
    static let comma: UInt8 = 0x2c
    static let dot: UInt8 = 0x2e
    static let slash: UInt8 = 0x2f
    static let colon: UInt8 = 0x3a
    static let semicolon: UInt8 = 0x3b
    static let question: UInt8 = 0x3f

    /// Whether `byte` is a `tchar`: the octets of methods, field names and tokens.
    @inline(__always)
    static func isToken(_ byte: UInt8) -> Bool {
        // A bit for each octet, 0–63 in one word and 64–127 in the other.
        let word: UInt64 = byte < 64 ? 0x03ff_6cfa_0000_0000 : 0x57ff_ffff_c7ff_fffe
        return byte < 128 && (word >> UInt64(byte & 63)) & 1 == 1
    }

    /// Whether `byte` may stand in a request target: visible ASCII but `#`.
    @inline(__always)
    static func isTarget(_ byte: UInt8) -> Bool {
        byte &- 0x21 < 0x5e && byte != 0x23
    }

    /// Whether `byte` may stand in a field value: all but control octets, tab excepted.
    @inline(__always)
    static func isFieldValue(_ byte: UInt8) -> Bool {
        (byte >= 0x20 && byte != 0x7f) || byte == tab
    }

    /// Whether `byte` is a space or a tab.
    @inline(__always)
    static func isBlank(_ byte: UInt8) -> Bool {
        byte == space || byte == tab
    }

    /// Whether `byte` may stand in a chunk extension: visible ASCII, space and tab.
    @inline(__always)
    static func isChunkExtension(_ byte: UInt8) -> Bool {
        byte &- 0x20 < 0x5f || byte == tab
    }

    /// Whether `byte` may stand in a host name; narrower than RFC 3986's `reg-name`, as the names
    /// of `proxy.conf` are.
    @inline(__always)
    static func isHostName(_ byte: UInt8) -> Bool {
        (byte | 0x20) &- 0x61 < 26 || byte &- 0x30 < 10 || byte == 0x2d || byte == 0x5f
    }

    /// Whether `byte` is `0`–`9`.
    @inline(__always)
    static func isDigit(_ byte: UInt8) -> Bool {
        byte &- 0x30 < 10
    }

    /// `byte` with `A`–`Z` in lower case.
    @inline(__always)
    static func lowercased(_ byte: UInt8) -> UInt8 {
        byte &- 0x41 < 26 ? byte | 0x20 : byte
    }

    /// `byte` with `a`–`z` in upper case.
    @inline(__always)
    static func uppercased(_ byte: UInt8) -> UInt8 {
        byte &- 0x61 < 26 ? byte & 0xdf : byte
    }

    /// The value of one hexadecimal digit, 0 to 15; nil for another octet.
    @inline(__always)
    static func hexadecimal(_ byte: UInt8) -> Int? {
        if byte &- 0x30 < 10 { return Int(byte &- 0x30) }
        let letter = (byte | 0x20) &- 0x61
        return letter < 6 ? Int(letter) + 10 : nil
    }

    /// The first index in `start..<end` whose octet is not one of `class`, or `end`.
    @inline(__always)
    static func skip(
        _ bytes: [UInt8], _ start: Int, _ end: Int, while isMember: (UInt8) -> Bool
    ) -> Int {
        // A local index stays in a register; the callers' indices are in memory.
        var index = start
        while index < end, isMember(bytes[index]) { index += 1 }
        return index
    }
}
