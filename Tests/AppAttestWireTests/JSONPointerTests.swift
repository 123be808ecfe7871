import AppAttestWire
import Testing

private func value(_ text: String, _ path: String...) throws(JSONError) -> JSONMember? {
    try JSONMembers.value(of: Array(text.utf8), at: path.map { Array($0.utf8) })
}

private func string(_ text: String) -> JSONMember { .string(Array(text.utf8)) }

@Suite("JSON: the value at a pointer")
struct JSONPointerTests {
    @Test("members of objects, at any depth")
    func members() throws {
        let text = #"{"x":{"a":"wrong"},"a":{"b":{"c":"right","b":1},"c":"no"},"c":"no"}"#
        #expect(try value(text, "a", "b", "c") == string("right"))
        #expect(try value(text, "a", "c") == string("no"))
        #expect(try value(text, "a", "b", "b") == .integer(1))
        #expect(try value(text, "a", "b") == .other)
        #expect(try value(text, "a") == .other)
        #expect(try value(text, "b") == nil)
        #expect(try value(text, "a", "b", "d") == nil)
        #expect(try value(text, "c", "a") == nil)
    }

    @Test("elements of arrays by an index that is written in one way")
    func elements() throws {
        let text = #"[["no"],["a",{"b":"in"},[["deep"]]],"last"]"#
        #expect(try value(text, "1", "0") == string("a"))
        #expect(try value(text, "1", "1", "b") == string("in"))
        #expect(try value(text, "1", "2", "0", "0") == string("deep"))
        #expect(try value(text, "2") == string("last"))
        for token in ["3", "01", "-", "+1", "1.0", "", "1e0", " 1", "-1", "99999999999999999999"] {
            #expect(try value(text, token) == nil, "\(token)")
        }
        #expect(try value("[]", "0") == nil)
        // In an object, digits are a name like another.
        #expect(try value(#"{"01":"name","1":["x"]}"#, "01") == string("name"))
        #expect(try value(#"{"01":"name","1":["x"]}"#, "1", "0") == string("x"))
    }

    @Test("names are compared after unescaping, empty ones too")
    func names() throws {
        #expect(try value(#"{"\u0061\/~":{"":"v"}}"#, "a/~", "") == string("v"))
        #expect(try value(#"{"é":"v"}"#, "é") == string("v"))
    }

    @Test("the whole text is judged, wherever the value stands")
    func strict() {
        for text in [
            #"{"a":"v"} x"#, #"{"a":"v","b":}"#, #"{"a":"v","b":{"c":1,"c":2}}"#,
            #"{"a":"v","\u0061":"w"}"#, #"["v" "w"]"#, #""a""#, "1", "", "null",
        ] {
            #expect(throws: JSONError.self, "\(text)") { try value(text, "a") }
        }
        #expect(throws: JSONError.notAnObject) { try value(#""a""#, "a") }
        let deep = String(repeating: "[", count: 17) + String(repeating: "]", count: 17)
        #expect(throws: JSONError.depthExceeded) { try value(deep, "0") }
    }

    @Test("every cut of a text is an error")
    func cuts() throws {
        let text = Array(#"{"x":[1,{"y":"é"}],"a":[{"b":"v"}]}"#.utf8)
        let path = ["a", "0", "b"].map { Array($0.utf8) }
        for size in 0..<text.count {
            #expect(throws: JSONError.self) {
                try JSONMembers.value(of: Array(text[..<size]), at: path)
            }
        }
        #expect(try JSONMembers.value(of: text, at: path) == string("v"))
    }
}
