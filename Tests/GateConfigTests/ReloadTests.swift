import GateConfig
import Testing

@Suite("Reload: what takes a restart")
struct ReloadTests {
    private func configuration(_ top: String, _ host: String = "") throws -> Configuration {
        let report = load(top + "\n" + hostText(host))
        return try #require(report.configuration, "\(report.render())")
    }

    @Test("what a reload cannot change is named; all else is not")
    func needingRestart() throws {
        let before = try configuration("")
        #expect(before.needingRestart(in: before).isEmpty)
        let routes = try configuration("drain_timeout 5s", "route * /a {\n mode off\n}")
        #expect(before.needingRestart(in: routes).isEmpty)
        for (text, names) in [
            ("loops 3", ["loops"]), ("log {\n access off\n}", ["log access"]),
            ("log {\n error level=warn\n}", ["log error"]),
            ("store {\n dir /x\n}", ["store dir"]), ("store {\n shards 8\n}", ["store shards"]),
            ("store {\n max_keys 9\n}", ["store max_keys"]),
            ("store {\n durability relaxed 5ms\n}", ["store durability"]),
            ("store {\n snapshot every=1h\n}", ["store snapshot"]),
            ("spool {\n dir /x\n}", ["spool dir"]),
            ("spool {\n max 1m files=2\n}", ["spool max"]),
        ] {
            #expect(before.needingRestart(in: try configuration(text)) == names, "\(text)")
        }
    }
}
