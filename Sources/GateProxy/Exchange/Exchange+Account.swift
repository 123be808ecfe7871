// Whose request it is, found out before anything of its proof is looked at (`protocol.md` §4, §7).
//
//   header, client_cert, jwt with keys at hand ──► at once
//   jwt of an unknown key, or before the first keys ──► one early fetch, then judged again
//   subrequest ──► remembered, or the service is asked
//
// While the request waits nothing of its body is read. A monitored request without an account is
// counted and goes on like any that fails.

internal import GateBytes
internal import GateConfig
internal import GateHTTP
internal import GateRuntime
internal import GateStore
internal import GateTLS

/// What a request waits for whose account is not known yet. On the exchange's loop.
final class AccountWait {
    let deadline = Deadline()
    var call: InternalCall?
    let then: (Exchange) -> Void

    init(then: @escaping (Exchange) -> Void) {
        self.then = then
    }
}

extension Exchange {
    /// How long a request waits for keys: a fetch from a service nearby takes a fraction, and a
    /// client that comes again a moment later finds them.
    private static let keysWaitMax = Duration.seconds(2)

    /// Finds the account out, where the host has a source of some, and then goes on with `then`,
    /// at once or later; not at all where the request has been refused, forwarded unjudged or left
    /// by its client.
    func takeAccount(
        _ head: RequestHead, _ host: HostRuntime, then: @escaping (Exchange) -> Void
    ) {
        switch host.accounts {
        case .certificate(let name):
            guard let names = client.tls?.peerNames, client.tls?.isPeerVerified == true else {
                return fail(Refusal(.accountAbsent, at: .checks))
            }
            let account = name.account(names)
            settle(AccountReader.isAccount(account) ? .account(account) : .absent, then)
        case .header:
            settle(AccountReader.read(head, host.fields, isTrusted: isPeerTrusted), then)
        case .none:
            place(head, host)
            then(self)
        case .subrequest(let accounts):
            ask(accounts, head, host, then)
        case .token(let accounts):
            judgeToken(accounts, head, mayWait: true, then)
        }
    }

    private func settle(_ reading: AccountReading, _ then: (Exchange) -> Void) {
        switch reading {
        case .absent:
            return fail(Refusal(.accountAbsent, at: .checks))
        case .account(let account):
            self.account = account
        case .malformed:
            return fail(Refusal(.malformed, at: .checks))
        }
        if let head, let host { place(head, host) }
        guard mode == .off || !context.store.isBlocked(account: account) else {
            return fail(Refusal(.accountBlocked, at: .checks))
        }
        then(self)
    }

    /// Refuses because who the client is cannot be told now.
    private func failUnknownAccount(_ cause: String) {
        context.errorLog.write(.error, "account: \(cause)")
        // The closed list has no nearer reason; what is told is to come again.
        fail(Refusal(.upstream, as: .retryLater))
    }

    // MARK: jwt

    private func judgeToken(
        _ accounts: TokenAccounts, _ head: RequestHead, mayWait: Bool,
        _ then: @escaping (Exchange) -> Void
    ) {
        let token: [UInt8]
        switch AccountReader.readToken(head, in: accounts.header) {
        case .absent: return settle(.absent, then)
        case .malformed: return settle(.malformed, then)
        case .credential(let text): token = text
        }
        switch accounts.judge(token, now: context.unixSeconds()) {
        case .account(let account):
            settle(.account(account), then)
        case .noKeys:
            if mayWait, waitForKeys(accounts, head, then) { return }
            failUnknownAccount("no keys have been fetched yet")
        case .refused(let error):
            if error == .keyUnknown, mayWait, waitForKeys(accounts, head, then) { return }
            context.errorLog.write(.debug, "account: token refused: \(error)")
            settle(.absent, then)
        }
    }

    /// Waits for a fetch of the keys and judges again; false where there is nothing to wait for.
    private func waitForKeys(
        _ accounts: TokenAccounts, _ head: RequestHead, _ then: @escaping (Exchange) -> Void
    ) -> Bool {
        guard let remote = accounts.remote else { return false }
        let wait = AccountWait { exchange in
            exchange.judgeToken(accounts, head, mayWait: false, then)
        }
        let bound = LoopBound((self, wait), on: worker.loop)
        let handle = worker.loop.handle
        let isWaiting = remote.refresh {
            handle.submit {
                let (exchange, wait) = bound.open()
                exchange.accountKnown(wait)
            }
        }
        guard isWaiting else { return false }
        accountWait = wait
        wait.deadline.onPassed = { [weak self, weak wait] in
            if let wait { self?.accountKnown(wait) }
        }
        worker.loop.set(wait.deadline, after: Exchange.keysWaitMax)
        return true
    }

    // MARK: subrequest

    private func ask(
        _ accounts: SubrequestAccounts, _ head: RequestHead, _ host: HostRuntime,
        _ then: @escaping (Exchange) -> Void
    ) {
        let settings = accounts.settings
        guard let pool = pool(named: settings.upstream) else {
            return failUnknownAccount("upstream \"\(settings.upstream)\" is not there")
        }
        let question = AccountQuestion(
            head, host.fields,
            UpstreamContext(
                isPeerTrusted: isPeerTrusted,
                peer: client.peer.ipAddress.map { Array("\($0)".utf8) } ?? [],
                scheme: client.scheme, requestID: log.requestID, verdict: .off, body: .none),
            setFields: pool.setFields)
        let now = worker.loop.now.nanoseconds
        if let account = accounts.memory?.account(question.key, now: now) {
            return settle(.account(account), then)
        }
        var outcome = SubrequestAccounts.Outcome.absent
        let wait = AccountWait { exchange in
            switch outcome {
            case .absent: exchange.settle(.absent, then)
            case .account(let account): exchange.settle(.account(account), then)
            case .unknown(let cause):
                exchange.failUnknownAccount("upstream \"\(settings.upstream)\": \(cause)")
            }
        }
        accountWait = wait
        let request = InternalRequest(
            .get, settings.target, authority: head.text(head.authority), fields: question.fields,
            deadline: pool.upstream.timeouts.firstByte, answerBytesMax: Exchange.answerBytesMax)
        wait.call = InternalCall.start(request, over: pool, on: worker.loop) {
            [weak self, weak wait] answer in
            guard let self, let wait else { return }
            wait.call = nil
            outcome = accounts.read(answer)
            if case .account(let account) = outcome {
                accounts.memory?.remember(account, question.key, now: now)
            }
            self.accountKnown(wait)
        }
    }

    /// The longest answer of such a service: it may come with a page for people.
    private static let answerBytesMax = 256 * 1024

    // MARK: Waiting

    /// Goes on once what was waited for is here, or will not come in time.
    private func accountKnown(_ wait: AccountWait) {
        guard accountWait === wait else { return }
        stopWaitingForAccount()
        guard !isOver, !isAnswered else { return }
        wait.then(self)
        guard accountWait == nil, !isOver else { return }
        // What came meanwhile was not taken.
        if isBodyComplete { receiveEnd() }
        stream.resumeBody()
    }

    /// Ends the wait: the client has gone, or it is over.
    func stopWaitingForAccount() {
        guard let wait = accountWait else { return }
        accountWait = nil
        worker.loop.remove(wait.deadline)
        wait.deadline.onPassed = nil
        wait.call?.cancel()
        wait.call = nil
    }
}
