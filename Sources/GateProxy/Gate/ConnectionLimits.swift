// How many connections of clients there may be: a listener's `connections` and `per_address`, and
// what the process's descriptors allow (threat T31). Counted over all loops.

internal import GateBytes
internal import GateLock
internal import GateRuntime

/// A limit that a new connection has met.
enum ConnectionLimit: Error, Equatable {
    /// `limits connections=` of the listener.
    case connections(Int)
    /// What RLIMIT_NOFILE leaves for connections.
    case descriptors(Int)
    /// `limits per_address=`, by this address.
    case perAddress(Int, IPAddress)

    /// For the log: which limit, as the operator knows it.
    var text: String {
        switch self {
        case .connections(let count): "limits connections=\(count) is reached"
        case .descriptors(let count):
            "\(count) connections are all that RLIMIT_NOFILE allows"
        case .perAddress(let count, let address):
            "limits per_address=\(count) is reached by \(address)"
        }
    }
}

/// The connections of one listener.
struct ConnectionCounts: Sendable {
    private(set) var count = 0
    private var perAddress: [IPAddress: Int] = [:]

    /// Counts a connection in; with `key`, for its address.
    mutating func admit(_ key: IPAddress?, _ limits: (all: Int, perAddress: Int))
        throws(ConnectionLimit)
    {
        guard count < limits.all else { throw .connections(limits.all) }
        if let key { try add(key, limits.perAddress) }
        count += 1
    }

    /// Counts a connection that is in already for an address.
    mutating func add(_ key: IPAddress, _ most: Int) throws(ConnectionLimit) {
        guard perAddress[key, default: 0] < most else { throw .perAddress(most, key) }
        perAddress[key, default: 0] += 1
    }

    /// Counts a connection out.
    mutating func release(_ key: IPAddress?) {
        count -= 1
        guard let key, let count = perAddress[key] else { return }
        perAddress[key] = count > 1 ? count - 1 : nil
    }
}

/// The connections of all listeners but the admin's, against the process's descriptors.
final class DescriptorBudget: Sendable {
    private let state = Lock(State())

    private struct State: Sendable {
        var count = 0
        var most = Int.max
    }

    /// Shares out what is left of the limit: a tenth stays in reserve, for whatever else is opened
    /// (spool files, a log's reopening, health checks), and a connection counts double, since a
    /// request on it takes one towards the service.
    func share(limit: Int, used: Int) {
        let shared = limit * 9 / 10 - used - DescriptorBudget.lateDescriptors
        state.withLock { $0.most = max(1, shared / 2) }
    }

    /// What the process opens once it serves: Dispatch's own, signals, the service manager's.
    private static let lateDescriptors = 10

    /// The most connections.
    var most: Int { state.withLock { $0.most } }

    func take() throws(ConnectionLimit) {
        try state.withLock { state throws(ConnectionLimit) in
            guard state.count < state.most else { throw .descriptors(state.most) }
            state.count += 1
        }
    }

    func giveBack() {
        state.withLock { $0.count -= 1 }
    }
}

/// Whom to close where a new connection finds no room: whoever has been idle longest.
///
/// Looking through all connections for each new one would be an attack's lever; so one look finds
/// several, and the next comes no sooner than a moment later.
struct OldestIdle {
    private var found: [(connection: any ClientConnection, since: Moment)] = []
    private var nextLook = Moment(nanoseconds: .min)

    private static let foundMax = 64
    private static let lookInterval = Duration.milliseconds(100)

    /// The connection that has been idle longest; nil where none is.
    mutating func next(
        among connections: some Sequence<any ClientConnection>, at now: Moment
    ) -> (any ClientConnection)? {
        if let connection = takeFound() { return connection }
        guard now >= nextLook else { return nil }
        nextLook = now + OldestIdle.lookInterval
        found = connections.compactMap { connection in
            connection.idleSince.map { (connection, $0) }
        }
        // The oldest last: they are taken from the end.
        found.sort { $0.since > $1.since }
        found.removeFirst(max(0, found.count - OldestIdle.foundMax))
        return takeFound()
    }

    private mutating func takeFound() -> (any ClientConnection)? {
        while let (connection, since) = found.popLast() {
            if connection.idleSince == since { return connection }
        }
        return nil
    }
}
