// What has to pass on a new connection before its first request:
//
//   accepted ─► step ─► … ─► step ─► the connection that speaks HTTP
//                 │ failed, closed or late
//                 ▼
//               closed
//
// Each step reads what it needs, may put another transport over the one it was given, and notes
// what it learns of the client. Octets that were read and not used go on to the connection. Where
// a listener has no steps there is no intake. On one loop for life.

internal import GateBytes
internal import GateConfig
internal import GateRuntime

/// One thing that has to pass before the first request.
protocol IntakeStep: AnyObject {
    /// How long it may take.
    func timeout(_ timeouts: ListenerTimeouts) -> Duration
    /// Goes on as far as the octets allow.
    /// - Returns: Whether the step is done; false when it waits for more.
    func advance(_ intake: Intake) throws(IntakeError) -> Bool
}

/// Why a connection does not get as far as a request.
enum IntakeError: Error, Equatable {
    /// The peer has closed.
    case closed
    /// The client that it speaks for has its fill of connections.
    case crowded(ConnectionLimit)
    /// What it sent is not what has to stand here: what was wrong, one clause.
    case refused(String)
    case system(SystemError)
}

/// A new connection on its way to the first request.
final class Intake: EventHandler, ClientConnection {
    /// What is known so far; steps add to it.
    var client: ClientFacts
    /// What carries the connection; a step may put another over it.
    var transport: any Transport
    /// Octets read and not yet used.
    var input = ByteBuffer()
    /// What the event said, until a read finds nothing.
    private(set) var isReadable = false

    private let worker: Worker
    private var steps: ArraySlice<any IntakeStep>
    private let deadline = Deadline()
    private var isClosed = false

    init(
        _ transport: any Transport, client: ClientFacts, steps: [any IntakeStep], worker: Worker
    ) {
        self.transport = transport
        self.client = client
        self.steps = steps[...]
        self.worker = worker
        deadline.onPassed = { [weak self] in self?.end(nil) }
    }

    func start() throws(SystemError) {
        try transport.register(self)
        setDeadline()
    }

    func drain() { close() }

    func abort() { close() }

    func ready(_ readiness: Readiness) {
        if readiness.contains(.readable) { isReadable = true }
        do throws(IntakeError) {
            while let step = steps.first {
                guard try step.advance(self) else { return }
                steps.removeFirst()
                setDeadline()
            }
        } catch {
            return end(error)
        }
        deadline.cancel()
        worker.loop.remove(deadline)
        isClosed = true
        worker.begin(self)
    }

    /// Reads what is there into ``input``.
    /// - Returns: Whether anything came.
    func read() throws(IntakeError) -> Bool {
        guard isReadable else { return false }
        let transfer: Transfer
        do throws(SystemError) {
            transfer = try transport.read(into: &input)
        } catch {
            throw .system(error)
        }
        switch transfer {
        case .bytes: return true
        case .end: throw .closed
        case .wouldBlock:
            isReadable = false
            return false
        }
    }

    /// Makes `peer` the client of the connection.
    func become(_ peer: SocketAddress) throws(IntakeError) {
        if let key = client.listener.limitKey(of: peer) {
            do throws(ConnectionLimit) {
                try client.listener.count(key)
            } catch {
                throw .crowded(error)
            }
            client.limitKey = key
        }
        client.peer = peer
    }

    private func setDeadline() {
        guard let step = steps.first else { return }
        worker.loop.set(deadline, after: step.timeout(client.listener.timeouts))
    }

    private func end(_ error: IntakeError?) {
        // Without the peer's address, so that a flood of such connections is one line a second.
        let listener = client.listener.listener.name
        switch error {
        case nil, .closed?: break
        case .crowded(let limit)?: worker.refused(limit, on: client.listener)
        case .refused(let reason)?:
            worker.context.errorLog.write(.info, "listener \(listener): \(reason)")
        case .system(let error)?:
            worker.context.errorLog.write(.info, "listener \(listener): \(error)")
        }
        close()
    }

    private func close() {
        guard !isClosed else { return }
        isClosed = true
        worker.loop.remove(deadline)
        transport.close()
        worker.closed(self)
    }
}
