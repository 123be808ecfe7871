import GateBytes
import GateConfig
import GateHTTP
import GateProxy
import Testing

@Suite("Request kinds: preflight and early data")
struct RequestKindTests {
    private let origin = "Origin: https://shop.example"
    private let method = "Access-Control-Request-Method: POST"

    @Test("OPTIONS with Origin and the asked method and no body is a preflight")
    func preflight() throws {
        #expect(RequestKind.isPreflight(try request("OPTIONS /a", [origin, method])))
        #expect(
            RequestKind.isPreflight(
                try request("OPTIONS /a", [origin, method, "Content-Length: 0"])))
    }

    @Test("anything missing, or a body, makes it none")
    func noPreflight() throws {
        #expect(!RequestKind.isPreflight(try request("POST /a", [origin, method])))
        #expect(!RequestKind.isPreflight(try request("OPTIONS /a", [origin])))
        #expect(!RequestKind.isPreflight(try request("OPTIONS /a", [method])))
        #expect(
            !RequestKind.isPreflight(
                try request("OPTIONS /a", [origin, method, "Content-Length: 1"])))
        #expect(
            !RequestKind.isPreflight(
                try request("OPTIONS /a", [origin, method, "Transfer-Encoding: chunked"])))
    }

    @Test("Early-Data is told, repeated or odd values included")
    func earlyData() throws {
        #expect(!RequestKind.isEarlyData(try request("GET /a")))
        #expect(RequestKind.isEarlyData(try request("GET /a", ["early-data: 1"])))
        #expect(RequestKind.isEarlyData(try request("GET /a", ["Early-Data: 1", "Early-Data: 1"])))
        #expect(RequestKind.isEarlyData(try request("GET /a", ["Early-Data: x"])))
    }
}

@Suite("Request id: whose it is")
struct RequestIDChoiceTests {
    private func choose(_ lines: [String], trusted: Bool) throws -> String {
        var random = CountingRandom()
        return text(
            RequestID.choose(
                try request("GET /a", lines), isPeerTrusted: trusted, using: &random))
    }

    @Test("a trusted proxy's acceptable id is kept, any other is replaced")
    func choice() throws {
        #expect(try choose(["X-Request-Id: abc.1"], trusted: true) == "abc.1")
        #expect(try choose(["X-Request-Id: abc.1"], trusted: false).count == 32)
        #expect(try choose([], trusted: true).count == 32)
        #expect(try choose(["X-Request-Id: a b"], trusted: true).count == 32)
        #expect(try choose(["X-Request-Id: a", "X-Request-Id: b"], trusted: true).count == 32)
    }
}

@Suite("Client address: behind trusted proxies")
struct ClientAddressTests {
    private func find(_ peer: String, _ lines: [String]) throws -> String {
        let networks = [
            Network(address: try #require(IPAddress("10.0.0.0")), prefixLength: 104),
            Network(address: try #require(IPAddress("2001:db8::")), prefixLength: 32),
        ]
        return ClientAddress.find(
            peer: try #require(IPAddress(peer)), trusted: networks, try request("GET /a", lines)
        ).description
    }

    @Test("an untrusted peer is the client, whatever it says")
    func untrusted() throws {
        #expect(try find("192.0.2.1", ["X-Forwarded-For: 1.2.3.4"]) == "192.0.2.1")
    }

    @Test("the right-most address that is no trusted proxy is the client")
    func walk() throws {
        #expect(try find("10.0.0.1", []) == "10.0.0.1")
        #expect(try find("10.0.0.1", ["X-Forwarded-For: 1.2.3.4"]) == "1.2.3.4")
        #expect(try find("10.0.0.1", ["X-Forwarded-For: 9.9.9.9, 1.2.3.4"]) == "1.2.3.4")
        #expect(
            try find("10.0.0.1", ["X-Forwarded-For: 9.9.9.9 , 1.2.3.4,\t10.0.0.2"]) == "1.2.3.4")
        #expect(
            try find(
                "10.0.0.1", ["X-Forwarded-For: 9.9.9.9, 1.2.3.4", "x-forwarded-for: 10.0.0.2"])
                == "1.2.3.4")
        #expect(try find("10.0.0.1", ["X-Forwarded-For: 10.0.0.3, 10.0.0.2"]) == "10.0.0.3")
    }

    @Test("an entry that is no address ends the walk at the hop before it")
    func garbage() throws {
        for entry in [
            "unknown", "", "_hidden", "1.2.3", "[::1", "1.2.3.4:", "1.2.3.4:123456",
            "[1.2.3.4]", "1.2.3.4:8x", String(repeating: "1", count: 200),
        ] {
            #expect(
                try find("10.0.0.1", ["X-Forwarded-For: 9.9.9.9, \(entry), 10.0.0.2"])
                    == "10.0.0.2", "\(entry)")
        }
    }

    @Test("ports and brackets are read as proxies write them")
    func forms() throws {
        for entry in ["1.2.3.4:8080", "1.2.3.4"] {
            #expect(try find("10.0.0.1", ["X-Forwarded-For: \(entry)"]) == "1.2.3.4")
        }
        for entry in ["2001:dead::1", "[2001:dead::1]", "[2001:dead::1]:443"] {
            #expect(try find("2001:db8::1", ["X-Forwarded-For: \(entry)"]) == "2001:dead::1")
        }
    }
}
