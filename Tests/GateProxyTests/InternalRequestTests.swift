import GateBytes
import GateConfig
import GateHTTP
import GateProxy
import Testing

@Suite("Requests of the gate's own")
struct InternalRequestTests {
    private let none = SetFields([])

    private func text(_ request: InternalRequest) throws -> String {
        let bytes = try request.bytes(to: .host("a.test", port: 8443), setFields: none)
        return String(decoding: bytes, as: UTF8.self)
    }

    @Test("name the server, or the authority they are given")
    func authority() throws {
        var request = InternalRequest(.get, "/k?x", deadline: .seconds(1))
        #expect(try text(request) == "GET /k?x HTTP/1.1\r\nHost: a.test:8443\r\n\r\n")
        request.authority = "b.test"
        #expect(try text(request) == "GET /k?x HTTP/1.1\r\nHost: b.test\r\n\r\n")
    }

    @Test("carry their fields and the body's length")
    func fields() throws {
        var request = InternalRequest(.post, "/", body: [1, 2], deadline: .seconds(1))
        request.add("Content-Type", "application/json")
        #expect(
            try text(request).hasSuffix(
                "\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n"))
        request.body = []
        #expect(try text(request).hasSuffix("\r\nContent-Length: 0\r\n\r\n"))
        let block = try request.block(
            to: .host("a.test", port: 8443), setFields: none, scheme: .https)
        let values = block.lines.map { String(decoding: block.bytes[$0.value], as: UTF8.self) }
        #expect(values == ["POST", "https", "a.test:8443", "/", "application/json", "0"])
    }

    @Test("are not written with what no head can hold")
    func faults() {
        var request = InternalRequest(.get, "/a b", deadline: .seconds(1))
        #expect(throws: HeadWriterError.firstLineInvalid) { try text(request) }
        request = InternalRequest(.get, "/", deadline: .seconds(1))
        request.add("Authorization", "a\r\nb: c")
        #expect(throws: HeadWriterError.fieldValueInvalid) { try text(request) }
    }

    @Test("are sent twice only where that does no harm, unless their maker says so")
    func repeatable() {
        #expect(InternalRequest(.get, "/", deadline: .seconds(1)).isRepeatable)
        #expect(!InternalRequest(.post, "/", deadline: .seconds(1)).isRepeatable)
        #expect(InternalRequest(.post, "/", deadline: .seconds(1), isRepeatable: true).isRepeatable)
    }
}
