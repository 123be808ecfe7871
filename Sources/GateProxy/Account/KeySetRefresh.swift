// Fetches the key set of a URL: at the start, every `refresh`, and early when a token names a key
// that is not known. On the loop that keeps house, for life; no request waits for it but one that
// could not pass without.
//
//   idle ──deadline, asked──► fetching ──good──► idle, for `refresh`
//                                 └─────failed──► idle, for a second, then twice as long, …
//
// A set that cannot be fetched, read or used changes nothing: the last good one stays in force.

internal import GateBytes
internal import GateConfig
internal import GateHTTP
internal import GateRuntime

/// Keeps one key set fresh.
final class KeySetRefresh {
    let keySet: RemoteKeySet
    private unowned let worker: Worker
    private let deadline = Deadline()
    private var call: InternalCall?
    private var failures = 0
    private var fetchedAt: Moment?

    /// For a whole fetch; a set is a few KB.
    private static let callTime = Duration.seconds(10)
    /// Between two fetches that tokens with unknown keys ask for: such tokens cost nothing to make.
    private static let earlyInterval = Duration.seconds(10)
    /// The longest wait after a failure.
    private static let backoffSecondsMax = 60

    /// Begins at once.
    init(_ keySet: RemoteKeySet, on worker: Worker) {
        self.keySet = keySet
        self.worker = worker
        deadline.onPassed = { [weak self] in self?.fetch() }
        let bound = LoopBound(WeakRefresh(self), on: worker.loop)
        let handle = worker.loop.handle
        keySet.setFetcher { handle.submit { bound.open().refresh?.fetchEarly() } }
        fetch()
    }

    private struct WeakRefresh {
        weak var refresh: KeySetRefresh?

        init(_ refresh: KeySetRefresh) {
            self.refresh = refresh
        }
    }

    /// Ends for good.
    func stop() {
        worker.loop.remove(deadline)
        call?.cancel()
        call = nil
        keySet.setFetcher(nil)
    }

    /// Fetches before its time, unless that was done a moment ago.
    private func fetchEarly() {
        guard call == nil else { return }
        if let fetchedAt, worker.loop.now < fetchedAt + KeySetRefresh.earlyInterval {
            return keySet.settle()
        }
        fetch()
    }

    private func fetch() {
        guard call == nil else { return }
        fetchedAt = worker.loop.now
        let location = keySet.location
        guard let pool = worker.pool(named: location.upstream) else {
            return ended(.failure(TokenKeySetError("no upstream is there for it")))
        }
        var request = InternalRequest(
            .get, location.url.target, authority: location.url.authority,
            deadline: KeySetRefresh.callTime, answerBytesMax: TokenKeySet.textBytesMax)
        request.add("Accept", "application/jwk-set+json, application/json")
        request.add("User-Agent", "attestgate")
        call = InternalCall.start(request, over: pool, on: worker.loop) { [weak self] outcome in
            self?.call = nil
            self?.ended(KeySetRefresh.read(outcome))
        }
    }

    private static func read(
        _ outcome: InternalCall.Outcome
    ) -> Result<TokenKeySet, TokenKeySetError> {
        switch outcome {
        case .failure(let failure):
            return .failure(TokenKeySetError("\(failure)"))
        case .success(let answer) where answer.status != 200:
            return .failure(TokenKeySetError("answered \(answer.status)"))
        case .success(let answer):
            do throws(TokenKeySetError) {
                let set = try TokenKeySet.parse(set: answer.body)
                guard set.count > 0 else {
                    throw TokenKeySetError(set.omissions.first ?? "it holds no keys")
                }
                return .success(set)
            } catch {
                return .failure(error)
            }
        }
    }

    private func ended(_ result: Result<TokenKeySet, TokenKeySetError>) {
        let log = worker.context.errorLog
        let url = keySet.location.url
        // A query may hold what is not for logs.
        let name = "key set https://\(url.authority)\(url.target.prefix { $0 != "?" })"
        switch result {
        case .success(let set):
            if failures > 0 { log.write(.warn, "\(name): fetched again") }
            failures = 0
            keySet.adopt(set)
        case .failure(let error):
            failures += 1
            let kept =
                keySet.keys.map { "its last \($0.count) keys stay in force" }
                ?? "there are no keys yet, so nobody has an account"
            log.write(.error, "\(name): \(error); \(kept)")
        }
        keySet.settle()
        worker.loop.set(deadline, after: pause)
    }

    /// How long until the next fetch, up to a tenth less, so that gates that started together do
    /// not ask together.
    private var pause: Duration {
        var seconds = keySet.location.refresh.components.seconds
        if failures > 0 {
            let backoff = 1 << min(failures - 1, 6)
            seconds = min(seconds, Int64(min(backoff, KeySetRefresh.backoffSecondsMax)))
        }
        let milliseconds = max(1, seconds) * 1000
        return .milliseconds(milliseconds - Int64.random(in: 0...(milliseconds / 10)))
    }
}
