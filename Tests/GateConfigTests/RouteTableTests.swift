import GateConfig
import Testing

@Suite("Routes: wide and narrow")
struct WideNarrowTests {
    @Test(
        "protected routes take every spelling that a service may read as theirs",
        arguments: ["enforce", "monitor", "deny 403"],
        [
            "/v1/exports", "/V1/Exports", "/v1/exports/", "/v1/exports.", "/v1/exports%2e",
            "/%76%31/%65xports", "/v1/%45xports", "/v1/exports/.", "/v1/exports...",
        ])
    func wide(mode: String, path: String) throws {
        let host = try loadHost("unmatched off\n route POST /v1/exports {\n mode \(mode)\n }")
        let found = match(host, "POST", path)
        if path == "/v1/exports/.", mode != "monitor" {
            #expect(found == .ambiguous)
        } else {
            #expect(found == .route(0, isAmbiguous: path == "/v1/exports/."))
        }
    }

    @Test(
        "off routes take their bytes alone",
        arguments: [
            ("/Pub/a", true), ("/pub/a", false), ("/Pub/a/", false), ("/Pub/a.", false),
            ("/%50ub/a", false), ("/Pub/%61", false),
        ])
    func narrow(path: String, isTaken: Bool) throws {
        let host = try loadHost("route GET /Pub/a {\n mode off\n }")
        #expect(match(host, "GET", path) == (isTaken ? .route(0, isAmbiguous: false) : .notFound))
    }

    @Test("an off route's own escapes match in either case of their digits")
    func escaped() throws {
        let host = try loadHost(
            "route GET /café/* {\n mode off\n }\n route GET \"/a b\" {\n mode off\n }")
        #expect(match(host, "GET", "/caf%C3%A9/x") == .route(0, isAmbiguous: false))
        #expect(match(host, "GET", "/caf%c3%a9/x") == .route(0, isAmbiguous: false))
        #expect(match(host, "GET", "/caf%c3%a9") == .notFound)
        #expect(match(host, "GET", "/a%20b") == .route(1, isAmbiguous: false))
        #expect(match(host, "GET", "/a+b") == .notFound)
    }

    @Test("a protected route may have a path beyond ASCII")
    func unicode() throws {
        let host = try loadHost("route GET /café {\n }")
        #expect(match(host, "GET", "/CAF%c3%a9/") == .route(0, isAmbiguous: false))
    }

    @Test(
        "prefixes end at segment borders; a protected one takes its own path, an off one does not",
        arguments: [
            ("/a", "protected"), ("/a/", "protected"), ("/A/b", "protected"),
            ("/a/b/c", "protected"),
            ("/ab", "none"), ("/a.b", "none"), ("/o", "none"), ("/o/", "off"), ("/o/b", "off"),
            ("/ob", "none"), ("/O/b", "none"),
        ])
    func prefix(path: String, taken: String) throws {
        let host = try loadHost(
            "route GET /a/* {\n }\n route GET /o/* {\n mode off\n }")
        let expected: RouteMatch =
            switch taken {
            case "protected": .route(0, isAmbiguous: false)
            case "off": .route(1, isAmbiguous: false)
            default: .notFound
            }
        #expect(match(host, "GET", path) == expected)
    }

    @Test("the prefix of everything takes everything", arguments: ["/", "/a", "/a/b/c", "/A/%42"])
    func all(path: String) throws {
        #expect(
            match(try loadHost("route * /* {\n }"), "GET", path) == .route(0, isAmbiguous: false))
        let off = try loadHost("route * /* {\n mode off\n }")
        #expect(match(off, "GET", path) == .route(0, isAmbiguous: false))
    }

    @Test("the root is a path like another")
    func root() throws {
        let host = try loadHost("route GET / {\n mode off\n }")
        #expect(match(host, "GET", "/") == .route(0, isAmbiguous: false))
        #expect(match(host, "GET", "/a") == .notFound)
        #expect(
            match(try loadHost("route GET / {\n }"), "GET", "/") == .route(0, isAmbiguous: false))
    }
}

@Suite("Routes: the most specific one wins")
struct PrecedenceTests {
    static let text = """
            route * /a/* {
            }
            route * /a/b/* {
                mode off
            }
            route GET /a/b/* {
            }
            route * /a/b/c {
                mode monitor
            }
            route PUT /a/b/c {
            }
            route POST /* {
                mode off
            }
        """

    @Test(
        "exact, longest prefix, named method, among those that take path and method",
        arguments: [
            ("GET", "/a/x", 0), ("GET", "/a/b/x", 2), ("HEAD", "/a/b/x", 2), ("POST", "/a/b/x", 1),
            ("GET", "/a/b/c", 3), ("PUT", "/a/b/c", 4), ("POST", "/z", 5), ("POST", "/a/x", 0),
            ("POST", "/A/B/x", 0), ("POST", "/a/b", 0), ("GET", "/a/b", 2), ("DELETE", "/a", 0),
        ])
    func wins(method: String, path: String, route: Int) throws {
        #expect(match(try loadHost(Self.text), method, path) == .route(route, isAmbiguous: false))
    }

    @Test("order in the file means nothing")
    func order() throws {
        let lines = Self.text.split(separator: "\n")
        var blocks: [String] = []
        for line in lines {
            if line.hasPrefix("    route") { blocks.append("") }
            blocks[blocks.count - 1] += line + "\n"
        }
        let host = try loadHost(blocks.reversed().joined(separator: "\n"))
        for (method, path, route) in [
            ("GET", "/a/b/x", 2), ("PUT", "/a/b/c", 4), ("POST", "/z", 5),
        ] {
            #expect(
                match(host, method, path) == .route(blocks.count - 1 - route, isAmbiguous: false))
        }
    }

    @Test("an exact route that lacks the method leaves the request to a prefix")
    func otherMethod() throws {
        let host = try loadHost("route POST /a/b {\n }\n route GET /a/* {\n mode off\n }")
        #expect(match(host, "GET", "/a/b") == .route(1, isAmbiguous: false))
        #expect(match(host, "POST", "/a/b") == .route(0, isAmbiguous: false))
    }

    @Test("a longer narrow prefix wins over a shorter wide one, and back")
    func lengths() throws {
        let host = try loadHost(
            "route * /a/* {\n }\n route * /a/o/* {\n mode off\n }\n route * /a/o/p/* {\n }")
        #expect(match(host, "GET", "/a/x") == .route(0, isAmbiguous: false))
        #expect(match(host, "GET", "/a/o/x") == .route(1, isAmbiguous: false))
        #expect(match(host, "GET", "/a/O/x") == .route(0, isAmbiguous: false))
        #expect(match(host, "GET", "/a/o/p/x") == .route(2, isAmbiguous: false))
        #expect(match(host, "GET", "/a/o/P") == .route(2, isAmbiguous: false))
    }

    @Test("many routes are found each")
    func many() throws {
        let text = (0..<300).map {
            "route GET /r\($0)/* {\n }\nroute POST /r\($0)/x\($0) {\n mode off\n }"
        }
        let table = RouteTable(host: try loadHost(text.joined(separator: "\n")))
        for index in 0..<300 {
            let prefix = match(table, "GET", Array("/r\(index)/a".utf8))
            #expect(prefix == .route(index * 2, isAmbiguous: false))
            let exact = match(table, "POST", Array("/r\(index)/x\(index)".utf8))
            #expect(exact == .route(index * 2 + 1, isAmbiguous: false))
        }
        #expect(match(table, "GET", Array("/r300/a".utf8)) == .notFound)
    }

    @Test("an exact route is never taken for a prefix, nor a prefix for it, whatever their hashes")
    func kinds() throws {
        var exact = try loadHost((0..<4).map { "route GET /k\($0) {\n}" }.joined(separator: "\n"))
        for index in 0..<400 {
            let names = ["/k\(index)", "/m\(index)", "/x\(index)", "/z\(index)"]
            for place in 0..<4 { exact.routes[place].path = names[place] }
            var prefix = exact
            for place in 0..<4 {
                prefix.routes[place].isPrefix = true
                prefix.routes[place].mode = .off
            }
            for name in names {
                #expect(match(exact, "GET", "\(name)/x") == .notFound)
                #expect(match(prefix, "GET", name) == .notFound)
            }
        }
    }

    @Test("more methods than fit one word of bits are never confused")
    func methods() throws {
        let names = ["ACL", "COPY", "DELETE", "GET", "HEAD", "LINK", "LOCK", "PATCH", "PUT"]
        let text = names.filter { $0 != "HEAD" }.map {
            "route \($0) /x {\n purpose \($0.lowercased())\n }"
        }
        let host = try loadHost(text.joined(separator: "\n"))
        for (index, name) in names.filter({ $0 != "HEAD" }).enumerated() {
            #expect(match(host, name, "/x") == .route(index, isAmbiguous: false))
        }
        #expect(match(host, "HEAD", "/x") == .route(3, isAmbiguous: false))
        #expect(match(host, "GE", "/x") != .route(3, isAmbiguous: false))
        #expect(match(host, "GETX", "/x") != .route(3, isAmbiguous: false))
        #expect(match(host, "get", "/x") != .route(3, isAmbiguous: false))
    }
}

@Suite("Routes: other methods and unmatched requests")
struct UnmatchedTests {
    @Test(
        "405 where an enforced or denied route takes the path and none the method",
        arguments: ["unmatched deny", "unmatched off", "unmatched enforce"],
        ["enforce", "deny 403"])
    func notAllowed(unmatched: String, mode: String) throws {
        let host = try loadHost(
            "\(unmatched)\n route POST,PUT /v1/x {\n mode \(mode)\n }\n route GET /g/* {\n "
                + "mode \(mode)\n }"
        )
        #expect(match(host, "GET", "/v1/x") == .methodNotAllowed(allow: ["POST", "PUT"]))
        #expect(match(host, "GET", "/V1/x/") == .methodNotAllowed(allow: ["POST", "PUT"]))
        #expect(match(host, "POST", "/g") == .methodNotAllowed(allow: ["GET", "HEAD"]))
        #expect(match(host, "HEAD", "/g/x") == .route(1, isAmbiguous: false))
    }

    @Test("Allow names what any route on the path takes, but not what is denied")
    func allow() throws {
        let host = try loadHost(
            """
            route POST /v1/x {
            }
            route DELETE /v1/x {
            mode deny 403
            }
            route PATCH /v1/* {
            mode off
            }
            """)
        #expect(match(host, "GET", "/v1/x") == .methodNotAllowed(allow: ["POST", "PATCH"]))
    }

    @Test("monitored and off routes do not count for 405", arguments: ["monitor", "off"])
    func open(mode: String) throws {
        let off = try loadHost("unmatched off\n route POST /v1/x {\n mode \(mode)\n }")
        #expect(match(off, "GET", "/v1/x") == .route(-1, isAmbiguous: false))
        let deny = try loadHost("route POST /v1/x {\n mode \(mode)\n }")
        #expect(match(deny, "GET", "/v1/x") == .notFound)
    }

    @Test("unmatched: deny is not found, off and enforce are the host's own policy")
    func unmatched() throws {
        #expect(match(try loadHost(""), "GET", "/x") == .notFound)
        for word in ["off", "enforce"] {
            let host = try loadHost("unmatched \(word)\n defaults {\n body max=2m\n }")
            #expect(match(host, "GET", "/x") == .route(-1, isAmbiguous: false))
            #expect(host.unmatchedRoute.mode == (word == "off" ? .off : .enforce))
            #expect(host.unmatchedRoute.bodyBytesMax == 2 << 20)
            #expect(host.unmatchedRoute.upstream == "orders")
        }
    }
}

@Suite("Routes: enrolment prefix")
struct EnrollTests {
    @Test(
        "is matched wide and before all routes",
        arguments: [
            ("/v1/app-attest/keys", "/keys"), ("/v1/app-attest", ""), ("/v1/app-attest/", ""),
            ("/V1/App-Attest/Keys", "/keys"), ("/v1/app-attest/keys/status", "/keys/status"),
            ("/v1/app-attest/%6beys", "/keys"), ("/v1/app-attest/keys/", "/keys"),
            ("/v1/app-attest/keys.", "/keys"), ("/v1/app-attest/caf%c3%a9", "/café"),
        ])
    func wide(path: String, subpath: String) throws {
        let host = try loadHost(
            "enroll /v1/app-attest\n route * /v1/* {\n }\n route * /* {\n mode off\n }")
        #expect(match(host, "POST", path) == .enroll(subpath: subpath))
        #expect(match(host, "OPTIONS", path, preflight: true) == .enroll(subpath: subpath))
    }

    @Test(
        "ends at a segment's border", arguments: ["/v1/app-attestx", "/v1/app", "/x/v1/app-attest"])
    func border(path: String) throws {
        #expect(match(try loadHost("enroll /v1/app-attest"), "POST", path) == .notFound)
    }

    @Test("an ambiguous path below it is refused")
    func ambiguous() throws {
        let host = try loadHost("enroll /v1/app-attest")
        #expect(match(host, "POST", "/v1/app-attest//keys") == .ambiguous)
    }
}

@Suite("Routes: CORS preflight")
struct PreflightTests {
    static let text = """
            enroll /enrol
            route POST /enforced {
            }
            route POST /monitored {
                mode monitor
            }
            route POST /open {
                mode off
            }
            route POST /denied {
                mode deny 403
            }
            route GET /mixed {
            }
            route DELETE /mixed {
                mode deny 405
            }
            route * /d/* {
                mode deny 404
            }
            route GET /d/e {
            }
        """

    @Test(
        "passes where an enforced, monitored or off route takes the path",
        arguments: [
            ("/enforced", 0), ("/Enforced/", 0), ("/monitored", 1), ("/open", 2), ("/d/e", 7),
        ])
    func passes(path: String, route: Int) throws {
        #expect(
            match(try loadHost(Self.text), "OPTIONS", path, preflight: true) == .preflight(route))
    }

    @Test("never passes on a denied path")
    func denied() throws {
        let host = try loadHost(Self.text)
        #expect(
            match(host, "OPTIONS", "/denied", preflight: true) == .methodNotAllowed(allow: ["POST"])
        )
        #expect(
            match(host, "OPTIONS", "/mixed", preflight: true)
                == .methodNotAllowed(allow: ["GET", "HEAD"]))
        #expect(match(host, "OPTIONS", "/d/x", preflight: true) == .route(6, isAmbiguous: false))
    }

    @Test("on an unmatched path passes under unmatched off alone")
    func unmatched() throws {
        #expect(match(try loadHost(Self.text), "OPTIONS", "/no", preflight: true) == .notFound)
        let off = try loadHost(Self.text + "\n unmatched off")
        #expect(match(off, "OPTIONS", "/no", preflight: true) == .preflight(-1))
        #expect(match(off, "OPTIONS", "/Open", preflight: true) == .preflight(-1))
        let enforce = try loadHost(Self.text + "\n unmatched enforce")
        #expect(match(enforce, "OPTIONS", "/no", preflight: true) == .route(-1, isAmbiguous: false))
    }

    @Test("is an ordinary OPTIONS request under preflight deny, and where it is no preflight")
    func ordinary() throws {
        let host = try loadHost(Self.text + "\n preflight deny")
        let expected = RouteMatch.methodNotAllowed(allow: ["POST"])
        #expect(match(host, "OPTIONS", "/enforced", preflight: true) == expected)
        #expect(match(try loadHost(Self.text), "OPTIONS", "/enforced") == expected)
    }

    @Test("an ambiguous path is refused first")
    func ambiguous() throws {
        #expect(match(try loadHost(Self.text), "OPTIONS", "//open", preflight: true) == .ambiguous)
    }
}

@Suite("Hosts: by name")
struct HostTableTests {
    static let text = """
        listener public {
            address 127.0.0.1:1
        }
        listener inside {
            address 127.0.0.1:2
        }
        app shop {
            app_id ABCDE12345.x.y
            environment production
        }
        upstream u {
            server 127.0.0.1:3
        }
        host api.example.com WWW.Example.com. {
            listener public
            upstream u
            unmatched off
        }
        host inside.example.com [::1] {
            listener inside public
            upstream u
            app shop
            route GET /x {
            }
        }
        """

    @Test("every name of a host finds it, whatever its case; others find nothing")
    func find() throws {
        let configuration = try #require(
            load(Self.text).configuration, "\(load(Self.text).render())")
        #expect(configuration.hosts[0].names == ["api.example.com", "www.example.com"])
        let table = HostTable(configuration: configuration, listener: "public")
        #expect(table.find("api.example.com") == 0)
        #expect(table.find("www.example.com") == 0)
        #expect(table.find("API.example.com") == 0)
        #expect(table.find("[::1]") == 1)
        #expect(table.find("example.com") == nil)
        #expect(table.find("") == nil)
        let bytes = Array("Host: inside.example.com:80".utf8)
        #expect(table.find(bytes, 6..<24) == 1)
    }

    @Test("a listener knows its own hosts alone, with their routes")
    func listener() throws {
        let configuration = try #require(load(Self.text).configuration)
        let table = HostTable(configuration: configuration, listener: "inside")
        #expect(table.find("api.example.com") == nil)
        #expect(table.routes(ofHost: 0) == nil)
        #expect(table.routes(ofHost: 7) == nil)
        let routes = try #require(table.routes(ofHost: 1))
        #expect(match(routes, "GET", Array("/x".utf8)) == .route(0, isAmbiguous: false))
        #expect(
            HostTable(configuration: configuration, listener: "no").find("api.example.com") == nil)
    }
}
