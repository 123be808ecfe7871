import GateHTTP
import Testing

@Suite("Length: stated once, read one way")
struct LengthTests {
    private let start = "POST / HTTP/1.1\r\nHost: h\r\n"

    @Test("a body by length, by chunks, and none; any method may have one")
    func framings() throws {
        #expect(try head(request("POST / HTTP/1.1")).framing == .none)
        #expect(try head(request("GET / HTTP/1.1", "Content-Length: 3")).framing == .length(3))
        #expect(try head(request("POST / HTTP/1.1", "Content-Length: 0")).framing == .length(0))
        #expect(try head(request("POST / HTTP/1.0", "Content-Length: 005")).framing == .length(5))
        for value in ["chunked", "CHUNKED", "\tChunked \t"] {
            let text = request("GET / HTTP/1.1", "Transfer-Encoding:\(value)")
            #expect(try head(text).framing == .chunked)
        }
    }

    @Test("eighteen digits are read, nineteen are refused")
    func digits() throws {
        let most = String(repeating: "9", count: 18)
        let head = try head(request("POST / HTTP/1.1", "Content-Length: \(most)"))
        #expect(head.framing == .length(999_999_999_999_999_999))
        #expect(errorAtLastByte(start + "Content-Length: \(most)9") == .contentLengthInvalid)
        let zeros = String(repeating: "0", count: 19)
        #expect(errorAtLastByte(start + "Content-Length: \(zeros)") == .contentLengthInvalid)
    }

    @Test(
        "an octet that no Content-Length has is refused as it arrives",
        arguments: [
            "\r", " \r", "+", "-", "a", "5a", "5,", "5.", "5 5", "5\t5", "1_", "0x", "\u{e9}", "5;",
            "\"", "\u{a0}", "5\u{85}",
        ])
    func badLength(value: String) {
        #expect(errorAtLastByte(start + "Content-Length:" + value) == .contentLengthInvalid)
    }

    @Test(
        "an octet that is not of chunked is refused as it arrives",
        arguments: [
            "\r", "  \r", "g", "i", ",", "chunke\r", "chunke ", "chunkes", "chunkedd", "chunked,",
            "chunked ;", "chunked;", "chunked c", "\u{a0}", "\u{ff}", "chunked\u{85}", "\"", "x",
        ])
    func badCoding(value: String) {
        let text = start + "Transfer-Encoding:" + value
        #expect(errorAtLastByte(text) == .transferEncodingInvalid)
    }

    @Test("a vertical tab or form feed is space nowhere", arguments: ["\u{b}", "\u{c}", "\u{0}"])
    func otherSpace(octet: String) {
        for name in ["Transfer-Encoding", "Content-Length"] {
            #expect(errorAtLastByte(start + "\(name): \(octet)") == .fieldValueInvalid)
        }
        #expect(errorAtLastByte(start + "Transfer-Encoding: chunked\(octet)") == .fieldValueInvalid)
        #expect(errorAtLastByte(start + "Content-Length: 5\(octet)") == .fieldValueInvalid)
    }

    @Test("a second statement of length is refused by its name")
    func twice() {
        let length = start + "Content-Length: 5\r\n"
        let coding = start + "Transfer-Encoding: chunked\r\n"
        #expect(errorAtLastByte(length + "content-length:") == .contentLengthRepeated)
        #expect(errorAtLastByte(length + "Transfer-Encoding:") == .lengthsConflict)
        #expect(errorAtLastByte(coding + "Content-LENGTH:") == .lengthsConflict)
        #expect(errorAtLastByte(coding + "Transfer-Encoding:") == .transferEncodingRepeated)
    }

    @Test("HTTP/1.0 has no transfer codings")
    func http10() {
        let text = "POST / HTTP/1.0\r\nHost: h\r\nTransfer-Encoding:"
        #expect(errorAtLastByte(text) == .transferEncodingInHTTP10)
    }

    @Test("each of them is answered 400")
    func status() {
        for error in [
            MessageError.contentLengthInvalid, .contentLengthRepeated, .lengthsConflict,
            .transferEncodingInvalid, .transferEncodingRepeated, .transferEncodingInHTTP10,
            .fieldNameInvalid, .fieldValueInvalid, .connectionInvalid, .chunkDataInvalid,
            .chunkSizeInvalid, .chunkExtensionInvalid, .chunkExtensionTooLong,
            .connectionNamesProtectedField,
        ] {
            #expect(error.status == 400)
            #expect(error.reason == "malformed")
        }
    }

    @Test("a body is exactly its length, and what follows is the next request")
    func bodies() {
        let text =
            request("POST /1 HTTP/1.1", "Content-Length: 5", body: "hello")
            + request("GET /2 HTTP/1.1", "Content-Length: 4", body: "GET ")
            + request("POST /3 HTTP/1.1", "Content-Length: 0") + request("GET /4 HTTP/1.1")
        let trace = decodeRequests(text)
        #expect(trace.bodies == ["hello", "GET ", "", ""])
        #expect(trace.areComplete)
        #expect(trace.left.isEmpty && trace.error == nil)
    }

    @Test("a body that has not all come is not complete")
    func shortBody() {
        let trace = decodeRequests(request("POST / HTTP/1.1", "Content-Length: 50", body: "hello"))
        #expect(trace.bodies == ["hello"])
        #expect(!trace.messages[0].isComplete)
    }
}
