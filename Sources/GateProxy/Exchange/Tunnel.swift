// What a client and a service say to each other after the service has switched to WebSocket: octets
// both ways, unread.
//
//   client ─► service.output ─► service          a side is read while what waits for the other is
//   client ◄─ client.output ◄── service          under the bound, so the slower one sets the pace
//
// It ends when both have ended, when either fails, when nothing has moved for `tunnel`, after
// `tunnel_max`, when the key that opened it is revoked, or with the gate. A side that has ended
// leaves the other what it still has to say, as long as that moves.
//
// The tunnel stands in its client's connection's place in the worker, on one loop for life. The
// service's connection belongs to nothing else any more: it goes with the tunnel.

internal import GateBytes
internal import GateLock
internal import GateRuntime

/// One end of a tunnel as its connection hands it over.
struct TunnelEnd {
    let transport: any Transport
    /// Octets that were read and belong to the tunnel.
    var input = ByteBuffer()
    /// Octets that have to leave before those of the tunnel.
    var output = ByteBuffer()
}

/// A switched connection.
final class Tunnel: ClientConnection {
    /// Why a tunnel ended.
    enum Ending: Equatable {
        case clientFailed
        /// Both sides had ended.
        case closed
        case idle
        case keyRevoked
        case serviceFailed(SystemError)
        /// With the gate.
        case stopped
        case tooLong
    }

    /// How long it may last and stand still.
    struct Timeouts {
        /// Without an octet in either direction.
        var idle: Duration
        /// The same once one side has ended.
        var halfClosed: Duration
        /// In all.
        var whole: Duration
    }

    let client: ClientFacts
    /// Octets of the client so far.
    private(set) var bytesIn = 0
    /// Octets to the client so far.
    private(set) var bytesOut = 0

    private let worker: Worker
    private let timeouts: Timeouts
    private let clientSide: Side
    private let serviceSide: Side
    private let idleDeadline = Deadline()
    private let wholeDeadline = Deadline()
    private var isOver = false
    private var isPumping = false
    private var isPumpingLater = false
    private let onEnd: (Tunnel, Ending) -> Void

    /// Octets that may wait for one side before the other is no longer read.
    static let waitingBytesMax = 64 * 1024
    /// Octets that one turn moves before the loop looks at everyone else.
    private static let bytesInTurnMax = 256 * 1024

    /// - Parameter onEnd: Called once, when both connections are closed.
    init(
        client: ClientFacts, clientEnd: TunnelEnd, serviceEnd: TunnelEnd, timeouts: Timeouts,
        worker: Worker, onEnd: @escaping (Tunnel, Ending) -> Void
    ) {
        self.client = client
        self.worker = worker
        self.timeouts = timeouts
        self.onEnd = onEnd
        clientSide = Side(clientEnd.transport)
        serviceSide = Side(serviceEnd.transport)
        clientSide.output = clientEnd.output
        clientSide.output.append(serviceEnd.input.storage, serviceEnd.input.readable)
        serviceSide.output = serviceEnd.output
        serviceSide.output.append(clientEnd.input.storage, clientEnd.input.readable)
        bytesIn = clientEnd.input.count
        clientSide.tunnel = self
        serviceSide.tunnel = self
        idleDeadline.onPassed = { [weak self] in self?.end(.idle) }
        wholeDeadline.onPassed = { [weak self] in self?.end(.tooLong) }
    }

    /// Takes both connections over.
    func start() throws(SystemError) {
        try clientSide.transport.register(clientSide)
        try serviceSide.transport.register(serviceSide)
        worker.loop.set(wholeDeadline, after: timeouts.whole)
        progressed()
        pump()
    }

    /// Goes on: what is said in a tunnel has no end that a drain could wait for, but its time.
    func drain() {}

    func abort() { end(.stopped) }

    /// Ends the tunnel because its key is good no more.
    func revoke() { end(.keyRevoked) }

    // MARK: Moving

    fileprivate func pump() {
        guard !isPumping, !isOver else { return }
        isPumping = true
        defer { isPumping = false }
        var left = Tunnel.bytesInTurnMax
        while !isOver {
            let moved =
                move(from: clientSide, to: serviceSide) + move(from: serviceSide, to: clientSide)
            guard moved > 0, !isOver else { break }
            progressed()
            left -= moved
            guard left > 0 else { return pumpLater() }
        }
        guard !isOver else { return }
        if clientSide.isDone, serviceSide.isDone { return end(.closed) }
        giveMemoryBack()
    }

    /// Writes what waits for `to`, reads once from `from` where there is room for it, and passes on
    /// that `from` has ended.
    /// - Returns: Octets written and read.
    private func move(from: Side, to: Side) -> Int {
        var moved = 0
        do throws(SystemError) {
            moved += try flush(to)
        } catch {
            failed(to, error)
            return 0
        }
        if from.isReadable, !from.isEnded, to.output.count < Tunnel.waitingBytesMax {
            do throws(SystemError) {
                moved += try read(from, into: to)
            } catch {
                failed(from, error)
                return 0
            }
        }
        if from.isEnded, to.output.isEmpty, !to.isShut {
            to.isShut = true
            to.transport.shutdownWrites()
        }
        return moved
    }

    private func read(_ from: Side, into to: Side) throws(SystemError) -> Int {
        worker.memory.lend(to: &to.output)
        switch try from.transport.read(into: &to.output) {
        case .bytes(let count):
            if from === clientSide { bytesIn += count }
            // An end of stream that was reported already brings no event of its own.
            if from.transport.isExhausted, !from.isPeerEnded { from.isReadable = false }
            return count
        case .end:
            from.isEnded = true
            progressed()
        case .wouldBlock:
            from.isReadable = false
            from.isPeerEnded = false
        }
        return 0
    }

    private func flush(_ side: Side) throws(SystemError) -> Int {
        var written = 0
        while !side.output.isEmpty {
            guard
                case .bytes(let count) = try side.transport.write(
                    side.output.storage, side.output.readable)
            else { break }
            side.output.consume(count)
            written += count
        }
        if side === clientSide { bytesOut += written }
        return written
    }

    private func pumpLater() {
        guard !isPumpingLater else { return }
        isPumpingLater = true
        let bound = LoopBound(self, on: worker.loop)
        worker.loop.handle.submit {
            let tunnel = bound.open()
            tunnel.isPumpingLater = false
            tunnel.pump()
        }
    }

    private func progressed() {
        let isHalfClosed = clientSide.isEnded || serviceSide.isEnded
        worker.loop.set(idleDeadline, after: isHalfClosed ? timeouts.halfClosed : timeouts.idle)
    }

    /// A tunnel that says nothing holds no buffers.
    private func giveMemoryBack() {
        if clientSide.output.isEmpty { worker.memory.take(from: &clientSide.output) }
        if serviceSide.output.isEmpty { worker.memory.take(from: &serviceSide.output) }
    }

    // MARK: Ending

    private func failed(_ side: Side, _ error: SystemError) {
        end(side === clientSide ? .clientFailed : .serviceFailed(error))
    }

    private func end(_ ending: Ending) {
        guard !isOver else { return }
        isOver = true
        worker.loop.remove(idleDeadline)
        worker.loop.remove(wholeDeadline)
        clientSide.transport.close()
        serviceSide.transport.close()
        worker.closed(self)
        onEnd(self, ending)
    }
}

/// One side of a tunnel.
private final class Side: EventHandler {
    let transport: any Transport
    weak var tunnel: Tunnel?
    /// What waits to be written to it.
    var output = ByteBuffer()
    /// Whether a read may find something; true until one does not.
    var isReadable = true
    /// Whether its end of stream was reported, and so brings no event of its own; true until a read
    /// shows that it was not, since who had the connection before may have been told.
    var isPeerEnded = true
    /// Whether its end of stream was read.
    var isEnded = false
    /// Whether it was told that no more comes.
    var isShut = false

    init(_ transport: any Transport) {
        self.transport = transport
    }

    /// Whether nothing comes from it and nothing goes to it any more.
    var isDone: Bool { isEnded && isShut }

    func ready(_ readiness: Readiness) {
        if readiness.contains(.readable) { isReadable = true }
        if readiness.contains(.ended) { isPeerEnded = true }
        tunnel?.pump()
    }
}

/// Brings a revocation to the tunnels of every loop.
final class TunnelWatch: Sendable {
    private let workers = Lock<[(handle: LoopHandle, worker: LoopBound<Worker>)]>([])

    /// Called once, when the workers of a gate are made.
    func watch(_ workers: [Worker]) {
        self.workers.withLock { watched in
            watched = workers.map { ($0.loop.handle, LoopBound($0, on: $0.loop)) }
        }
    }

    /// Ends the tunnels that `keyID` has opened, once the store has it revoked.
    func revoke(_ keyID: Bytes32) {
        for (handle, worker) in workers.withLock({ $0 }) {
            handle.submit { worker.open().revoke(keyID) }
        }
    }
}
