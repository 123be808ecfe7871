import GateBytes
import GateHTTP
import Testing

@Suite("Response: status line and head")
struct ResponseHeadTests {
    @Test("status, reason and fields are found where they stand")
    func plain() {
        let trace = decodeResponse("HTTP/1.1 200 O K\u{e9}\r\nContent-Length: 2\r\nX:y\r\n\r\nok")
        #expect(trace.head == "200|O K\u{fffd}|http11|length(2)|keep|2|Content-Length=2&X=y")
        #expect(trace.bodies == ["ok"])
        #expect(trace.areComplete)
        let empty = decodeResponse("HTTP/1.1 599 \r\nContent-Length: 0\r\n\r\n")
        #expect(empty.head == "599||http11|length(0)|keep|0|Content-Length=0")
        #expect(empty.areComplete)
    }

    @Test(
        "an octet that no status line has at its place is refused as it arrives",
        arguments: [
            ("\r", MessageError.versionInvalid), ("\n", .versionInvalid), ("h", .versionInvalid),
            ("HTTP ", .versionInvalid), ("HTTP/x", .versionInvalid), ("HTTP/1 ", .versionInvalid),
            ("HTTP/1.x", .versionInvalid), ("HTTP/1.2", .versionUnsupported),
            ("HTTP/2.0", .versionUnsupported), ("HTTP/0.9", .versionUnsupported),
            ("HTTP/1.11", .statusLineInvalid), ("HTTP/1.1\t", .statusLineInvalid),
            ("HTTP/1.1\r", .statusLineInvalid), ("HTTP/1.1  ", .statusLineInvalid),
            ("HTTP/1.1 0", .statusLineInvalid), ("HTTP/1.1 6", .statusLineInvalid),
            ("HTTP/1.1 9", .statusLineInvalid), ("HTTP/1.1 -", .statusLineInvalid),
            ("HTTP/1.1 20\r", .statusLineInvalid), ("HTTP/1.1 20 ", .statusLineInvalid),
            ("HTTP/1.1 2000", .statusLineInvalid), ("HTTP/1.1 200\r", .statusLineInvalid),
            ("HTTP/1.1 200\n", .statusLineInvalid), ("HTTP/1.1 200\t", .statusLineInvalid),
            ("HTTP/1.1 200 a\u{0}", .statusLineInvalid),
            ("HTTP/1.1 200 a\u{7f}", .statusLineInvalid), ("HTTP/1.1 200 a\n", .lineEndInvalid),
            ("HTTP/1.1 200 a\rb", .lineEndInvalid), ("HTTP/1.1 200 \r\n ", .fieldNameInvalid),
            ("HTTP/1.1 200 \r\nX ", .fieldNameInvalid),
            ("HTTP/1.1 200 \r\nX: \u{1}", .fieldValueInvalid),
            ("HTTP/1.1 200 \r\nX: a\r\n ", .fieldNameInvalid),
        ])
    func badOctet(text: String, error: MessageError) {
        let trace = decodeResponse(bytewise(text))
        #expect(trace.error == error)
        #expect(trace.bytesAtError == text.unicodeScalars.count)
    }

    @Test("no Host is needed, and one means nothing")
    func host() {
        let trace = decodeResponse(
            "HTTP/1.1 200 \r\nHost: @\r\nHost: b\r\nContent-Length: 0\r\n\r\n")
        #expect(trace.error == nil && trace.areComplete)
    }

    @Test("the limits of a head hold")
    func limits() {
        let limits = HeadLimits(headerFields: 2, headerSize: 64, fieldSize: 16)
        let start = "HTTP/1.1 200 OK\r\n"
        func error(_ text: String) -> MessageError? {
            decodeResponse(bytewise(start + text), limits: limits).error
        }
        #expect(error("X: aaaaaaaaaaaaa\r\n") == nil)
        #expect(error("X: aaaaaaaaaaaaaa") == .fieldTooLong)
        #expect(error("X: a\r\nX: a\r\nX") == .fieldsTooMany)
        #expect(error("X: aaaaaaaaaaaaa\r\nX: aaaaaaaaaaaaa\r\n\r\n") == nil)
        let long = "HTTP/1.1 200 " + String(repeating: "a", count: 51)
        #expect(decodeResponse(bytewise(long), limits: limits).error == nil)
        #expect(decodeResponse(bytewise(long + "a"), limits: limits).error == .headTooLarge)
    }
}

@Suite("Response: where the body ends")
struct ResponseFramingTests {
    private func start(_ status: Int, _ lines: String..., version: String = "1.1") -> String {
        (["HTTP/\(version) \(status) x"] + lines + ["", ""]).joined(separator: "\r\n")
    }

    @Test("HEAD, 204 and 304 have none, whatever length is stated for the others")
    func bodiless() {
        for text in [
            start(200, "Content-Length: 5"), start(200, "Transfer-Encoding: chunked"), start(200),
        ] {
            let trace = decodeResponse(text + "HTTP", isHead: true)
            #expect(trace.areComplete && trace.bodies == [""])
            #expect(trace.left == latin1("HTTP"))
            #expect(trace.head?.contains("|none|keep|") == true)
        }
        for text in [
            start(204), start(204, "Content-Length: 0"), start(304),
            start(304, "Content-Length: 5"),
            start(304, "Transfer-Encoding: chunked"),
        ] {
            let trace = decodeResponse(text + "HTTP")
            #expect(trace.areComplete && trace.bodies == [""])
            #expect(trace.left == latin1("HTTP"))
        }
    }

    @Test("a body where the status allows none is refused")
    func contentUnexpected() {
        for status in [100, 103, 204] {
            let length = start(status, "Content-Length: 5")
            #expect(decodeResponse(length).error == .contentUnexpected)
            let coding = start(status, "Transfer-Encoding: chunked")
            #expect(decodeResponse(coding).error == .contentUnexpected)
            #expect(decodeResponse(length, isHead: true).error == .contentUnexpected)
        }
    }

    @Test("lengths are as strict as those of requests")
    func lengths() {
        let cases: [([String], MessageError)] = [
            (["Content-Length: 2", "Content-Length: 2"], .contentLengthRepeated),
            (["Content-Length: 2", "Transfer-Encoding: chunked"], .lengthsConflict),
            (["Transfer-Encoding: chunked", "Content-Length: 2"], .lengthsConflict),
            (
                ["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"],
                .transferEncodingRepeated
            ),
            (["Transfer-Encoding: gzip, chunked"], .transferEncodingInvalid),
            (["Content-Length: 2, 2"], .contentLengthInvalid),
            (["Content-Length: +2"], .contentLengthInvalid),
            (["Content-Length:"], .contentLengthInvalid),
            (["Connection: a b"], .connectionInvalid),
        ]
        for (lines, error) in cases {
            let text = (["HTTP/1.1 200 x"] + lines + ["", ""]).joined(separator: "\r\n")
            #expect(decodeResponse(text).error == error)
            #expect(decodeResponse(text, isHead: true).error == error)
        }
        let old = start(200, "Transfer-Encoding: chunked", version: "1.0")
        #expect(decodeResponse(old).error == .transferEncodingInHTTP10)
    }

    @Test("bytes beyond the end stay in the buffer")
    func extraBytes() {
        let length = decodeResponse(start(200, "Content-Length: 2") + "okHTTP/1.1 200 OK\r\n")
        #expect(length.bodies == ["ok"] && length.areComplete)
        #expect(length.left == latin1("HTTP/1.1 200 OK\r\n"))
        let chunked = decodeResponse(
            start(200, "Transfer-Encoding: chunked") + "2\r\nok\r\n0\r\n\r\nHTTP")
        #expect(chunked.bodies == ["ok"] && chunked.areComplete)
        #expect(chunked.left == latin1("HTTP"))
        let empty = decodeResponse(start(200, "Content-Length: 0") + "x")
        #expect(empty.areComplete && empty.left == latin1("x"))
    }

    @Test("without a length the body lasts until the connection ends")
    func untilClose() {
        let trace = decodeResponse(start(200) + "some", isClosed: true)
        #expect(trace.head?.contains("|untilClose|close|-|") == true)
        #expect(trace.bodies == ["some"] && trace.areComplete)
        #expect(!decodeResponse(start(200) + "some").areComplete)
        #expect(decodeResponse(start(200), isClosed: true).areComplete)
    }

    @Test("a connection that ends inside a message is an error")
    func truncated() {
        for text in [
            "", "HTTP", start(200, "Content-Length: 5"), start(200, "Content-Length: 5") + "four",
            start(200, "Transfer-Encoding: chunked") + "4\r\nfour\r\n", start(100),
            "HTTP/1.1 200 x\r\n",
            start(200, "Transfer-Encoding: chunked") + "0\r\n",
        ] {
            #expect(decodeResponse(text, isClosed: true).error == .bodyTruncated)
        }
        for text in [start(204), start(200, "Content-Length: 4") + "four"] {
            let trace = decodeResponse(text, isClosed: true)
            #expect(trace.error == nil && trace.areComplete)
        }
    }

    @Test("persistence is the request's rule, and needs an end that is known")
    func persistence() {
        func persists(_ text: String) -> Bool? { decodeResponse(text).head?.contains("|keep|") }
        #expect(persists(start(200, "Content-Length: 0")) == true)
        #expect(persists(start(200, "Content-Length: 0", "Connection: x, Close")) == false)
        #expect(persists(start(200, "Content-Length: 0", version: "1.0")) == false)
        let kept = start(200, "Content-Length: 0", "Connection: keep-alive", version: "1.0")
        #expect(persists(kept) == true)
        #expect(persists(start(200, "Connection: keep-alive", version: "1.0")) == false)
        #expect(persists(start(200)) == false)
    }

    @Test("chunk grammar is that of requests")
    func chunks() {
        let head = start(200, "Transfer-Encoding: chunked")
        #expect(decodeResponse(head + "5;\n").error == .lineEndInvalid)
        #expect(decodeResponse(head + "0x5").error == .chunkSizeInvalid)
        #expect(decodeResponse(head + "1\r\nab").error == .chunkDataInvalid)
        #expect(decodeResponse(head + "1;\u{0}").error == .chunkExtensionInvalid)
        #expect(decodeResponse(head + "0\r\nX\r").error == .fieldNameInvalid)
    }
}

@Suite("Response: interim ones, upgrades, trailers")
struct InterimTests {
    private let final = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

    @Test("interim responses come first, each by itself")
    func interim() {
        let text = "HTTP/1.1 100 \r\n\r\nHTTP/1.1 103 Hints\r\nLink: a\r\n\r\n" + final
        let trace = decodeResponse(text)
        #expect(trace.messages.map { $0.head.prefix(3) } == ["100", "103", "200"])
        #expect(trace.messages[1].head.hasSuffix("|Link=a"))
        #expect(trace.messages[2].isComplete)
        #expect(decodeResponse("HTTP/1.1 100 \r\nContent-Length: 0\r\n\r\n" + final).error == nil)
    }

    @Test("eight are let pass, the ninth is an error")
    func flood() {
        let one = "HTTP/1.1 103 \r\n\r\n"
        let eight = decodeResponse(String(repeating: one, count: 8) + final)
        #expect(eight.error == nil && eight.messages.count == 9)
        let nine = decodeResponse(String(repeating: one, count: 9) + final)
        #expect(nine.error == .interimResponsesTooMany)
    }

    @Test("101 is an error unless it was asked for, and then ends HTTP on the connection")
    func upgrade() {
        let text = "HTTP/1.1 101 \r\nUpgrade: websocket\r\n\r\n\u{81}\u{0}"
        #expect(decodeResponse(text).error == .upgradeUnexpected)
        let trace = decodeResponse(text, expectsUpgrade: true)
        #expect(trace.areComplete)
        #expect(trace.head == "101||http11|none|close|-|Upgrade=websocket")
        #expect(trace.left == [0x81, 0])
    }

    @Test("trailers are kept apart from the head")
    func trailers() throws {
        var decoder = ResponseDecoder(requestMethodIsHead: false, limits: HeadLimits())
        var buffer = ByteBuffer()
        buffer.append(
            latin1(
                "HTTP/1.1 200 \r\nTransfer-Encoding: chunked\r\n\r\n"
                    + "0\r\nGrpc-Status: 0\r\nX:\r\n\r\nrest"
            ))
        guard case .head(let head) = try decoder.next(&buffer) else {
            Issue.record("expected a head")
            return
        }
        #expect(head.fields.count == 1)
        #expect(decoder.trailers == nil)
        guard case .end = try decoder.next(&buffer) else {
            Issue.record("expected the end")
            return
        }
        #expect(decoder.isDone)
        let trailers = try #require(decoder.trailers)
        let texts = trailers.fields.map {
            String(
                decoding: trailers.bytes[$0.name] + [61] + trailers.bytes[$0.value], as: UTF8.self)
        }
        #expect(texts == ["Grpc-Status=0", "X="])
        #expect(buffer.count == 4)
    }

    @Test("whether anything of an answer came is known")
    func started() throws {
        var decoder = ResponseDecoder(requestMethodIsHead: false, limits: HeadLimits())
        var buffer = ByteBuffer()
        _ = try decoder.next(&buffer)
        #expect(!decoder.hasStarted)
        buffer.append(latin1("H"))
        _ = try decoder.next(&buffer)
        #expect(decoder.hasStarted)
    }

    @Test("after an error every call gives it")
    func errorStays() {
        var decoder = ResponseDecoder(requestMethodIsHead: false, limits: HeadLimits())
        var buffer = ByteBuffer()
        buffer.append(latin1("x" + final))
        #expect(throws: MessageError.versionInvalid) { try decoder.next(&buffer) }
        #expect(throws: MessageError.versionInvalid) { try decoder.next(&buffer) }
        #expect(throws: MessageError.versionInvalid) { try decoder.close() }
    }
}
