// What one loop has counted. A loop counts in memory of its own, without a lock; whoever asks for
// the metrics has every loop hand its figures over and adds them up (`Metrics`).
//
// Label values are numbers of `MetricLabels`, packed with the other labels into one integer: a
// request costs a few look-ups in small tables.

internal import GateConfig
internal import GateHTTP
internal import GateStore

/// What became of a request to a service: the `result` of `attestgate_upstream_requests_total`.
enum UpstreamResult: UInt8, CaseIterable {
    /// The client went away, or the gate ended it, before the answer was complete.
    case aborted
    case closed
    case connect
    case malformed
    case noSlot
    case ok
    case refused
    case reset
    case spool
    case timeout
    case tls
    case unavailable

    var text: String { self == .noSlot ? "no_slot" : "\(self)" }

    init(_ failure: UpstreamFailure) {
        switch failure {
        case .allDown, .noAddress: self = .unavailable
        case .closed, .http2: self = .closed
        case .connect: self = .connect
        case .connectTimeout, .firstByteTimeout, .idleTimeout: self = .timeout
        case .handshake: self = .tls
        case .malformed: self = .malformed
        case .noSlot: self = .noSlot
        case .refused: self = .refused
        case .reset: self = .reset
        case .spool: self = .spool
        }
    }
}

/// The figures of one loop, or of several added up.
struct LoopMetrics: Sendable {
    /// Route, method, status and verdict.
    struct RequestKey: Hashable, Sendable {
        private let packed: UInt64

        init(route: UInt16, method: UInt8, status: UInt16, verdict: UInt8) {
            packed =
                UInt64(route) << 32 | UInt64(method) << 24 | UInt64(status) << 8 | UInt64(verdict)
        }

        var route: Int { Int(packed >> 32) }
        var method: UInt8 { UInt8(truncatingIfNeeded: packed >> 24) }
        var status: UInt16 { UInt16(truncatingIfNeeded: packed >> 8) }
        var verdict: UInt8 { UInt8(truncatingIfNeeded: packed) }
    }

    /// A label and a word of a closed list.
    struct LabelledKey<Word: Hashable & Sendable>: Hashable, Sendable {
        let label: UInt16
        let word: Word
    }

    /// Upstream, server and result.
    struct UpstreamKey: Hashable, Sendable {
        let upstream: UInt16
        let server: UInt16
        let result: UpstreamResult
    }

    /// A call to Apple and what came of it.
    struct AppleKey: Hashable, Sendable {
        let call: String
        let result: String
    }

    var requests: [RequestKey: UInt64] = [:]
    var refusals: [LabelledKey<Reason>: UInt64] = [:]
    var wouldRefuse: [LabelledKey<Reason>: UInt64] = [:]
    var requestDurations: [UInt16: LatencyHistogram] = [:]
    var verifyDuration = LatencyHistogram()
    var commitDuration = LatencyHistogram()
    var upstreamDurations: [UInt16: LatencyHistogram] = [:]
    var upstreamRequests: [UpstreamKey: UInt64] = [:]
    var upstreamIdle: [UInt16: UInt64] = [:]
    var received: [UInt16: UInt64] = [:]
    var transmitted: [UInt16: UInt64] = [:]
    var challengesIssued: [UInt16: UInt64] = [:]
    var enrolments: [LabelledKey<String>: UInt64] = [:]
    var unsupported: [UInt16: UInt64] = [:]
    var fallbacks: [LabelledKey<String>: UInt64] = [:]
    var appleCalls: [AppleKey: UInt64] = [:]
    var rateLimited: [String: UInt64] = [:]
    var failOpen: UInt64 = 0

    /// Counts `count` challenges for `purpose`.
    mutating func noteChallenges(purpose: UInt16) {
        challengesIssued[purpose, default: 0] += 1
    }

    /// Counts a call to Apple: `call` and `result` are words of the program.
    mutating func noteAppleCall(_ call: String, _ result: String) {
        appleCalls[AppleKey(call: call, result: result), default: 0] += 1
    }

    /// Adds what another loop has counted.
    mutating func add(_ other: LoopMetrics) {
        func add<Key>(_ sums: inout [Key: UInt64], _ more: [Key: UInt64]) {
            sums.merge(more) { $0 + $1 }
        }
        func add(_ sums: inout [UInt16: LatencyHistogram], _ more: [UInt16: LatencyHistogram]) {
            for (key, histogram) in more { sums[key, default: LatencyHistogram()].add(histogram) }
        }
        add(&requests, other.requests)
        add(&refusals, other.refusals)
        add(&wouldRefuse, other.wouldRefuse)
        add(&requestDurations, other.requestDurations)
        verifyDuration.add(other.verifyDuration)
        commitDuration.add(other.commitDuration)
        add(&upstreamDurations, other.upstreamDurations)
        add(&upstreamRequests, other.upstreamRequests)
        add(&upstreamIdle, other.upstreamIdle)
        add(&received, other.received)
        add(&transmitted, other.transmitted)
        add(&challengesIssued, other.challengesIssued)
        add(&enrolments, other.enrolments)
        add(&unsupported, other.unsupported)
        add(&fallbacks, other.fallbacks)
        add(&appleCalls, other.appleCalls)
        add(&rateLimited, other.rateLimited)
        failOpen += other.failOpen
    }
}

extension LoopMetrics.RequestKey {
    /// The label `method` of a method that is not registered.
    static let methodOther = "OTHER"
    private static let methods = Method.allCases
    private static let methodNumbers = Dictionary(
        uniqueKeysWithValues: methods.enumerated().map { ($1, UInt8(clamping: $0)) })

    /// The number of a method, 255 for one that is not registered.
    static func number(of method: Method?) -> UInt8 {
        guard let method else { return .max }
        return methodNumbers[method] ?? .max
    }

    var methodText: String {
        Int(method) < Self.methods.count ? Self.methods[Int(method)].rawValue : Self.methodOther
    }

    /// The words of the label `verdict`; what the gate answered itself has none.
    static let verdicts = [
        "none", "fallback", "monitored", "off", "unverified", "verified",
    ]

    /// The number of a verdict.
    static func number(of verdict: Verdict?) -> UInt8 {
        switch verdict {
        case nil: 0
        case .fallback: 1
        case .monitored: 2
        case .off: 3
        case .unverified: 4
        case .verified: 5
        }
    }

    var verdictText: String { Self.verdicts[Int(verdict)] }
}
