import AppAttest
import GateConfig
import GateProxy
import Testing

@Suite("Requirements: what else a request must show")
struct RequirementTests {
    private func requirements(_ change: (inout Requirements) -> Void) -> Requirements {
        var requirements = Requirements()
        change(&requirements)
        return requirements
    }

    private func category(_ names: [String], orAbsent: Bool = false) -> Requirements {
        requirements {
            $0.category = Requirements.Category(
                allowed: Set(names.compactMap { ValidationCategory(name: $0)?.rawValue }),
                isAbsentAllowed: orAbsent)
        }
    }

    private func version(_ text: String, orAbsent: Bool = false) throws -> Requirements {
        let least = try #require(DottedNumber(text))
        return requirements {
            $0.bundleVersion = Requirements.BundleVersion(least: least, isAbsentAllowed: orAbsent)
        }
    }

    private func signals(category name: String) -> RiskSignals {
        RiskSignals(category: ValidationCategory(name: name))
    }

    @Test("without conditions everything passes")
    func none() {
        #expect(Requirements().unmet(by: RiskSignals()) == nil)
        #expect(Requirements().unmet(by: RiskSignals(areExtensionsUnreadable: true)) == nil)
    }

    @Test("the names of categories are the same on both sides")
    func names() {
        for (number, name) in Requirements.Category.names.enumerated() {
            #expect(ValidationCategory(rawValue: UInt32(number)).name == name)
        }
        let next = UInt32(Requirements.Category.names.count)
        #expect(ValidationCategory(rawValue: next).name == nil)
    }

    @Test("only the named categories pass, and absent is one of its own")
    func categories() {
        let strict = category(["app_store", "testflight"])
        #expect(strict.unmet(by: signals(category: "app_store")) == nil)
        #expect(strict.unmet(by: signals(category: "testflight")) == nil)
        #expect(strict.unmet(by: signals(category: "development")) == .policyCategory)
        #expect(strict.unmet(by: signals(category: "none")) == .policyCategory)
        let unknown = RiskSignals(category: ValidationCategory(rawValue: 11))
        #expect(strict.unmet(by: unknown) == .policyCategory)
        #expect(strict.unmet(by: RiskSignals()) == .policyCategory)
        let lenient = category(["app_store"], orAbsent: true)
        #expect(lenient.unmet(by: RiskSignals()) == nil)
        #expect(lenient.unmet(by: signals(category: "development")) == .policyCategory)
    }

    @Test("a version passes from the least on; what is no dotted number is absent")
    func versions() throws {
        let strict = try version("1.10")
        for text in ["1.10", "1.10.0", "1.11", "2"] {
            #expect(strict.unmet(by: RiskSignals(bundleVersion: text)) == nil, "\(text)")
        }
        for text in ["1.9", "1", "0.99", "1.2b3", "", "x"] {
            #expect(
                strict.unmet(by: RiskSignals(bundleVersion: text)) == .policyVersion, "\(text)")
        }
        #expect(strict.unmet(by: RiskSignals()) == .policyVersion)
        let lenient = try version("1.10", orAbsent: true)
        #expect(lenient.unmet(by: RiskSignals()) == nil)
        #expect(lenient.unmet(by: RiskSignals(bundleVersion: "1.2b3")) == nil)
        #expect(lenient.unmet(by: RiskSignals(bundleVersion: "1.9")) == .policyVersion)
    }

    @Test("extensions that cannot be read are absent, whatever the attestation said")
    func unreadable() throws {
        let signals = RiskSignals(
            category: ValidationCategory(name: "app_store"), bundleVersion: "9",
            areExtensionsUnreadable: true)
        #expect(category(["app_store"]).unmet(by: signals) == .extensionsUnreadable)
        #expect(category(["os"], orAbsent: true).unmet(by: signals) == nil)
        #expect(try version("1").unmet(by: signals) == .extensionsUnreadable)
        #expect(try version("10", orAbsent: true).unmet(by: signals) == nil)
    }

    @Test("a metric passes up to the greatest")
    func metric() {
        func limit(orAbsent: Bool) -> Requirements {
            requirements { $0.metric = Requirements.Metric(most: 20, isAbsentAllowed: orAbsent) }
        }
        #expect(limit(orAbsent: false).unmet(by: RiskSignals(metric: 20)) == nil)
        #expect(limit(orAbsent: false).unmet(by: RiskSignals(metric: 21)) == .policyMetric)
        #expect(limit(orAbsent: false).unmet(by: RiskSignals()) == .policyMetric)
        #expect(limit(orAbsent: true).unmet(by: RiskSignals()) == nil)
        #expect(limit(orAbsent: true).unmet(by: RiskSignals(metric: 21)) == .policyMetric)
        #expect(
            limit(orAbsent: true).unmet(by: RiskSignals(areExtensionsUnreadable: true)) == nil)
    }

    @Test("a key passes from the least age on")
    func keyAge() {
        let hour = requirements { $0.keyAge = .seconds(3600) }
        #expect(hour.unmet(by: RiskSignals(keyAge: 3600)) == nil)
        #expect(hour.unmet(by: RiskSignals(keyAge: 3599)) == .policyKeyAge)
        #expect(hour.unmet(by: RiskSignals()) == .policyKeyAge)
        let short = requirements { $0.keyAge = .milliseconds(1) }
        #expect(short.unmet(by: RiskSignals(keyAge: 0)) == .policyKeyAge)
    }

    @Test("the first condition that is not met is the reason")
    func order() throws {
        let all = try version("2")
        var requirements = all
        requirements.category = Requirements.Category(allowed: [4], isAbsentAllowed: false)
        requirements.metric = Requirements.Metric(most: 1, isAbsentAllowed: false)
        requirements.keyAge = .seconds(10)
        var signals = RiskSignals(keyAge: 0)
        #expect(requirements.unmet(by: signals) == .policyCategory)
        signals.category = ValidationCategory(rawValue: 4)
        #expect(requirements.unmet(by: signals) == .policyVersion)
        signals.bundleVersion = "2"
        #expect(requirements.unmet(by: signals) == .policyMetric)
        signals.metric = 1
        #expect(requirements.unmet(by: signals) == .policyKeyAge)
        signals.keyAge = 10
        #expect(requirements.unmet(by: signals) == nil)
    }
}
