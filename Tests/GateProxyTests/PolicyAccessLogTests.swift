import Foundation
import GateBytes
import GateCrypto
import GateHTTP
import GateProxy
import Testing

private func line(
    isQueryLogged: Bool = false, _ change: (inout AccessLogLine) -> Void = { _ in }
) -> String {
    var line = AccessLogLine(time: 1_796_008_920_690)
    change(&line)
    var bytes: [UInt8] = []
    line.append(to: &bytes, isQueryLogged: isQueryLogged)
    return text(bytes)
}

private func json(_ line: String) throws -> [String: Any] {
    try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any] ?? [:]
}

private func whole(_ line: inout AccessLogLine) {
    line.requestID = Array("rid-1".utf8)
    line.client = Array("203.0.113.7".utf8)
    line.listener = "public"
    line.host = "api.example.com"
    line.method = Array("POST".utf8)
    line.target = Array("/v1/a?b=1?c".utf8)
    line.version = .http11
    line.tls = "TLSv1.3"
    line.status = 403
    line.code = .rejected
    line.verdict = .verified(VerifiedKey(keyID: SHA256.hash([7]), counter: 3))
    line.reason = .bodyMismatch
    line.route = "api.example.com POST /v1/a"
    line.app = "shop"
    line.keyID = SHA256.hash([7])
    line.account = Array("hashed".utf8)
    line.counter = 4_294_967_295
    line.bytesIn = 10
    line.bytesOut = 20
    line.duration = .microseconds(1_234_567)
    line.verify = .microseconds(62)
    line.commit = .milliseconds(1)
    line.upstreamDuration = .seconds(2)
    line.upstream = "10.0.2.10:8080"
}

@Suite("Access log: a line")
struct AccessLogLineTests {
    @Test("a whole line has the documented members in order, and ends with one line feed")
    func golden() {
        let key = String(Base64.encode(SHA256.hash([7]).array).prefix(8))
        #expect(
            line(whole) == #"{"time":"2026-11-30T03:22:00.690Z","request_id":"rid-1","#
                + #""client":"203.0.113.7","listener":"public","host":"api.example.com","#
                + #""method":"POST","target":"/v1/a","protocol":"HTTP/1.1","tls":"TLSv1.3","#
                + #""status":403,"code":"rejected","verdict":"verified","#
                + #""reason":"body_mismatch","route":"api.example.com POST /v1/a","app":"shop","#
                + #""key":"\#(key)","account":"hashed","counter":4294967295,"bytes_in":10,"#
                + #""bytes_out":20,"duration":1.234567,"verify":0.000062,"commit":0.001000,"#
                + #""upstream_duration":2.000000,"upstream":"10.0.2.10:8080"}"# + "\n")
    }

    @Test("what is not known is left out")
    func absent() throws {
        #expect(try Set(json(line()).keys) == ["time", "bytes_in", "bytes_out"])
    }

    @Test("the query is logged only where asked for")
    func query() throws {
        #expect(try json(line(whole))["target"] as? String == "/v1/a")
        #expect(
            try json(line(isQueryLogged: true, whole))["target"] as? String == "/v1/a?b=1?c")
    }

    @Test("whatever a peer sends, a line is one line of visible ASCII and valid JSON")
    func hostile() throws {
        let every = Array(UInt8.min...UInt8.max)
        let bytes = line(isQueryLogged: true) {
            $0.method = every
            $0.target = every
            $0.client = every
            $0.account = every
            $0.requestID = every
        }
        #expect(bytes.utf8.dropLast().allSatisfy { (0x20...0x7e).contains($0) })
        #expect(bytes.utf8.last == 10)
        let target = try #require(try json(bytes)["target"] as? String)
        #expect(target.unicodeScalars.map { UInt8($0.value) } == every)
    }

    @Test("both versions of the protocol have their name")
    func versions() throws {
        #expect(try json(line { $0.version = .http10 })["protocol"] as? String == "HTTP/1.0")
        #expect(try json(line { $0.version = .http11 })["protocol"] as? String == "HTTP/1.1")
    }

    @Test("a line goes behind those that are there")
    func appends() {
        var bytes: [UInt8] = Array("x\n".utf8)
        AccessLogLine(time: 0).append(to: &bytes, isQueryLogged: false)
        #expect(text(bytes).hasPrefix("x\n{\"time\":\"1970-01-01T00:00:00.000Z\""))
    }
}

@Suite("Times as text")
struct CivilTimeTests {
    private func rfc3339(_ milliseconds: Int64) -> String {
        var bytes: [UInt8] = []
        CivilTime.appendRFC3339(milliseconds, to: &bytes)
        return text(bytes)
    }

    @Test("every day from 1970 to 2200, and far ones, agree with Foundation")
    func days() {
        let formatter = ISO8601DateFormatter()
        formatter.formatOptions = [.withInternetDateTime]
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = TimeZone(secondsFromGMT: 0) ?? calendar.timeZone
        let weekdays = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
        for day in Array(0..<84_000) + [2_932_896, 2_000_000, 1_000_003] {
            let seconds = Int64(day) * 86_400 + Int64(day % 86_400)
            let date = Date(timeIntervalSince1970: Double(seconds))
            let expected = calendar.dateComponents(
                [.year, .month, .day, .hour, .minute, .second, .weekday], from: date)
            func two(_ value: Int?) -> String { String(format: "%02d", value ?? -1) }
            let stamp =
                "\(String(format: "%04d", expected.year ?? -1))-\(two(expected.month))-\(two(expected.day))T"
                + "\(two(expected.hour)):\(two(expected.minute)):\(two(expected.second)).007Z"
            if rfc3339(seconds * 1000 + 7) != stamp { Issue.record("\(stamp)") }
            let weekday = weekdays[(expected.weekday ?? 1) - 1]
            if !text(CivilTime.httpDate(seconds)).hasPrefix(weekday + ", " + two(expected.day)) {
                Issue.record("\(stamp): weekday")
            }
        }
    }

    @Test("known instants")
    func golden() {
        #expect(rfc3339(951_827_696_789) == "2000-02-29T12:34:56.789Z")
        #expect(text(CivilTime.httpDate(784_111_777)) == "Sun, 06 Nov 1994 08:49:37 GMT")
        #expect(rfc3339(-1) == "1970-01-01T00:00:00.000Z")
        #expect(rfc3339(.max) == "9999-12-31T23:59:59.999Z")
        #expect(text(CivilTime.httpDate(.max)) == "Fri, 31 Dec 9999 23:59:59 GMT")
    }
}
