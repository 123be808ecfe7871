internal import GateBytes

/// Names of blocks, fields, hosts, apps and files.
enum NameText {
    /// The name of a block: letters, digits, `-` and `_`.
    static func name(_ text: String) throws(ValueError) -> String {
        guard (1...64).contains(text.utf8.count), text.utf8.allSatisfy(isWordByte) else {
            throw ValueError(
                message: "\(text.quoted) is no name",
                remedy: "write letters, digits, - and _, at most 64")
        }
        return text
    }

    private static func isWordByte(_ byte: UInt8) -> Bool {
        ASCII.isLetter(byte) || ASCII.isDigit(byte) || byte == UInt8(ascii: "-")
            || byte == UInt8(ascii: "_")
    }

    /// `[a-z0-9_-]{1,32}`, none of the reserved purposes.
    static func purpose(_ text: String) throws(ValueError) -> String {
        if text == "attestation" || text == "revoke" {
            throw ValueError(
                message: "purpose \(text.quoted) is reserved", remedy: "choose another name")
        }
        guard (1...32).contains(text.utf8.count),
            text.utf8.allSatisfy({ isWordByte($0) && $0 == ASCII.lowercased($0) })
        else {
            throw ValueError(
                message: "\(text.quoted) is no purpose",
                remedy: "write \(ValueKind.purpose.example)")
        }
        return text
    }

    /// The name of a header field (RFC 9110 §5.6.2 token).
    static func field(_ text: String) throws(ValueError) -> String {
        guard (1...64).contains(text.utf8.count), text.utf8.allSatisfy(isTokenByte) else {
            throw ValueError(
                message: "\(text.quoted) is no field name", remedy: "write a name like X-Account-Id"
            )
        }
        return text
    }

    private static func isTokenByte(_ byte: UInt8) -> Bool {
        ASCII.isLetter(byte) || ASCII.isDigit(byte) || "!#$%&'*+-.^_`|~".utf8.contains(byte)
    }

    /// A host name, or an address as it stands in a URL; given back in lower case without final
    /// dot.
    static func host(_ text: String) throws(ValueError) -> String {
        var name = text.lowercased()
        if name.hasSuffix("."), name.count > 1 { name.removeLast() }
        if name.hasPrefix("["), name.hasSuffix("]"), name.contains(":"),
            IPAddress(String(name.dropFirst().dropLast())) != nil
        {
            return name
        }
        guard !name.contains(":") else {
            throw ValueError(
                message: "\(text.quoted) has a port or a scheme",
                remedy: "write the name alone; the listener has the port")
        }
        guard isHostName(name) else {
            let isWildcard = name.contains("*")
            throw ValueError(
                message: "\(text.quoted) is no host name",
                remedy: isWildcard
                    ? "write each name; there are no wildcards"
                    : "write a name like api.example.com")
        }
        return name
    }

    /// Whether `text` is a name of letters, digits, `-`, `_` and dots between.
    static func isHostName(_ text: String) -> Bool {
        guard (1...253).contains(text.utf8.count) else { return false }
        return text.split(separator: ".", omittingEmptySubsequences: false).allSatisfy { label in
            (1...63).contains(label.utf8.count) && label.utf8.allSatisfy(isWordByte)
                && !label.hasPrefix("-") && !label.hasSuffix("-")
        }
    }

    /// `PREFIX.bundle.id`.
    static func appID(_ text: String) throws(ValueError) -> String {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        let isPrefix =
            parts.first.map { prefix in
                !prefix.isEmpty
                    && prefix.utf8.allSatisfy {
                        ASCII.isDigit($0) || ASCII.isLetter($0) && $0 != ASCII.lowercased($0)
                    }
            } ?? false
        let isBundle = parts.dropFirst().allSatisfy { part in
            !part.isEmpty
                && part.utf8.allSatisfy { isWordByte($0) }
        }
        guard isPrefix, isBundle, parts.count >= 2, text.utf8.count <= 255 else {
            throw ValueError(
                message: "\(text.quoted) is no App ID",
                remedy: "write PREFIX.bundle.id, such as \(ValueKind.appID.example)")
        }
        return text
    }

    /// Digits and dots.
    static func dotted(_ text: String) throws(ValueError) -> String {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.allSatisfy({ !$0.isEmpty && $0.utf8.allSatisfy(ASCII.isDigit) }) else {
            throw ValueError(
                message: "\(text.quoted) is no dotted number", remedy: "write 214 or 1.2.3")
        }
        return text
    }

    /// An absolute path of the file system.
    static func filePath(_ text: String) throws(ValueError) -> String {
        guard text.hasPrefix("/"), !text.utf8.contains(0) else {
            throw ValueError(
                message: "\(text.quoted) is not an absolute path",
                remedy: "write the whole path, from /")
        }
        return text
    }

    /// An https URL.
    static func url(_ text: String) throws(ValueError) -> String {
        guard ServiceURL(text) != nil else {
            throw ValueError(
                message: "\(text.quoted) is no https URL",
                remedy: "write https://name/path, without user information and fragment")
        }
        return text
    }

    /// `credential:NAME`, `file:PATH` and, for secrets, `env:NAME`. A literal secret is never
    /// shown.
    static func reference(
        _ text: String, noun: String, isSecret: Bool
    ) throws(ValueError) -> Reference {
        if let name = text.dropping("credential:") {
            guard !name.isEmpty, !name.hasPrefix("."), !name.contains("/"), !name.utf8.contains(0)
            else {
                throw ValueError(
                    message: "\(name.quoted) is no credential name", remedy: "write credential:NAME"
                )
            }
            return .credential(name)
        }
        if let path = text.dropping("file:") {
            guard !path.isEmpty, !path.utf8.contains(0) else {
                throw ValueError(message: "\"file:\" without a path", remedy: "write file:PATH")
            }
            return .file(path)
        }
        if isSecret, let name = text.dropping("env:") {
            guard !name.isEmpty, name.utf8.allSatisfy({ isWordByte($0) && $0 != UInt8(ascii: "-") })
            else {
                throw ValueError(
                    message: "\(name.quoted) is no name of a variable", remedy: "write env:NAME")
            }
            return .environment(name)
        }
        guard isSecret else {
            throw ValueError(
                message: "\(text.quoted) does not say where the \(noun) stands",
                remedy: "write \(ValueKind.file.example)")
        }
        throw ValueError(
            message: "\(noun) given as text; use credential:NAME or file:PATH", isSecret: true)
    }
}
