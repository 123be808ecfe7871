internal import GateBytes

/// Objects field by field, for people. Nothing is judged: what cannot be read is said in its place,
/// and the rest is still shown.
public enum Inspection {
    /// One line: a name and its value as text.
    public struct Field: Equatable, Sendable {
        /// What it is, e.g. `sign counter`; fields of a certificate begin with its role.
        public let name: String
        /// Its value; bytes in hexadecimal.
        public let value: String

        init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }

        init(_ name: String, _ bytes: some Collection<UInt8>) {
            self.init(name, Hex.encode(Array(bytes)))
        }
    }

    /// What bytes look like.
    public enum Kind: String, Sendable {
        /// An assertion.
        case assertion
        /// An attestation object.
        case attestation
        /// Authenticator data alone.
        case authenticatorData = "authenticator data"
        /// A CMS structure: a receipt.
        case receipt
        /// None of these.
        case unknown
    }

    /// What `bytes` look like, by their first bytes and member names alone.
    ///
    /// - Returns: a guess, good for choosing how to print; it says nothing of whether they verify.
    ///
    /// Sources: WebAuthn §6.1 and §6.5 for authenticator data and attestation objects; RFC 5652 §3
    /// for a receipt.
    public static func kind(of bytes: [UInt8]) -> Kind {
        if let first = bytes.first, first >> 5 == 5 {
            let names = members(of: bytes).names
            if names.contains("authData") || names.contains("attStmt") { return .attestation }
            if names.contains("authenticatorData") || names.contains("signature") {
                return .assertion
            }
        }
        let isSequence = bytes.starts(with: [0x30, 0x80]) || bytes.starts(with: [0x30, 0x82])
        if isSequence, bytes.prefix(24).contains(subsequence: OID.signedData.contents) {
            return .receipt
        }
        return isAuthenticatorData(bytes) ? .authenticatorData : .unknown
    }

    /// Whether after the head comes nothing, a map of extensions, or a credential whose ID has a
    /// key ID's 32 bytes (WebAuthn §6.5.1: AAGUID of 16, length of 2).
    private static func isAuthenticatorData(_ bytes: [UInt8]) -> Bool {
        let rest = bytes.dropFirst(AuthenticatorDataHead.count)
        guard let first = rest.first else { return bytes.count == AuthenticatorDataHead.count }
        return first >> 5 == 5 || rest.dropFirst(16).starts(with: [0, 32])
    }

    /// The fields of whatever `bytes` look like.
    ///
    /// - Returns: a line for each member in the order of the bytes, up to the first that cannot be
    ///   read: there a field `fault` says why. Never empty.
    public static func fields(of bytes: [UInt8]) -> [Field] {
        switch kind(of: bytes) {
        case .assertion: return assertion(bytes)
        case .attestation: return attestation(bytes)
        case .authenticatorData: return authenticatorData(bytes)
        case .receipt: return receipt(bytes)
        case .unknown: return [Field("fault", "unknown form, \(bytes.count) bytes")]
        }
    }

    /// The fields of an attestation object (WebAuthn §6.5), as ``fields(of:)``.
    ///
    /// - Returns: its members, the certificates and authenticator data among them field by field.
    public static func attestation(_ bytes: [UInt8]) -> [Field] {
        let found = members(of: bytes)
        var fields: [Field] = []
        for member in found.members {
            switch (member.name, member.path, member.type) {
            case ("fmt", .top, .text):
                fields.append(Field("format", text(bytes, member.contents)))
            case ("x5c", .statement, .bytes):
                let role: CertificateRole? =
                    member.index == 0 ? .leaf : member.index == 1 ? .intermediate : nil
                let name = role?.rawValue ?? "certificate \(member.index)"
                fields += certificate(Array(bytes[member.contents]), name: name)
            case ("receipt", .statement, .bytes):
                fields.append(Field("receipt", "\(member.contents.count) bytes"))
            case ("authData", .top, .bytes):
                fields += authenticatorData(Array(bytes[member.contents]))
            default:
                fields.append(other(bytes, member))
            }
        }
        if let fault = found.fault { fields.append(Field("fault", fault.description)) }
        return fields
    }

    /// The fields of an assertion (Apple's CBOR map of signature and authenticator data), as
    /// ``fields(of:)``.
    ///
    /// - Returns: its members, the authenticator data among them field by field.
    public static func assertion(_ bytes: [UInt8]) -> [Field] {
        let found = members(of: bytes)
        var fields: [Field] = []
        for member in found.members {
            switch (member.name, member.type) {
            case ("signature", .bytes):
                fields.append(Field("signature", bytes[member.contents]))
            case ("authenticatorData", .bytes):
                fields += authenticatorData(Array(bytes[member.contents]), isAttestation: false)
            default:
                fields.append(other(bytes, member))
            }
        }
        if let fault = found.fault { fields.append(Field("fault", fault.description)) }
        return fields
    }

    /// The fields of authenticator data. Which of the two layouts it has, the bytes do not say for
    /// certain: an AAGUID of App Attest at its place is taken for an attestation's.
    public static func authenticatorData(_ bytes: [UInt8]) -> [Field] {
        let isAttestation =
            bytes.count >= 53
            && Environment.allCases.contains { $0.aaguid == Array(bytes[37..<53]) }
        return authenticatorData(bytes, isAttestation: isAttestation)
    }

    private static func authenticatorData(_ bytes: [UInt8], isAttestation: Bool) -> [Field] {
        guard let head = AuthenticatorDataHead(bytes, 0..<bytes.count) else {
            return [Field("fault", "authenticator data cut off after \(bytes.count) bytes")]
        }
        var fields = [
            Field("relying party ID hash", head.relyingPartyIDHash.array),
            Field("flags", "0x" + Hex.encode([head.flags])),
            Field("sign counter", String(head.signCounter)),
        ]
        var rest = AuthenticatorDataHead.count..<bytes.count
        if isAttestation {
            do {
                let data = try AttestationAuthenticatorData(bytes, 0..<bytes.count)
                let environment = Environment.allCases.first { $0.aaguid == data.aaguid }
                fields += [
                    Field("AAGUID", data.aaguid),
                    Field("environment", environment?.rawValue ?? "unknown"),
                    Field("credential ID", data.credentialID.array),
                    Field("key ID", KeyID(data.credentialID).base64),
                    Field("credential key", data.publicKey.x963),
                ]
                rest = data.extensions
            } catch {
                return fields + [Field("fault", error.description)]
            }
        }
        return fields + extensions(bytes, rest)
    }

    private static func extensions(_ bytes: [UInt8], _ range: Range<Int>) -> [Field] {
        switch OSExtensions(bytes, range) {
        case .absent:
            return []
        case .unreadable:
            return [Field("extensions", "unreadable, " + Hex.encode(Array(bytes[range])))]
        case .members(let members):
            var fields: [Field] = []
            if let version = members.bundleVersion {
                fields.append(Field("bundle version", version))
            }
            if let category = members.validationCategory {
                let name = category.name.map { " (\($0))" } ?? ""
                fields.append(Field("validation category", "\(category.rawValue)" + name))
            }
            if let hash = members.codeDirectoryHash {
                fields.append(Field("code directory hash", hash))
            }
            if let type = members.codeDirectoryHashType {
                fields.append(Field("code directory hash type", type))
            }
            return fields
        }
    }

    private static func other(_ bytes: [UInt8], _ member: Member) -> Field {
        Field(
            "other member " + member.name,
            "\(member.item.count) bytes, " + Hex.encode(Array(bytes[member.item].prefix(64))))
    }

    static func text(_ bytes: [UInt8], _ range: Range<Int>) -> String {
        String(decoding: bytes[range], as: UTF8.self)
    }
}

// The members of an object, found without asking for any.
extension Inspection {
    /// Where a member stands.
    private enum Path {
        case statement
        case top
    }

    private struct Member {
        let name: String
        let path: Path
        /// The place in an array; 0 outside.
        let index: Int
        /// The kind, for text and byte strings.
        let type: CBORType?
        /// The contents of text and byte strings; empty for the rest.
        let contents: Range<Int>
        /// The whole item.
        let item: Range<Int>
    }

    private struct Members {
        var members: [Member] = []
        var fault: CBORError?

        var names: [String] { members.map(\.name) }
    }

    private static func members(of bytes: [UInt8]) -> Members {
        var found = Members()
        do throws(CBORError) {
            var reader = CBORReader(bytes, 0..<bytes.count)
            for _ in 0..<(try reader.readMap()) {
                let name = text(bytes, try reader.readText())
                if name == "attStmt", reader.nextType == .map {
                    for _ in 0..<(try reader.readMap()) {
                        let inner = text(bytes, try reader.readText())
                        try readMember(inner, .statement, &reader, &found)
                    }
                } else {
                    try readMember(name, .top, &reader, &found)
                }
            }
            try reader.finish()
        } catch {
            found.fault = error
        }
        return found
    }

    private static func readMember(
        _ name: String, _ path: Path, _ reader: inout CBORReader, _ found: inout Members
    ) throws(CBORError) {
        var count = 1
        if name == "x5c", reader.nextType == .array { count = try reader.readArray() }
        for index in 0..<count {
            let start = reader.position
            let type = reader.nextType
            var contents = start..<start
            switch type {
            case .bytes: contents = try reader.readBytes()
            case .text: contents = try reader.readText()
            default: try reader.skip(depth: path == .top ? 1 : 2)
            }
            found.members.append(
                Member(
                    name: name, path: path, index: index, type: type, contents: contents,
                    item: start..<reader.position))
        }
    }
}

extension Collection<UInt8> {
    fileprivate func contains(subsequence other: [UInt8]) -> Bool {
        indices.contains { self[$0...].starts(with: other) }
    }
}
