/// Where a challenge stands in a JSON body: `json:` and a JSON pointer (RFC 6901).
enum PointerText {
    /// The pointer's reference tokens, unescaped.
    static func parse(_ text: String) throws(ValueError) -> [String] {
        guard text.hasPrefix("json:") else {
            throw ValueError(
                message: "\(text.quoted) is no place in a body",
                remedy: "write \(ValueKind.pointer.example), or none")
        }
        let pointer = text.dropFirst("json:".count)
        guard !pointer.isEmpty else {
            throw ValueError(
                message: "\(text.quoted) is the whole body, which is no challenge",
                remedy: "write \(ValueKind.pointer.example)")
        }
        guard pointer.hasPrefix("/") else {
            throw ValueError(
                message: "a JSON pointer begins with \"/\"", remedy: "write json:/\(pointer)")
        }
        let parts = pointer.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count <= Limits.pointerTokensMax else {
            throw ValueError(
                message: "\(text.quoted) is deeper than JSON is read",
                remedy: "write at most \(Limits.pointerTokensMax) names")
        }
        var tokens: [String] = []
        for part in parts { tokens.append(try unescape(part)) }
        return tokens
    }

    /// `~1` is `/` and `~0` is `~`; nothing else may follow a `~`.
    private static func unescape(_ part: Substring) throws(ValueError) -> String {
        var token = String.UnicodeScalarView()
        var scalars = part.unicodeScalars.makeIterator()
        while let scalar = scalars.next() {
            guard scalar == "~" else {
                token.append(scalar)
                continue
            }
            switch scalars.next() {
            case "0": token.append("~")
            case "1": token.append("/")
            default:
                throw ValueError(
                    message: "\"~\" in a JSON pointer is followed by 0 or 1",
                    remedy: "write ~0 for \"~\", ~1 for \"/\"")
            }
        }
        return String(token)
    }
}
