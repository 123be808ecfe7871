import Foundation
import GateSimulation
import Testing

@Suite("Store: seeded lives") struct StoreSimulationTests {
    /// The number of seeds; a longer run sets GATE_SEEDS, one seed again GATE_SEED.
    static let seeds: Range<UInt64> = {
        let environment = ProcessInfo.processInfo.environment
        if let seed = environment["GATE_SEED"].flatMap({ UInt64($0) }) { return seed..<seed + 1 }
        return 0..<(environment["GATE_SEEDS"].flatMap { UInt64($0) } ?? 200)
    }()

    @Test("no acknowledged record is lost and no proof admitted twice, whatever fails")
    func seededLives() throws {
        var losses = 0
        var restarts = 0
        var admits = 0
        var retirements = 0
        var refusals = 0
        var drops = 0
        var notices: [String: Int] = [:]
        for seed in Self.seeds {
            let simulation = StoreSimulation(seed: seed)
            try simulation.run(events: 150)
            losses += simulation.losses
            restarts += simulation.restarts
            admits += simulation.admits
            retirements += simulation.retirements
            refusals += simulation.refusals
            drops += simulation.drops
            notices.merge(simulation.notices, uniquingKeysWith: +)
        }
        guard Self.seeds.count >= 200 else { return }
        // A simulation in which nothing happens proves nothing.
        #expect(losses > 0 && restarts > 500 && admits > 1000 && retirements > 10)
        for (kind, times) in [
            "epochMoved": 100, "receipts": 10, "snapshotPassedOver": 20, "snapshotWritten": 500,
            "spaceExhausted": 5, "spaceReturned": 2, "stopped": 100, "tornTail": 20,
        ] {
            #expect(notices[kind] ?? 0 > times, "\(kind) in \(notices)")
        }
        #expect(refusals > 100 && drops > 0, "\(refusals) damaged starts refused, \(drops) drops")
    }
}
