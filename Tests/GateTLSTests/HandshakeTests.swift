import GateBytes
import GateRuntime
import GateTLS
import Testing

@Suite("TLS: handshakes between the two ends")
struct HandshakeTests {
    let certificates: Certificates

    init() throws {
        certificates = try Certificates.shared.get()
    }

    private func server(
        _ names: [String] = ["api-ec"], minVersion: TLSVersion = .tls12,
        clients: TLSServerSettings.ClientCertificates = .none, protocols: [String] = ["http/1.1"]
    ) throws -> TLSServerContext {
        try TLSServerContext(
            TLSServerSettings(
                identities: try names.map(certificates.identity), minVersion: minVersion,
                clientCertificates: clients, protocols: protocols), clock: SystemClock())
    }

    private func client(
        verified: Bool = true, authority: String = "root", identity: String? = nil,
        protocols: [String] = ["http/1.1"]
    ) throws -> TLSClientContext {
        try TLSClientContext(
            TLSClientSettings(
                isVerified: verified, authorities: certificates.bytes("\(authority).pem"),
                identity: try identity.map(certificates.identity), protocols: protocols))
    }

    @Test("both ends agree on TLS 1.3, the protocol and the name")
    func agrees() throws {
        let pair = try Pair(server(), client())
        #expect(pair.shake())
        let facts = try #require(pair.server?.tls.facts)
        #expect(facts.version == "TLSv1.3")
        #expect(facts.serverName == "api.example.test")
        #expect(facts.applicationProtocol == "http/1.1")
        #expect(!facts.isPeerVerified)
        #expect(!facts.isResumed)
        #expect(pair.client.tls.facts.isPeerVerified)
    }

    @Test("the server's order of protocols counts, and none in common is a fatal alert")
    func choosesProtocol() throws {
        let both = ["h2", "http/1.1"]
        let pair = try Pair(
            server(protocols: both), client(protocols: ["http/1.1", "h2"]))
        #expect(pair.shake())
        #expect(pair.server?.tls.facts.applicationProtocol == "h2")
        let stranger = try Pair(server(protocols: both), client(protocols: ["spdy/3"]))
        #expect(!stranger.shake())
        #expect(stranger.server?.refusal == .refused("no application protocol"))
        #expect(stranger.client.refusal == .refused("tlsv1 alert no application protocol"))
    }

    @Test("the certificate follows the server name: exact, wildcard, else the first")
    func choosesCertificate() throws {
        let context = try server(["api-ec", "wild"])
        for (name, isTaken) in [
            ("api.example.test", true), ("www.example.test", true), ("API.EXAMPLE.test", true),
            ("a.wild.test", true), ("a.b.wild.test", false), ("other.test", false),
        ] {
            let pair = try Pair(context, client(), name: name)
            #expect(pair.shake() == isTaken, "\(name)")
        }
    }

    @Test("a client checks chain and name, a numeric name as an address")
    func clientVerifies() throws {
        let unknown = try Pair(server(), client(authority: "other"))
        #expect(!unknown.shake())
        #expect(
            unknown.client.refusal
                == .refused("certificate: unable to get local issuer certificate"))
        let wrong = try Pair(server(), client(), name: "evil.test")
        #expect(!wrong.shake())
        #expect(wrong.client.refusal == .refused("certificate: hostname mismatch"))
        let address = try Pair(server(["address"]), client(), name: "127.0.0.1")
        #expect(address.shake())
        #expect(address.server?.tls.facts.serverName == nil)
        let other = try Pair(server(["address"]), client(), name: "127.0.0.2")
        #expect(!other.shake())
        #expect(other.client.refusal == .refused("certificate: ip address mismatch"))
    }

    @Test("an unverified client takes any certificate and says so")
    func clientUnverified() throws {
        let pair = try Pair(
            server(), client(verified: false, authority: "other"), name: "evil.test")
        #expect(pair.shake())
        #expect(!pair.client.tls.facts.isPeerVerified)
    }

    @Test("client certificates: optional takes none or a good one, require a good one only")
    func clientCertificates() throws {
        let authority = certificates.bytes("root.pem")
        let optional = try server(clients: .optional(authority))
        let require = try server(clients: .require(authority))
        for (context, identity, isTaken, isVerified) in [
            (optional, nil, true, false), (optional, "client", true, true),
            (optional, "stranger", false, false), (require, nil, false, false),
            (require, "client", true, true), (require, "stranger", false, false),
        ] {
            let pair = try Pair(context, client(identity: identity))
            pair.shake()
            // In TLS 1.3 a client is done before the server has seen its certificate.
            #expect(pair.server?.isDone == isTaken, "\(identity ?? "none")")
            #expect(pair.server?.tls.facts.isPeerVerified == isVerified || !isTaken)
        }
    }

    @Test("both of two certificates for one name stand side by side, and the first pair leads")
    func sideBySide() throws {
        let context = try server(["api-ec", "api-rsa", "wild"])
        #expect(context.certificates(for: "api.example.test") == 0)
        #expect(context.certificates(for: "nobody.test") == 0)
        #expect(context.certificates(for: "www.example.test") == 1)
        #expect(context.certificates(for: "x.wild.test") == 2)
    }

    @Test("what is no hello is refused, and a peer that leaves is no error")
    func noHello() throws {
        let loop = try EventLoop(name: "tls", clock: SystemClock())
        let any = SocketAddress.ip(IPAddress(ipv4: 0x7f00_0001), port: 0)
        let listener = try ListeningSocket.bind(any, on: loop)
        let address = try #require(listener.localAddress)
        let context = try server()
        var ends: [End] = []
        listener.onConnection = { socket, _ in
            if let tls = try? TLSSocket(over: socket, server: context),
                let end = try? End(tls)
            {
                ends.append(end)
            }
        }
        listener.resume()
        let plain = try Socket.connect(to: address, on: loop)
        let request = Array("GET / HTTP/1.1\r\nHost: a\r\n\r\n".utf8)
        while try plain.write(request, 0..<request.count) == .wouldBlock { loop.turn() }
        for _ in 0..<1000 where ends.first?.refusal == nil {
            loop.turn(waiting: .milliseconds(5))
        }
        #expect(ends.first?.refusal == .refused("http request"))
        let silent = try Socket.connect(to: address, on: loop)
        for _ in 0..<1000 where ends.count < 2 { loop.turn(waiting: .milliseconds(5)) }
        silent.close()
        for _ in 0..<1000 where ends.last?.refusal == nil {
            loop.turn(waiting: .milliseconds(5))
        }
        #expect(ends.last?.refusal == .closed)
    }

    @Test("octets read before TLS began are its first ones")
    func earlyOctets() throws {
        let loop = try EventLoop(name: "tls", clock: SystemClock())
        let any = SocketAddress.ip(IPAddress(ipv4: 0x7f00_0001), port: 0)
        let listener = try ListeningSocket.bind(any, on: loop)
        let address = try #require(listener.localAddress)
        let context = try server()
        var accepted: Socket?
        listener.onConnection = { socket, _ in accepted = socket }
        listener.resume()
        let client = try End(
            TLSSocket(
                over: try Socket.connect(to: address, on: loop), client: self.client(),
                name: "api.example.test"))
        var early = ByteBuffer()
        for _ in 0..<1000 where early.isEmpty {
            loop.turn(waiting: .milliseconds(5))
            _ = try accepted?.read(into: &early)
        }
        let socket = try #require(accepted)
        #expect(!early.isEmpty)
        let end = try End(TLSSocket(over: socket, early: early, server: context))
        end.step()
        for _ in 0..<1000 where !end.isDone { loop.turn(waiting: .milliseconds(5)) }
        #expect(end.isDone && client.isDone)
    }
}
