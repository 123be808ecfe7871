import Foundation
import GateBytes
import GateCrypto
import GateHTTP
import GateProxy
import Testing

private let id = Array("rid-1".utf8)
private let date = Array("Mon, 30 Nov 2026 03:22:00 GMT".utf8)

private struct Parsed {
    var head: [UInt8]
    var body: [UInt8]
    var json: [String: Any] {
        get throws {
            try JSONSerialization.jsonObject(with: Data(body)) as? [String: Any] ?? [:]
        }
    }
}

private func parsed(
    _ answer: GateAnswer, isHead: Bool = false, connection: ConnectionNote = .persistent
) throws -> Parsed {
    let bytes = try answer.bytes(
        requestID: id, date: date, isHead: isHead, connection: connection)
    let end = try #require(
        (0..<bytes.count - 3).first { Array(bytes[$0..<$0 + 4]) == [13, 10, 13, 10] })
    return Parsed(head: Array(bytes[..<(end + 4)]), body: Array(bytes[(end + 4)...]))
}

@Suite("Answer: problems")
struct ProblemAnswerTests {
    @Test("every code is answered as RFC 9457 says, with its own fields and no more")
    func everyCode() throws {
        for code in ProblemCode.allCases {
            let refusal = Refusal(.malformed, as: code, retryAfter: 9)
            let answer = GateAnswer(
                refusal, requestID: id, nextChallenge: Array("id.mac".utf8), allow: ["GET", "PUT"])
            let all = try parsed(answer)
            let json = try all.json
            #expect(json["type"] as? String == "urn:attestgate:\(code.rawValue)")
            #expect(json["title"] as? String == code.title)
            #expect(json["status"] as? Int == code.status)
            #expect(json["code"] as? String == code.rawValue)
            #expect(json["requestId"] as? String == "rid-1")
            #expect(json["retryAfter"] as? Int == (code.hasRetryAfter ? 9 : nil))
            #expect(json.count == (code.hasRetryAfter ? 6 : 5))
            #expect(lines(all.head)[0].hasPrefix("HTTP/1.1 \(code.status) "))
            #expect(!lines(all.head)[0].hasSuffix(" "))
            #expect(values("Content-Type", all.head) == ["application/problem+json"])
            #expect(values("Content-Length", all.head) == [String(all.body.count)])
            #expect(values("Cache-Control", all.head) == ["no-store"])
            #expect(values("X-Request-Id", all.head) == ["rid-1"])
            #expect(values("Date", all.head) == [text(date)])
            #expect(
                values("WWW-Authenticate", all.head)
                    == (code.status == 401 ? ["App-Attest error=\"\(code.rawValue)\""] : []))
            #expect(values("Retry-After", all.head) == (code.hasRetryAfter ? ["9"] : []))
            #expect(values("Allow", all.head) == (code == .methodNotAllowed ? ["GET, PUT"] : []))
            #expect(
                values("App-Attest-Next-Challenge", all.head)
                    == (code == .challengeRequired ? ["id.mac"] : []))
        }
    }

    @Test("the answer never says which check failed")
    func oneAnswer() throws {
        let reasons = Reason.allCases.filter { Refusal($0, at: .checks).code == .rejected }
        #expect(reasons.count > 10)
        let answers = Set(
            try reasons.map {
                try GateAnswer(Refusal($0, at: .checks), requestID: id).bytes(
                    requestID: id, date: date, isHead: false, connection: .persistent)
            })
        #expect(answers.count == 1)
    }

    @Test("reasons of one code are one answer, at every stage")
    func everyReason() throws {
        for stage in [Refusal.Stage.checks, .fields, .enrolment] {
            var answers: [ProblemCode: Set<[UInt8]>] = [:]
            for reason in Reason.allCases {
                let refusal = Refusal(reason, at: stage)
                let answer = GateAnswer(
                    refusal, requestID: id, nextChallenge: Array("id.mac".utf8))
                let bytes = try answer.bytes(
                    requestID: id, date: date, isHead: false, connection: .persistent)
                answers[refusal.code, default: []].insert(bytes)
                #expect(refusal.status == refusal.code.status)
            }
            #expect(answers.values.allSatisfy { $0.count == 1 }, "\(stage)")
        }
    }

    @Test("only a key that is no good says to enrol, and only trouble of ours says to come back")
    func outcomesApart() {
        func reasons(_ code: ProblemCode, _ stage: Refusal.Stage) -> Set<Reason> {
            Set(Reason.allCases.filter { Refusal($0, at: stage).code == code })
        }
        #expect(reasons(.enrollmentRequired, .checks) == [.keyForeign, .keyRevoked, .keyUnknown])
        #expect(reasons(.enrollmentRequired, .fields) == [.keyForeign, .keyRevoked, .keyUnknown])
        #expect(reasons(.enrollmentRequired, .enrolment) == [])
        for stage in [Refusal.Stage.checks, .fields, .enrolment] {
            #expect(
                reasons(.retryLater, stage) == [.appleUnavailable, .spoolFull, .storeUnavailable])
            #expect(
                reasons(.unsupported, stage) == [
                    .deviceBits, .deviceTokenInvalid, .deviceTokenSpent, .unsupported,
                ])
            #expect(reasons(.rateLimited, stage) == [.rateLimited])
        }
        for code in [ProblemCode.retryLater, .rateLimited] { #expect(code.hasRetryAfter) }
    }

    @Test("a limit's answer says how one stands with it")
    func rateLimit() throws {
        var refusal = Refusal(.rateLimited, at: .checks, retryAfter: 30)
        refusal.rateLimit = RateStatus(
            name: .failedSignatures, count: 60, window: 60, remaining: 0, seconds: 30)
        let head = try parsed(GateAnswer(refusal, requestID: id)).head
        #expect(values("Retry-After", head) == ["30"])
        #expect(values("RateLimit-Policy", head) == ["\"failed_signatures\";q=60;w=60"])
        #expect(values("RateLimit", head) == ["\"failed_signatures\";r=0;t=30"])
    }

    @Test("a status of the refusal's own is in line and body")
    func ownStatus() throws {
        for (refusal, line) in [
            (Refusal.message(status: 431), "HTTP/1.1 431 Request Header Fields Too Large"),
            (.message(status: 414), "HTTP/1.1 414 URI Too Long"),
            (.denied(status: 410), "HTTP/1.1 410 Gone"),
            (.denied(status: 418), "HTTP/1.1 418 "),
        ] {
            let all = try parsed(GateAnswer(refusal, requestID: id))
            #expect(lines(all.head)[0] == line)
            #expect(try all.json["status"] as? Int == refusal.status)
        }
        let denied = try parsed(GateAnswer(.denied(status: 401), requestID: id))
        #expect(values("WWW-Authenticate", denied.head) == ["App-Attest error=\"denied\""])
    }

    @Test("an answer to HEAD has the length and not the body")
    func head() throws {
        let answer = GateAnswer(Refusal(.proofAbsent, at: .checks), requestID: id)
        let all = try parsed(answer, isHead: true)
        #expect(all.body.isEmpty)
        #expect(values("Content-Length", all.head) == [String(answer.body.count)])
    }

    @Test("a closing connection says so")
    func closing() throws {
        let answer = GateAnswer(.message(status: 400), requestID: id)
        #expect(values("Connection", try parsed(answer, connection: .close).head) == ["close"])
        #expect(values("Connection", try parsed(answer).head).isEmpty)
    }

    @Test("every status the gate answers has a phrase")
    func phrases() {
        for code in ProblemCode.allCases {
            #expect(StatusText.phrase(code.status).utf8CodeUnitCount > 0)
        }
        #expect(StatusText.phrase(299).utf8CodeUnitCount == 0)
    }
}

@Suite("Answer: enrolment calls")
struct EnrolmentAnswerTests {
    private func issued(_ count: Int) -> [IssuedChallenge] {
        var random = CountingRandom()
        let challenges = Challenges(current: SHA256.hash([1]))
        let scope = ChallengeScope(host: "h", app: "a", purpose: "p")
        return (0..<count).map { _ in
            challenges.issue(
                scope, account: [], lifetime: 300, epoch: 1, now: 1_800_000_000, using: &random)
        }
    }

    @Test("one challenge is an object of id, bytes and life")
    func challenge() throws {
        let challenge = issued(1)[0]
        let all = try parsed(EnrolmentAnswer.challenge(challenge, expiresIn: 300))
        #expect(lines(all.head)[0] == "HTTP/1.1 200 OK")
        #expect(values("Content-Type", all.head) == ["application/json"])
        #expect(values("Cache-Control", all.head) == ["no-store"])
        let json = try all.json
        #expect(json["id"] as? String == text(challenge.id))
        #expect(json["bytes"] as? String == Base64.encode(challenge.bytes.array))
        #expect(json["expiresIn"] as? Int == 300)
        #expect(json.count == 3)
    }

    @Test("several are a list of such objects, one included")
    func challenges() throws {
        for count in [1, 16] {
            let list = issued(count)
            let all = try parsed(EnrolmentAnswer.challenges(list, expiresIn: 86_400))
            let found = try #require(try all.json["challenges"] as? [[String: Any]])
            #expect(found.map { $0["id"] as? String } == list.map { text($0.id) })
            #expect(found.allSatisfy { $0["expiresIn"] as? Int == 86_400 && $0.count == 3 })
        }
    }

    @Test("a challenge by value is octets")
    func value() throws {
        let challenge = issued(1)[0]
        let all = try parsed(EnrolmentAnswer.challengeValue(challenge))
        #expect(values("Content-Type", all.head) == ["application/octet-stream"])
        #expect(all.body == challenge.value)
    }

    @Test("registration is told with its status, revocation has no body and no length")
    func registered() throws {
        let created = try parsed(EnrolmentAnswer.registered(true, status: 201))
        #expect(lines(created.head)[0] == "HTTP/1.1 201 Created")
        #expect(text(created.body) == #"{"registered":true}"#)
        let unknown = try parsed(EnrolmentAnswer.registered(false, status: 200))
        #expect(text(unknown.body) == #"{"registered":false}"#)
        let revoked = try parsed(EnrolmentAnswer.revoked)
        #expect(lines(revoked.head)[0] == "HTTP/1.1 204 No Content")
        #expect(values("Content-Length", revoked.head).isEmpty)
        #expect(values("Content-Type", revoked.head).isEmpty)
        #expect(revoked.body.isEmpty)
    }
}
