/// ASCII classes and case, for bytes: what a peer sends is never a `String` until it has been
/// checked.
package enum ASCII {
    /// `byte` with `A`–`Z` in lower case.
    @inline(__always)
    package static func lowercased(_ byte: UInt8) -> UInt8 {
        byte &- 0x41 < 26 ? byte | 0x20 : byte
    }

    /// Whether `byte` is `0`–`9`.
    @inline(__always)
    package static func isDigit(_ byte: UInt8) -> Bool {
        byte &- 0x30 < 10
    }

    /// Whether `byte` is an ASCII letter.
    @inline(__always)
    package static func isLetter(_ byte: UInt8) -> Bool {
        (byte | 0x20) &- 0x61 < 26
    }
}
