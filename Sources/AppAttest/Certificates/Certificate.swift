internal import GateBytes
internal import GateCrypto

/// One X.509 certificate (RFC 5280 §4.1), walked strictly and kept with its bytes.
///
/// ```
/// SEQUENCE { tbsCertificate, signatureAlgorithm, signature BIT STRING }
/// tbsCertificate = SEQUENCE { [0] version 3, serialNumber, signature, issuer, validity, subject,
///                             subjectPublicKeyInfo, [3] extensions OPTIONAL }
/// ```
/// Parsing accepts any algorithm and key, so that a report can name them; ``CertificateChain``
/// refuses what is not ECDSA. Unique identifiers, which nobody writes, are refused here.
struct Certificate: Sendable {
    /// The DER it was parsed from.
    let bytes: [UInt8]
    /// The part that is signed.
    let signedPart: Range<Int>
    /// How it is signed; inner and outer identifier are the same bytes.
    let signatureAlgorithm: SignatureAlgorithm
    /// The issuer's signature.
    let signature: Range<Int>
    /// The serial number's two's complement bytes.
    let serialNumber: Range<Int>
    /// The issuer's name, in DER.
    let issuer: Range<Int>
    /// The subject's name, in DER.
    let subject: Range<Int>
    /// The first second of the validity, since 1970.
    let notBefore: Int64
    /// The last second of the validity.
    let notAfter: Int64
    /// The subject's key.
    let publicKey: SubjectKey
    /// The extensions in their order, no identifier twice.
    let extensions: [Extension]

    enum SignatureAlgorithm: Equatable {
        case ecdsa(ECDigest)
        case other(OID)
    }

    enum SubjectKey: Equatable {
        /// A named curve and an encoded point, not yet checked against the curve.
        case ellipticCurve(ECCurve, point: [UInt8])
        case other(OID)
    }

    struct Extension {
        let oid: OID
        let isCritical: Bool
        /// Where the extension's own DER is.
        let value: Range<Int>
    }

    /// The certificate that `bytes` are, without anything behind it.
    init(_ bytes: [UInt8]) throws(CertificateError) {
        do throws(DERError) {
            var outer = DERReader(bytes, 0..<bytes.count)
            var certificate = try outer.enter(DERReader.Tag.sequence)
            try outer.finish()
            let signedPart = try certificate.read(DERReader.Tag.sequence)
            let outerAlgorithm = try certificate.read(DERReader.Tag.sequence)
            signature = try certificate.readOctetsOfBits()
            try certificate.finish()

            var fields = DERReader(bytes, signedPart.contents)
            try Certificate.readVersion(&fields, bytes)
            serialNumber = try fields.readInteger()
            let innerAlgorithm = try fields.read(DERReader.Tag.sequence)
            issuer = try fields.read(DERReader.Tag.sequence).whole
            var validity = try fields.enter(DERReader.Tag.sequence)
            notBefore = try Certificate.readTime(&validity, bytes)
            notAfter = try Certificate.readTime(&validity, bytes)
            try validity.finish()
            subject = try fields.read(DERReader.Tag.sequence).whole
            publicKey = try Certificate.readSubjectKey(&fields, bytes)
            extensions = try Certificate.readExtensions(&fields, bytes)
            try fields.finish()

            self.bytes = bytes
            self.signedPart = signedPart.whole
            signatureAlgorithm = try Certificate.readAlgorithm(innerAlgorithm, bytes)
            guard bytes[innerAlgorithm.whole].elementsEqual(bytes[outerAlgorithm.whole]) else {
                throw DERError.valueMalformed(offset: outerAlgorithm.whole.lowerBound)
            }
        } catch {
            throw .der(error)
        }
        var seen: Set<OID> = []
        for item in extensions where !seen.insert(item.oid).inserted {
            throw .extensionDuplicate(item.oid)
        }
    }

    /// The value of the extension `oid`; nil when there is none.
    func value(of oid: OID) -> Range<Int>? {
        extensions.first { $0.oid == oid }?.value
    }
}

extension Certificate {
    private static func readVersion(_ fields: inout DERReader, _ bytes: [UInt8]) throws(DERError) {
        var version = try fields.enter(DERReader.Tag.explicit(0))
        let number = try version.readInteger()
        try version.finish()
        guard number.count == 1, bytes[number.lowerBound] == 2 else {
            throw .valueMalformed(offset: number.lowerBound)
        }
    }

    /// ECDSA identifiers have no parameters (RFC 5758 §3.2); what others have is not looked into.
    private static func readAlgorithm(
        _ element: DERElement, _ bytes: [UInt8]
    ) throws(DERError) -> SignatureAlgorithm {
        var reader = DERReader(bytes, element.contents)
        let oid = try reader.readObjectIdentifier()
        switch oid {
        case .ecdsaWithSHA256:
            try reader.finish()
            return .ecdsa(.sha256)
        case .ecdsaWithSHA384:
            try reader.finish()
            return .ecdsa(.sha384)
        default:
            return .other(oid)
        }
    }

    private static func readSubjectKey(
        _ fields: inout DERReader, _ bytes: [UInt8]
    ) throws(DERError) -> SubjectKey {
        var information = try fields.enter(DERReader.Tag.sequence)
        var algorithm = try information.enter(DERReader.Tag.sequence)
        let key = try information.readOctetsOfBits()
        try information.finish()
        let oid = try algorithm.readObjectIdentifier()
        guard oid == .ecPublicKey else { return .other(oid) }
        let curve = try algorithm.readObjectIdentifier()
        try algorithm.finish()
        switch curve {
        case .p256: return .ellipticCurve(.p256, point: Array(bytes[key]))
        case .p384: return .ellipticCurve(.p384, point: Array(bytes[key]))
        default: return .other(curve)
        }
    }

    private static func readExtensions(
        _ fields: inout DERReader, _ bytes: [UInt8]
    ) throws(DERError) -> [Extension] {
        guard fields.nextIdentifier == DERReader.Tag.explicit(3) else { return [] }
        var wrapper = try fields.enter(DERReader.Tag.explicit(3))
        var list = try wrapper.enter(DERReader.Tag.sequence)
        try wrapper.finish()
        var extensions: [Extension] = []
        repeat {
            var item = try list.enter(DERReader.Tag.sequence)
            let oid = try item.readObjectIdentifier()
            var isCritical = false
            if item.nextIdentifier == DERReader.Tag.boolean {
                isCritical = try item.readBoolean()
                // FALSE is the default, which DER leaves out.
                guard isCritical else { throw .valueMalformed(offset: item.position) }
            }
            let value = try item.read(DERReader.Tag.octetString).contents
            try item.finish()
            extensions.append(Extension(oid: oid, isCritical: isCritical, value: value))
        } while !list.isAtEnd
        return extensions
    }

    /// UTCTime `YYMMDDhhmmssZ` or GeneralizedTime `YYYYMMDDhhmmssZ` (RFC 5280 §4.1.2.5).
    private static func readTime(
        _ validity: inout DERReader, _ bytes: [UInt8]
    ) throws(DERError) -> Int64 {
        let element = try validity.next()
        let malformed = DERError.valueMalformed(offset: element.whole.lowerBound)
        let yearDigits: Int
        switch element.identifier {
        case DERReader.Tag.utcTime: yearDigits = 2
        case DERReader.Tag.generalizedTime: yearDigits = 4
        default: throw malformed
        }
        let text = Array(bytes[element.contents])
        guard text.count == yearDigits + 11, text.last == UInt8(ascii: "Z"),
            text.dropLast().allSatisfy(ASCII.isDigit)
        else { throw malformed }
        func number(_ range: Range<Int>) -> Int {
            text[range].reduce(0) { $0 * 10 + Int($1 & 0x0f) }
        }
        var year = number(0..<yearDigits)
        if yearDigits == 2 { year += year < 50 ? 2000 : 1900 }
        let parts = (0..<5).map { number((yearDigits + 2 * $0)..<(yearDigits + 2 * $0 + 2)) }
        guard
            let seconds = CivilTime.seconds(
                year: year, month: parts[0], day: parts[1], hour: parts[2], minute: parts[3],
                second: parts[4])
        else { throw malformed }
        return seconds
    }
}
