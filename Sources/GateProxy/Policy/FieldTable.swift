/// What the gate does with a request field, by its name alone.
enum FieldUse: UInt8, Sendable {
    /// The field of `account header`.
    case account
    case assertion
    case attestation
    case challenge
    case clientData
    /// `Content-Type`, which an envelope's own replaces.
    case contentType
    case deviceToken
    /// Never passes, whoever sends it.
    case dropped
    /// Passes from trusted proxies alone.
    case droppedUntrusted
    case forwardedFor
    case forwardedHost
    case forwardedProto
    /// `Idempotency-Key`, which a signed `operationID` replaces.
    case idempotencyKey
    case keyID
    /// Means nothing to the gate.
    case other
    case requestID
    /// `traceparent` and `tracestate`, which a fresh `traceparent` replaces.
    case trace
    case unsupported

    /// Whether it is one of the seven fields of `protocol.md` §3.
    var isProof: Bool {
        switch self {
        case .assertion, .attestation, .challenge, .clientData, .deviceToken, .keyID, .unsupported:
            return true
        case .account, .contentType, .dropped, .droppedUntrusted, .forwardedFor, .forwardedHost,
            .forwardedProto, .idempotencyKey, .other, .requestID, .trace:
            return false
        }
    }
}

/// The field names that mean something on one host, prepared once and looked up by length.
///
/// Names are compared folded: ASCII case ignored, `_` and `.` read as `-` (`protocol.md` §6),
/// because CGI, WSGI and their kin hand the upstream one name for all these spellings (threat T06).
struct FieldTable: Sendable {
    /// What a name was found to be.
    struct Match: Sendable {
        let use: FieldUse
        /// Whether it is spelled as configured but for ASCII case; false for prefixes.
        let isExact: Bool
    }

    private struct Entry: Sendable {
        let name: [UInt8]
        let folded: [UInt8]
        let use: FieldUse
    }

    private var entries: [Entry] = []
    /// For each length, where its entries begin in ``entries``; one more at the end.
    private var starts: [Int] = []
    private let prefixes: [Entry]

    /// A table of `names` and `prefixes`. Where two names fold alike the first counts; a name that
    /// is listed goes before a prefix.
    init(_ names: [(String, FieldUse)], prefixes: [(String, FieldUse)]) {
        self.prefixes = prefixes.map(FieldTable.entry)
        var seen: Set<[UInt8]> = []
        let kept = names.map(FieldTable.entry).filter { seen.insert($0.folded).inserted }
        let longest = kept.map(\.name.count).max() ?? 0
        for length in 0...longest {
            starts.append(entries.count)
            entries += kept.filter { $0.name.count == length }
        }
        starts.append(entries.count)
    }

    /// What the name `bytes[range]` is.
    func match(_ bytes: [UInt8], _ range: Range<Int>) -> Match {
        let length = range.count
        if length < starts.count - 1 {
            for index in starts[length]..<starts[length + 1]
            where FieldTable.isFolded(bytes, range.lowerBound, entries[index].folded) {
                let isExact = FieldTable.isSpelled(bytes, range.lowerBound, entries[index].name)
                return Match(use: entries[index].use, isExact: isExact)
            }
        }
        for prefix in prefixes where length > prefix.folded.count {
            if FieldTable.isFolded(bytes, range.lowerBound, prefix.folded) {
                return Match(use: prefix.use, isExact: false)
            }
        }
        return Match(use: .other, isExact: false)
    }

    private static func entry(_ name: (String, FieldUse)) -> Entry {
        let lowercased = name.0.utf8.map(lowercased)
        return Entry(name: lowercased, folded: lowercased.map(folded), use: name.1)
    }

    private static func isFolded(_ bytes: [UInt8], _ start: Int, _ name: [UInt8]) -> Bool {
        for index in 0..<name.count where folded(bytes[start + index]) != name[index] {
            return false
        }
        return true
    }

    private static func isSpelled(_ bytes: [UInt8], _ start: Int, _ name: [UInt8]) -> Bool {
        for index in 0..<name.count where lowercased(bytes[start + index]) != name[index] {
            return false
        }
        return true
    }

    @inline(__always)
    private static func lowercased(_ byte: UInt8) -> UInt8 {
        byte &- 0x41 < 26 ? byte | 0x20 : byte
    }

    @inline(__always)
    private static func folded(_ byte: UInt8) -> UInt8 {
        byte == 0x5f || byte == 0x2e ? 0x2d : lowercased(byte)
    }
}
