internal import GateBytes

// Which paths have two readings (conf.md §5).
//
// A path is *hard* when no host may take it: a dot segment in any spelling, `\`, an escaped
// control, `%25`, `%3f`, `%23`, `#`, a dot or a space at a segment's end, a bad escape, a raw byte
// outside 0x21–0x7e, escapes that are no shortest-form UTF-8. It is *soft* when `paths matched` may
// let it pass: an empty segment, `;`, `%2f`, `%3b`, a scalar that changes under NFKC case folding.
//
// Scalars whose NFKC form is or holds one of `. / ; \ % ? #` or is a space count as what they fold
// to, so that `．．`, `‥` or `／` are a dot segment and a slash here too.

/// What the rules say of a path.
enum PathVerdict: Equatable, Sendable {
    /// One reading.
    case clear
    /// Two readings that no setting lifts.
    case hard
    /// Two readings that `paths matched` may lift.
    case soft
}

/// A path that needs more than one look: its escapes decoded once, and what the rules say of it.
struct ScannedPath {
    /// One place of a path as the collapsed form sees it: a byte, or one of the cases below.
    enum Unit: Equatable {
        case byte(UInt8)
        /// `%2f`, or a scalar that folds to a slash.
        case escapedSlash
        /// `%3b`, or a scalar that folds to a semicolon.
        case escapedSemicolon
        /// A scalar that folds to nothing, and counts as any other that changes besides.
        case ignorable
        /// A `+` that was not escaped, which some read as a space.
        case plus
        /// A scalar that changes under NFKC case folding: any one or more characters.
        case wild

        var isSlash: Bool { self == .byte(UInt8(ascii: "/")) || self == .escapedSlash }
        var isSemicolon: Bool { self == .byte(UInt8(ascii: ";")) || self == .escapedSemicolon }
    }

    /// The path with every escape decoded once; a bad escape stands as it came, its `%` hard.
    private(set) var decoded: [UInt8] = []
    /// What the rules say.
    private(set) var verdict = PathVerdict.clear
    /// The path for collapsing, scalars that fold to punctuation expanded.
    private(set) var expanded: [Unit] = []
    /// The same with those scalars left wild; empty when there are none.
    private(set) var unexpanded: [Unit] = []

    /// Scans `bytes[range]`, a path from its first slash.
    init(_ bytes: [UInt8], _ range: Range<Int>) {
        decoded.reserveCapacity(range.count)
        let isEscaped = decode(bytes, range)
        readScalars(isEscaped)
        judgeSegments()
    }

    private mutating func judge(_ found: PathVerdict) {
        if verdict != .hard { verdict = found }
    }

    /// Decodes every escape once; answers for each decoded byte whether it came from one.
    private mutating func decode(_ bytes: [UInt8], _ range: Range<Int>) -> [Bool] {
        var isEscaped: [Bool] = []
        isEscaped.reserveCapacity(range.count)
        var index = range.lowerBound
        while index < range.upperBound {
            let byte = bytes[index]
            if byte == UInt8(ascii: "%"), index + 2 < range.upperBound,
                let high = Hex.value(bytes[index + 1]), let low = Hex.value(bytes[index + 2])
            {
                decoded.append(high << 4 | low)
                isEscaped.append(true)
                index += 3
            } else {
                decoded.append(byte)
                isEscaped.append(false)
                index += 1
            }
        }
        return isEscaped
    }

    /// Reads the decoded bytes as UTF-8, scalar by scalar, and fills the units.
    private mutating func readScalars(_ isEscaped: [Bool]) {
        var index = 0
        var hasSpecial = false
        var wild: [Unit] = []
        while index < decoded.count {
            let byte = decoded[index]
            if byte < 0x80 {
                let unit = readASCII(byte, isEscaped: isEscaped[index])
                expanded.append(unit)
                wild.append(unit)
                index += 1
                continue
            }
            if !isEscaped[index] { judge(.hard) }
            guard let (scalar, length) = UTF8Scalar.decode(decoded, at: index) else {
                judge(.hard)
                expanded.append(.byte(byte))
                wild.append(.byte(byte))
                index += 1
                continue
            }
            if let spelling = FoldedPunctuation.spelling(of: scalar) {
                hasSpecial = true
                judge(.soft)
                expanded += spelling.utf8.map { readASCII($0, isEscaped: true) }
                wild.append(.wild)
            } else if scalar.properties.changesWhenNFKCCaseFolded || scalar.value == 0x131 {
                judge(.soft)
                let isIgnorable = scalar.properties.isDefaultIgnorableCodePoint
                expanded.append(isIgnorable ? .ignorable : .wild)
                wild.append(isIgnorable ? .ignorable : .wild)
            } else {
                let units = decoded[index..<(index + length)].map(Unit.byte)
                expanded += units
                wild += units
            }
            index += length
        }
        if hasSpecial { unexpanded = wild }
    }

    private mutating func readASCII(_ byte: UInt8, isEscaped: Bool) -> Unit {
        switch byte {
        case 0x00...0x1f, 0x7f, UInt8(ascii: "\\"), UInt8(ascii: "%"), UInt8(ascii: "?"),
            UInt8(ascii: "#"):
            judge(.hard)
        case UInt8(ascii: " "):
            if !isEscaped { judge(.hard) }
        case UInt8(ascii: "/") where isEscaped:
            judge(.soft)
            return .escapedSlash
        case UInt8(ascii: ";"):
            judge(.soft)
            return isEscaped ? .escapedSemicolon : .byte(byte)
        case UInt8(ascii: "+") where !isEscaped:
            return .plus
        default: break
        }
        return .byte(byte)
    }

    /// Looks at each segment for the shapes that depend on where it ends.
    private mutating func judgeSegments() {
        var start = 1
        while start <= expanded.count {
            var end = start
            while end < expanded.count, !expanded[end].isSlash { end += 1 }
            judgeSegment(expanded[start..<end], isLast: end == expanded.count)
            start = end + 1
        }
    }

    private mutating func judgeSegment(_ segment: ArraySlice<Unit>, isLast: Bool) {
        if segment.isEmpty, !isLast { judge(.soft) }
        // With `;…` dropped and as it stands: some services do the one, some the other.
        let head = segment.prefix { !$0.isSemicolon }
        for reading in [head, segment] {
            let visible = reading.filter { $0 != .ignorable }
            let dot = Unit.byte(UInt8(ascii: "."))
            if visible == [dot] || visible == [dot, dot] { judge(.hard) }
            guard let last = visible.last else { continue }
            if last == dot, !isLast { judge(.hard) }
            if last == .byte(UInt8(ascii: " ")) || last == .plus { judge(.hard) }
        }
    }
}

extension ScannedPath {
    /// The collapsed forms of the path: `;…` dropped, slashes merged, ASCII case folded, trailing
    /// `/` and `.` cut. One for each way a service may go about it: parameters dropped before or
    /// after decoding, punctuation folded or not, ignorable scalars dropped or not.
    ///
    /// The second decoding, backslashes, dot segments and trailing spaces of conf.md §5 need
    /// nothing here: a path that has one of them is hard.
    var collapsedForms: [[Unit]] {
        var forms: [[Unit]] = []
        var readings = [expanded]
        if !unexpanded.isEmpty { readings.append(unexpanded) }
        if expanded.contains(.ignorable) { readings.append(expanded.filter { $0 != .ignorable }) }
        for units in readings {
            forms.append(Self.collapse(units, dropsAfterDecoding: true))
            forms.append(Self.collapse(units, dropsAfterDecoding: false))
        }
        return forms
    }

    private static func collapse(_ units: [Unit], dropsAfterDecoding: Bool) -> [Unit] {
        let slash = Unit.byte(UInt8(ascii: "/"))
        var form: [Unit] = []
        var isDropping = false
        for unit in units {
            if unit == slash || dropsAfterDecoding && unit.isSlash { isDropping = false }
            if unit == .byte(UInt8(ascii: ";")) || dropsAfterDecoding && unit.isSemicolon {
                isDropping = true
            }
            if isDropping { continue }
            switch unit {
            case .byte(let byte) where unit != slash: form.append(.byte(ASCII.lowercased(byte)))
            case .byte, .escapedSlash: if form.last != slash { form.append(slash) }
            case .escapedSemicolon: form.append(.byte(UInt8(ascii: ";")))
            case .plus: form.append(.byte(UInt8(ascii: "+")))
            case .ignorable, .wild: form.append(unit)
            }
        }
        while let last = form.last, last == slash || last == .byte(UInt8(ascii: ".")) {
            form.removeLast()
        }
        return form
    }

    /// Whether a collapsed form can stand for `key` or, under a prefix, for something below it.
    ///
    /// `key` is a wide key: decoded, folded, without trailing slash. The set of places in `key`
    /// that the units so far can have reached is followed; every unit moves each place on, so the
    /// work is bounded by the square of the key's length.
    static func canFall(_ form: [Unit], on key: ArraySlice<UInt8>, isPrefix: Bool) -> Bool {
        let key = Array(key)
        var isReached = [Bool](repeating: false, count: key.count + 1)
        isReached[0] = true
        for unit in form {
            if isPrefix, isReached[key.count] {
                switch unit {
                case .byte(UInt8(ascii: "/")), .wild, .ignorable: return true
                default: break
                }
            }
            var next = [Bool](repeating: false, count: key.count + 1)
            switch unit {
            case .byte(let byte):
                for place in 0..<key.count where isReached[place] && key[place] == byte {
                    next[place + 1] = true
                }
            default:
                guard let first = isReached.firstIndex(of: true) else { return false }
                if isPrefix { return true }
                if first < key.count {
                    for place in (first + 1)...key.count { next[place] = true }
                }
            }
            if !next.contains(true) { return false }
            isReached = next
        }
        return isReached[key.count]
    }
}
