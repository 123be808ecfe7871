package import GateCrypto

/// A certificate before it is signed. Tests change one thing and sign.
package struct CertificateRecipe: Sendable {
    /// The serial number, big endian.
    package var serialNumber: [UInt8]
    /// The issuer's name in DER.
    package var issuer: [UInt8]
    /// The subject's name in DER.
    package var subject: [UInt8]
    /// The first second of the validity, since 1970.
    package var notBefore: Int64
    /// The last second of the validity.
    package var notAfter: Int64
    /// The subject's public key information in DER.
    package var publicKey: [UInt8]
    /// The extensions in their order.
    package var extensions: [Extension]
    /// The hash of the issuer's signature.
    package var digest: ECDigest

    /// A certificate to be signed.
    package init(
        serialNumber: [UInt8], issuer: [UInt8], subject: [UInt8], notBefore: Int64,
        notAfter: Int64, publicKey: [UInt8], extensions: [Extension], digest: ECDigest
    ) {
        self.serialNumber = serialNumber
        self.issuer = issuer
        self.subject = subject
        self.notBefore = notBefore
        self.notAfter = notAfter
        self.publicKey = publicKey
        self.extensions = extensions
        self.digest = digest
    }

    /// One extension.
    package struct Extension: Sendable {
        /// The identifier in DER.
        package var oid: [UInt8]
        /// Whether it is critical.
        package var isCritical: Bool
        /// The extension's own DER.
        package var value: [UInt8]

        /// An extension.
        package init(oid: [UInt8], isCritical: Bool, value: [UInt8]) {
            self.oid = oid
            self.isCritical = isCritical
            self.value = value
        }
    }

    /// The certificate in DER, signed by `key`.
    package func signed(by key: ECPrivateKey) -> [UInt8] {
        let algorithm = CertificateRecipe.algorithm(digest)
        var fields = DER.tagged(0, DER.integer(2))
        fields += DER.integer(serialNumber)
        fields += algorithm
        fields += issuer
        fields += DER.sequence(DER.time(notBefore), DER.time(notAfter))
        fields += subject
        fields += publicKey
        let list = extensions.flatMap { item in
            DER.sequence(
                item.oid, item.isCritical ? DER.isTrue : [], DER.octetString(item.value))
        }
        if !list.isEmpty { fields += DER.tagged(3, DER.element(0x30, list)) }
        let signedPart = DER.element(0x30, fields)
        return DER.sequence(
            signedPart, algorithm, DER.bitString(key.sign(signedPart, digest: digest)))
    }

    /// The identifier of ECDSA with `digest`, which has no parameters.
    static func algorithm(_ digest: ECDigest) -> [UInt8] {
        switch digest {
        case .sha256: return DER.sequence(DER.oid(1, 2, 840, 10045, 4, 3, 2))
        case .sha384: return DER.sequence(DER.oid(1, 2, 840, 10045, 4, 3, 3))
        }
    }

    /// The public key information of an uncompressed point.
    package static func publicKey(_ curve: ECCurve, point: [UInt8]) -> [UInt8] {
        let name: [UInt8]
        switch curve {
        case .p256: name = DER.oid(1, 2, 840, 10045, 3, 1, 7)
        case .p384: name = DER.oid(1, 3, 132, 0, 34)
        }
        return DER.sequence(
            DER.sequence(DER.oid(1, 2, 840, 10045, 2, 1), name), DER.bitString(point))
    }

    /// A name as Apple writes it: common name, unit, organisation, state.
    package static func name(common: String, unit: String? = nil) -> [UInt8] {
        func part(_ arc: UInt32, _ text: String) -> [UInt8] {
            DER.set(DER.sequence(DER.oid(2, 5, 4, arc), DER.utf8String(text)))
        }
        return DER.sequence(
            part(3, common), unit.map { part(11, $0) } ?? [], part(10, "attestgate"),
            part(8, "Simulation"))
    }
}

extension CertificateRecipe.Extension {
    /// Basic constraints of an authority, or of a certificate that is none.
    package static func basicConstraints(
        isAuthority: Bool, pathLength: UInt64? = nil
    ) -> CertificateRecipe.Extension {
        CertificateRecipe.Extension(
            oid: DER.oid(2, 5, 29, 19), isCritical: true,
            value: DER.sequence(
                isAuthority ? DER.isTrue : [], pathLength.map { DER.integer($0) } ?? []))
    }

    /// Key usage for signing certificates and revocation lists.
    package static let authorityUsage = CertificateRecipe.Extension(
        oid: DER.oid(2, 5, 29, 15), isCritical: true, value: [0x03, 0x02, 0x01, 0x06])

    /// Key usage as Apple's leaves have it.
    package static let leafUsage = CertificateRecipe.Extension(
        oid: DER.oid(2, 5, 29, 15), isCritical: true, value: [0x03, 0x02, 0x04, 0xf0])

    /// The purpose that leaves name since 2026, one of Apple's own.
    package static let purpose = CertificateRecipe.Extension(
        oid: DER.oid(2, 5, 29, 37), isCritical: false,
        value: DER.sequence(DER.oid(1, 2, 840, 113635, 100, 4, 24)))

    /// What marks the issuer of receipts' signers, 1.2.840.113635.100.6.2.3.
    package static let integrationAuthority = CertificateRecipe.Extension(
        oid: DER.oid(1, 2, 840, 113635, 100, 6, 2, 3), isCritical: false, value: DER.null)

    /// One of Apple's extensions, 1.2.840.113635.100.‹arcs›.
    package static func apple(
        _ first: UInt32, _ second: UInt32, _ value: [UInt8]
    ) -> CertificateRecipe.Extension {
        CertificateRecipe.Extension(
            oid: DER.oid(1, 2, 840, 113635, 100, first, second), isCritical: false, value: value)
    }
}
