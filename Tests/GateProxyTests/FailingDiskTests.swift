import AppAttestDevice
import AppAttestWire
import Foundation
import GateBytes
import GateConfig
import GateCrypto
import GateLock
import GateProxy
import GateRuntime
import GateSimulation
import GateStore
import Testing

/// A gate in this process over a disk that can be told to fail, and a client of it.
private final class GateOnFaultyDisk {
    let disk = FaultStorage()
    private let gate: Gate
    private let services: GateServices
    private let port: UInt16
    private var device: Device

    private static let appID = "ABCDE12345.com.example.shop"

    init() throws {
        let root = DeviceRoot.generate(at: Int64(Date().timeIntervalSince1970))
        device = Device(root: root, appID: Self.appID, isProduction: true, shape: .iOS26)
        port = try Self.freePort()
        let text = """
            loops 1
            spool {
                dir /tmp
            }
            admin {
                address 127.0.0.1:\(port + 1)
            }
            listener main {
                address 127.0.0.1:\(port)
            }
            app shop {
                app_id \(Self.appID)
                environment production
                root file:/root.pem
            }
            upstream service {
                server 127.0.0.1:\(port + 1)
            }
            host localhost {
                listener main
                app shop
                upstream service
                unmatched off
                enroll /enrol
                route * /signed/* {
                    mode enforce
                    bind request
                }
            }
            """
        let source = MemoryConfigurationSource(
            ["/proxy.conf": text, "/root.pem": root.pem])
        let report = ConfigurationLoader.load(path: "/proxy.conf", source: source)
        let configuration = try #require(report.configuration, "\(report.render())")
        let writer = LineWriter.standardError()
        let clock = SystemClock()
        services = GateServices(
            store: try Store.open(
                storage: disk,
                options: StoreOptions(
                    shards: 4, now: UInt32(Date().timeIntervalSince1970),
                    segmentBytes: 1 << 16, receiptSegmentBytes: 1 << 16)),
            spool: Spool(directory: "/tmp", bytesMax: 1 << 20, filesMax: 4), accessLog: nil,
            errorLog: ErrorLog(level: .error, writer: writer, hasPriorities: false, clock: clock),
            errorWriter: writer, storeWaitMax: .milliseconds(300))
        gate = try Gate.start(configuration, services: services)
    }

    /// Two neighbouring ports that nobody listens on.
    private static func freePort() throws -> UInt16 {
        for _ in 0..<100 {
            let port = UInt16.random(in: 20_000..<31_000)
            let sockets = [port, port + 1].map { number in
                try? ListenerDescriptor.open(.ip(IPAddress(ipv4: 0x7f00_0001), port: number))
            }
            if sockets.allSatisfy({ $0 != nil }) { return port }
        }
        throw CocoaError(.featureUnsupported)
    }

    func stop() {
        let hasStopped = Lock(false)
        gate.stop {
            hasStopped.withLock { $0 = true }
            hasStopped.wake()
        }
        hasStopped.wait(seconds: 10, until: { $0 }, then: { _ in })
        services.close()
    }

    /// Sends one request and reads until the gate closes. - Returns: Status and everything read.
    func ask(
        _ method: String, _ target: String, fields: [String: String] = [:], body: [UInt8] = [],
        admin: Bool = false
    ) throws -> (status: Int, text: String) {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(descriptor) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = (admin ? port + 1 : port).bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        let connected = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { raw in
                connect(descriptor, raw, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        try #require(connected == 0)
        var head = "\(method) \(target) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        head += "Content-Length: \(body.count)\r\n"
        for (name, value) in fields { head += "\(name): \(value)\r\n" }
        let message = Array((head + "\r\n").utf8) + body
        try #require(send(descriptor, message, message.count, 0) == message.count)
        var received: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while case let count = recv(descriptor, &buffer, buffer.count, 0), count > 0 {
            received += buffer[..<count]
        }
        let text = String(decoding: received, as: UTF8.self)
        return (Int(text.dropFirst(9).prefix(3)) ?? 0, text)
    }

    private func challenge(_ purpose: String) throws -> (id: String, bytes: [UInt8]) {
        let answer = try ask(
            "POST", "/enrol/challenges", body: Array(#"{"purpose":"\#(purpose)"}"#.utf8))
        let json = try #require(answer.text.components(separatedBy: "\r\n\r\n").last)
        let members = try JSONMembers.scan(Array(json.utf8), named: ["id", "bytes"])
        guard case .string(let id)? = members[0], case .string(let text)? = members[1] else {
            throw CocoaError(.coderReadCorrupt)
        }
        return (String(decoding: id, as: UTF8.self), try #require(Base64.decode(text)))
    }

    func enrol() throws -> Int {
        let challenge = try challenge("attestation")
        let object = device.attest(
            clientDataHash: SHA256.hash(challenge.bytes).array,
            at: Int64(Date().timeIntervalSince1970))
        let keyID = Base64.encode(device.keyID.array)
        let body =
            #"{"keyID":"\#(keyID)","challengeID":"\#(challenge.id)","#
            + #""object":"\#(Base64.encode(object))"}"#
        return try ask("POST", "/enrol/keys", body: Array(body.utf8)).status
    }

    func sign() throws -> (status: Int, text: String) {
        let challenge = try challenge("request")
        let bytes = try #require(Bytes32(challenge.bytes))
        let clientData = RequestBinding.clientData(
            method: Array("GET".utf8), target: Array("/signed/a".utf8),
            challengeID: Array(challenge.id.utf8), challenge: bytes,
            bodySHA256: SHA256.hash([]))
        let assertion = device.assert(clientDataHash: SHA256.hash(clientData).array)
        return try ask(
            "GET", "/signed/a",
            fields: [
                "App-Attest-Key-Id": Base64.encode(device.keyID.array),
                "App-Attest-Challenge": challenge.id,
                "App-Attest-Assertion": Base64.encode(assertion),
            ])
    }
}

@Suite("A failing disk under a running gate", .serialized)
struct FailingDiskTests {
    @Test("a failed sync is final: retry_later, off routes go on, not ready, until restart")
    func failedSync() throws {
        let gate = try GateOnFaultyDisk()
        defer { gate.stop() }
        #expect(try gate.enrol() == 201)
        // The admin listener plays the service: it answers a path it does not know with 404.
        #expect(try gate.sign().status == 404)
        #expect(try gate.ask("GET", "/readyz", admin: true).status == 200)

        gate.disk.failNext(.sync)
        let refused = try gate.sign()
        #expect(refused.status == 503)
        #expect(refused.text.contains("\"code\":\"retry_later\""))
        #expect(refused.text.contains("Retry-After: "))
        #expect(try gate.ask("GET", "/readyz", admin: true).status == 503)

        // The disk is well again; what is durable is not known any more, so nothing is admitted.
        gate.disk.mend()
        #expect(try gate.sign().status == 503)
        #expect(try gate.enrol() == 503)
        #expect(try gate.ask("GET", "/readyz", admin: true).status == 503)
        #expect(try gate.ask("GET", "/healthz", admin: true).status == 200)
        #expect(try gate.ask("GET", "/healthz").status == 200, "an off route goes on")
    }

    @Test("a sync that hangs is not waited for: retry_later within the bound, and it goes on after")
    func hangingSync() throws {
        let gate = try GateOnFaultyDisk()
        defer { gate.stop() }
        #expect(try gate.enrol() == 201)
        gate.disk.hangSyncs()
        defer { gate.disk.resumeSyncs() }
        let refused = try gate.sign()
        #expect(refused.status == 503)
        #expect(refused.text.contains("\"code\":\"retry_later\""))
        #expect(try gate.enrol() == 503)
        #expect(try gate.ask("GET", "/healthz").status == 200, "an off route goes on")
        gate.disk.resumeSyncs()
        #expect(try gate.sign().status == 404)
    }
}
