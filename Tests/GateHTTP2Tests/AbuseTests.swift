import GateBytes
import GateHTTP
import GateHTTP2
import Testing

@Suite("HTTP/2 session: what is malformed")
struct MalformedTests {
    /// The code of the reset that `octets` bring, or of the GOAWAY.
    private func end(_ octets: [UInt8]) -> (reset: Int?, goAway: Int?) {
        let side = Side(.server)
        side.receive(Frames.preface + octets)
        let frames = side.frames()
        return (
            frames.first { $0.type == 3 }?.code, frames.first { $0.type == 7 }?.code
        )
    }

    @Test("a field that HTTP/2 forbids resets the stream and gives no head")
    func forbiddenFields() {
        for (name, value) in [
            ("X-User", "a"), ("connection", "close"), ("transfer-encoding", "chunked"),
            ("te", "gzip"), ("x", "a\r\nb"), ("x", "a\0"), ("x", " a"), ("x:y", "a"), (":x", "a"),
        ] {
            let side = Side(.server)
            let said = side.receive(Frames.preface + Frames.request(1, [(name, value)]))
            #expect(said == [], "\(name)")
            #expect(side.frames().first { $0.type == 3 }?.code == 1, "\(name)")
            #expect(side.events() == ["malformed 1"], "\(name)")
        }
    }

    @Test("a length that the body does not have resets the stream")
    func contentLength() {
        let head = Frames.request(1, method: "POST", isEnd: false, [("content-length", "5")])
        #expect(end(head + Frames.data(1, Array("123456".utf8))).reset == 1)
        #expect(end(head + Frames.data(1, Array("123".utf8), isEnd: true)).reset == 1)
        #expect(end(head + Frames.data(1, Array("12345".utf8), isEnd: true)).reset == nil)
    }

    @Test("a stream that was passed over is not opened later (RFC 9113 §5.1.1)")
    func streamIdentifiers() {
        #expect(end(Frames.request(5) + Frames.request(3)).goAway == 1)
        #expect(end(Frames.request(1) + Frames.request(3)).goAway == nil)
        #expect(end(Frames.request(7) + Frames.request(9) + Frames.request(1)).goAway == 1)
        #expect(end(Frames.request(2)).goAway == 1)
        let side = Side(.server)
        #expect(side.receive(Frames.preface + Frames.request(5) + Frames.request(3)).count == 2)
        #expect(side.session.fault == .streamIDNotNew)
    }

    @Test("what is no preface ends the session at once")
    func preface() {
        let side = Side(.server)
        side.receive(Array("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n".utf8))
        #expect(side.session.isFinished)
        #expect(side.session.fault != nil)
    }

    @Test("after a fault nothing more is read")
    func deaf() {
        let side = Side(.server)
        side.receive(Frames.preface + Frames.request(5) + Frames.request(3))
        #expect(side.receive(Frames.request(7)) == [])
        _ = side.send()
        #expect(side.session.isFinished)
    }
}

@Suite("HTTP/2 session: budgets")
struct BudgetTests {
    private let few = HTTP2Limits(
        resets: HTTP2Budget(countMax: 10, window: 1000),
        control: HTTP2Budget(countMax: 10, window: 1000))

    /// Gives a session `frames`, each on its own, until it ends; how many it took, or nil.
    private func taken(_ frames: [[UInt8]], limits: HTTP2Limits? = nil) -> Int? {
        let side = Side(.server, limits: limits ?? few)
        side.receive(Frames.preface)
        _ = side.send()
        for (index, frame) in frames.enumerated() {
            side.receive(frame)
            let sent = side.frames()
            if side.session.fault != nil {
                #expect(sent.last { $0.type == 7 }?.code == 11)
                #expect(side.session.isFinished)
                return index
            }
        }
        return nil
    }

    private let streams = Array(stride(from: 1, through: 99, by: 2))

    @Test("resets by the client")
    func rapidReset() {
        let frames = streams.map { Frames.request($0) + Frames.reset($0) }
        #expect(taken(frames) == 10)
        #expect(taken(Array(frames[..<10])) == nil)
    }

    @Test("resets that the client makes us send")
    func madeYouReset() {
        let frames = streams.map {
            Frames.request($0, method: "POST", isEnd: false) + Frames.windowUpdate($0, 0x7fff_ffff)
        }
        #expect(taken(frames) == 10)
        let malformed = streams.map { Frames.request($0, [("te", "gzip")]) }
        #expect(taken(malformed) == 10)
    }

    @Test("streams that are refused")
    func refusedStreams() {
        var limits = few
        limits.streamsMax = 5
        let side = Side(.server, limits: limits)
        // Before the client has acknowledged the limit it may open more, and each is refused.
        var opened = 0
        side.receive(Frames.preface)
        for stream in stride(from: 1, through: 999, by: 2) where side.session.fault == nil {
            side.receive(Frames.request(stream, method: "POST", isEnd: false))
            _ = side.send()
            opened += 1
        }
        #expect(side.session.fault == .resetBudgetSpent)
        #expect(opened < 120)
    }

    @Test("our own wish to reset a stream costs the client nothing")
    func ownResets() {
        let side = Side(.server, limits: few)
        side.receive(Frames.preface)
        for stream in streams {
            side.receive(Frames.request(stream, method: "POST", isEnd: false))
            side.session.reset(Int32(stream), .internalError)
            _ = side.send()
        }
        #expect(side.session.fault == nil)
    }

    @Test(
        "frames that cost more than they say",
        arguments: [
            ("ping", Frames.frame(6, [UInt8](repeating: 1, count: 8))),
            ("settings", Frames.frame(4, [0, 4, 0, 1, 0, 0])),
            ("priority", Frames.frame(2, stream: 3, [0, 0, 0, 0, 16])),
            ("priority update", Frames.frame(0x10, Frames.word(1) + Array("u=1".utf8))),
            ("unknown", Frames.frame(0xbe, [1, 2, 3])),
            ("empty data", Frames.data(1, [])),
            ("tiny data", Frames.data(1, [1])),
        ])
    func control(_ name: String, _ frame: [UInt8]) {
        let head = Frames.request(1, method: "POST", isEnd: false)
        #expect(taken([head] + [[UInt8]](repeating: frame, count: 20)) == 11, "\(name)")
    }

    @Test("data that is worth its frame costs nothing, nor does a short last one")
    func data() {
        let head = Frames.request(1, method: "POST", isEnd: false)
        let part = Frames.data(1, [UInt8](repeating: 1, count: 16))
        #expect(
            taken(
                [head] + [[UInt8]](repeating: part, count: 50) + [Frames.data(1, [1], isEnd: true)])
                == nil)
        let short = streams.map {
            Frames.request($0, method: "POST", isEnd: false) + Frames.data($0, [1], isEnd: true)
        }
        #expect(taken(short) == nil)
    }

    @Test("windows are opened for what was sent; beyond that they cost")
    func windowUpdates() throws {
        let updates = [[UInt8]](repeating: Frames.windowUpdate(0, 1), count: 50)
        let at = try #require(taken(updates))
        #expect(at > 15)
        #expect(at < 40)
    }

    @Test("a budget is whole again after its window")
    func window() {
        var budget = HTTP2Budget(countMax: 2, window: 100)
        let spent = [1000, 1001, 1099, 1100, 1101].map { budget.spend(at: $0) }
        #expect(spent == [true, true, false, true, true])
        let huge = [1102, 1103].map { budget.spend(Int.max, at: $0) }
        #expect(huge == [false, false])
    }
}

@Suite("HTTP/2 session: heads that grow")
struct HeaderBudgetTests {
    /// A block that refers `count` times to an entry of the table; about 3.9 KB each.
    private func bomb(_ stream: Int, _ count: Int) -> [UInt8] {
        let head = Frames.block([
            (":method", "GET"), (":scheme", "http"), (":authority", "a.test"), (":path", "/"),
        ])
        return Frames.frame(
            1, flags: 5, stream: stream, head + [UInt8](repeating: 0xbe, count: count))
    }

    /// A request that puts the entry into the table.
    private var fuse: [UInt8] {
        let value = String(repeating: "z", count: 3900)
        let literal = Frames.block([("bomb", value)])
        let head = Frames.block([
            (":method", "GET"), (":scheme", "http"), (":authority", "a.test"), (":path", "/"),
        ])
        return Frames.frame(1, flags: 5, stream: 1, head + [0x40] + literal.dropFirst())
    }

    @Test("a section over its limit is told as such and kept no longer")
    func oversized() {
        let side = Side(.server)
        side.receive(Frames.preface + fuse)
        #expect(side.receive(bomb(3, 30)) == ["head 3 headTooLarge end", "end 3"])
    }

    @Test("the third within half a minute ends the session, later ones do not")
    func third() {
        let side = Side(.server)
        side.receive(Frames.preface + fuse + bomb(3, 30) + bomb(5, 30))
        #expect(side.session.fault == nil)
        side.now = 31_000_000_000
        side.receive(bomb(7, 30) + bomb(9, 30))
        #expect(side.session.fault == nil)
        #expect(side.receive(bomb(11, 30)) == [])
        #expect(side.session.fault == .oversizedHeadsRepeated)
        #expect(side.frames().last { $0.type == 7 }?.code == 11)
    }

    @Test("a section that grows past all reason ends the session inside it")
    func bombed() {
        let side = Side(.server)
        side.receive(Frames.preface + fuse)
        #expect(side.receive(bomb(3, 200)) == [])
        #expect(side.session.fault == .headerBudgetSpent)
        #expect(side.frames().last { $0.type == 7 }?.code == 11)
    }

    @Test("heads within the limits that come to more than a second may decode end the session")
    func perSecond() throws {
        func serve(_ count: Int, apart: UInt64) throws -> HTTP2Fault? {
            let side = Side(.server)
            side.receive(Frames.preface + fuse)
            for stream in stride(from: 3, to: 3 + 2 * count, by: 2) {
                side.now += apart
                side.receive(bomb(stream, 12))
                side.session.respond(Int32(stream), try block(status: 204), isEnd: true)
                _ = side.send()
            }
            return side.session.fault
        }
        #expect(try serve(800, apart: 0) == .headerBudgetSpent)
        #expect(try serve(800, apart: 2_000_000) == nil)
    }

    @Test("much decoded from few octets is taken in turns, and nothing is lost")
    func turns() {
        let side = Side(.server)
        let octets =
            Frames.preface + fuse + stride(from: 3, through: 41, by: 2).flatMap { bomb($0, 10) }
        var turns = 0
        var start = 0
        var heads = 0
        repeat {
            start += side.session.receive(octets, start..<octets.count, now: 0)
            heads +=
                side.session.takeEvents().filter { if case .head = $0 { true } else { false } }
                .count
            turns += 1
        } while start < octets.count || side.session.needsTurn
        #expect(heads == 21)
        #expect(turns > 3)
        #expect(side.session.fault == nil)
    }

    @Test("a section is in work from its first octet to its last")
    func inWork() {
        let side = Side(.server)
        side.receive(Frames.preface)
        #expect(!side.session.isInHeaders)
        let head = Frames.request(1, isWhole: false)
        side.receive(Array(head[..<9]))
        #expect(side.session.isInHeaders)
        side.receive(Array(head[9...]) + Frames.frame(9, stream: 1))
        #expect(side.session.isInHeaders)
        side.receive(Frames.frame(9, flags: 4, stream: 1))
        #expect(!side.session.isInHeaders)
    }
}
