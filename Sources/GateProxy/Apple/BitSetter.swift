// `set_bits`: what a route sets on a device after its service has answered 2xx. Off the request's
// path: the client has its answer, and Apple may take its time. A job is
//
//   query both bits ─► write both ─► done
//          └── not to be had ──┴──► again after a while, ``delays`` ─► given up, and said so

internal import GateConfig
internal import GateCrypto
internal import GateRuntime

/// The bits of one loop that are being set. On its loop for life.
final class BitSetter {
    private unowned let worker: Worker
    private var jobs: [ObjectIdentifier: BitJob] = [:]
    private var witnesses: [ObjectIdentifier: AnswerWitness] = [:]

    /// Jobs of one loop at one time, and answers that are waited for; each holds a token of some
    /// 2 KB.
    static let jobsMax = 256

    init(_ worker: Worker) {
        self.worker = worker
    }

    /// Sets the bits of the device that `token` is of.
    /// - Parameter route: For the log.
    func set(
        _ bits: DeviceBits, token: [UInt8], environment: App.Environment, route: String
    ) {
        guard jobs.count < BitSetter.jobsMax else {
            return note("too many wait already", route)
        }
        let job = BitJob(bits, token: token, environment: environment, on: worker)
        jobs[ObjectIdentifier(job)] = job
        job.onEnd = { [weak self, unowned job] reason in
            self?.jobs[ObjectIdentifier(job)] = nil
            if let reason { self?.note(reason, route) }
        }
        job.begin()
    }

    /// Waits for the answer to `request`, whose client has left; `isGood` runs if it is 2xx. No
    /// client chooses by leaving whether its device is marked.
    func watch(_ request: UpstreamRequest, route: String, isGood: @escaping () -> Void) {
        guard witnesses.count < BitSetter.jobsMax else {
            request.cancel()
            return note("too many answers are waited for already", route)
        }
        let witness = AnswerWitness(request)
        witnesses[ObjectIdentifier(witness)] = witness
        witness.onEnd = { [weak self, unowned witness] status in
            self?.witnesses[ObjectIdentifier(witness)] = nil
            if let status, (200...299).contains(status) { isGood() }
        }
        request.handOver(to: witness)
    }

    /// Gives everything up: the gate stops.
    func stop() {
        let count = jobs.count + witnesses.count
        if count > 0 {
            worker.context.errorLog.write(.error, "set_bits: \(count) lost: the gate stops")
        }
        for job in jobs.values { job.stop() }
        for witness in witnesses.values { witness.stop() }
        jobs = [:]
        witnesses = [:]
    }

    private func note(_ reason: String, _ route: String) {
        worker.context.errorLog.write(.error, "set_bits of route \"\(route)\" lost: \(reason)")
    }
}

/// The bits of one device.
private final class BitJob {
    /// Runs once, with why the bits were not set, or nil.
    var onEnd: ((String?) -> Void)?

    private let bits: DeviceBits
    private let token: [UInt8]
    private let environment: App.Environment
    private unowned let worker: Worker
    private var attempts = 0
    private let next = Deadline()
    private var call: InternalCall?

    /// Before each attempt after the first. Apple takes a token for a while only.
    private static let delays: [Duration] = [.seconds(1), .seconds(5), .seconds(25)]
    private static let deadline = Duration.seconds(10)

    init(
        _ bits: DeviceBits, token: [UInt8], environment: App.Environment, on worker: Worker
    ) {
        self.bits = bits
        self.token = token
        self.environment = environment
        self.worker = worker
        next.onPassed = { [weak self] in self?.begin() }
    }

    func begin() {
        ask(.queryTwoBits, nil) { job, known in
            let known = known ?? DeviceCheckMessage.Bits()
            job.ask(.updateTwoBits, known.setting(job.bits)) { job, _ in job.end(nil) }
        }
    }

    func stop() {
        worker.loop.remove(next)
        call?.cancel()
        onEnd = nil
    }

    private func ask(
        _ kind: AppleRequest.Call, _ bits: DeviceCheckMessage.Bits?,
        then: @escaping (BitJob, DeviceCheckMessage.Bits?) -> Void
    ) {
        guard let apple = worker.context.apple else {
            return end("the configuration has no \"apple\" any more")
        }
        do throws(AppleUnavailable) {
            call = try apple.askDeviceCheck(
                kind, token, bits: bits, environment: environment, deadline: BitJob.deadline,
                on: worker
            ) { [weak self] outcome in
                guard let self else { return }
                self.call = nil
                switch outcome {
                case .passed(let bits): then(self, bits)
                case .tokenInvalid: self.end("Apple does not take the device token")
                case .unavailable: self.tryAgain()
                }
            }
        } catch {
            tryAgain()
        }
    }

    private func tryAgain() {
        guard attempts < BitJob.delays.count else {
            return end("Apple was not available \(attempts + 1) times")
        }
        // Not all at the same moment.
        let delay = BitJob.delays[attempts]
        let jitter = Duration.milliseconds(Int.random(in: 0..<500, using: &worker.random))
        attempts += 1
        worker.loop.set(next, after: delay + jitter)
    }

    private func end(_ reason: String?) {
        let onEnd = onEnd
        self.onEnd = nil
        onEnd?(reason)
    }
}

extension Exchange {
    /// Has the bits of the device set that the client sent a token of, where its route says so and
    /// the service has answered 2xx.
    func setBits(status: Int) {
        guard (200...299).contains(status), let set = bitsToSet() else { return }
        set()
    }

    /// Lets a request whose client leaves before the answer go on, where the answer decides on the
    /// device's bits; false where it is of no more use.
    func isAnswerLeftToBitSetter() -> Bool {
        guard !isAnswered, let upstream, upstream.isAnswerAwaited, let route,
            let set = bitsToSet()
        else { return false }
        worker.bitSetter.watch(upstream, route: route.name, isGood: set)
        return true
    }

    /// What sets the bits once the answer is a good one; nil where nothing is to be set. Once.
    private func bitsToSet() -> (() -> Void)? {
        guard let token = bitsToken, let route, let bits = route.setBits, let app = host?.app
        else { return nil }
        switch log.verdict {
        case .fallback, .verified: break
        case .monitored, .off, .unverified, nil: return nil
        }
        bitsToken = nil
        let setter = worker.bitSetter
        return {
            setter.set(bits, token: token, environment: app.app.environment, route: route.name)
        }
    }
}
