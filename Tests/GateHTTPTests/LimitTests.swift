import GateHTTP
import Testing

@Suite("Limits: kept while reading")
struct LimitTests {
    @Test("a target of the limit is read, one more octet is 414", arguments: [16, 17, 40])
    func target(limit: Int) throws {
        let limits = HeadLimits(targetSize: limit)
        for start in ["/", "/?", "http://h/", "http://h?"] {
            let most = start + String(repeating: "a", count: limit - start.count)
            let head = try head(request("GET \(most) HTTP/1.1"), limits: limits)
            #expect(head.targetText == most)
            #expect(errorAtLastByte("GET \(most)a", limits: limits) == .targetTooLong)
            #expect(errorAtLastByte("GET \(most)\n", limits: limits) == .targetInvalid)
        }
        let host = "http://" + String(repeating: "h", count: limit - 7)
        #expect(errorAtLastByte("GET \(host)h", limits: limits) == .targetTooLong)
        #expect(MessageError.targetTooLong.status == 414)
        #expect(MessageError.targetTooLong.reason == "too_large")
    }

    @Test("CONNECT's target has the limit too")
    func connectTarget() {
        let limits = HeadLimits(targetSize: 16)
        let most = String(repeating: "h", count: 16)
        #expect(errorAtLastByte("CONNECT \(most)h", limits: limits) == .targetTooLong)
        #expect(
            errorAtLastByte(request("CONNECT \(most) HTTP/1.1"), limits: limits) == .methodUnknown)
    }

    @Test("a field line of the limit is read, one more octet is 431")
    func field() throws {
        let limits = HeadLimits(fieldSize: 16)
        let start = "GET / HTTP/1.1\r\nHost: h\r\n"
        for line in [
            "X: aaaaaaaaaaaaa", "X:              ", "X:     aaaa     ", "aaaaaaaaaaaaaaa:",
        ] {
            #expect(line.count == 16)
            _ = try head(start + line + "\r\n\r\n", limits: limits)
            #expect(errorAtLastByte(start + line + "a", limits: limits) == .fieldTooLong)
            #expect(errorAtLastByte(start + line + " ", limits: limits) == .fieldTooLong)
            #expect(errorAtLastByte(start + line + "\n", limits: limits) == .lineEndInvalid)
        }
        let name = String(repeating: "a", count: 16)
        #expect(errorAtLastByte(start + name + "a", limits: limits) == .fieldTooLong)
        #expect(errorAtLastByte(start + name + ":", limits: limits) == .fieldTooLong)
        #expect(errorAtLastByte(start + name + "(", limits: limits) == .fieldNameInvalid)
        let host = "GET / HTTP/1.1\r\nHost: aaaaaaaaaa"
        #expect(errorAtLastByte(host + "a", limits: limits) == .fieldTooLong)
        #expect(MessageError.fieldTooLong.status == 431)
        #expect(MessageError.fieldTooLong.reason == "too_large")
    }

    @Test("as many fields as the limit are read, the next one is 431 with its first octet")
    func fields() throws {
        let limits = HeadLimits(headerFields: 3)
        let start = "GET / HTTP/1.1\r\nHost: h\r\nA: b\r\nA: b\r\n"
        #expect(try head(start + "\r\n", limits: limits).fields.count == 3)
        #expect(errorAtLastByte(start + "C", limits: limits) == .fieldsTooMany)
        #expect(MessageError.fieldsTooMany.status == 431)
    }

    @Test("a head of the limit is read, one more octet is 431")
    func wholeHead() throws {
        let text = request("GET / HTTP/1.1", "A: b")
        let size = text.utf8.count
        #expect(try head(text, limits: HeadLimits(headerSize: size)).fields.count == 2)
        for limit in 1..<size {
            let limits = HeadLimits(headerSize: limit)
            let trace = decodeRequests(bytewise(text), limits: limits)
            #expect(trace.error == .headTooLarge)
            #expect(trace.bytesAtError == limit + 1)
        }
        #expect(MessageError.headTooLarge.status == 431)
    }

    @Test("the limits hold for each head of a connection anew")
    func everyHead() {
        let text = request("GET / HTTP/1.1", "A: b")
        let limits = HeadLimits(headerFields: 2, headerSize: text.utf8.count)
        let trace = decodeRequests(String(repeating: text, count: 5), limits: limits)
        #expect(trace.messages.count == 5 && trace.error == nil)
    }

    @Test("the defaults are those of proxy.conf")
    func defaults() {
        let limits = HeadLimits()
        #expect(limits.headerFields == 100)
        #expect(limits.headerSize == 49152)
        #expect(limits.fieldSize == 32768)
        #expect(limits.targetSize == 8192)
    }
}
