package import AppAttest
internal import GateBytes
package import GateStore

/// Signals about a key or app, none of them a verdict; what is not known is nil.
package struct RiskSignals: Sendable, Equatable {
    /// Apple's fraud metric of the device: how many keys it made in a month, about.
    package var metric: Int?
    /// Seconds since Apple said so.
    package var metricAge: Int?
    /// Seconds since the key was enrolled.
    package var keyAge: Int?
    /// Whether the key was enrolled within ``newKeySeconds`` while its account had another.
    package var isNewKey: Bool
    /// The validation category of OS 27.
    package var category: ValidationCategory?
    /// The bundle version of OS 27.
    package var bundleVersion: String?
    /// Whether the assertion's extensions are there and not to be read.
    package var areExtensionsUnreadable: Bool
    /// The device's bits at DeviceCheck.
    package var bit0: Bool?
    package var bit1: Bool?

    /// How long a key counts as new.
    package static let newKeySeconds: Int64 = 86_400

    /// Signals by their parts.
    package init(
        metric: Int? = nil, metricAge: Int? = nil, keyAge: Int? = nil, isNewKey: Bool = false,
        category: ValidationCategory? = nil, bundleVersion: String? = nil,
        areExtensionsUnreadable: Bool = false, bit0: Bool? = nil, bit1: Bool? = nil
    ) {
        self.metric = metric
        self.metricAge = metricAge
        self.keyAge = keyAge
        self.isNewKey = isNewKey
        self.category = category
        self.bundleVersion = bundleVersion
        self.areExtensionsUnreadable = areExtensionsUnreadable
        self.bit0 = bit0
        self.bit1 = bit1
    }

    /// What is known of `key` at `now` (unix seconds): of its extensions those of the assertion
    /// where it has them, since an app may have been updated, else those of the attestation.
    /// `others` are the keys of its account and app, itself or not; only a key younger than
    /// ``newKeySeconds`` needs them.
    package init(
        _ key: KeyRecord, _ extensions: OSExtensions, others: [KeyRecord], now: Int64
    ) {
        let members = extensions.readable
        metric = key.metric.map { Int($0.value) }
        metricAge = key.metric.map { max(0, Int(clamping: now - Int64($0.time))) }
        keyAge = max(0, Int(clamping: now - Int64(key.enrolledAt)))
        isNewKey =
            now - Int64(key.enrolledAt) < RiskSignals.newKeySeconds && !key.account.isEmpty
            && others.contains { $0.keyID != key.keyID && $0.enrolledAt <= key.enrolledAt }
        category =
            members?.validationCategory
            ?? key.category.map { ValidationCategory(rawValue: UInt32($0)) }
        bundleVersion = members?.bundleVersion ?? key.bundleVersion
        areExtensionsUnreadable = extensions == .unreadable
    }

    /// The value of `App-Attest-Risk`, an RFC 8941 dictionary; empty when nothing is known.
    package var fieldValue: [UInt8] {
        var value: [UInt8] = []
        func member(_ text: String) {
            if !value.isEmpty { value.append(contentsOf: ", ".utf8) }
            value.append(contentsOf: text.utf8)
        }
        if let metric { member("metric=\(RiskSignals.integer(metric))") }
        if let metricAge { member("metric-age=\(RiskSignals.integer(metricAge))") }
        if let keyAge { member("key-age=\(RiskSignals.integer(keyAge))") }
        if isNewKey { member("new-key") }
        if let category { member("category=\(category)") }
        if let bundleVersion, let text = RiskSignals.string(bundleVersion) {
            member("version=\(text)")
        }
        if let bit0 { member("bit0=\(RiskSignals.boolean(bit0))") }
        if let bit1 { member("bit1=\(RiskSignals.boolean(bit1))") }
        return value
    }

    private static func boolean(_ value: Bool) -> String { value ? "?1" : "?0" }

    /// `value` as none of RFC 8941's integers is greater, and none below zero.
    private static func integer(_ value: Int) -> Int { max(0, min(value, 999_999_999_999_999)) }

    /// `text` as a string of RFC 8941 §3.3.3; nil where it has what none can hold, or is over 128
    /// bytes.
    private static func string(_ text: String) -> String? {
        guard text.utf8.count <= 128, text.utf8.allSatisfy({ (0x20...0x7e).contains($0) }) else {
            return nil
        }
        var quoted = "\""
        for character in text.unicodeScalars {
            if character == "\"" || character == "\\" { quoted.append("\\") }
            quoted.unicodeScalars.append(character)
        }
        return quoted + "\""
    }
}
