internal import GateBytes
internal import GateCrypto

extension Inspection {
    /// The fields of one certificate in DER, each name beginning with `name`.
    public static func certificate(_ der: [UInt8], name: String) -> [Field] {
        let certificate: Certificate
        do {
            certificate = try Certificate(der)
        } catch {
            return [Field("\(name) fault", error.description)]
        }
        let bytes = certificate.bytes
        var fields = [
            Field("\(name) SHA-256", SHA256.hash(bytes).array),
            Field("\(name) serial number", bytes[certificate.serialNumber]),
            Field("\(name) issuer", distinguishedName(bytes, certificate.issuer)),
            Field("\(name) subject", distinguishedName(bytes, certificate.subject)),
            Field("\(name) not before", CivilTime.text(certificate.notBefore)),
            Field("\(name) not after", CivilTime.text(certificate.notAfter)),
            Field("\(name) signature algorithm", text(certificate.signatureAlgorithm)),
        ]
        switch certificate.publicKey {
        case .ellipticCurve(let curve, let point):
            fields.append(Field("\(name) key", text(curve) + " " + Hex.encode(point)))
        case .other(let oid):
            fields.append(Field("\(name) key", "\(oid)"))
        }
        for item in certificate.extensions {
            let critical = item.isCritical ? " critical" : ""
            fields.append(
                Field("\(name) extension \(item.oid)\(critical)", bytes[item.value]))
        }
        for oid in [OID.appleKey, OID.appleSystem] {
            for field in certificate.taggedFields(oid) {
                fields.append(
                    Field("\(name) \(oid) [\(field.number)]", text(field, in: bytes)))
            }
        }
        return fields
    }

    private static func text(_ algorithm: Certificate.SignatureAlgorithm) -> String {
        switch algorithm {
        case .ecdsa(.sha256): return "ECDSA with SHA-256"
        case .ecdsa(.sha384): return "ECDSA with SHA-384"
        case .other(let oid): return "\(oid)"
        }
    }

    private static func text(_ curve: ECCurve) -> String {
        switch curve {
        case .p256: return "P-256"
        case .p384: return "P-384"
        }
    }

    /// Text where the bytes are printable, else hexadecimal.
    private static func text(_ field: Certificate.TaggedField, in bytes: [UInt8]) -> String {
        let value = bytes[field.value]
        if field.isText, value.allSatisfy({ (0x20...0x7e).contains($0) }) {
            return String(decoding: value, as: UTF8.self)
        }
        return Hex.encode(Array(value))
    }

    /// A name's values in their order, e.g. `CN=…, O=Apple Inc.`; for the eye, not for comparing.
    static func distinguishedName(_ bytes: [UInt8], _ range: Range<Int>) -> String {
        var parts: [String] = []
        do throws(DERError) {
            var outer = DERReader(bytes, range)
            var list = try outer.enter(DERReader.Tag.sequence)
            while !list.isAtEnd {
                var set = try list.enter(DERReader.Tag.set)
                while !set.isAtEnd {
                    var pair = try set.enter(DERReader.Tag.sequence)
                    let oid = try pair.readObjectIdentifier()
                    let value = try pair.next()
                    parts.append(label(oid) + "=" + text(bytes, value.contents))
                }
            }
        } catch {
            parts.append("malformed name")
        }
        return parts.joined(separator: ", ")
    }

    private static func label(_ oid: OID) -> String {
        switch oid.description {
        case "2.5.4.3": return "CN"
        case "2.5.4.6": return "C"
        case "2.5.4.8": return "ST"
        case "2.5.4.10": return "O"
        case "2.5.4.11": return "OU"
        default: return oid.description
        }
    }
}
