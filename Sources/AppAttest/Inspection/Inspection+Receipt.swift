internal import GateBytes

extension Inspection {
    /// The fields of a receipt (RFC 5652 §5), as ``fields(of:)``.
    ///
    /// - Returns: its payload field by field, its signers, and the certificates that came along.
    public static func receipt(_ bytes: [UInt8]) -> [Field] {
        let data: SignedData
        do {
            data = try SignedData(bytes)
        } catch {
            return [Field("fault", error.description)]
        }
        var fields: [Field] = []
        do {
            for (type, value) in try ReceiptFields(data.content).all {
                fields += receiptField(type, value)
            }
        } catch {
            fields.append(Field("fault", error.description))
        }
        for signer in data.signers {
            fields += [
                Field("signer issuer", distinguishedName(signer.issuer, 0..<signer.issuer.count)),
                Field("signer serial number", signer.serialNumber),
                Field("signer digest", "\(signer.digestAlgorithm)"),
                Field("signer algorithm", "\(signer.signatureAlgorithm)"),
                Field("signed attributes", signer.hasSignedAttributes ? "yes" : "none"),
                Field("signature", signer.signature),
            ]
        }
        for (index, certificate) in data.certificates.enumerated() {
            fields += self.certificate(certificate, name: "certificate \(index)")
        }
        return fields
    }

    private static func receiptField(_ type: Int, _ value: [UInt8]) -> [Field] {
        let text = String(decoding: value, as: UTF8.self)
        switch ReceiptField(rawValue: type) {
        case .appID: return [Field("App ID", text)]
        case .certificate: return certificate(value, name: "leaf")
        case .clientDataHash: return [Field("client data hash", value)]
        case .token: return [Field("token", text)]
        case .kind: return [Field("kind", text)]
        case .environment: return [Field("environment", text)]
        case .creationTime: return [Field("creation time", text)]
        case .riskMetric: return [Field("risk metric", text)]
        case .notBefore: return [Field("not before", text)]
        case .expirationTime: return [Field("expiration time", text)]
        case nil: return [Field("field \(type)", value)]
        }
    }
}
