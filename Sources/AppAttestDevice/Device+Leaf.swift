internal import GateBytes
internal import GateCrypto

// The credential certificate: three days, its serial number the issue time in milliseconds, its
// name the key ID, and Apple's extensions in the order and form of the shape's years.
extension Device {
    private static let leadSeconds: Int64 = 86_400
    private static let lifetimeSeconds: Int64 = 3 * 86_400

    /// The leaf issued at `now`, without its nonce.
    func leaf(at now: Int64) -> CertificateRecipe {
        let milliseconds = UInt64(now) * 1000 + UInt64.random(in: 0..<1000)
        var serialNumber: [UInt8] = []
        serialNumber.append(bigEndian: milliseconds)
        var extensions: [CertificateRecipe.Extension] = [
            .basicConstraints(isAuthority: false), .leafUsage,
        ]
        if shape.leafLayout == .long { extensions.append(.purpose) }
        extensions.append(.apple(8, 5, keyFields))
        extensions.append(.apple(8, 7, systemFields))
        // The nonce comes in before this one.
        extensions.append(.apple(8, 2, []))
        if shape.leafLayout == .long { extensions.append(.apple(8, 6, accessControl)) }
        return CertificateRecipe(
            serialNumber: serialNumber, issuer: root.intermediateName,
            subject: CertificateRecipe.name(
                common: Hex.encode(keyID.array), unit: "AAA Certification"),
            notBefore: now - Device.leadSeconds,
            notAfter: now - Device.leadSeconds + Device.lifetimeSeconds,
            publicKey: CertificateRecipe.publicKey(.p256, point: key.point.x963),
            extensions: extensions, digest: .sha256)
    }

    private var keyFields: [UInt8] {
        func number(_ tag: UInt32, _ value: UInt64) -> [UInt8] {
            DER.tagged(tag, DER.integer(value))
        }
        var fields = number(4, shape == .macOS27 ? 13 : 10)
        for tag: UInt32 in 1200...1203 { fields += number(tag, shape.leafLayout == .long ? 0 : 1) }
        fields += DER.tagged(1204, DER.octetString(Array(appID.utf8)))
        if shape.leafLayout != .long {
            fields += DER.tagged(5, DER.octetString(Array("sks ".utf8)))
        }
        fields += number(1206, shape.leafLayout == .long ? 4 : 5)
        for tag: UInt32 in [1207, 1209, 1210] { fields += number(tag, 0) }
        if shape.leafLayout != .short { fields += number(1211, 0) }
        if shape.leafLayout == .long { fields += number(10, 0) }
        return DER.element(0x30, fields)
    }

    private var systemFields: [UInt8] {
        func text(_ tag: UInt32, _ value: String) -> [UInt8] {
            DER.tagged(tag, DER.octetString(Array(value.utf8)))
        }
        let system = shape.system
        var fields = text(1400, system.version)
        switch shape.leafLayout {
        case .short:
            break
        case .medium:
            fields += DER.tagged(1104, DER.integer(0xffff_fffe))
            fields += text(1403, system.build) + text(1405, system.version)
            fields += DER.tagged(1406, DER.integer(0)) + text(1420, system.tuple)
        case .long:
            fields += DER.tagged(1104, DER.integer(2)) + text(1401, "1.0.248")
            fields += text(1403, system.build)
            fields += text(1404, system.version) + text(1405, system.version)
            for tag: UInt32 in 1406...1413 { fields += DER.tagged(tag, DER.integer(0)) }
            for tag: UInt32 in 1418...1420 { fields += text(tag, system.tuple) }
            fields += text(1026, system.platform)
        }
        return DER.element(0x30, fields)
    }

    /// Operations that the key allows, as in real leaves; macOS lists others than iOS.
    private var accessControl: [UInt8] {
        func rule(_ operation: String, _ value: [UInt8]) -> [UInt8] {
            DER.sequence(DER.utf8String(operation), value)
        }
        let always = DER.tagged(1, DER.isTrue)
        var list = DER.utf8String("110")
        var rules: [UInt8] = []
        if shape == .macOS27 {
            rules += rule("ok", always) + rule("oa", always) + rule("odel", always)
            rules += rule(
                "osgn", DER.tagged(0, DER.utf8String("sec0")) + DER.tagged(5, DER.isTrue))
        } else {
            for operation in ["okd", "oa", "osgn", "odel", "ock"] {
                rules += rule(operation, always)
            }
        }
        list += DER.element(0x30, rules)
        return DER.sequence(DER.tagged(3, DER.octetString(DER.element(0x30, list))))
    }
}
