internal import GateBytes
internal import GateCrypto

/// The chain of a receipt: signer and intermediate, which come with it, below a pinned root.
///
/// It is not an attestation's: Application Attestation Fraud Receipt Signing ← Apple Application
/// Integration CA 5 - G1 ← Apple Root CA - G3. The intermediate's siblings sign much else for
/// Apple, so each of the two must carry the extension that marks it for its task.
struct ReceiptChain {
    let signer: Certificate
    let intermediate: Certificate
    let root: TrustRoot

    /// Finds the signer's certificate by the issuer and serial number that the signature names, and
    /// the intermediate by its name. The root that comes along is not looked at.
    init(_ data: SignedData, _ signer: SignedData.Signer, root: TrustRoot) throws(ReceiptError) {
        var certificates: [Certificate] = []
        for bytes in data.certificates {
            do throws(CertificateError) {
                certificates.append(try Certificate(bytes))
            } catch {
                throw .certificateUnreadable(error)
            }
        }
        let found = certificates.first { certificate in
            certificate.bytes[certificate.issuer].elementsEqual(signer.issuer)
                && certificate.bytes[certificate.serialNumber].elementsEqual(signer.serialNumber)
        }
        guard let found else { throw .certificateMissing(.signer) }
        guard let intermediate = certificates.first(where: { found.isIssued(by: $0) }) else {
            throw .certificateMissing(.intermediate)
        }
        self.signer = found
        self.intermediate = intermediate
        self.root = root
    }

    /// Checks names, constraints and signatures up to the pinned root; not the dates.
    func verify() throws(ReceiptError) {
        var role = CertificateRole.signer
        do throws(CertificateError) {
            try signer.refuseUnknownCritical()
            if let constraints = try signer.basicConstraints(), constraints.isAuthority {
                throw .authorityUnexpected
            }

            role = .intermediate
            try intermediate.refuseUnknownCritical()
            let intermediateKey = try intermediate.authorityKey(authoritiesBelow: 0)
            guard intermediate.isIssued(by: root.certificate) else { throw .issuerMismatch }
            try intermediate.verifySignature(by: root.key)

            role = .signer
            guard signer.isIssued(by: intermediate) else { throw .issuerMismatch }
            try signer.verifySignature(by: intermediateKey)
        } catch {
            throw .certificate(role, error)
        }
    }

    /// Checks that both certificates are marked for what they do here.
    func verifyMarks() throws(ReceiptError) {
        for (role, certificate, oid) in [
            (CertificateRole.signer, signer, OID.appleReceiptSigner),
            (.intermediate, intermediate, .appleIntegrationAuthority),
        ] where certificate.value(of: oid) == nil {
            throw .markMissing(role, oid)
        }
    }

    /// Checks the signature over `content`.
    func verifySignature(
        _ signature: [UInt8], over content: [UInt8]
    ) throws(ReceiptError) {
        guard case .ellipticCurve(.p256, let point) = signer.publicKey,
            let key = ECPublicKey(.p256, point: point)
        else { throw .certificate(.signer, .keyUnsupported) }
        guard
            key.isValidSignature(
                signature, 0..<signature.count, message: content, 0..<content.count,
                digest: .sha256)
        else { throw .signatureInvalid }
    }

    /// Checks that `time` (milliseconds since 1970), when the receipt was made, is inside the
    /// validity of all three.
    func verifyValidity(at time: Int64) throws(ReceiptError) {
        let skew = CertificateChain.skewSeconds * 1000
        for (role, certificate) in [
            (CertificateRole.signer, signer), (.intermediate, intermediate),
            (.root, root.certificate),
        ] {
            // Validities and times of receipts lie in years 1 to 9999: nothing here overflows.
            guard time >= certificate.notBefore * 1000 - skew else {
                throw .certificateNotYetValid(
                    role, notBefore: certificate.notBefore, at: time / 1000)
            }
            guard time <= certificate.notAfter * 1000 + skew else {
                throw .certificateExpired(role, notAfter: certificate.notAfter, at: time / 1000)
            }
        }
    }
}
