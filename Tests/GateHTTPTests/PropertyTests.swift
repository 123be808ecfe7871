import GateBytes
import GateHTTP
import Testing

/// Heads that every property is tried on.
let validHeads = [
    request("GET / HTTP/1.1"),
    "\r\n" + request("OPTIONS * HTTP/1.1"),
    request("GET /a/b%20c?d=e&f=+ HTTP/1.1", "X-a:1", "x-A: \t2 3\t ", "E:", "Accept: */*"),
    request("GET http://H/p?q HTTP/1.1", "Connection: x, keep-alive , ,y"),
    request("HEAD https://h HTTP/1.1", "Expect: 100-continue", "Obs: caf\u{e9}"),
    "DELETE /x HTTP/1.0\r\nhost:\tApi.Example.test.:8080 \r\nConnection: Keep-Alive\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: [2001:db8::1]:443\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
]

/// Streams of whole requests, with bodies of every kind.
let validStreams =
    validHeads + [
        request("POST /a HTTP/1.1", "Content-Length: 11", body: "hello\r\n\r\n0a"),
        request("PUT /a HTTP/1.1", "transfer-encoding: CHUNKED", "Expect: 100-Continue")
            + "5;a=\"b\" c\r\nhello\r\n00A\r\n0123456789\r\n0;z\r\nTrailer: x\r\nY:\r\n\r\n",
        request("GET /1 HTTP/1.1") + "\r\n"
            + request("POST /2 HTTP/1.1", "Content-Length: 3", body: "abc")
            + request("PATCH /3 HTTP/1.1", "Transfer-Encoding: chunked") + "1\r\nx\r\n0\r\n\r\n"
            + "GET /4 HTTP/1.0\r\nHost: h\r\n\r\n",
    ]

/// Streams of one response each, with interim ones.
let validResponses = [
    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    "HTTP/1.0 404 Not here\r\ncontent-length: 0\r\nConnection: keep-alive\r\n\r\n",
    "HTTP/1.1 100 \r\n\r\nHTTP/1.1 103 H\r\nLink: <a>\r\n\r\nHTTP/1.1 204 \r\nX: y\r\n\r\n",
    "HTTP/1.1 200 \r\nTransfer-Encoding: chunked\r\n\r\n3;x\r\nabc\r\n0\r\nT: u\r\n\r\n",
    "HTTP/1.1 500 caf\u{e9}\r\nConnection: close\r\n\r\nuntil the end",
    "HTTP/1.1 304 \r\nContent-Length: 9\r\n\r\n",
]

func buffer(_ text: String) -> ByteBuffer {
    var buffer = ByteBuffer()
    buffer.append(latin1(text))
    return buffer
}

@Suite("Decoders: cut, truncated and corrupted")
struct PropertyTests {
    @Test("a stream cut anywhere, or everywhere, gives the same", arguments: validStreams)
    func cuts(text: String) {
        let bytes = latin1(text)
        let whole = decodeRequests([bytes])
        #expect(whole.error == nil && whole.areComplete && whole.left.isEmpty)
        #expect(decodeRequests(bytewise(text)) == whole)
        for cut in 0...bytes.count {
            let trace = decodeRequests([Array(bytes[..<cut]), Array(bytes[cut...])])
            #expect(trace == whole, "cut at \(cut)")
        }
        for step in 2..<8 {
            let pieces = stride(from: 0, to: bytes.count, by: step).map {
                Array(bytes[$0..<min($0 + step, bytes.count)])
            }
            #expect(decodeRequests(pieces) == whole)
        }
    }

    @Test(
        "every prefix of a valid stream waits, and what it gave is a prefix",
        arguments: validStreams)
    func prefixes(text: String) {
        let bytes = latin1(text)
        let whole = decodeRequests([bytes])
        for end in 0..<bytes.count {
            let trace = decodeRequests([Array(bytes[..<end])])
            #expect(trace.error == nil)
            #expect(trace.messages.count <= whole.messages.count)
            for (index, message) in trace.messages.enumerated() {
                #expect(message.head == whole.messages[index].head)
                #expect(whole.messages[index].body.starts(with: message.body))
            }
        }
    }

    @Test(
        "responses cut anywhere give the same, and their prefixes wait", arguments: validResponses)
    func responses(text: String) {
        let bytes = latin1(text)
        let whole = decodeResponse([bytes], isClosed: true)
        #expect(whole.error == nil && whole.left.isEmpty)
        #expect(whole.messages.last?.isComplete == true)
        #expect(decodeResponse(bytewise(text), isClosed: true) == whole)
        for cut in 0...bytes.count {
            let pieces = [Array(bytes[..<cut]), Array(bytes[cut...])]
            #expect(decodeResponse(pieces, isClosed: true) == whole)
            #expect(decodeResponse([pieces[0]]).error == nil)
        }
    }

    @Test("one octet changed is refused or a well-defined message, the same however it is cut")
    func corrupted() {
        for text in validStreams {
            let bytes = latin1(text)
            for index in bytes.indices {
                for octet in probes where octet != bytes[index] {
                    var changed = bytes
                    changed[index] = octet
                    let trace = decodeRequests([changed])
                    if octet < 0x20, octet != 9, octet != 10, octet != 13, trace.error == nil {
                        // Only a body takes a control octet.
                        #expect(trace.messages.contains { $0.body.contains(octet) })
                    }
                    let apart = decodeRequests(changed.map { [$0] })
                    #expect(apart.error == trace.error)
                    #expect(apart.messages == trace.messages)
                }
            }
        }
    }

    @Test("a response with one octet changed is refused or well-defined, however it is cut")
    func corruptedResponses() {
        for text in validResponses {
            let bytes = latin1(text)
            for index in bytes.indices {
                for octet in probes where octet != bytes[index] {
                    var changed = bytes
                    changed[index] = octet
                    let trace = decodeResponse([changed], isClosed: true)
                    let apart = decodeResponse(changed.map { [$0] }, isClosed: true)
                    #expect(apart.error == trace.error)
                    #expect(apart.messages == trace.messages)
                }
            }
        }
    }

    @Test("octets at random never trap and never give more than came")
    func random() {
        var generator = Seeded(state: 0x5eed)
        let alphabet = latin1("GET /:?#[]@HTTP/1.10 \r\n\r\n\t,;chunkedContent-LengthHost: 09af")
        for _ in 0..<2000 {
            let count = Int.random(in: 0..<120, using: &generator)
            let noise = (0..<count).map { _ in alphabet.randomElement(using: &generator) ?? 0 }
            let start = latin1(validStreams.randomElement(using: &generator) ?? "")
            let keep = Int.random(in: 0...start.count, using: &generator)
            let bytes = Array(start[..<keep]) + noise
            let trace = decodeRequests([bytes])
            let taken = trace.messages.reduce(0) { $0 + $1.body.count }
            #expect(taken <= bytes.count)
            #expect(decodeRequests(bytes.map { [$0] }).error == trace.error)
        }
    }

    /// Octets of every class, tried in every place.
    private let probes: [UInt8] = [
        0x00, 0x01, 0x09, 0x0a, 0x0d, 0x20, 0x21, 0x22, 0x23, 0x2c, 0x2f, 0x30, 0x39, 0x3a, 0x3b,
        0x3f,
        0x40, 0x41, 0x5f, 0x61, 0x66, 0x7a, 0x7e, 0x7f, 0x80, 0xff,
    ]
}

/// SplitMix64: a seed fixes every number.
struct Seeded: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var value = state
        value = (value ^ (value >> 30)) &* 0xbf58_476d_1ce4_e5b9
        value = (value ^ (value >> 27)) &* 0x94d0_49bb_1331_11eb
        return value ^ (value >> 31)
    }
}
