// Which server takes a request: pure, time and state are arguments.
//
// What can be chosen, in this order; the first step that has one decides:
//
//   1. primaries that are usable and have not been tried for this request
//   2. backups that are usable and have not been tried: only while no primary is usable
//   3. usable ones that have been tried, primaries first
//   4. ejected ones, primaries first: an ejection is a guess, and the last is never left out
//
// Usable is neither down nor ejected. A server that is down by its health check is not chosen even
// if it is the last: the check is the operator's own word for what can serve, so the answer is 502
// at once.
//
// Among those: smooth weighted round robin (as nginx's: each gains its weight, the richest is taken
// and pays for all), least connections by weight with round robin among equals, or the highest
// weighted random score of key and address (rendezvous hashing), where a server that goes takes
// only its own keys along.

package import GateBytes
package import GateConfig
package import GateRuntime

/// One address of one server, and what is known of it.
package struct UpstreamTarget: Sendable {
    /// Its number, never used again for another.
    package let id: Int
    /// The index of its `server` line.
    package let server: Int
    package let address: SocketAddress
    package let weight: Int
    package let isBackup: Bool
    /// Requests on it now.
    package var active = 0
    package var health = HealthState()
    package var ejection = EjectionWindow()
    /// What round robin owes it.
    fileprivate var credit = 0
    fileprivate let identity: UInt64

    package init(
        id: Int, server: Int, address: SocketAddress, weight: Int = 1, isBackup: Bool = false
    ) {
        self.id = id
        self.server = server
        self.address = address
        self.weight = weight
        self.isBackup = isBackup
        identity = Rendezvous.identity(of: address.description)
    }
}

/// What a request asks of the balancer.
package struct BalancerRequest: Sendable {
    /// The verified key ID; nil where there is none.
    package var key: Bytes32?
    /// The targets that could not be reached for this request.
    package var failed: [Int] = []
    /// A target whose idle connection closed under this request: as good as the others, but another
    /// of its kind goes first.
    package var avoided: Int?

    package init(key: Bytes32? = nil) {
        self.key = key
    }
}

/// Chooses the target of a request.
package enum Balancer {
    /// The index of the target that takes `request`, whose round robin has moved on; nil where none
    /// may.
    package static func choose(
        from targets: inout [UpstreamTarget], _ balance: Upstream.Balance,
        for request: BalancerRequest, at now: Moment
    ) -> Int? {
        // The usual case, without a list.
        if targets.count == 1 { return targets[0].health.isUp ? 0 : nil }
        let ranks = targets.map { rank(of: $0, for: request, at: now) }
        guard let best = ranks.lazy.compactMap(\.self).min() else { return nil }
        var candidates = targets.indices.filter { ranks[$0] == best }
        if candidates.count > 1 { candidates.removeAll { targets[$0].id == request.avoided } }
        return choose(candidates, &targets, balance, request.key)
    }

    /// How early a target is chosen, by the steps above; nil for one that is down.
    private static func rank(
        of target: UpstreamTarget, for request: BalancerRequest, at now: Moment
    ) -> Int? {
        guard target.health.isUp else { return nil }
        let late = target.isBackup ? 1 : 0
        if target.ejection.isEjected(at: now) { return 4 + late }
        return (request.failed.contains(target.id) ? 2 : 0) + late
    }

    private static func choose(
        _ candidates: [Int], _ targets: inout [UpstreamTarget], _ balance: Upstream.Balance,
        _ key: Bytes32?
    ) -> Int? {
        switch balance {
        case .hashKeyID:
            guard let key else { return next(candidates, &targets) }
            return Rendezvous.choose(candidates, targets, key)
        case .leastConnections:
            let least = candidates.min { isLess(targets[$0], targets[$1]) }
            let equals = candidates.filter { index in
                least.map { !isLess(targets[$0], targets[index]) } ?? false
            }
            return next(equals, &targets)
        case .roundRobin:
            return next(candidates, &targets)
        }
    }

    /// Whether one has fewer requests for its weight.
    private static func isLess(_ left: UpstreamTarget, _ right: UpstreamTarget) -> Bool {
        left.active * right.weight < right.active * left.weight
    }

    private static func next(_ candidates: [Int], _ targets: inout [UpstreamTarget]) -> Int? {
        guard candidates.count > 1 else { return candidates.first }
        var total = 0
        var best: Int?
        for index in candidates {
            targets[index].credit += targets[index].weight
            total += targets[index].weight
            if best.map({ targets[index].credit > targets[$0].credit }) ?? true { best = index }
        }
        if let best { targets[best].credit -= total }
        return best
    }
}

/// Weighted rendezvous hashing: the same choice in every process that knows the same addresses.
private enum Rendezvous {
    /// FNV-1a of an address as it is written.
    static func identity(of text: String) -> UInt64 {
        text.utf8.reduce(0xcbf2_9ce4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
    }

    static func choose(_ candidates: [Int], _ targets: [UpstreamTarget], _ key: Bytes32) -> Int? {
        // A key ID is a SHA-256: any eight bytes of it are as good as all.
        let bits = key.array.prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        return candidates.max { left, right in
            score(bits, targets[left]) < score(bits, targets[right])
        }
    }

    /// weight / -ln(u) with u uniform in (0, 1) by key and address: the share of a target among
    /// the highest scores is its share of the weights.
    private static func score(_ bits: UInt64, _ target: UpstreamTarget) -> Double {
        let mixed = mix(bits ^ target.identity)
        let uniform = (Double(mixed >> 11) + 0.5) / Double(1 << 53)
        return Double(target.weight) / -logarithm(uniform)
    }

    /// The finalizer of splitmix64.
    private static func mix(_ value: UInt64) -> UInt64 {
        var value = value
        value = (value ^ value >> 30) &* 0xbf58_476d_1ce4_e5b9
        value = (value ^ value >> 27) &* 0x94d0_49bb_1331_11eb
        return value ^ value >> 31
    }

    /// The natural logarithm of a positive number: the standard library has none, and its own
    /// series gives every machine the same.
    private static func logarithm(_ value: Double) -> Double {
        let ratio = (value.significand - 1) / (value.significand + 1)
        let square = ratio * ratio
        var power = ratio
        var sum = 0.0
        // The significand is below 2, the ratio below 1/3: 16 terms are exact to the last bits.
        for odd in stride(from: 1, to: 33, by: 2) {
            sum += power / Double(odd)
            power *= square
        }
        return 2 * sum + Double(value.exponent) * 0.693147180559945309
    }
}
