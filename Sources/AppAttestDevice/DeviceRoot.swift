internal import GateBytes
package import GateCrypto

/// A private counterpart of Apple's authorities: a root, an intermediate that issues leaves, and
/// another one whose signer signs receipts. Apple's two chains have two roots; here one must do,
/// since a configuration names one. Nobody trusts it unless a configuration names its root.
package struct DeviceRoot: Sendable {
    /// The root certificate in DER.
    package let certificate: [UInt8]
    /// The intermediate's certificate in DER.
    package let intermediate: [UInt8]
    /// The intermediate's name in DER.
    package let intermediateName: [UInt8]
    /// The intermediate's key, which signs leaves.
    package let intermediateKey: ECPrivateKey
    /// The root's key; needed for other intermediates alone.
    package let key: ECPrivateKey
    /// The receipt chain: signer, intermediate, root.
    package let receiptCertificates: [[UInt8]]
    /// The receipt signer's serial number, big endian.
    let receiptSerialNumber: [UInt8]
    let receiptKey: ECPrivateKey

    /// The lifetime of both chains. Apple's differ; a simulation should just go on working.
    private static let lifetimeSeconds: Int64 = 3650 * 86_400
    /// How long before its making a root is valid, so that tests may set the clock back a little.
    private static let leadSeconds: Int64 = 30 * 86_400

    package static let rootName = CertificateRecipe.name(
        common: "Simulated App Attestation Root CA")
    static let issuerName = CertificateRecipe.name(common: "Simulated App Attestation CA 1")
    package static let receiptIssuerName = CertificateRecipe.name(
        common: "Simulated Application Integration CA 5 - G1")
    package static let receiptSignerName = CertificateRecipe.name(
        common: "Application Attestation Fraud Receipt Signing")

    /// New authorities, valid for ten years around `now` (seconds since 1970).
    package static func generate(at now: Int64) -> DeviceRoot {
        let start = now - leadSeconds
        let end = start + lifetimeSeconds
        func make(
            _ subject: [UInt8], _ key: ECPrivateKey, issuer: [UInt8], issuerKey: ECPrivateKey,
            _ digest: ECDigest, _ extensions: [CertificateRecipe.Extension],
            serialNumber: [UInt8] = SystemRandom.bytes(15)
        ) -> [UInt8] {
            CertificateRecipe(
                serialNumber: serialNumber, issuer: issuer, subject: subject,
                notBefore: start, notAfter: end,
                publicKey: CertificateRecipe.publicKey(key.curve, point: key.point),
                extensions: extensions, digest: digest
            ).signed(by: issuerKey)
        }
        let key = ECPrivateKey.generate(.p384)
        let intermediateKey = ECPrivateKey.generate(.p384)
        let receiptIssuerKey = ECPrivateKey.generate(.p256)
        let receiptKey = ECPrivateKey.generate(.p256)
        let receiptSerialNumber = SystemRandom.bytes(15)
        let authority: [CertificateRecipe.Extension] = [
            .basicConstraints(isAuthority: true), .authorityUsage,
        ]
        let lastAuthority: [CertificateRecipe.Extension] = [
            .basicConstraints(isAuthority: true, pathLength: 0), .authorityUsage,
        ]
        let certificate = make(rootName, key, issuer: rootName, issuerKey: key, .sha384, authority)
        return DeviceRoot(
            certificate: certificate,
            intermediate: make(
                issuerName, intermediateKey, issuer: rootName, issuerKey: key, .sha384,
                lastAuthority),
            intermediateName: issuerName, intermediateKey: intermediateKey, key: key,
            receiptCertificates: [
                make(
                    receiptSignerName, receiptKey, issuer: receiptIssuerName,
                    issuerKey: receiptIssuerKey, .sha256,
                    [.basicConstraints(isAuthority: false), .apple(12, 15, DER.null)],
                    serialNumber: receiptSerialNumber),
                make(
                    receiptIssuerName, receiptIssuerKey, issuer: rootName, issuerKey: key, .sha384,
                    lastAuthority + [.integrationAuthority]),
                certificate,
            ],
            receiptSerialNumber: receiptSerialNumber, receiptKey: receiptKey)
    }

    /// The root certificate as PEM text, for a configuration's `root`.
    package var pem: String {
        var text = "-----BEGIN CERTIFICATE-----\n"
        var rest = Base64.encode(certificate)[...]
        while !rest.isEmpty {
            text += rest.prefix(64) + "\n"
            rest = rest.dropFirst(64)
        }
        return text + "-----END CERTIFICATE-----\n"
    }
}

extension DeviceRoot {
    /// Everything as text, keys included; lines begin with `root.`.
    package func exported() -> String {
        var state = StateText()
        state["root.certificate"] = Base64.encode(certificate)
        state["root.key"] = DeviceRoot.text(key)
        state["root.intermediate"] = Base64.encode(intermediate)
        state["root.intermediate-key"] = DeviceRoot.text(intermediateKey)
        state["root.receipt-certificates"] =
            receiptCertificates.map { Base64.encode($0) }.joined(separator: ",")
        state["root.receipt-serial-number"] = Base64.encode(receiptSerialNumber)
        state["root.receipt-key"] = DeviceRoot.text(receiptKey)
        return state.text
    }

    /// The authorities of an earlier ``exported()``; nil when the text is not that.
    package init?(exported text: String) {
        let state = StateText(text)
        guard let certificate = state["root.certificate"].flatMap({ Base64.decode($0) }),
            let key = DeviceRoot.key(.p384, state["root.key"]),
            let intermediate = state["root.intermediate"].flatMap({ Base64.decode($0) }),
            let intermediateKey = DeviceRoot.key(.p384, state["root.intermediate-key"]),
            let receiptCertificates = state["root.receipt-certificates"]?.split(separator: ",")
                .map({ Base64.decode(String($0)) }),
            receiptCertificates.count == 3,
            let receiptSerialNumber = state["root.receipt-serial-number"]
                .flatMap({ Base64.decode($0) }),
            let receiptKey = DeviceRoot.key(.p256, state["root.receipt-key"])
        else { return nil }
        self.init(
            certificate: certificate, intermediate: intermediate,
            intermediateName: DeviceRoot.issuerName, intermediateKey: intermediateKey, key: key,
            receiptCertificates: receiptCertificates.compactMap { $0 },
            receiptSerialNumber: receiptSerialNumber, receiptKey: receiptKey)
    }

    private static func text(_ key: ECPrivateKey) -> String {
        Base64.encode(key.point + key.scalar)
    }

    private static func key(_ curve: ECCurve, _ text: String?) -> ECPrivateKey? {
        guard let bytes = text.flatMap({ Base64.decode($0) }),
            bytes.count == curve.pointBytes + curve.coordinateBytes
        else { return nil }
        return ECPrivateKey(
            curve, point: Array(bytes[..<curve.pointBytes]),
            scalar: Array(bytes[curve.pointBytes...]))
    }
}
