internal import GateBytes
internal import GateCrypto

/// A receipt such as comes with an attestation: CMS SignedData (RFC 5652) in BER, signed by the
/// simulated receipt chain.
///
/// Apple's are indefinite in length, hold the content as a constructed OCTET STRING of 1,000-byte
/// pieces, and sign the bare content without signed attributes; so do these. The content is a SET
/// of SEQUENCE { type, version 1, OCTET STRING }.
struct Receipt {
    let appID: String
    let leaf: [UInt8]
    let clientDataHash: [UInt8]
    let isProduction: Bool
    /// The attestation's time, seconds since 1970, and the milliseconds above it.
    let seconds: Int64
    let milliseconds: Int

    private static let lifetimeSeconds: Int64 = 90 * 86_400

    /// The receipt's bytes.
    func encoded(root: DeviceRoot) -> [UInt8] {
        let content = content
        let sha256 = DER.sequence(DER.oid(2, 16, 840, 1, 101, 3, 4, 2, 1), DER.null)
        let pieces = stride(from: 0, to: content.count, by: 1000).flatMap { start in
            DER.octetString(Array(content[start..<min(start + 1000, content.count)]))
        }
        let signer = DER.sequence(
            DER.integer(1),
            DER.sequence(
                DeviceRoot.receiptIssuerName, DER.integer(root.receiptSerialNumber)),
            sha256, CertificateRecipe.algorithm(.sha256),
            DER.octetString(root.receiptKey.sign(content, digest: .sha256)))
        let data = Receipt.open(
            0x30,
            DER.oid(1, 2, 840, 113549, 1, 7, 1) + Receipt.open(0xa0, Receipt.open(0x24, pieces)))
        let signed = Receipt.open(
            0x30,
            DER.integer(1) + DER.set(sha256) + data
                + Receipt.open(0xa0, Array(root.receiptCertificates.joined())) + DER.set(signer))
        return Receipt.open(
            0x30, DER.oid(1, 2, 840, 113549, 1, 7, 2) + Receipt.open(0xa0, signed))
    }

    private var content: [UInt8] {
        let made = CalendarTime(seconds).text(milliseconds: milliseconds)
        let end = CalendarTime(seconds + Receipt.lifetimeSeconds).text(milliseconds: milliseconds)
        let fields: [(UInt64, [UInt8])] = [
            (2, Array(appID.utf8)),
            (3, leaf),
            (4, clientDataHash),
            (5, Array(Base64.encode(SystemRandom.bytes(64)).utf8)),
            (6, Array("ATTEST".utf8)),
            (7, Array((isProduction ? "production" : "sandbox").utf8)),
            (12, Array(made.utf8)),
            (21, Array(end.utf8)),
        ]
        return DER.element(
            0x31,
            fields.flatMap { type, value in
                DER.sequence(DER.integer(type), DER.integer(1), DER.octetString(value))
            })
    }

    /// An element of indefinite length.
    private static func open(_ tag: UInt8, _ contents: [UInt8]) -> [UInt8] {
        [tag, 0x80] + contents + [0x00, 0x00]
    }
}
