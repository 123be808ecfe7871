internal import GateCrypto

/// The chain of an attestation: [leaf, intermediate] below a pinned root, never longer or shorter.
///
/// There is no path building and no revocation: Apple's chain has had this one shape since 2020,
/// and its certificates name nothing to fetch. Extended key usage is allowed and not required:
/// leaves have one since 2026, with a purpose of Apple's own.
struct CertificateChain {
    let leaf: Certificate
    let intermediate: Certificate
    let root: TrustRoot

    /// How far a clock may be off at either end of a validity.
    static let skewSeconds: Int64 = 300

    /// Parses both certificates.
    init(leaf: [UInt8], intermediate: [UInt8], root: TrustRoot) throws(AttestationError) {
        self.leaf = try CertificateChain.parse(leaf, .leaf)
        self.intermediate = try CertificateChain.parse(intermediate, .intermediate)
        self.root = root
    }

    private static func parse(
        _ bytes: [UInt8], _ role: CertificateRole
    ) throws(AttestationError) -> Certificate {
        do {
            return try Certificate(bytes)
        } catch {
            throw .certificate(role, error)
        }
    }

    /// The credential certificate's point, `04 ‖ x ‖ y`; nil when its key is not on P-256.
    var leafPoint: [UInt8]? {
        guard case .ellipticCurve(.p256, let point) = leaf.publicKey else { return nil }
        return point
    }

    /// Checks names, constraints and signatures up to the pinned root; not the dates.
    func verify() throws(AttestationError) {
        var role = CertificateRole.leaf
        do throws(CertificateError) {
            try leaf.refuseUnknownCritical()
            if let constraints = try leaf.basicConstraints(), constraints.isAuthority {
                throw .authorityUnexpected
            }
            guard let point = leafPoint else { throw .keyUnsupported }
            guard ECPublicKey(.p256, point: point) != nil else { throw .keyInvalid }

            role = .intermediate
            try intermediate.refuseUnknownCritical()
            let intermediateKey = try intermediate.authorityKey(authoritiesBelow: 0)
            guard intermediate.isIssued(by: root.certificate) else { throw .issuerMismatch }
            try intermediate.verifySignature(by: root.key)

            role = .leaf
            guard leaf.isIssued(by: intermediate) else { throw .issuerMismatch }
            try leaf.verifySignature(by: intermediateKey)
        } catch {
            throw .certificate(role, error)
        }
    }

    /// Checks that `now` (seconds since 1970) is inside the validity of all three, give or take
    /// ``skewSeconds``.
    func verifyValidity(at now: Int64) throws(AttestationError) {
        let all: [(CertificateRole, Certificate)] = [
            (.leaf, leaf), (.intermediate, intermediate), (.root, root.certificate),
        ]
        for (role, certificate) in all {
            // Validities lie in years 1 to 9999, so only the sums with `now` would overflow.
            guard now >= certificate.notBefore - CertificateChain.skewSeconds else {
                throw .certificateNotYetValid(role, notBefore: certificate.notBefore, at: now)
            }
            guard now <= certificate.notAfter + CertificateChain.skewSeconds else {
                throw .certificateExpired(role, notAfter: certificate.notAfter, at: now)
            }
        }
    }
}

extension Certificate {
    /// The key, if this certificate may issue others with `authoritiesBelow` authorities between it
    /// and the leaf.
    func authorityKey(authoritiesBelow: Int) throws(CertificateError) -> ECPublicKey {
        guard let constraints = try basicConstraints(), constraints.isAuthority else {
            throw .authorityMissing
        }
        if let pathLength = constraints.pathLength, pathLength < authoritiesBelow {
            throw .pathTooLong
        }
        guard try maySignCertificates() else { throw .keyUsageLacksSigning }
        guard case .ellipticCurve(let curve, let point) = publicKey else { throw .keyUnsupported }
        guard let key = ECPublicKey(curve, point: point) else { throw .keyInvalid }
        return key
    }

    /// Whether `issuer`'s subject is, byte for byte, the issuer this certificate names.
    func isIssued(by issuer: Certificate) -> Bool {
        bytes[self.issuer].elementsEqual(issuer.bytes[issuer.subject])
    }

    /// Checks the signature under `key`.
    func verifySignature(by key: ECPublicKey) throws(CertificateError) {
        switch signatureAlgorithm {
        case .other(let oid):
            throw .signatureUnsupported(oid)
        case .ecdsa(let digest):
            guard
                key.isValidSignature(
                    bytes, signature, message: bytes, signedPart, digest: digest)
            else { throw .signatureInvalid }
        }
    }
}
