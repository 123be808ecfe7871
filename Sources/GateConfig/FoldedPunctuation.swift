/// Scalars whose NFKC form holds punctuation that means something in a path, or is a space.
///
/// From the Unicode Character Database 14.0: every scalar beyond ASCII whose NFKC case folding
/// holds one of `. / ; \ % ? #` or is a single space. A service that normalises a path reads them
/// as that.
enum FoldedPunctuation {
    /// What `scalar` folds to; nil for every other scalar.
    static func spelling(of scalar: Unicode.Scalar) -> String? {
        switch scalar.value {
        case 0xa0, 0x2000...0x200a, 0x202f, 0x205f, 0x3000: return " "
        case 0x37e, 0xfe14, 0xfe54, 0xff1b: return ";"
        case 0x2024, 0xfe52, 0xff0e: return "."
        case 0x2025, 0xfe30: return ".."
        case 0x2026, 0xfe19: return "..."
        case 0x2047: return "??"
        case 0x2048: return "?!"
        case 0x2049: return "!?"
        case 0x2100: return "a/c"
        case 0x2101: return "a/s"
        case 0x2105: return "c/o"
        case 0x2106: return "c/u"
        case 0x2488...0x249b: return "\(scalar.value - 0x2487)."
        case 0x33c2: return "a.m."
        case 0x33c7: return "co."
        case 0x33d8: return "p.m."
        case 0xfe16, 0xfe56, 0xff1f: return "?"
        case 0xfe5f, 0xff03: return "#"
        case 0xfe68, 0xff3c: return "\\"
        case 0xfe6a, 0xff05: return "%"
        case 0xff0f: return "/"
        case 0x1f100: return "0."
        default: return nil
        }
    }
}
