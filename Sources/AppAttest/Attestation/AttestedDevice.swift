/// What a leaf certificate says about the device: undocumented fields, a signal at most. Absent
/// where the leaf has none or they cannot be read; nothing is refused for it.
public struct AttestedDevice: Equatable, Sendable {
    /// `iphoneos`, `macosx`; only since 2026.
    public let platform: String?
    /// The system's version, e.g. `27.0.1`.
    public let systemVersion: String?
    /// The system's build, e.g. `24A446`.
    public let systemBuild: String?
    /// The key's access-control list in DER; since iOS 26.2.
    public let accessControl: [UInt8]?

    init(leaf: Certificate) {
        let fields = leaf.taggedFields(.appleSystem)
        func text(_ number: UInt32) -> String? {
            guard let range = fields.first(where: { $0.number == number })?.value else {
                return nil
            }
            return String(validating: leaf.bytes[range], as: UTF8.self)
        }
        platform = text(1026)
        systemVersion = text(1400) ?? text(1405)
        systemBuild = text(1403)
        accessControl = leaf.value(of: .appleAccessControl).map { Array(leaf.bytes[$0]) }
    }
}

extension Certificate {
    /// One field of Apple's lists: an explicit context tag around a primitive value.
    struct TaggedField {
        let number: UInt32
        let isText: Bool
        let value: Range<Int>
    }

    /// The fields of the extension `oid`, a SEQUENCE of explicitly tagged values; none when it is
    /// absent or of another form.
    func taggedFields(_ oid: OID) -> [TaggedField] {
        guard let range = value(of: oid) else { return [] }
        var fields: [TaggedField] = []
        do throws(DERError) {
            var outer = DERReader(bytes, range)
            var list = try outer.enter(DERReader.Tag.sequence)
            while !list.isAtEnd {
                let field = try list.next()
                var inner = DERReader(bytes, field.contents)
                let value = try inner.next()
                fields.append(
                    TaggedField(
                        number: field.number,
                        isText: value.identifier == DERReader.Tag.octetString,
                        value: value.contents))
            }
        } catch {
            // For people only; what could be read so far is still worth showing.
            return fields
        }
        return fields
    }
}
