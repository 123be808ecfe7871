internal import GateBytes

/// One certificate out of a PEM or DER file; whether it is a good one is not judged here.
enum CertificateText: Equatable {
    /// The DER of the one certificate.
    case one([UInt8])
    /// More than one stands there.
    case several(Int)
    /// None stands there.
    case unreadable

    /// What `bytes` hold.
    static func decode(_ bytes: [UInt8]) -> CertificateText {
        if isDER(bytes) { return .one(bytes) }
        let begin = "-----BEGIN CERTIFICATE-----"
        let end = "-----END CERTIFICATE-----"
        var rest = String(decoding: bytes, as: UTF8.self)
        var found: [[UInt8]] = []
        while let body = rest.cut(at: begin).after {
            let parts = String(body).cut(at: end)
            guard let after = parts.after,
                let der = Base64.decode(parts.before.utf8.filter { !isSpace($0) }), isDER(der)
            else { return .unreadable }
            found.append(der)
            rest = String(after)
        }
        switch found.count {
        case 0: return .unreadable
        case 1: return .one(found[0])
        default: return .several(found.count)
        }
    }

    private static func isSpace(_ byte: UInt8) -> Bool {
        byte == 0x20 || byte == 0x09 || byte == 0x0a || byte == 0x0d
    }

    /// Whether `bytes` are one SEQUENCE of exactly their length (X.690 §8.1.3, two length bytes: a
    /// certificate has over 255 bytes and under 64 KiB).
    private static func isDER(_ bytes: [UInt8]) -> Bool {
        guard bytes.count >= 4, bytes[0] == 0x30, bytes[1] == 0x82 else { return false }
        return Int(bytes[2]) << 8 | Int(bytes[3]) == bytes.count - 4
    }
}
