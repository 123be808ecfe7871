internal import GateBytes

/// The signed members that OS 27 and later put behind the authenticator data, in attestations and
/// in assertions.
///
/// Absence means nothing: older systems, and apps built with an older SDK, have none. Unreadable
/// ones do not refuse the object either, since only the device can have made them and the next
/// system may add to them; whoever decides by them must treat ``unreadable`` as a failed condition.
public enum OSExtensions: Equatable, Sendable {
    /// There are no extensions.
    case absent
    /// What was found; members that this version does not know are left out.
    case members(Members)
    /// The bytes are not one strict CBOR map, or a known member is of another kind.
    case unreadable

    /// The known members.
    public struct Members: Equatable, Sendable {
        /// `apple_bundle_version_01`: CFBundleVersion, e.g. `1314`.
        public var bundleVersion: String?
        /// `apple_validation_category_01`: how the app was signed.
        public var validationCategory: ValidationCategory?
        /// `apple_cd_hash_hash_01`: the code directory's hash, 32 bytes.
        public var codeDirectoryHash: [UInt8]?
        /// `apple_cd_hash_type_01`: which hash that is, one byte, 2 for SHA-256.
        public var codeDirectoryHashType: [UInt8]?

        /// No members.
        public init() {}
    }

    /// The members, when they could be read.
    public var readable: Members? {
        guard case .members(let members) = self else { return nil }
        return members
    }

    /// The extensions that `bytes[range]` are.
    init(_ bytes: [UInt8], _ range: Range<Int>) {
        guard !range.isEmpty else {
            self = .absent
            return
        }
        do throws(CBORError) {
            self = .members(try OSExtensions.parse(bytes, range))
        } catch {
            self = .unreadable
        }
    }

    private static func parse(
        _ bytes: [UInt8], _ range: Range<Int>
    ) throws(CBORError) -> Members {
        var reader = CBORReader(bytes, range)
        var members = Members()
        var keys = CBORKeys()
        for _ in 0..<(try reader.readMap()) {
            let name = try reader.readText()
            try keys.insert(bytes, name)
            if bytes.equals(name, "apple_bundle_version_01") {
                members.bundleVersion = String(
                    decoding: bytes[try reader.readText()], as: UTF8.self)
            } else if bytes.equals(name, "apple_validation_category_01") {
                members.validationCategory = try readCategory(&reader, bytes)
            } else if bytes.equals(name, "apple_cd_hash_hash_01") {
                members.codeDirectoryHash = Array(bytes[try reader.readBytes()])
            } else if bytes.equals(name, "apple_cd_hash_type_01") {
                members.codeDirectoryHashType = Array(bytes[try reader.readBytes()])
            } else {
                try reader.skip(depth: 1)
            }
        }
        try reader.finish()
        return members
    }

    /// Four bytes, little endian, on the wire; Apple's page says UInt32, so an integer is taken as
    /// well.
    private static func readCategory(
        _ reader: inout CBORReader, _ bytes: [UInt8]
    ) throws(CBORError) -> ValidationCategory {
        let offset = reader.position
        if reader.nextType == .integer {
            guard let number = UInt32(exactly: try reader.readInteger()) else {
                throw .integerOutOfRange(offset: offset)
            }
            return ValidationCategory(rawValue: number)
        }
        let range = try reader.readBytes()
        guard range.count == 4 else { throw .typeMismatch(expected: .bytes, offset: offset) }
        return ValidationCategory(
            rawValue: bytes[range].reversed().reduce(0) { $0 << 8 | UInt32($1) })
    }
}

/// How an app was signed, by Apple's number; numbers that are not named here may come.
public struct ValidationCategory: RawRepresentable, Hashable, Sendable {
    /// Apple's number.
    public let rawValue: UInt32

    /// The category of Apple's number.
    public init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// The category's name in configuration and in the upstream's field, e.g. `app_store`; nil for
    /// a number that has none.
    public var name: String? {
        rawValue < UInt32(ValidationCategory.names.count)
            ? ValidationCategory.names[Int(rawValue)] : nil
    }

    /// The category called `name`; nil when there is none.
    public init?(name: String) {
        guard let index = ValidationCategory.names.firstIndex(of: name) else { return nil }
        rawValue = UInt32(index)
    }

    private static let names = [
        "invalid", "os", "testflight", "development", "app_store", "enterprise", "developer_id",
        "local", "rosetta", "jit", "none",
    ]
}

extension ValidationCategory: CustomStringConvertible {
    /// The name, or the number.
    public var description: String { name ?? String(rawValue) }
}

extension Array where Element == UInt8 {
    /// Whether the bytes in `range` are those of `text`.
    func equals(_ range: Range<Int>, _ text: StaticString) -> Bool {
        guard range.count == text.utf8CodeUnitCount else { return false }
        return text.withUTF8Buffer { expected in
            for offset in 0..<range.count
            where unsafe self[range.lowerBound + offset] != expected[offset] {
                return false
            }
            return true
        }
    }
}
