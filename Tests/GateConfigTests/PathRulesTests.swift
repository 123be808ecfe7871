import GateConfig
import Testing

/// The host of shared/hostile/vectors.jsonl, which also stands in its first line.
let hostileHost = """
        unmatched off
        route POST /v1/exports {
            mode enforce
        }
        route POST,PUT /v1/redeem/* {
            mode enforce
        }
    """

@Suite("Paths: two readings are refused")
struct PathRulesTests {
    /// Spelling, and the rule it breaks.
    static let ambiguous: [(String, String)] = [
        ("//v1/exports", "an empty segment"),
        ("/v1//exports", "an empty segment in the middle"),
        ("/v1/exports//", "an empty segment at the end"),
        ("/v1/./exports", "a dot segment"),
        ("/v1/../exports", "a double dot segment"),
        ("/v1/exports/.", "a dot segment at the end"),
        ("/v1/exports/..", "a double dot segment at the end"),
        ("/.", "a dot segment alone"),
        ("/..", "a double dot segment alone"),
        ("/public/%2e%2e/v1", "an escaped dot segment"),
        ("/public/.%2E/v1", "a half escaped dot segment"),
        ("/public/%2e", "an escaped dot segment at the end"),
        ("/v1\\exports", "a backslash"),
        ("/v1%2fexports", "an escaped slash"),
        ("/v1%2Fexports", "an escaped slash, upper case"),
        ("/v1%5cexports", "an escaped backslash"),
        ("/v1%25exports", "an escaped percent"),
        ("/v1/%252e%252e/x", "a doubly escaped dot"),
        ("/v1/exports%00", "an escaped NUL"),
        ("/v1/exports%1f", "an escaped control"),
        ("/v1/exports%0a", "an escaped newline"),
        ("/v1/exports%7f", "an escaped DEL"),
        ("/v1/exports%3bx", "an escaped semicolon"),
        ("/v1/exports%3fx", "an escaped question mark"),
        ("/v1/exports%23x", "an escaped hash"),
        ("/v1;a=b/exports", "a semicolon"),
        ("/v1/exports;", "a semicolon at the end"),
        ("/;/v1/exports", "a semicolon alone"),
        ("/public/..;/v1/exports", "a dot segment with a parameter"),
        ("/v1/exports#x", "a hash"),
        ("/v1/exports%20", "a space at the end"),
        ("/v1%20/exports", "a space at a segment's end"),
        ("/v1/exports+", "a plus at the end"),
        ("/v1+/exports", "a plus at a segment's end"),
        ("/v1./exports", "a dot at a segment's end"),
        ("/v1%2e/exports", "an escaped dot at a segment's end"),
        ("/v1/exports./", "a dot before the last slash"),
        ("/v1.../exports", "dots at a segment's end"),
        ("/v1/exports%", "an escape cut off"),
        ("/v1/exports%4", "an escape of one digit"),
        ("/v1/exports%zz", "an escape without digits"),
        ("/v1/exports%4z", "an escape with one digit"),
        ("/v1/%u0065xports", "an escape of another language"),
        ("/v1%c0%afexports", "an overlong slash"),
        ("/v1/%c0%aee", "an overlong dot"),
        ("/v1%e0%80%afexports", "an overlong slash of three bytes"),
        ("/v1%f0%80%80%afexports", "an overlong slash of four bytes"),
        ("/v1/%c1%81", "an overlong letter"),
        ("/v1/%ed%a0%80", "a surrogate"),
        ("/v1/%f4%90%80%80", "a value over U+10FFFF"),
        ("/v1/%f5%80%80%80", "a lead byte over F4"),
        ("/v1/%80", "a lone continuation byte"),
        ("/v1/%c3", "a missing continuation byte"),
        ("/v1/%c3a", "a letter for a continuation byte"),
        ("/v1/%e2%82", "two bytes of three"),
        ("/v1/%ef%bd%85xports", "a full-width letter"),
        ("/v1/export%c5%bf", "a long s"),
        ("/v1/%ef%ac%81x", "a ligature"),
        ("/v1/%e2%84%aax", "the Kelvin sign"),
        ("/v1/%c4%b1", "a dotless i"),
        ("/v1/caf%c3%89", "an accented capital"),
        ("/v1/ex%c2%adports", "a soft hyphen"),
        ("/v1%ef%bc%8fexports", "a full-width slash"),
        ("/v1/export%ef%bc%8e", "any character for a full-width dot"),
        ("/v1/ex%c2%adorts", "any character for a soft hyphen"),
        ("/intern%c3%89x", "a scalar for the rest of a prefix and a slash"),
        ("/public/%e2%80%a5/v1", "a two-dot leader"),
    ]

    @Test("on a host that protects anything", arguments: PathRulesTests.ambiguous)
    func refused(path: String, why: String) throws {
        let host = try loadHost(hostileHost)
        #expect(match(host, "POST", path) == .ambiguous, "\(why)")
    }

    @Test(
        "a raw byte outside 0x21 to 0x7e is ambiguous",
        arguments: [0x00, 0x1f, 0x20, 0x7f, 0x80, 0xe9, 0xff])
    func rawByte(byte: UInt8) throws {
        let table = RouteTable(host: try loadHost(hostileHost))
        #expect(match(table, "POST", Array("/v1/".utf8) + [byte] + Array("x".utf8)) == .ambiguous)
    }

    @Test("raw UTF-8 is ambiguous, even in shortest form")
    func rawUTF8() throws {
        #expect(match(try loadHost(hostileHost), "POST", "/v1/é") == .ambiguous)
    }

    @Test("a path that does not begin with a slash is ambiguous")
    func noSlash() throws {
        let host = try loadHost(hostileHost)
        for path in ["", "v1/exports", "*", "%2fv1/exports"] {
            #expect(match(host, "POST", path) == .ambiguous, "\(path)")
        }
    }

    @Test(
        "everything else has one reading",
        arguments: [
            "/", "/a", "/a/", "/a.b", "/a.b/c", "/.well-known/x", "/..a", "/...a/b", "/a/...",
            "/a.",
            "/a%2e", "/a%20b", "/a+b", "/a%2b", "/%2b/x", "/%41", "/a%c3%a9", "/a%c3%a9/b",
            "/%f0%9f%98%80", "/a:b@c!$&'()*,=~", "/%7e", "/A/B", "/a%22%3c%3e", "/%e4%b8%ad",
        ])
    func clear(path: String) throws {
        #expect(match(try loadHost(hostileHost), "POST", path) == .route(-1, isAmbiguous: false))
    }

    @Test(
        "the rule holds wherever a route is enforced or denied, or unmatched is deny or enforce",
        arguments: [
            "unmatched deny", "unmatched enforce",
            "unmatched off\n route GET /x {\n mode enforce\n }",
            "unmatched off\n route GET /x {\n mode deny 403\n }", "",
        ])
    func protective(text: String) throws {
        #expect(match(try loadHost(text), "GET", "/a//b") == .ambiguous)
    }

    @Test(
        "a host of monitored and off routes under unmatched off counts and goes on",
        arguments: PathRulesTests.ambiguous.map(\.0))
    func counted(path: String) throws {
        let host = try loadHost(
            """
            unmatched off
            route * /m/* {
            mode monitor
            }
            route * /o/* {
            mode off
            }
            """)
        #expect(match(host, "POST", path) == .route(-1, isAmbiguous: true))
        #expect(match(host, "POST", "/m" + path) == .route(0, isAmbiguous: true))
        #expect(match(host, "POST", "/o" + path) == .route(1, isAmbiguous: true))
        #expect(match(host, "POST", "/o/x") == .route(1, isAmbiguous: false))
    }

    @Test("the quick look and the long one agree on every path of a small alphabet")
    func quickAgrees() throws {
        let host = try loadHost(hostileHost)
        let table = RouteTable(host: host)
        let alphabet = Array("/.+aZ;%\\".utf8)
        var paths: [[UInt8]] = [Array("/".utf8)]
        for _ in 0..<4 {
            paths += paths.filter { $0.count == paths[paths.count - 1].count }.flatMap { path in
                alphabet.map { path + [$0] }
            }
        }
        for path in paths {
            // An escaped letter forces the long look and changes nothing else.
            let quick = match(table, "POST", path)
            let long = match(table, "POST", Array("/%62".utf8) + path)
            let plain = match(table, "POST", Array("/b".utf8) + path)
            #expect(long == plain, "\(String(decoding: path, as: UTF8.self))")
            #expect(
                (quick == .ambiguous) == (plain == .ambiguous),
                "\(String(decoding: path, as: UTF8.self))")
        }
    }
}

@Suite("Paths: paths matched")
struct MatchedPathsTests {
    static let text = """
            unmatched off
            paths matched
            enroll /v1/app-attest
            route POST /v1/exports {
                mode enforce
            }
            route * /v1/redeem/* {
                mode monitor
            }
            route * /internal/* {
                mode deny 403
            }
            route * /open/* {
                mode off
            }
        """

    @Test(
        "lifts what falls on no protected route",
        arguments: [
            "/legacy//a", "/legacy/a;v=1/b", "/legacy/a%2fb", "/legacy/a%2Fb", "/legacy/a%3bb",
            "/legacy/caf%c3%89", "/legacy/%ef%bd%85xports", "/legacy/%c4%b1", "/v1/exports2;x",
            "/v1/exportsx%2fy", "/v1/exports%c3%89", "/legacy%2fv1%2fexports",
            "/legacy;/v1/exports",
            "/%2f%2flegacy", "/legacy//", "/legacy/a%c2%adb", "/legacy/%e2%84%80b",
        ])
    func lifted(path: String) throws {
        #expect(match(try loadHost(Self.text), "POST", path) == .route(-1, isAmbiguous: false))
    }

    @Test("an off route takes what is lifted, byte for byte")
    func offRoute() throws {
        let host = try loadHost(Self.text)
        #expect(match(host, "GET", "/open/a%2Fb") == .route(3, isAmbiguous: false))
        #expect(match(host, "GET", "/open%2Fa") == .route(-1, isAmbiguous: false))
    }

    @Test(
        "refuses what may fall on a protected route",
        arguments: [
            ("//v1/exports", "slashes merged"), ("/v1//exports", "slashes merged in the middle"),
            ("/v1%2fexports", "an escaped slash"), ("/v1;a=b/exports", "a parameter dropped"),
            ("/v1/exports;x", "a parameter dropped at the end"),
            ("/;/v1/exports", "nothing but a parameter"),
            ("/v1/exports%3bx", "an escaped parameter dropped"), ("/V1//Exports", "case folded"),
            ("/v1//exports/", "a slash cut"), ("/v1//exports.", "a dot cut"),
            ("/v1/exports.;x", "a dot cut before a parameter"),
            ("/v1/exports%2f", "an escaped slash cut"),
            ("/v1/%ef%bd%85xports", "a full-width letter"), ("/v1/export%c5%bf", "a long s"),
            ("/v1/e%ef%ac%81", "a ligature for the rest"), ("/%c3%89", "one scalar for all"),
            ("/%c3%89/exports", "a scalar for a segment"),
            ("/v1/ex%c2%adports", "nothing for a scalar"),
            ("/v1/exports%c2%ad", "nothing at the end"),
            ("/v1/%c2%ad/exports", "nothing for a segment"),
            ("/v1/exports/%c2%ad", "a slash and nothing"),
            ("/v1%ef%bc%8fexports", "a full-width slash"),
            ("/v1/export%ef%bc%8e", "any character for a full-width dot"),
            ("/v1/ex%c2%adorts", "any character for a soft hyphen"),
            ("/intern%c3%89x", "a scalar for the rest of a prefix and a slash"),
            ("/v1/exports%ef%bc%9bx", "a full-width semicolon"),
            ("/v1/exports%ef%bc%8e", "a full-width dot cut"),
            ("/v1/exp%e2%93%9erts", "a circled letter"),
            ("/v1/redeem//4", "below a monitored prefix"),
            ("/v1/redeem;x", "a monitored prefix itself"),
            ("/v1//redeem", "a monitored prefix itself, merged"),
            ("/internal;x/a", "below a denied prefix"),
            ("/intern%c3%89", "a scalar for the rest of a prefix"),
            ("/%c5%bf/x/y", "a scalar for a prefix"),
            ("//v1/app-attest/keys", "the enrolment endpoints"),
            ("/v1/app-attest;x", "their prefix"),
            ("/legacy%3b/../v1/exports", "a dot segment"),
            ("/v1;%2fx/exports", "a parameter dropped before decoding"),
            ("/v1%3b%2fexports", "a parameter dropped after decoding"),
        ])
    func refused(path: String, why: String) throws {
        #expect(match(try loadHost(Self.text), "POST", path) == .ambiguous, "\(why)")
    }

    @Test(
        "keeps every other rule",
        arguments: [
            ("/legacy/../x", "a dot segment"), ("/legacy/..;/x", "a dot segment with a parameter"),
            ("/legacy/..%3b/x", "a dot segment with an escaped parameter"),
            ("/legacy/..%2fx", "a dot segment before an escaped slash"),
            ("/legacy%2f..%2fx", "a dot segment between escaped slashes"),
            ("/legacy/%2e%2e%2fx", "an escaped one"), ("/legacy/a\\b", "a backslash"),
            ("/legacy/a\\b;c//d", "a backslash, whatever follows"),
            ("/legacy/%5c", "an escaped backslash"), ("/legacy/%252f", "an escaped percent"),
            ("/legacy/%00", "a NUL"), ("/legacy/%3f", "a question mark"), ("/legacy/%23", "a hash"),
            ("/legacy./x", "a dot at a segment's end"), ("/legacy.;/x", "a dot before a parameter"),
            ("/legacy.%2fx", "a dot before an escaped slash"), ("/legacy%20/x", "a space"),
            ("/legacy+;/x", "a plus before a parameter"), ("/legacy/x%20", "a space at the end"),
            ("/legacy/x%20;y", "a space before a parameter at the end"),
            ("/legacy/%zz", "a bad escape"), ("/legacy/%c0%af", "an overlong escape"),
            ("/legacy/%ff", "a byte that is no UTF-8"),
            ("/legacy/%e2%80%a5/v1/exports", "a two-dot leader"),
            ("/legacy/%ef%bc%8e%ef%bc%8e/v1", "full-width dots"),
            ("/legacy/%ef%bc%8e./v1", "a full-width dot and a dot"),
            ("/legacy/..%ef%bc%8f..%ef%bc%8fx", "full-width slashes between dots"),
            ("/legacy/.%c2%ad./x", "dots with nothing between"),
            ("/legacy/x/.%c2%ad.", "dots with nothing between at the end"),
            ("/legacy/..%c2%ad/x", "dots with nothing behind"),
            ("/legacy/a;b./x", "a dot after a parameter"),
            ("/legacy/a%c2%a0/x", "a no-break space at a segment's end"),
            ("/legacy/%ef%bc%85" + "2f", "a full-width percent"),
            ("/legacy/%ef%bc%bcx", "a full-width backslash"),
            ("/legacy/x%ef%bc%9fy", "a full-width question mark"),
            ("/legacy/x%ef%bc%83y", "a full-width hash"),
        ])
    func kept(path: String, why: String) throws {
        #expect(match(try loadHost(Self.text), "POST", path) == .ambiguous, "\(why)")
    }

    @Test("a protected route that takes everything leaves nothing to lift")
    func everything() throws {
        let host = try loadHost("paths matched\n route * /* {\n }")
        #expect(match(host, "GET", "/legacy//a") == .ambiguous)
        #expect(match(host, "GET", "/legacy/a") == .route(0, isAmbiguous: false))
    }

    @Test("the work for one path is bounded, whatever stands in it")
    func bounded() throws {
        let table = RouteTable(host: try loadHost(Self.text))
        let path = Array(("/" + String(repeating: "%c3%89%c2%ad", count: 600)).utf8)
        let start = ContinuousClock.now
        #expect(match(table, "POST", path) == .ambiguous)
        let other = Array(("/legacy/" + String(repeating: "%c3%89%c2%ad;", count: 600)).utf8)
        #expect(match(table, "POST", other) == .route(-1, isAmbiguous: false))
        #expect(ContinuousClock.now - start < .seconds(2))
    }
}
