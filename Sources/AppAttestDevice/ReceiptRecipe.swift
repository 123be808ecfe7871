internal import GateBytes
package import GateCrypto

/// A receipt before it is signed: CMS SignedData (RFC 5652) in BER. Tests change one thing and
/// encode.
///
/// Apple's are indefinite in length, hold the content as a constructed OCTET STRING of 1,000-byte
/// pieces, and sign the bare content without signed attributes; so do these. The content is a SET
/// of SEQUENCE { type, version 1, OCTET STRING }.
package struct ReceiptRecipe: Sendable {
    /// The fields in their order, by type.
    package var fields: [(type: UInt64, value: [UInt8])]
    /// The content that is signed; nil for what the fields make.
    package var content: [UInt8]?
    /// Signer, intermediate and root, or others.
    package var certificates: [[UInt8]]
    /// The issuer that the signer is named by.
    package var issuerName: [UInt8]
    /// The serial number that the signer is named by, big endian.
    package var serialNumber: [UInt8]
    /// The signer's key.
    package var key: ECPrivateKey
    /// Signed attributes, whole; empty for none.
    package var signedAttributes: [UInt8] = []
    /// The number of times that the signer stands there.
    package var signerCount = 1
    /// Whether lengths are left open and the content is in pieces, as Apple's mostly are.
    package var isIndefinite = true

    private static let lifetimeMilliseconds: Int64 = 90 * 86_400_000
    private static let pauseMilliseconds: Int64 = 86_400_000

    /// A receipt such as comes with an attestation, made at `time` (milliseconds since 1970).
    package init(
        root: DeviceRoot, appID: String, leaf: [UInt8], clientDataHash: [UInt8],
        isProduction: Bool, at time: Int64
    ) {
        func text(_ text: String) -> [UInt8] { Array(text.utf8) }
        fields = [
            (2, text(appID)),
            (3, leaf),
            (4, clientDataHash),
            (5, text(Base64.encode(SystemRandom.bytes(64)))),
            (6, text("ATTEST")),
            (7, text(isProduction ? "production" : "sandbox")),
            (12, ReceiptRecipe.time(time)),
            (21, ReceiptRecipe.time(time + ReceiptRecipe.lifetimeMilliseconds)),
        ]
        certificates = root.receiptCertificates
        issuerName = DeviceRoot.receiptIssuerName
        serialNumber = root.receiptSerialNumber
        key = root.receiptKey
    }

    /// Makes it one such as the exchange answers with: `metric`, and not to be asked again before
    /// `notBefore` (milliseconds since 1970; nil for a day after it was made at `time`).
    package mutating func refresh(metric: UInt32, at time: Int64, notBefore: Int64? = nil) {
        self[6] = Array("RECEIPT".utf8)
        self[12] = ReceiptRecipe.time(time)
        self[21] = ReceiptRecipe.time(time + ReceiptRecipe.lifetimeMilliseconds)
        fields.insert((17, Array(String(metric).utf8)), at: 0)
        fields.insert(
            (19, ReceiptRecipe.time(notBefore ?? time + ReceiptRecipe.pauseMilliseconds)),
            at: fields.count - 1)
    }

    /// The value of the first field of a type; nil takes all of that type out.
    package subscript(type: UInt64) -> [UInt8]? {
        get { fields.first { $0.type == type }?.value }
        set {
            let index = fields.firstIndex { $0.type == type }
            if let newValue, let index {
                fields[index].value = newValue
            } else if let newValue {
                fields.append((type, newValue))
            } else {
                fields.removeAll { $0.type == type }
            }
        }
    }

    /// A time as receipts write it.
    package static func time(_ milliseconds: Int64) -> [UInt8] {
        Array(
            CalendarTime(milliseconds / 1000).text(milliseconds: Int(milliseconds % 1000)).utf8)
    }

    /// The receipt's bytes.
    package func encoded() -> [UInt8] {
        let content = content ?? payload
        let sha256 = DER.sequence(DER.oid(2, 16, 840, 1, 101, 3, 4, 2, 1), DER.null)
        let signer = DER.sequence(
            DER.integer(1), DER.sequence(issuerName, DER.integer(serialNumber)), sha256,
            signedAttributes, CertificateRecipe.algorithm(.sha256),
            DER.octetString(key.sign(content, digest: .sha256)))
        let pieces = stride(from: 0, to: content.count, by: 1000).flatMap { start in
            DER.octetString(Array(content[start..<min(start + 1000, content.count)]))
        }
        let octets = isIndefinite ? element(0x24, pieces) : DER.octetString(content)
        let data = element(0x30, DER.oid(1, 2, 840, 113549, 1, 7, 1) + element(0xa0, octets))
        let signers = [[UInt8]](repeating: signer, count: signerCount)
        let signed = element(
            0x30,
            DER.integer(1) + DER.set(sha256) + data
                + element(0xa0, Array(certificates.joined()))
                + DER.element(0x31, Array(signers.joined())))
        return element(0x30, DER.oid(1, 2, 840, 113549, 1, 7, 2) + element(0xa0, signed))
    }

    private var payload: [UInt8] {
        DER.element(
            0x31,
            fields.flatMap { type, value in
                DER.sequence(DER.integer(type), DER.integer(1), DER.octetString(value))
            })
    }

    private func element(_ tag: UInt8, _ contents: [UInt8]) -> [UInt8] {
        isIndefinite ? [tag, 0x80] + contents + [0x00, 0x00] : DER.element(tag, contents)
    }
}
