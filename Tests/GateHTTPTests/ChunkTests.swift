import GateHTTP
import Testing

@Suite("Chunks: size, extension, data, trailers")
struct ChunkTests {
    private let head = request("POST / HTTP/1.1", "Transfer-Encoding: chunked")

    @Test("the data is what is left of a chunked body")
    func data() {
        for body in [
            "5\r\nhello\r\n0\r\n\r\n", "2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
            "0005\r\nhello\r\n000\r\n\r\n", "00000005\r\nhello\r\n00000000\r\n\r\n",
            "5;a=b\r\nhello\r\n0;x\r\n\r\n", "5;a=\"b\" \t~\r\nhello\r\n0\r\nX: y\r\nZ:\r\n\r\n",
        ] {
            let trace = decodeRequests(head + body + request("GET /next HTTP/1.1"))
            #expect(trace.bodies == ["hello", ""])
            #expect(trace.areComplete)
        }
        let upper = decodeRequests(head + "A\r\n0123456789\r\n0\r\n\r\n")
        #expect(upper.bodies == ["0123456789"])
        let lower = decodeRequests(head + "f\r\n0123456789abcde\r\n0\r\n\r\n")
        #expect(lower.bodies == ["0123456789abcde"])
        #expect(decodeRequests(head + "0\r\n\r\n").messages[0].isComplete)
    }

    @Test(
        "an octet that no size has is refused as it arrives",
        arguments: [
            "\r", ";", "g", "0x", "-", "+", "_", "0_", "5x", " ", "5 ", "5\t", "\t", "123456789",
            "5\u{0}", "\u{e9}", "I", "5,",
        ])
    func badSize(text: String) {
        #expect(errorAtLastByte(head + text) == .chunkSizeInvalid)
    }

    @Test("the largest size is eight digits")
    func largestSize() {
        let trace = decodeRequests(head + "ffffffff\r\nhello")
        #expect(trace.bodies == ["hello"])
        #expect(trace.error == nil)
    }

    @Test(
        "lines end with CRLF and nothing else",
        arguments: [
            "5\n", "5\rh", "5\r\r", "5;\n", "5;a\n", "5;a\r\r", "5;a=b\rX", "0\n", "0\r\n\n",
            "0\r\n\r\r", "0\r\nX: a\n", "0\r\nX: a\rb",
        ])
    func lineEnds(text: String) {
        #expect(errorAtLastByte(head + text) == .lineEndInvalid)
    }

    @Test("an extension is visible ASCII, space and tab")
    func extensionOctets() {
        for octet in UInt8(0)...255 where ![9, 10, 13].contains(octet) && !(0x20...0x7e ~= octet) {
            let text = head + "5;a" + String(Unicode.Scalar(octet))
            #expect(errorAtLastByte(text) == .chunkExtensionInvalid)
        }
    }

    @Test("an extension of 1 KiB is read, one more octet is refused as it arrives")
    func extensionLine() {
        let most = ";" + String(repeating: "a", count: 1023)
        #expect(decodeRequests(head + "5\(most)\r\nhello\r\n0\r\n\r\n").bodies == ["hello"])
        #expect(errorAtLastByte(head + "5\(most)a") == .chunkExtensionTooLong)
    }

    @Test("the extensions of one body come to 16 KiB at most, and the next body starts anew")
    func extensionsOfBody() {
        let line = "1;" + String(repeating: "a", count: 1023) + "\r\nx\r\n"
        let most = String(repeating: line, count: 16)
        let full = decodeRequests(head + most + "0\r\n\r\n" + head + most + "0\r\n\r\n")
        #expect(full.messages.count == 2 && full.error == nil)
        #expect(full.areComplete && full.bodies.allSatisfy { $0.count == 16 })
        #expect(errorAtLastByte(head + most + "1;") == .chunkExtensionTooLong)
    }

    @Test(
        "data is followed by exactly CRLF",
        arguments: ["5\r\nhellox", "5\r\nhello\n", "5\r\nhello\rx", "5\r\nhello0", "2\r\nhel"])
    func dataEnd(text: String) {
        #expect(errorAtLastByte(head + text) == .chunkDataInvalid)
    }

    @Test("an empty line between chunks is no chunk")
    func extraLine() {
        #expect(errorAtLastByte(head + "5\r\nhello\r\n\r") == .chunkSizeInvalid)
    }

    @Test(
        "trailers are lines like those of a head",
        arguments: ["0\r\nXY\r", "0\r\nX :", "0\r\n X", "0\r\n:", "0\r\nX: a\r\n\t", "0\r\n("])
    func badTrailer(text: String) {
        let trace = decodeRequests(bytewise(head + text))
        #expect(trace.error == .fieldNameInvalid)
        #expect(errorAtLastByte(head + "0\r\nX: a\u{0}") == .fieldValueInvalid)
    }

    @Test("sixteen trailers are read and dropped, whatever they are called")
    func trailers() {
        let names = ["Content-Length: x", "Transfer-Encoding: y", "Host: @", "Connection: a b"]
        let others = (4..<16).map { "X-\($0): z" }
        let text = head + "0\r\n" + (names + others).map { $0 + "\r\n" }.joined()
        let trace = decodeRequests(text + "\r\n" + request("GET /next HTTP/1.1"))
        #expect(trace.messages.count == 2)
        #expect(trace.messages[0].head == decodeRequests(head).messages[0].head)
        #expect(errorAtLastByte(text + "X") == .fieldsTooMany)
    }

    @Test("a trailer section has the limits of a head")
    func trailerLimits() {
        let limits = HeadLimits(headerFields: 9, headerSize: 100, fieldSize: 30)
        let line = "X: " + String(repeating: "a", count: 27)
        #expect(errorAtLastByte(head + "0\r\n" + line + "a", limits: limits) == .fieldTooLong)
        let most = "0\r\n" + String(repeating: line + "\r\n", count: 3) + "X: a"
        #expect(decodeRequests(head + most, limits: limits).error == nil)
        #expect(errorAtLastByte(head + most + "a", limits: limits) == .headTooLarge)
    }
}
