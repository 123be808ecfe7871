internal import AppAttest
package import GateConfig

extension Requirements {
    /// The reason of the first condition that `signals` do not meet; nil when they meet all.
    ///
    /// Extensions that cannot be read are as absent: what stood in the attestation may be outdated,
    /// so it does not stand in for them here.
    package func unmet(by signals: RiskSignals) -> Reason? {
        let isUnreadable = signals.areExtensionsUnreadable
        if let category {
            let number = isUnreadable ? nil : signals.category?.rawValue
            guard number.map(category.allowed.contains) ?? category.isAbsentAllowed else {
                return isUnreadable ? .extensionsUnreadable : .policyCategory
            }
        }
        if let bundleVersion {
            let version = isUnreadable ? nil : signals.bundleVersion.flatMap(DottedNumber.init)
            guard version.map({ $0 >= bundleVersion.least }) ?? bundleVersion.isAbsentAllowed
            else { return isUnreadable ? .extensionsUnreadable : .policyVersion }
        }
        if let metric {
            guard signals.metric.map({ $0 <= metric.most }) ?? metric.isAbsentAllowed else {
                return .policyMetric
            }
        }
        if let keyAge {
            guard let age = signals.keyAge, .seconds(age) >= keyAge else { return .policyKeyAge }
        }
        return nil
    }
}
