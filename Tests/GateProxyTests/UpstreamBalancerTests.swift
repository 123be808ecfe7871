import GateBytes
import GateConfig
import GateProxy
import GateRuntime
import Testing

private let start = Moment(nanoseconds: 1_000_000_000)

private func target(_ id: Int, weight: Int = 1, isBackup: Bool = false) -> UpstreamTarget {
    UpstreamTarget(
        id: id, server: id, address: .ip(IPAddress(ipv4: 0x0a00_0000 + UInt32(id)), port: 80),
        weight: weight, isBackup: isBackup)
}

/// A key ID like real ones: 32 bytes without pattern.
private func key(_ number: Int) -> Bytes32 {
    var state = UInt64(number) &* 0x9e37_79b9_7f4a_7c15 &+ 1
    var bytes: [UInt8] = []
    while bytes.count < 32 {
        state ^= state << 13
        state ^= state >> 7
        state ^= state << 17
        bytes.append(UInt8(truncatingIfNeeded: state >> 32))
    }
    return Bytes32(bytes) ?? Bytes32()
}

private func down(_ target: inout UpstreamTarget) {
    _ = target.health.note(isPassed: false, rise: 1, fall: 1)
}

private func eject(_ target: inout UpstreamTarget, for duration: Duration = .seconds(30)) {
    let terms = Upstream.Ejection(failures: 1, within: .seconds(1), duration: duration)
    _ = target.ejection.noteFailure(at: start, terms)
}

/// The IDs of `count` choices in a row.
private func choices(
    _ count: Int, _ targets: inout [UpstreamTarget], _ balance: Upstream.Balance = .roundRobin,
    _ request: BalancerRequest = BalancerRequest(), at now: Moment = start
) -> [Int?] {
    (0..<count).map { _ in
        Balancer.choose(from: &targets, balance, for: request, at: now).map { targets[$0].id }
    }
}

@Suite("Balancer: round robin")
struct RoundRobinTests {
    @Test("equal servers take turns")
    func turns() {
        var targets = [target(1), target(2), target(3)]
        #expect(choices(7, &targets) == [1, 2, 3, 1, 2, 3, 1])
    }

    @Test("any run of as many as all weights has each server by its weight, and well mixed")
    func weights() {
        var targets = [target(1, weight: 5), target(2), target(3, weight: 2)]
        let ids = choices(80, &targets)
        for first in 0..<72 {
            let run = ids[first..<first + 8]
            #expect(run.filter { $0 == 1 }.count == 5)
            #expect(run.filter { $0 == 3 }.count == 2)
        }
        #expect(ids[..<8] == [1, 3, 1, 1, 2, 1, 3, 1])
    }

    @Test("one server takes all, and none is none")
    func few() {
        var targets = [target(1, weight: 7)]
        #expect(choices(3, &targets) == [1, 1, 1])
        targets = []
        #expect(choices(1, &targets) == [nil])
    }
}

@Suite("Balancer: least connections")
struct LeastConnectionsTests {
    @Test("the fewest requests for its weight goes first; equals take turns")
    func least() {
        var targets = [target(1), target(2), target(3, weight: 3)]
        targets[0].active = 1
        targets[1].active = 1
        targets[2].active = 2
        #expect(choices(1, &targets, .leastConnections) == [3])
        targets[2].active = 3
        #expect(Set(choices(5, &targets, .leastConnections)) == [1, 2, 3])
        targets[0].active = 0
        #expect(choices(3, &targets, .leastConnections) == [1, 1, 1])
    }

    @Test("a server that is down is not the least")
    func isDown() {
        var targets = [target(1), target(2)]
        targets[1].active = 9
        down(&targets[0])
        #expect(choices(2, &targets, .leastConnections) == [2, 2])
    }
}

@Suite("Balancer: hash of the key ID")
struct HashTests {
    private func owners(_ targets: [UpstreamTarget], keys: Int = 3000) -> [Int?] {
        var targets = targets
        return (0..<keys).flatMap { number in
            choices(1, &targets, .hashKeyID, BalancerRequest(key: key(number)))
        }
    }

    @Test("a key stays, whatever else is chosen and in whatever order the servers stand")
    func stays() {
        let targets = [target(1), target(2), target(3)]
        let first = owners(targets)
        #expect(first == owners(targets))
        #expect(first == owners([targets[2], targets[0], targets[1]]))
    }

    @Test("a server that goes takes its own keys along, and no other moves")
    func moves() {
        let targets = [target(1), target(2), target(3)]
        let before = owners(targets)
        var fewer = targets
        down(&fewer[1])
        for (old, new) in zip(before, owners(fewer)) {
            #expect(old == 2 ? new != 2 : new == old)
        }
        #expect(owners([targets[0], targets[2]]) == owners(fewer))
    }

    @Test("shares are by weight, within chance")
    func shares() {
        let ids = owners([target(1), target(2, weight: 2), target(3, weight: 3)], keys: 12_000)
        for (id, share) in [(1, 2000), (2, 4000), (3, 6000)] {
            let count = ids.filter { $0 == id }.count
            // Five standard deviations of a binomial are under 280.
            #expect(abs(count - share) < 280, "\(id): \(count)")
        }
    }

    @Test("without a key, servers take turns")
    func noKey() {
        var targets = [target(1), target(2)]
        #expect(choices(4, &targets, .hashKeyID) == [1, 2, 1, 2])
    }
}

@Suite("Balancer: who is left")
struct TierTests {
    @Test("backups come only while no primary is usable")
    func backups() {
        var targets = [target(1), target(2), target(3, isBackup: true)]
        #expect(choices(4, &targets) == [1, 2, 1, 2])
        down(&targets[0])
        #expect(choices(2, &targets) == [2, 2])
        eject(&targets[1])
        #expect(choices(2, &targets) == [3, 3])
        #expect(choices(2, &targets, at: start + .seconds(30)) == [2, 2])
    }

    @Test("the last servers are tried although they are ejected, primaries first")
    func allEjected() {
        var targets = [target(1), target(2, isBackup: true)]
        eject(&targets[0])
        #expect(choices(1, &targets) == [2])
        eject(&targets[1])
        #expect(choices(2, &targets) == [1, 1])
    }

    @Test("what is down is not tried, not even as the last")
    func allDown() {
        var targets = [target(1), target(2, isBackup: true)]
        down(&targets[0])
        down(&targets[1])
        #expect(choices(1, &targets) == [nil])
    }

    @Test("what failed for a request comes last for it: other primaries, backups, then itself")
    func failed() {
        var targets = [target(1), target(2), target(3, isBackup: true)]
        var request = BalancerRequest()
        request.failed = [1]
        #expect(choices(2, &targets, .roundRobin, request) == [2, 2])
        request.failed = [1, 2]
        #expect(choices(1, &targets, .roundRobin, request) == [3])
        request.failed = [1, 2, 3]
        #expect(Set(choices(2, &targets, .roundRobin, request)) == [1, 2])
        targets = [targets[0]]
        #expect(choices(1, &targets, .roundRobin, request) == [1])
    }

    @Test("a server whose idle connection closed yields to its equals, never to a backup")
    func avoided() {
        var targets = [target(1), target(2), target(3, isBackup: true)]
        var request = BalancerRequest(key: key(1))
        request.avoided = 1
        #expect(choices(2, &targets, .roundRobin, request) == [2, 2])
        #expect(choices(2, &targets, .hashKeyID, request) == [2, 2])
        down(&targets[1])
        #expect(choices(2, &targets, .roundRobin, request) == [1, 1])
    }
}

@Suite("Upstream servers: addresses by line")
struct UpstreamServersTests {
    private func servers(_ lines: String) throws -> UpstreamServers {
        let text = """
            listener l {
                address 127.0.0.1:1
            }
            upstream u {
            \(lines)
            }
            host a.test {
                listener l
                upstream u
                unmatched off
            }
            """
        let source = MemoryConfigurationSource(["proxy.conf": text])
        let report = ConfigurationLoader.load(path: "proxy.conf", source: source)
        let configuration = try #require(report.configuration, "\(report.render())")
        return UpstreamServers(configuration.upstreams[0])
    }

    private func address(_ last: UInt32) -> SocketAddress {
        .ip(IPAddress(ipv4: 0x0a00_0000 + last), port: 80)
    }

    @Test("a line that resolves to nothing keeps what it had, and touches no other")
    func nothing() throws {
        let servers = try servers("server a.test:80\nserver b.test:80 weight=3\nhealth GET /h")
        servers.replace(1, with: [address(3)])
        servers.replace(0, with: [address(1), address(2)])
        #expect(servers.targets.map(\.address) == [address(1), address(2), address(3)])
        #expect(servers.targets.map(\.weight) == [1, 1, 3])
        #expect(servers.noteUnresolved(0))
        #expect(!servers.noteUnresolved(0))
        #expect(!servers.replace(0, with: []))
        #expect(servers.targets.map(\.address) == [address(1), address(2), address(3)])
        #expect(servers.replace(0, with: [address(2)]))
        #expect(servers.targets.map(\.address) == [address(2), address(3)])
    }

    @Test("what is known of an address outlives a resolution that finds it again")
    func known() throws {
        let servers = try servers("server a.test:80\nhealth GET /h fall=1")
        servers.replace(0, with: [address(1), address(2)])
        let ids = servers.targets.map(\.id)
        #expect(servers.noteCheck(of: ids[0], isPassed: false))
        servers.replace(0, with: [address(3), address(1)])
        #expect(servers.targets.map(\.address) == [address(1), address(3)])
        #expect(servers.targets.map(\.health.isUp) == [false, true])
        // One that went and came back is new.
        servers.replace(0, with: [address(3)])
        servers.replace(0, with: [address(1), address(3)])
        #expect(servers.targets.map(\.health.isUp) == [true, true])
        #expect(!servers.noteCheck(of: ids[0], isPassed: false))
    }

    @Test("a name has its bound of addresses")
    func bound() throws {
        let servers = try servers("server a.test:80")
        servers.replace(0, with: (1...1000).map { address($0) })
        #expect(servers.targets.count == 64)
    }
}
