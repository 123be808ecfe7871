internal import GateBytes

/// CMS SignedData (RFC 5652 §5) in BER, as Apple's receipts are, taken apart.
///
/// ```
/// SEQUENCE { 1.2.840.113549.1.7.2, [0] SEQUENCE {
///     version 1, SET OF digest algorithm,
///     SEQUENCE { 1.2.840.113549.1.7.1, [0] OCTET STRING content },
///     [0] certificates, [1] revocation lists OPTIONAL,
///     SET { SEQUENCE { version 1, SEQUENCE { issuer, serial number }, digest algorithm,
///                      [0] signed attributes OPTIONAL, signature algorithm, signature,
///                      [1] unsigned attributes OPTIONAL } } } }
/// ```
/// Exactly one signer, named by issuer and serial number, who signs the bare content. With signed
/// attributes the signature would be over those (§5.4) and the content only bound by a hash among
/// them; Apple's receipts have none, and what has some is refused.
struct SignedData {
    /// What is signed, its pieces put together.
    let content: [UInt8]
    /// The certificates in their order, each in DER, not yet parsed.
    let certificates: [[UInt8]]
    /// Who signed.
    let signers: [Signer]

    /// One who signed.
    struct Signer {
        /// The issuer's name in DER.
        let issuer: [UInt8]
        /// The serial number's two's complement bytes.
        let serialNumber: [UInt8]
        let digestAlgorithm: OID
        let signatureAlgorithm: OID
        let hasSignedAttributes: Bool
        let signature: [UInt8]
    }

    /// A receipt has three.
    static let certificatesMax = 8

    /// The structure that `bytes` are, with nothing behind it.
    init(_ bytes: [UInt8]) throws(BERError) {
        var outer = BERReader(bytes, 0..<bytes.count)
        var information = try outer.enter(BERReader.Tag.sequence)
        try outer.finish()
        try SignedData.expect(.signedData, &information)
        var wrapper = try information.enter(BERReader.Tag.context(0))
        try information.finish()
        var data = try wrapper.enter(BERReader.Tag.sequence)
        try wrapper.finish()

        try SignedData.expectVersion1(&data)
        _ = try data.read(BERReader.Tag.set)
        content = try SignedData.readContent(&data)
        certificates = try SignedData.readCertificates(&data, bytes)
        if data.nextIdentifier == BERReader.Tag.context(1) { _ = try data.next() }
        var list = try data.enter(BERReader.Tag.set)
        try data.finish()
        var signers: [Signer] = []
        while !list.isAtEnd { signers.append(try SignedData.readSigner(&list, bytes)) }
        self.signers = signers
    }

    private static func expect(_ oid: OID, _ reader: inout BERReader) throws(BERError) {
        let position = reader.position
        guard try reader.readObjectIdentifier() == oid else {
            throw .valueMalformed(offset: position)
        }
    }

    private static func expectVersion1(_ reader: inout BERReader) throws(BERError) {
        let position = reader.position
        guard try reader.readSmallInteger() == 1 else { throw .valueMalformed(offset: position) }
    }

    private static func readContent(_ data: inout BERReader) throws(BERError) -> [UInt8] {
        var information = try data.enter(BERReader.Tag.sequence)
        try expect(.data, &information)
        var wrapper = try information.enter(BERReader.Tag.context(0))
        try information.finish()
        let content = try wrapper.readOctetString()
        try wrapper.finish()
        return content
    }

    private static func readCertificates(
        _ data: inout BERReader, _ bytes: [UInt8]
    ) throws(BERError) -> [[UInt8]] {
        guard data.nextIdentifier == BERReader.Tag.context(0) else { return [] }
        let start = data.position
        var list = try data.enter(BERReader.Tag.context(0))
        var certificates: [[UInt8]] = []
        while !list.isAtEnd {
            guard certificates.count < certificatesMax else {
                throw .valueMalformed(offset: start)
            }
            certificates.append(Array(bytes[try list.read(BERReader.Tag.sequence).whole]))
        }
        return certificates
    }

    private static func readSigner(
        _ list: inout BERReader, _ bytes: [UInt8]
    ) throws(BERError) -> Signer {
        var fields = try list.enter(BERReader.Tag.sequence)
        try expectVersion1(&fields)
        var name = try fields.enter(BERReader.Tag.sequence)
        let issuer = try name.read(BERReader.Tag.sequence).whole
        let serialNumber = try name.read(BERReader.Tag.integer).contents
        try name.finish()
        let digestAlgorithm = try readAlgorithm(&fields)
        let hasSignedAttributes = fields.nextIdentifier == BERReader.Tag.context(0)
        if hasSignedAttributes { _ = try fields.next() }
        let signatureAlgorithm = try readAlgorithm(&fields)
        let signature = try fields.readOctetString()
        if fields.nextIdentifier == BERReader.Tag.context(1) { _ = try fields.next() }
        try fields.finish()
        return Signer(
            issuer: Array(bytes[issuer]), serialNumber: Array(bytes[serialNumber]),
            digestAlgorithm: digestAlgorithm, signatureAlgorithm: signatureAlgorithm,
            hasSignedAttributes: hasSignedAttributes, signature: signature)
    }

    /// An algorithm's identifier; parameters, absent or NULL for those that are accepted, say
    /// nothing.
    private static func readAlgorithm(_ fields: inout BERReader) throws(BERError) -> OID {
        var algorithm = try fields.enter(BERReader.Tag.sequence)
        return try algorithm.readObjectIdentifier()
    }
}
