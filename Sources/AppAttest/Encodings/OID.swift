/// An object identifier by its encoded contents, so that comparing is comparing bytes.
public struct OID: Hashable, Sendable {
    /// The contents octets (X.690 §8.19).
    let contents: [UInt8]

    /// The identifier whose contents octets are `contents`; nil unless every arc is in its shortest
    /// form and the last one ends.
    package init?(_ contents: ArraySlice<UInt8>) {
        guard let last = contents.last, last & 0x80 == 0 else { return nil }
        var isFirstOctet = true
        for octet in contents {
            guard !isFirstOctet || octet != 0x80 else { return nil }
            isFirstOctet = octet & 0x80 == 0
        }
        self.contents = Array(contents)
    }

    private init(known contents: [UInt8]) {
        self.contents = contents
    }

    static let basicConstraints = OID(known: [0x55, 0x1d, 0x13])
    /// 1.2.840.113549.1.7.1: CMS data.
    static let data = OID(known: pkcs7 + [0x01])
    static let ecPublicKey = OID(known: [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01])
    static let ecdsaWithSHA256 = OID(known: [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02])
    static let ecdsaWithSHA384 = OID(known: [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x03])
    static let extendedKeyUsage = OID(known: [0x55, 0x1d, 0x25])
    static let keyUsage = OID(known: [0x55, 0x1d, 0x0f])
    static let p256 = OID(known: [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07])
    static let p384 = OID(known: [0x2b, 0x81, 0x04, 0x00, 0x22])
    static let sha256 = OID(
        known: [0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01])
    /// 1.2.840.113549.1.7.2: CMS signed data.
    static let signedData = OID(known: pkcs7 + [0x02])

    /// 1.2.840.113635.100.6.2.3: marks an intermediate for application integration.
    static let appleIntegrationAuthority = OID(known: apple + [0x06, 0x02, 0x03])
    /// 1.2.840.113635.100.8.2: the nonce of the attestation.
    static let appleNonce = OID(known: apple + [0x08, 0x02])
    /// 1.2.840.113635.100.8.5: fields about the key.
    static let appleKey = OID(known: apple + [0x08, 0x05])
    /// 1.2.840.113635.100.8.6: the key's access-control list.
    static let appleAccessControl = OID(known: apple + [0x08, 0x06])
    /// 1.2.840.113635.100.8.7: fields about the system.
    static let appleSystem = OID(known: apple + [0x08, 0x07])

    /// 1.2.840.113635.100.12.15: marks a signer of fraud receipts.
    static let appleReceiptSigner = OID(known: apple + [0x0c, 0x0f])

    /// 1.2.840.113549.1.7
    private static let pkcs7: [UInt8] = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07]
    /// 1.2.840.113635.100
    private static let apple: [UInt8] = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x63, 0x64]
}

extension OID: CustomStringConvertible {
    /// The dotted form; an arc beyond 64 bits is shown as `?`.
    public var description: String {
        var arcs: [String] = []
        var value: UInt64? = 0
        for octet in contents {
            value = value.flatMap { $0 >> 57 == 0 ? $0 << 7 | UInt64(octet & 0x7f) : nil }
            guard octet & 0x80 == 0 else { continue }
            if arcs.isEmpty, let first = value {
                let root = min(first / 40, 2)
                arcs = [String(root), String(first - root * 40)]
            } else {
                arcs.append(value.map { String($0) } ?? "?")
            }
            value = 0
        }
        return arcs.joined(separator: ".")
    }
}
