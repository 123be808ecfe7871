import GateBytes
import GateRuntime
import GateTLS
import Testing

/// One end of a connection under test: does its handshake, sends what it is told to, keeps what it
/// is sent.
final class End: EventHandler {
    let tls: TLSSocket
    private(set) var isDone = false
    private(set) var refusal: TLSHandshakeError?
    private(set) var received: [UInt8] = []
    private(set) var isEnded = false
    private(set) var failure: SystemError?
    private var output = ByteBuffer()
    private var isReadable = false
    /// Whether what comes is left where it is.
    var isReading = true

    init(_ tls: TLSSocket) throws {
        self.tls = tls
        try tls.register(self)
    }

    func ready(_ readiness: Readiness) {
        if readiness.contains(.readable) { isReadable = true }
        step()
    }

    func send(_ bytes: [UInt8]) {
        output.append(bytes)
        step()
    }

    func step() {
        guard refusal == nil, failure == nil else { return }
        do throws(TLSHandshakeError) {
            guard try tls.handshake() else { return }
        } catch {
            refusal = error
            tls.close()
            return
        }
        if !isDone {
            // What came behind the handshake may have been read with it.
            isDone = true
            isReadable = true
        }
        do throws(SystemError) {
            while !output.isEmpty,
                case .bytes(let count) = try tls.write(output.storage, output.readable)
            {
                output.consume(count)
            }
            try readAll()
        } catch {
            failure = error
        }
    }

    private func readAll() throws(SystemError) {
        while isReading, isReadable, !isEnded {
            var input = ByteBuffer()
            switch try tls.read(into: &input) {
            case .bytes:
                received += input.storage[input.readable]
                if tls.isExhausted { isReadable = false }
            case .end: isEnded = true
            case .wouldBlock: isReadable = false
            }
        }
    }
}

/// A server and a client on one loop, turned by hand.
final class Pair {
    let loop: EventLoop
    private(set) var server: End?
    let client: End
    private let listener: ListeningSocket
    /// The sockets below, to be cut.
    let clientSocket: Socket
    private(set) var serverSocket: Socket?

    init(
        _ serverContext: TLSServerContext, _ clientContext: TLSClientContext,
        name: String = "api.example.test"
    ) throws {
        loop = try EventLoop(name: "tls", clock: SystemClock())
        let loop = loop
        let any = SocketAddress.ip(IPAddress(ipv4: 0x7f00_0001), port: 0)
        listener = try ListeningSocket.bind(any, on: loop)
        let address = try #require(listener.localAddress)
        clientSocket = try Socket.connect(to: address, on: loop)
        client = try End(TLSSocket(over: clientSocket, client: clientContext, name: name))
        listener.onConnection = { [unowned self] socket, _ in
            self.serverSocket = socket
            self.server = try? End(TLSSocket(over: socket, server: serverContext))
        }
        listener.resume()
    }

    /// Turns the loop until `isMet`, at most a few hundred times.
    @discardableResult
    func run(until isMet: () -> Bool) -> Bool {
        for _ in 0..<2000 {
            if isMet() { return true }
            loop.turn(waiting: .milliseconds(5))
        }
        return isMet()
    }

    /// Does the handshake.
    /// - Returns: Whether both sides are done.
    @discardableResult
    func shake() -> Bool {
        run { isOver }
        return client.isDone && server?.isDone == true
    }

    private var isOver: Bool {
        let isClientOver = client.isDone || client.refusal != nil
        let isServerOver = server?.isDone == true || server?.refusal != nil
        return isClientOver && isServerOver
    }
}
