// What a certificate says it may be used for (RFC 5280 §4.2.1.3, §4.2.1.9).
extension Certificate {
    struct BasicConstraints: Equatable {
        let isAuthority: Bool
        /// How many authorities may follow below; nil when there is no limit.
        let pathLength: Int?
    }

    /// The basic constraints; nil when there is no such extension.
    func basicConstraints() throws(CertificateError) -> BasicConstraints? {
        guard let range = value(of: .basicConstraints) else { return nil }
        do throws(DERError) {
            var outer = DERReader(bytes, range)
            var fields = try outer.enter(DERReader.Tag.sequence)
            try outer.finish()
            var isAuthority = false
            if fields.nextIdentifier == DERReader.Tag.boolean {
                isAuthority = try fields.readBoolean()
                // FALSE is the default, which DER leaves out.
                guard isAuthority else { throw DERError.valueMalformed(offset: range.lowerBound) }
            }
            var pathLength: Int?
            if !fields.isAtEnd {
                let number = try fields.readInteger()
                // A larger one is no limit that two certificates could meet.
                guard number.count == 1, bytes[number.lowerBound] < 0x80, isAuthority else {
                    throw DERError.valueMalformed(offset: range.lowerBound)
                }
                pathLength = Int(bytes[number.lowerBound])
            }
            try fields.finish()
            return BasicConstraints(isAuthority: isAuthority, pathLength: pathLength)
        } catch {
            throw .extensionMalformed(.basicConstraints)
        }
    }

    /// Whether the key may sign certificates: its key usage says so, or there is none.
    func maySignCertificates() throws(CertificateError) -> Bool {
        guard let range = value(of: .keyUsage) else { return true }
        do throws(DERError) {
            var reader = DERReader(bytes, range)
            let bits = try reader.read(DERReader.Tag.bitString).contents
            try reader.finish()
            // The first octet counts the unused bits; bit 5 of the next is keyCertSign.
            guard bits.count >= 2, bytes[bits.lowerBound] < 8 else {
                throw DERError.valueMalformed(offset: range.lowerBound)
            }
            return bytes[bits.lowerBound + 1] & 0x04 != 0
        } catch {
            throw .extensionMalformed(.keyUsage)
        }
    }

    /// Refuses a critical extension that nothing here looks at.
    func refuseUnknownCritical() throws(CertificateError) {
        for item in extensions where item.isCritical {
            switch item.oid {
            case .appleNonce, .basicConstraints, .extendedKeyUsage, .keyUsage: continue
            default: throw .extensionCritical(item.oid)
            }
        }
    }
}
