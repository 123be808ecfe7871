// Many seeded lives of a store: `./dev simulate --seeds N --from S`. A seed that fails is printed,
// and replays exactly: `./dev simulate --seeds 1 --from SEED`.

import Foundation
import GateSimulation

private struct Totals {
    var lives = 0
    var restarts = 0
    var admits = 0
    var losses = 0
    var refusals = 0
    var drops = 0
    var notices: [String: Int] = [:]
}

private func number(_ name: String, or preset: UInt64) -> UInt64 {
    let arguments = CommandLine.arguments
    guard let index = arguments.firstIndex(of: name) else { return preset }
    guard index + 1 < arguments.count, let value = UInt64(arguments[index + 1]) else {
        FileHandle.standardError.write(Data("simulate: \(name) takes a number\n".utf8))
        exit(2)
    }
    return value
}

private let first = number("--from", or: 0)
private let count = number("--seeds", or: 2000)
private let events = Int(number("--events", or: 150))
private let started = Date()
private var totals = Totals()
for seed in first..<first + count {
    let simulation = StoreSimulation(seed: seed)
    if CommandLine.arguments.contains("--trace") { simulation.trace = { print($0) } }
    do {
        try simulation.run(events: events)
    } catch {
        print("simulate: \(error)")
        print("simulate: again with --seeds 1 --from \(seed) --events \(events)")
        exit(1)
    }
    totals.lives += 1
    totals.restarts += simulation.restarts
    totals.admits += simulation.admits
    totals.losses += simulation.losses
    totals.refusals += simulation.refusals
    totals.drops += simulation.drops
    totals.notices.merge(simulation.notices, uniquingKeysWith: +)
}
private let seconds = Int(Date().timeIntervalSince(started))
print(
    "simulate: \(totals.lives) lives from seed \(first) in \(seconds) s, no promise broken: "
        + "\(totals.restarts) restarts, \(totals.admits) admits, \(totals.losses) logs cut short, "
        + "\(totals.refusals) damaged starts refused, \(totals.drops) last batches dropped")
for (kind, times) in totals.notices.sorted(by: { $0.key < $1.key }) {
    print("simulate: \(kind) \(times)")
}
