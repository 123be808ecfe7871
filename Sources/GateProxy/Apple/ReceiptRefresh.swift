// Receipts exchanged with Apple for the fraud metric, on the loop that keeps house, for life.
//
//   due ──► ready ──► read and verified ──► asked ──► verified, stored ──► due at its not-before
//                                             └── refused, no answer ──► due later (RefreshPlan)
//
// When a receipt is due stands with its key in the store, so a restart loses nothing: what was on
// its way is due still. Due keys are found by a search that goes round and round over the store, so
// many keys a turn; what it has found waits in `ready`. A key is asked for once at a time: it is in
// `busy` from there until the store has its next time on disk.

internal import AppAttest
internal import GateBytes
internal import GateConfig
internal import GateCrypto
internal import GateRuntime
internal import GateStore

/// The exchange of receipts.
final class ReceiptRefresh {
    private unowned let worker: Worker
    private var pace: RefreshPace
    private var cursor = ReceiptCursor()
    private var searchAgainAt: Moment
    private var ready: [Bytes32] = []
    private var busy: Set<Bytes32> = []
    /// How often in a row Apple did not answer, by key.
    private var failures: [Bytes32: Int] = [:]
    /// How many receipts in a row Apple called bad.
    private var refusedInARow = 0
    private var random = BufferedRandom()
    private var isAsking = false
    private weak var lastApple: AppleServices?

    /// How often ``turn()`` is to be called.
    static let interval = Duration.milliseconds(250)
    /// Keys that a turn looks at: a million in a minute.
    private static let lookingMax = 4096
    /// Keys that wait to be asked for: some seconds of work.
    private static let readyMax = 1024
    /// Keys whose failures are counted; beyond it counting begins anew.
    private static let failuresMax = 65_536
    /// How long a search that has come to the end rests.
    private static let searchPause = Duration.seconds(1)
    /// Apple does not take the gate for the operator: somebody has to look.
    private static let refusedPause = Duration.seconds(3600)
    /// So many receipts are not bad of themselves: the environment is wrong, or the address.
    private static let refusedInARowMax = 5
    /// The disk takes no receipts.
    private static let storePause = Duration.seconds(600)
    private static let retryAfterMax = 3600
    private static let callMax = Duration.seconds(20)
    /// Base64 of a receipt of the greatest size.
    private static let answerBytesMax = 32 * 1024

    init(_ worker: Worker) {
        self.worker = worker
        pace = RefreshPace(at: worker.loop.now)
        searchAgainAt = worker.loop.now
    }

    /// Finds what is due and asks for it, as far as the pace allows.
    func turn() {
        let context = worker.context
        guard context.apple != nil, !context.refreshedApps.isEmpty, context.store.isReady else {
            return
        }
        // With another key or address what was refused may pass.
        if lastApple !== context.apple { pace.resume() }
        lastApple = context.apple
        guard !pace.isPaused(at: worker.loop.now) else { return }
        search(context)
        askReady()
    }

    private func search(_ context: GateContext) {
        let now = worker.loop.now
        guard ready.count < ReceiptRefresh.readyMax, searchAgainAt <= now else { return }
        let (keys, isAtEnd) = context.store.dueReceipts(
            from: &cursor, looking: ReceiptRefresh.lookingMax,
            limit: ReceiptRefresh.readyMax - ready.count,
            now: UInt32(clamping: context.unixSeconds())
        ) { appID, environment in
            context.refreshedApps.contains { $0.has(appID: appID, environment: environment) }
        }
        for key in keys where busy.insert(key).inserted { ready.append(key) }
        if isAtEnd { searchAgainAt = now + ReceiptRefresh.searchPause }
    }

    private func askReady() {
        guard !isAsking, !worker.isDraining else { return }
        isAsking = true
        defer { isAsking = false }
        while !ready.isEmpty, pace.begin(at: worker.loop.now) {
            begin(ready.removeFirst(), worker.context)
        }
    }

    /// The key's turn is over.
    private func leave(_ keyID: Bytes32) {
        busy.remove(keyID)
        pace.end()
        askReady()
    }

    // MARK: One key

    /// A receipt on its way.
    private struct Question: Sendable {
        let key: KeyRecord
        let app: AppRuntime
        var receipt: [UInt8] = []
        /// What it says.
        var shown: VerifiedReceipt?

        func verify(
            _ bytes: [UInt8], kind: ReceiptKind?, ageSecondsMax: Int64?, now: Int64
        ) throws(ReceiptError) -> VerifiedReceipt {
            try Receipt.verify(
                bytes,
                ReceiptTerms(
                    appIDs: [key.app], publicKeyX963: key.publicKey.x963, kind: kind,
                    environment: app.environment, root: app.receiptRoot,
                    ageSecondsMax: ageSecondsMax, at: now))
        }
    }

    /// Reads the receipt that the store has, and verifies it: it may have been kept unread.
    private func begin(_ keyID: Bytes32, _ context: GateContext) {
        let now = context.unixSeconds()
        guard let key = context.store.key(keyID), !key.isRevoked,
            let refreshAt = key.refreshAt, Int64(refreshAt) <= now,
            let app = context.refreshedApps.first(where: {
                $0.has(appID: key.app, environment: key.environment)
            })
        else { return leave(keyID) }
        let bound = LoopBound(self, on: worker.loop)
        let handle = worker.loop.handle
        let verification = context.verification
        let unread = Question(key: key, app: app)
        context.store.receipt(of: key) { bytes in
            guard let bytes else { return handle.submit { bound.open().unreadable(unread) } }
            let isQueued = verification.submit {
                var question = unread
                question.receipt = bytes
                do throws(ReceiptError) {
                    question.shown = try question.verify(
                        question.receipt, kind: nil, ageSecondsMax: nil, now: now)
                    let read = question
                    handle.submit { bound.open().ask(read) }
                } catch {
                    handle.submit { bound.open().lost(unread, error) }
                }
            }
            // The pool is full: found again by the next search.
            if !isQueued { handle.submit { bound.open().leave(keyID) } }
        }
    }

    /// The receipt cannot be read now: for want of a descriptor, of a file, for good, nobody knows.
    private func unreadable(_ question: Question) {
        note(.warn, question, "a kept one cannot be read; tried again in a day")
        again(
            question, RefreshPlan.unread(now: worker.context.unixSeconds(), using: &random))
    }

    /// The receipt never was one: there is nothing to ask with.
    private func lost(_ question: Question, _ error: ReceiptError) {
        note(.warn, question, "a kept one is not good, and is asked for no more: \(error)")
        store(question, ReceiptUpdate(refreshAt: nil))
    }

    private func ask(_ question: Question) {
        let context = worker.context
        let now = context.unixSeconds()
        guard !worker.isDraining, let apple = context.apple else {
            return leave(question.key.keyID)
        }
        // The last word is the receipt's own.
        if let notBefore = question.shown?.notBefore, RefreshPlan.ceiling(notBefore) > now {
            return again(question, RefreshPlan.notModified(notBefore, now: now, using: &random))
        }
        let request = AppleRequest(
            call: .attestationData, environment: question.app.app.environment,
            body: Array(Base64.encode(question.receipt).utf8), deadline: ReceiptRefresh.callMax,
            answerBytesMax: ReceiptRefresh.answerBytesMax)
        do throws(AppleUnavailable) {
            _ = try apple.start(request, on: worker) { [weak self] outcome in
                self?.answered(question, outcome)
            }
        } catch {
            pause(error.retryAfter)
            leave(question.key.keyID)
        }
    }

    private func answered(_ question: Question, _ outcome: AppleOutcome) {
        let now = worker.context.unixSeconds()
        let keyID = question.key.keyID
        if case .answer(let status, _) = outcome, status != 400 { refusedInARow = 0 }
        switch outcome {
        case .answer(status: 200, let body):
            failures[keyID] = nil
            verify(body, for: question)
        case .answer(status: 304, _):
            failures[keyID] = nil
            again(
                question,
                RefreshPlan.notModified(question.shown?.notBefore, now: now, using: &random))
        case .answer(status: 404, _):
            failures[keyID] = nil
            again(question, RefreshPlan.notFound(now: now, using: &random))
        case .answer(let status, _):
            note(.error, question, "answered \(status); that one is not asked for again for weeks")
            refusedInARow += 1
            if refusedInARow >= ReceiptRefresh.refusedInARowMax {
                note(.error, question, "so for one after the other; none is asked for in an hour")
                refusedInARow = 0
                pace.pause(ReceiptRefresh.refusedPause, at: worker.loop.now)
            }
            again(question, RefreshPlan.refused(now: now, using: &random))
        case .refused(let status):
            note(
                .error, question,
                "answered \(status): Apple does not take the token of block apple, or the receipt "
                    + "is another team's; none is asked for in the next hour")
            pace.pause(ReceiptRefresh.refusedPause, at: worker.loop.now)
            again(question, RefreshPlan.unauthorized(now: now, using: &random))
        case .unavailable(let retryAfter):
            if let retryAfter { pause(retryAfter) }
            if failures.count >= ReceiptRefresh.failuresMax { failures = [:] }
            let count = (failures[keyID] ?? 0) + 1
            failures[keyID] = count
            again(question, RefreshPlan.unavailable(failures: count, now: now, using: &random))
        }
    }

    private func pause(_ seconds: Int) {
        pace.pause(
            .seconds(min(max(1, seconds), ReceiptRefresh.retryAfterMax)), at: worker.loop.now)
    }

    /// Verifies an answer on the pool.
    private func verify(_ body: [UInt8], for question: Question) {
        let now = worker.context.unixSeconds()
        let bound = LoopBound(self, on: worker.loop)
        let handle = worker.loop.handle
        let isQueued = worker.context.verification.submit {
            let receipt = Base64.decode(body.filter { $0 > 0x20 }) ?? []
            do throws(ReceiptError) {
                let verified = try question.verify(
                    receipt, kind: .receipt, ageSecondsMax: ReceiptTerms.arrivalSeconds, now: now)
                handle.submit { bound.open().verified(receipt, verified, for: question) }
            } catch {
                handle.submit { bound.open().invalid("\(error)", question) }
            }
        }
        if !isQueued { invalid("no thread was free to verify it", question) }
    }

    private func invalid(_ fault: String, _ question: Question) {
        note(.error, question, "the one that came is not good: \(fault)")
        again(
            question, RefreshPlan.invalid(now: worker.context.unixSeconds(), using: &random))
    }

    private func verified(
        _ receipt: [UInt8], _ verified: VerifiedReceipt, for question: Question
    ) {
        guard verified.creation > question.shown?.creation ?? .min else {
            return invalid("it is no newer than the one it is for", question)
        }
        let update = RefreshPlan.update(
            with: verified, now: worker.context.unixSeconds(), using: &random)
        let bound = LoopBound(self, on: worker.loop)
        let handle = worker.loop.handle
        worker.context.store.keep(receipt: receipt, of: question.key.keyID, update) { outcome in
            handle.submit { bound.open().kept(outcome, question, update) }
        }
    }

    private func kept(
        _ outcome: ReceiptOutcome, _ question: Question, _ update: ReceiptUpdate
    ) {
        guard outcome == .unavailable else { return leave(question.key.keyID) }
        // Metric and time hold without the receipt: Apple must not be asked over and over for want
        // of a disk.
        note(.error, question, "the one that came could not be stored")
        pace.pause(ReceiptRefresh.storePause, at: worker.loop.now)
        store(question, update)
    }

    private func again(_ question: Question, _ time: UInt32) {
        store(question, ReceiptUpdate(refreshAt: time))
    }

    private func store(_ question: Question, _ update: ReceiptUpdate) {
        let keyID = question.key.keyID
        let bound = LoopBound(self, on: worker.loop)
        let handle = worker.loop.handle
        worker.context.store.update(receiptOf: keyID, update) { _ in
            handle.submit { bound.open().leave(keyID) }
        }
    }

    private func note(_ severity: LogSettings.Level, _ question: Question, _ text: String) {
        worker.context.errorLog.write(severity, "receipts of app \(question.app.app.name): \(text)")
    }
}

extension AppRuntime {
    /// Whether a key of the store with this App ID and environment is this app's.
    func has(appID: String, environment: UInt8) -> Bool {
        environment == environmentCode && app.appIDs.contains(appID)
    }
}
