internal import GateBytes

/// The path of a route: `/exact` or `/prefix/*`, written decoded. A path that conf.md §5 refuses
/// could never match and is refused here.
enum PathText {
    /// The path and whether it is a prefix; a prefix is kept without its `/*`.
    static func parse(_ text: String) throws(ValueError) -> Value {
        guard text.hasPrefix("/") else {
            throw ValueError(
                message: "path \(text.quoted) must begin with \"/\"",
                remedy: "write \(ValueKind.pathPattern.example)")
        }
        if text.utf8.contains(UInt8(ascii: "%")) {
            throw ValueError(
                message: "path \(text.quoted) must be written decoded and without \"%\"")
        }
        if text.utf8.contains(UInt8(ascii: "?")) {
            throw ValueError(
                message: "path \(text.quoted) must be without \"?\"",
                remedy: "the query takes no part; such a route could never match")
        }
        let isPrefix = text.hasSuffix("/*")
        let path = isPrefix ? String(text.dropLast(2)) : text
        if path.utf8.contains(UInt8(ascii: "*")) {
            throw ValueError(
                message: "\"*\" in path \(text.quoted) may only be its last segment",
                remedy: "write \(ValueKind.pathPattern.example)")
        }
        if let reason = refusal(of: path, isPrefix: isPrefix) {
            throw ValueError(
                message: "path \(text.quoted) could never match: \(reason)",
                remedy: "such requests are refused as ambiguous")
        }
        return .path(path, isPrefix: isPrefix)
    }

    /// Why no request for `path` gets past conf.md §5; nil when one can. What follows a prefix
    /// stands for any segment.
    private static func refusal(of path: String, isPrefix: Bool) -> String? {
        for scalar in path.unicodeScalars {
            switch scalar {
            case "\\", "#", ";": return "it holds \"\(scalar)\""
            default: break
            }
            if scalar.value < 0x20 || scalar.value == 0x7f { return "it holds a control" }
            if scalar.value > 0x7f,
                scalar.properties.changesWhenNFKCCaseFolded || scalar.value == 0x131
            {
                let digits = String(scalar.value, radix: 16).uppercased()
                return "U+\(digits) changes under case folding"
            }
        }
        let segments = path.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
        for (index, segment) in segments.enumerated() {
            let isLast = index == segments.count - 1 && !isPrefix
            if segment.isEmpty, !isLast, !path.isEmpty { return "it holds \"//\"" }
            if segment == "." || segment == ".." { return "it holds a dot segment" }
            if segment.hasSuffix("."), !isLast { return "a segment ends with \".\"" }
            if segment.hasSuffix(" ") || segment.hasSuffix("+") {
                return "a segment ends with a space or \"+\""
            }
        }
        return nil
    }
}

/// The methods of a route.
enum MethodText {
    /// `POST`, `POST,PUT`, or `*` for any, which is no method.
    static func parse(_ text: String) throws(ValueError) -> [String] {
        if text == "*" { return [] }
        var methods: [String] = []
        for part in text.split(separator: ",", omittingEmptySubsequences: false) {
            let name = String(part)
            guard !name.isEmpty else {
                throw ValueError(
                    message: "\(text.quoted) has an empty method",
                    remedy: "write GET,POST without spaces")
            }
            if name.hasPrefix("/") {
                throw ValueError(
                    message: "\(text.quoted) stands where the methods belong",
                    remedy: "write METHODS PATH, such as * \(name)")
            }
            guard registered.contains(name) else {
                let near =
                    registered.contains(name.uppercased())
                    ? name.uppercased() : NearestWord.find(name, in: registered)
                throw ValueError(
                    message: "unknown method \(name.quoted)"
                        + (near.map { "; did you mean \"\($0)\"?" } ?? ""),
                    remedy: "a method that is not registered is answered 501")
            }
            if name == "CONNECT" || name == "TRACE" || name == "PRI" {
                throw ValueError(
                    message: "a route for \(name) could never match",
                    remedy: "\(name) is answered 501")
            }
            guard !methods.contains(name) else {
                throw ValueError(message: "method \(name) is named twice", remedy: "delete one")
            }
            methods.append(name)
        }
        return methods
    }

    /// The IANA HTTP Method Registry (RFC 9110 §16.1), without `*`.
    static let registered = [
        "ACL", "BASELINE-CONTROL", "BIND", "CHECKIN", "CHECKOUT", "CONNECT", "COPY", "DELETE",
        "GET",
        "HEAD", "LABEL", "LINK", "LOCK", "MERGE", "MKACTIVITY", "MKCALENDAR", "MKCOL",
        "MKREDIRECTREF", "MKWORKSPACE", "MOVE", "OPTIONS", "ORDERPATCH", "PATCH", "POST", "PRI",
        "PROPFIND", "PROPPATCH", "PUT", "QUERY", "REBIND", "REPORT", "SEARCH", "TRACE", "UNBIND",
        "UNCHECKOUT", "UNLINK", "UNLOCK", "UPDATE", "UPDATEREDIRECTREF", "VERSION-CONTROL",
    ]
}
