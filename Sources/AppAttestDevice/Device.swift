package import GateBytes
package import GateCrypto

/// One attested key on one simulated device: says what a real one says, byte for byte where it is
/// known, under a private root.
package struct Device: Sendable {
    /// The authorities that vouch for it.
    package let root: DeviceRoot
    /// The App ID, `PREFIX.bundle.identifier`.
    package let appID: String
    /// Whether the key is good in production; in development otherwise.
    package let isProduction: Bool
    /// What it looks like on the wire.
    package let shape: DeviceShape
    /// The key that a real device would keep in its Secure Enclave.
    package let key: P256PrivateKey
    /// The counter of the last assertion.
    package var signCounter: UInt32
    /// The most counter values that an assertion may leave out, at random: what a real device does
    /// when assertions are made and never sent. 0 leaves out none.
    package var counterGapMax: UInt32 = 0
    /// The signed bundle version; the shape's at first.
    package var bundleVersion: String?
    /// The signed validation category; the shape's at first.
    package var validationCategory: UInt32?

    /// A new key.
    package init(root: DeviceRoot, appID: String, isProduction: Bool, shape: DeviceShape) {
        self.init(
            root: root, appID: appID, isProduction: isProduction, shape: shape,
            key: P256PrivateKey(), signCounter: 0)
    }

    private init(
        root: DeviceRoot, appID: String, isProduction: Bool, shape: DeviceShape,
        key: P256PrivateKey, signCounter: UInt32
    ) {
        self.root = root
        self.appID = appID
        self.isProduction = isProduction
        self.shape = shape
        self.key = key
        self.signCounter = signCounter
        bundleVersion = shape.bundleVersion
        validationCategory = shape.validationCategory
    }

    /// The key ID: SHA-256 of the public point.
    package var keyID: Bytes32 { SHA256.hash(key.point.x963) }

    /// An attestation object over `clientDataHash` (any length), its leaf issued at `now` (seconds
    /// since 1970). Costs no counter value and may be made again.
    package func attest(clientDataHash: [UInt8], at now: Int64) -> [UInt8] {
        recipe(clientDataHash: clientDataHash, at: now).encoded { leaf in
            receipt(
                leaf: leaf, clientDataHash: clientDataHash,
                at: now * 1000 + Int64.random(in: 0..<1000)
            ).encoded()
        }
    }

    /// A receipt of an attestation with the certificate `leaf`, made at `time` (milliseconds since
    /// 1970).
    package func receipt(
        leaf: [UInt8], clientDataHash: [UInt8], at time: Int64
    ) -> ReceiptRecipe {
        ReceiptRecipe(
            root: root, appID: appID, leaf: leaf, clientDataHash: clientDataHash,
            isProduction: isProduction, at: time)
    }

    /// What ``attest(clientDataHash:at:)`` puts together.
    package func recipe(clientDataHash: [UInt8], at now: Int64) -> AttestationRecipe {
        var recipe = AttestationRecipe(
            format: "apple-appattest",
            authenticatorData: attestationData(),
            leaf: leaf(at: now),
            issuerKey: root.intermediateKey,
            issuers: [root.intermediate],
            codeDirectory: shape.showsCodeDirectory ? codeDirectoryMember : nil,
            receipt: nil)
        recipe.bind(clientDataHash)
        return recipe
    }

    /// An assertion over `clientDataHash`, the SHA-256 of client data. The counter goes to
    /// `counter`, or to the next value, or past up to ``counterGapMax`` more.
    package mutating func assert(clientDataHash: [UInt8], counter: UInt32? = nil) -> [UInt8] {
        if let counter {
            signCounter = counter
        } else {
            let gap = counterGapMax == 0 ? 0 : UInt32.random(in: 0...counterGapMax)
            signCounter = signCounter.addingReportingOverflow(1 &+ gap).partialValue
        }
        let data = head(counter: signCounter) + extensions()
        let nonce = SHA256.hash(data + clientDataHash)
        var members: [(key: CBORValue, value: CBORValue)] = []
        if shape.showsCodeDirectory { members.append((.text("cdHash"), codeDirectoryMember)) }
        members.append((.text("signature"), .bytes(key.sign(nonce.array))))
        members.append((.text("authenticatorData"), .bytes(data)))
        return CBORValue.map(members).encoded
    }
}

extension Device {
    /// Relying party ID hash, flags and counter.
    package func head(counter: UInt32) -> [UInt8] {
        var bytes = SHA256.hash(Array(appID.utf8)).array
        bytes.append(shape.flags)
        bytes.append(bigEndian: counter)
        return bytes
    }

    private func attestationData() -> [UInt8] {
        var bytes = head(counter: 0)
        bytes += "appattest".utf8
        bytes += isProduction ? [UInt8](repeating: 0, count: 7) : Array("develop".utf8)
        bytes.append(bigEndian: UInt16(32))
        bytes.append(keyID)
        bytes += Device.coseKey(key.point)
        return bytes + extensions()
    }

    /// The COSE form of a P-256 key.
    package static func coseKey(_ point: P256Point) -> [UInt8] {
        CBORValue.map([
            (.integer(1), .integer(2)), (.integer(3), .integer(-7)), (.integer(-1), .integer(1)),
            (.integer(-2), .bytes(point.x.array)), (.integer(-3), .bytes(point.y.array)),
        ]).encoded
    }

    /// The signed extensions of OS 27, or nothing.
    package func extensions() -> [UInt8] {
        var members: [(key: CBORValue, value: CBORValue)] = []
        if shape.signsCodeDirectory {
            members.append((.text("apple_cd_hash_hash_01"), .bytes(codeDirectoryHash.array)))
            members.append((.text("apple_cd_hash_type_01"), .bytes([2])))
        }
        if let bundleVersion {
            members.append((.text("apple_bundle_version_01"), .text(bundleVersion)))
        }
        if let category = validationCategory {
            let bytes = (0..<4).map { UInt8(truncatingIfNeeded: category >> UInt32(8 * $0)) }
            members.append((.text("apple_validation_category_01"), .bytes(bytes)))
        }
        return members.isEmpty ? [] : CBORValue.map(members).encoded
    }

    /// A code directory hash that stays the same for the app, as a build's does.
    private var codeDirectoryHash: Bytes32 {
        SHA256.hash(Array("code directory of \(appID)".utf8))
    }

    private var codeDirectoryMember: CBORValue {
        .map([
            (.text("hash"), .bytes(Array(codeDirectoryHash.array.prefix(20)))),
            (.text("type"), .bytes([2])),
        ])
    }
}

extension Device {
    /// The key as text, the private half included; lines begin with `device.`. The root is not part
    /// of it.
    package func exported() -> String {
        var state = StateText()
        state["device.app-id"] = appID
        state["device.environment"] = isProduction ? "production" : "development"
        state["device.shape"] = shape.rawValue
        state["device.key"] = Base64.encode(key.point.x963 + key.scalar)
        state["device.counter"] = String(signCounter)
        state["device.counter-gap-max"] = String(counterGapMax)
        state["device.bundle-version"] = bundleVersion
        state["device.validation-category"] = validationCategory.map { String($0) }
        return state.text
    }

    /// The key of an earlier ``exported()``; nil when the text is not that.
    package init?(exported text: String, root: DeviceRoot) {
        let state = StateText(text)
        guard let appID = state["device.app-id"],
            let environment = state["device.environment"],
            environment == "production" || environment == "development",
            let shape = state["device.shape"].flatMap(DeviceShape.init(rawValue:)),
            let bytes = state["device.key"].flatMap({ Base64.decode($0) }), bytes.count == 97,
            let point = P256Point(x963: Array(bytes[..<65])),
            let key = P256PrivateKey(point: point, scalar: Array(bytes[65...])),
            let signCounter = state["device.counter"].flatMap({ UInt32($0) })
        else { return nil }
        self.init(
            root: root, appID: appID, isProduction: environment == "production", shape: shape,
            key: key, signCounter: signCounter)
        counterGapMax = state["device.counter-gap-max"].flatMap { UInt32($0) } ?? 0
        bundleVersion = state["device.bundle-version"]
        validationCategory = state["device.validation-category"].flatMap { UInt32($0) }
    }
}
