internal import GateBytes

// Which route takes a request (conf.md §1 rule 1 and §5).
//
// Protected routes and `enroll` match wide: escapes decoded once, ASCII case folded, trailing `/`
// and `.` cut. Off routes match narrow: the raw bytes. So there are two indexes over two views of
// the path; for a path without escapes both views are the received bytes, and nothing is allocated.
//
// Among the routes that take path and method an exact one wins, then the longest prefix, then a
// named method; `enroll` before all. The loader refuses hosts on which that leaves a choice.

/// What a request meets on a host, by method and path alone.
package enum RouteMatch: Sendable, Equatable {
    /// The path has two readings: 400 `path_ambiguous`.
    case ambiguous
    /// A path at or below the enrolment prefix; `subpath` is what follows, decoded and folded:
    /// `/keys`. `OPTIONS` is answered 405 there.
    case enroll(subpath: String)
    /// An enforced or denied route takes the path, none the method: 405 with these in `Allow`.
    case methodNotAllowed(allow: [String])
    /// No route takes it and `unmatched` is `deny`: 404.
    case notFound
    /// A CORS preflight that passes with verdict `off`, to the upstream of this route (-1 as
    /// below).
    case preflight(Int)
    /// The index of a route of the host; -1 is ``Host/unmatchedRoute``. `isAmbiguous` is set only
    /// where an ambiguous path is counted, not refused.
    case route(Int, isAmbiguous: Bool)
}

/// The routes of one host, prepared for matching. Immutable.
package struct RouteTable: Sendable {
    private let wide: PathIndex
    private let narrow: PathIndex
    private let methods: MethodTable
    private let rules: [Rule]
    private let enroll: [UInt8]?
    private let unmatched: Host.Unmatched
    private let isPathStrict: Bool
    private let isPreflightPassed: Bool
    /// Whether an ambiguous path is refused; otherwise it is flagged.
    private let refusesAmbiguity: Bool

    /// What matching needs of one route.
    private struct Rule: Sendable {
        let methods: UInt64
        let isAnyMethod: Bool
        let isDenied: Bool
        /// Whether it makes a path answer 405 to methods no route takes.
        let isExclusive: Bool
    }

    /// The table of `host`.
    package init(host: Host) {
        var wide: [PathIndex.Item] = []
        var narrow: [PathIndex.Item] = []
        var methods = MethodTable()
        var rules: [Rule] = []
        for (index, route) in host.routes.enumerated() {
            let mask = route.methods.reduce(into: UInt64(0)) { $0 |= methods.mask(of: $1) }
            rules.append(
                Rule(
                    methods: mask, isAnyMethod: route.methods.isEmpty,
                    isDenied: route.mode.isDeny, isExclusive: route.mode.isExclusive))
            let pattern = RoutePattern(route)
            let item = PathIndex.Item(
                key: pattern.key, isPrefix: route.isPrefix, length: pattern.length, route: index)
            if pattern.isWide { wide.append(item) } else { narrow.append(item) }
        }
        self.wide = PathIndex(wide)
        self.narrow = PathIndex(narrow)
        self.methods = methods
        self.rules = rules
        enroll = host.enroll.isEmpty ? nil : RoutePattern.wideKey(Array(host.enroll.utf8))
        unmatched = host.unmatched
        isPathStrict = host.isPathStrict
        isPreflightPassed = host.isPreflightPassed
        refusesAmbiguity = host.unmatched != .off || rules.contains(where: \.isExclusive)
    }

    /// What a request for `bytes[path]` with method `bytes[method]` meets. `path` is the target's
    /// path as received, from its `/`, without query; `isPreflight` says that the request is a CORS
    /// preflight proper.
    package func match(
        _ bytes: [UInt8], method: Range<Int>, path: Range<Int>, isPreflight: Bool
    ) -> RouteMatch {
        let bit = methods.bit(bytes, method)
        if PlainPath.isPlain(bytes, path) {
            return match(
                wide: bytes, path, narrow: bytes, path, bit: bit, isPreflight: isPreflight,
                isAmbiguous: false)
        }
        guard !path.isEmpty, bytes[path.lowerBound] == UInt8(ascii: "/") else { return .ambiguous }
        let scanned = ScannedPath(bytes, path)
        let isAmbiguous = isAmbiguous(scanned)
        if isAmbiguous, refusesAmbiguity { return .ambiguous }
        let raw = RoutePattern.rawView(bytes, path)
        return match(
            wide: scanned.decoded, 0..<scanned.decoded.count, narrow: raw, 0..<raw.count, bit: bit,
            isPreflight: isPreflight, isAmbiguous: isAmbiguous)
    }

    private func isAmbiguous(_ path: ScannedPath) -> Bool {
        switch path.verdict {
        case .clear: return false
        case .hard: return true
        case .soft:
            if isPathStrict { return true }
            return path.collapsedForms.contains { form in
                if let enroll, ScannedPath.canFall(form, on: enroll[...], isPrefix: true) {
                    return true
                }
                return wide.keys.contains {
                    ScannedPath.canFall(form, on: $0.key, isPrefix: $0.isPrefix)
                }
            }
        }
    }

    private func match(
        wide wideBytes: [UInt8], _ wideRange: Range<Int>, narrow narrowBytes: [UInt8],
        _ narrowRange: Range<Int>, bit: UInt64, isPreflight: Bool, isAmbiguous: Bool
    ) -> RouteMatch {
        let cut = RoutePattern.cutTrailing(wideBytes, wideRange)
        if let enroll, let subpath = Self.subpath(wideBytes, cut, below: enroll) {
            return .enroll(subpath: subpath)
        }
        let hits = PathHits(
            wide: wide.find(wideBytes, cut, isFolding: true, takesOwnPath: true),
            narrow: narrow.find(narrowBytes, narrowRange, isFolding: false, takesOwnPath: false))
        if isPreflight, isPreflightPassed, let passed = preflight(hits) {
            return .preflight(passed)
        }
        if let route = route(hits, bit: bit) {
            return .route(route, isAmbiguous: isAmbiguous)
        }
        if let allow = allowed(hits) { return .methodNotAllowed(allow: allow) }
        return unmatched == .deny ? .notFound : .route(-1, isAmbiguous: isAmbiguous)
    }

    /// The most specific route that takes the method.
    private func route(_ hits: PathHits, bit: UInt64) -> Int? {
        var level = hits.first(wide, narrow)
        while let current = level {
            var any: Int?
            for index in current.routes(wide, narrow) {
                let rule = rules[index]
                if rule.methods & bit != 0 { return index }
                if rule.isAnyMethod, any == nil { any = index }
            }
            if let any { return any }
            level = current.next(wide, narrow)
        }
        return nil
    }

    /// The route whose upstream a preflight goes to; nil where it does not pass. Only the most
    /// specific level that takes the path counts, whatever its methods; one denied route there is
    /// enough.
    private func preflight(_ hits: PathHits) -> Int? {
        guard let level = hits.first(wide, narrow) else { return unmatched == .off ? -1 : nil }
        var first: Int?
        for index in level.routes(wide, narrow) {
            if rules[index].isDenied { return nil }
            if first == nil { first = index }
        }
        return first
    }

    /// The methods for `Allow`, in file order; nil where no enforced or denied route takes the
    /// path.
    private func allowed(_ hits: PathHits) -> [String]? {
        var isExclusive = false
        var allowed: UInt64 = 0
        var denied: UInt64 = 0
        var level = hits.first(wide, narrow)
        while let current = level {
            for index in current.routes(wide, narrow) {
                let rule = rules[index]
                if rule.isExclusive { isExclusive = true }
                if rule.isDenied { denied |= rule.methods } else { allowed |= rule.methods }
            }
            level = current.next(wide, narrow)
        }
        guard isExclusive else { return nil }
        return methods.names(of: allowed == 0 ? denied : allowed)
    }

    private static func subpath(
        _ bytes: [UInt8], _ range: Range<Int>, below enroll: [UInt8]
    ) -> String? {
        guard range.count >= enroll.count else { return nil }
        for offset in 0..<enroll.count
        where ASCII.lowercased(bytes[range.lowerBound + offset]) != enroll[offset] {
            return nil
        }
        let rest = (range.lowerBound + enroll.count)..<range.upperBound
        guard rest.isEmpty || bytes[rest.lowerBound] == UInt8(ascii: "/") else { return nil }
        return String(decoding: bytes[rest].map(ASCII.lowercased), as: UTF8.self)
    }
}

extension Route.Mode {
    /// Whether requests are refused outright.
    var isDeny: Bool {
        if case .deny = self { true } else { false }
    }

    /// Whether other methods on the path are answered 405, and ambiguous paths refused.
    var isExclusive: Bool { self == .enforce || isDeny }

    /// Whether the route matches wide.
    var isProtected: Bool { self != .off }
}
