package import GateBytes

/// How a challenge is written in a field: by id, or by value.
package enum ChallengeText: Equatable, Sendable {
    /// `id.mac`: where the id stands in the text, and the 32 bytes that the mac is.
    case byValue(id: Range<Int>, mac: Bytes32)
    /// The id alone.
    case id(Range<Int>)

    /// The most characters of an id.
    package static let idBytesMax = 64
    /// The most characters of a challenge by value: an id, a dot, base64url of 32 bytes.
    package static let byValueBytesMax = idBytesMax + 1 + 43

    /// The challenge that `text[range]` is: `[A-Za-z0-9_-]{1,64}`, alone or followed by `.` and
    /// unpadded base64url of 32 bytes. Nil when it is neither.
    package init?(_ text: [UInt8], _ range: Range<Int>) {
        let dot = text[range].firstIndex(of: UInt8(ascii: "."))
        let id = range.lowerBound..<(dot ?? range.upperBound)
        guard (1...ChallengeText.idBytesMax).contains(id.count),
            text[id].allSatisfy(ChallengeText.isURLAlphabet)
        else { return nil }
        guard let dot else {
            self = .id(id)
            return
        }
        let tail = (dot + 1)..<range.upperBound
        guard text[tail].allSatisfy(ChallengeText.isURLAlphabet),
            let bytes = Base64.decode(text, tail), let mac = Bytes32(bytes)
        else { return nil }
        self = .byValue(id: id, mac: mac)
    }

    /// The text of a challenge by value.
    package static func byValue(id: [UInt8], mac: Bytes32) -> [UInt8] {
        id + [UInt8(ascii: ".")] + Array(Base64.encodeURL(mac.array).utf8)
    }

    private static func isURLAlphabet(_ byte: UInt8) -> Bool {
        ASCII.isLetter(byte) || ASCII.isDigit(byte) || byte == 0x2d || byte == 0x5f
    }
}

/// The other texts of proof fields.
package enum ProofText {
    /// The key ID that `text[range]` is: base64 of 32 bytes.
    package static func keyID(_ text: [UInt8], _ range: Range<Int>) -> Bytes32? {
        Base64.decode(text, range).flatMap { Bytes32($0) }
    }

    /// The text by value of a challenge that JSON has as it is, or as base64 of it; nil when it is
    /// neither. A text by value has a full stop, which base64 has not: no text is both.
    package static func challengeValue(_ text: [UInt8]) -> [UInt8]? {
        text.contains(UInt8(ascii: ".")) ? text : Base64.decode(text)
    }

    /// What `App-Attest-Unsupported` says: `?1` is true, `?0` is false (RFC 8941 §3.3.6); nil for
    /// all else.
    package static func unsupported(_ text: [UInt8], _ range: Range<Int>) -> Bool? {
        guard range.count == 2, text[range.lowerBound] == UInt8(ascii: "?") else { return nil }
        switch text[range.lowerBound + 1] {
        case UInt8(ascii: "1"): return true
        case UInt8(ascii: "0"): return false
        default: return nil
        }
    }
}
