import AppAttest
import GateBytes
import GateCrypto
import GateProxy
import GateStore
import Testing

@Suite("Risk signals")
struct RiskSignalsTests {
    private func value(_ signals: RiskSignals) -> String { text(signals.fieldValue) }

    @Test("what is known is a dictionary, and nothing known is nothing")
    func dictionary() {
        #expect(value(RiskSignals()) == "")
        #expect(value(RiskSignals(keyAge: 61)) == "key-age=61")
        #expect(value(RiskSignals(isNewKey: true)) == "new-key")
        #expect(
            value(
                RiskSignals(
                    keyAge: 0, isNewKey: true, category: ValidationCategory(rawValue: 4),
                    bundleVersion: "412"))
                == "key-age=0, new-key, category=app_store, version=\"412\"")
        #expect(
            value(RiskSignals(metric: 3, metricAge: 60, keyAge: 5, isNewKey: true))
                == "metric=3, metric-age=60, key-age=5, new-key")
        #expect(value(RiskSignals(metric: 0)) == "metric=0")
        #expect(value(RiskSignals(bit0: false, bit1: true)) == "bit0=?0, bit1=?1")
        #expect(value(RiskSignals(areExtensionsUnreadable: true)) == "")
    }

    @Test("every category has its name, others are numbers")
    func categories() {
        let names = [
            "invalid", "os", "testflight", "development", "app_store", "enterprise",
            "developer_id", "local", "rosetta", "jit", "none",
        ]
        for (number, name) in names.enumerated() {
            #expect(
                value(RiskSignals(category: ValidationCategory(rawValue: UInt32(number))))
                    == "category=\(name)")
        }
        #expect(value(RiskSignals(category: ValidationCategory(rawValue: 11))) == "category=11")
        #expect(
            value(RiskSignals(category: ValidationCategory(rawValue: .max)))
                == "category=4294967295")
    }

    @Test("a version is quoted; one that no string can hold is left out")
    func version() {
        #expect(value(RiskSignals(bundleVersion: "a\"b\\c")) == "version=\"a\\\"b\\\\c\"")
        #expect(value(RiskSignals(bundleVersion: "1\r\nX: y")) == "")
        #expect(value(RiskSignals(bundleVersion: "1\u{e9}")) == "")
        #expect(value(RiskSignals(bundleVersion: String(repeating: "1", count: 129))) == "")
        #expect(value(RiskSignals(bundleVersion: "")) == "version=\"\"")
    }

    @Test("an age stays an integer of the format")
    func age() {
        #expect(value(RiskSignals(keyAge: -5)) == "key-age=0")
        #expect(value(RiskSignals(keyAge: .max)) == "key-age=999999999999999")
    }

    private func record(
        _ number: UInt8, account: String = "alice", at seconds: UInt32 = 1_000_000
    ) -> KeyRecord {
        KeyRecord(
            keyID: SHA256.hash([number]), publicKey: P256Point(x: Bytes32(), y: Bytes32()),
            account: Array(account.utf8), app: "shop", environment: 1, signCounter: 0,
            isRevoked: false, enrolledAt: seconds, lastUsedAt: seconds, challengeEpoch: 1,
            category: 3, bundleVersion: "10")
    }

    private func signals(
        _ key: KeyRecord, _ extensions: OSExtensions = .absent, others: [KeyRecord] = [],
        now: Int64 = 1_000_100
    ) -> RiskSignals {
        RiskSignals(key, extensions, others: others, now: now)
    }

    @Test("a key's age is since its enrolment, and never below zero")
    func keyAge() {
        #expect(signals(record(1)).keyAge == 100)
        #expect(signals(record(1), now: 5).keyAge == 0)
    }

    @Test("the metric is Apple's last word, its age since Apple said so")
    func metric() {
        var key = record(1)
        #expect(signals(key).metric == nil && signals(key).metricAge == nil)
        key.metric = RiskMetric(3, time: 1_000_040)
        #expect(signals(key).metric == 3)
        #expect(signals(key).metricAge == 60)
        #expect(signals(key, now: 5).metricAge == 0)
        #expect(value(signals(key)).hasPrefix("metric=3, metric-age=60, key-age=100"))
    }

    @Test("a key is new for a day, and only where its account had another")
    func newKey() {
        let other = record(2, at: 999_000)
        #expect(signals(record(1), others: [record(1), other]).isNewKey)
        #expect(signals(record(1), others: [other], now: 1_086_399).isNewKey)
        #expect(!signals(record(1), others: [other], now: 1_086_400).isNewKey)
        #expect(!signals(record(1), others: []).isNewKey)
        #expect(!signals(record(1), others: [record(1)]).isNewKey)
        #expect(!signals(record(1), others: [record(2, at: 1_000_001)]).isNewKey)
        #expect(!signals(record(1, account: ""), others: [record(2, account: "", at: 1)]).isNewKey)
    }

    @Test("the assertion's extensions go before those of the attestation")
    func extensions() {
        var members = OSExtensions.Members()
        members.bundleVersion = "11"
        members.validationCategory = ValidationCategory(rawValue: 4)
        let fresh = signals(record(1), .members(members))
        #expect(fresh.bundleVersion == "11")
        #expect(fresh.category?.rawValue == 4)
        for extensions in [OSExtensions.absent, .unreadable, .members(OSExtensions.Members())] {
            let kept = signals(record(1), extensions)
            #expect(kept.bundleVersion == "10")
            #expect(kept.category?.rawValue == 3)
            #expect(kept.areExtensionsUnreadable == (extensions == .unreadable))
        }
    }
}
