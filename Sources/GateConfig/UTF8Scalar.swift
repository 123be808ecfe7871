/// Decoding one scalar of UTF-8 in its shortest form (RFC 3629).
enum UTF8Scalar {
    /// The scalar at `index` and its length in bytes; nil for an overlong form, a surrogate, a
    /// value over U+10FFFF, a lone or missing continuation byte.
    static func decode(_ bytes: [UInt8], at index: Int) -> (scalar: Unicode.Scalar, length: Int)? {
        let first = bytes[index]
        let length: Int
        let least: UInt32
        var value: UInt32
        switch first {
        case 0x00...0x7f: return (Unicode.Scalar(first), 1)
        case 0xc0...0xdf: (length, least, value) = (2, 0x80, UInt32(first & 0x1f))
        case 0xe0...0xef: (length, least, value) = (3, 0x800, UInt32(first & 0x0f))
        case 0xf0...0xf7: (length, least, value) = (4, 0x10000, UInt32(first & 0x07))
        default: return nil
        }
        guard bytes.count - index >= length else { return nil }
        for offset in 1..<length {
            let byte = bytes[index + offset]
            guard byte & 0xc0 == 0x80 else { return nil }
            value = value << 6 | UInt32(byte & 0x3f)
        }
        guard value >= least, let scalar = Unicode.Scalar(value) else { return nil }
        return (scalar, length)
    }
}
