import AppAttestWire
import Foundation
import Testing

private func scan(_ text: String, _ names: String...) throws(JSONError) -> [JSONMember?] {
    try JSONMembers.scan(Array(text.utf8), named: names)
}

private func error(_ text: String) -> JSONError? {
    error(Array(text.utf8))
}

private func error(_ bytes: [UInt8]) -> JSONError? {
    do {
        _ = try JSONMembers.scan(bytes, named: ["a"])
        return nil
    } catch {
        return error
    }
}

private func string(_ text: String) -> JSONMember { .string(Array(text.utf8)) }

@Suite("JSON: what is kept")
struct JSONCaptureTests {
    @Test("members come in the order asked for, absent ones as nil")
    func members() throws {
        let text = #" { "b" : 12 , "x":{"a":1},"a":"v","c":[ "a" , {} , [ ] , null ] } "#
        #expect(try scan(text, "a", "b", "z", "c") == [string("v"), .integer(12), nil, .other])
        #expect(try scan("{}", "a") == [nil])
        #expect(try scan("\t\r\n{\n}\r\t ", "a") == [nil])
        #expect(try scan(#"{"a":1}"#) == [])
    }

    @Test("members of inner objects are not those of the outer one")
    func inner() throws {
        #expect(try scan(#"{"x":{"a":"in"},"y":[{"a":"in"}]}"#, "a") == [nil])
    }

    @Test("strings are unescaped, names too")
    func escapes() throws {
        let text = #"{"\u0061":"\"\\\/\b\f\n\r\t\u0000\u00e9\u20AC\ud83d\ude00é€😀"}"#
        let expected = "\"\\/\u{8}\u{c}\n\r\t\u{0}é€😀é€😀"
        #expect(try scan(text, "a") == [string(expected)])
    }

    @Test(
        "numbers are integers where they are written so and fit",
        arguments: [
            ("0", JSONMember.integer(0)), ("-0", .integer(0)), ("-12", .integer(-12)),
            ("9223372036854775807", .integer(.max)), ("-9223372036854775808", .integer(.min)),
            ("9223372036854775808", .other), ("-9223372036854775809", .other),
            ("99999999999999999999999999", .other), ("1.0", .other), ("1e2", .other),
            ("0.5", .other),
            ("-0.1E+9", .other), ("1E-7", .other), ("10e00", .other), ("true", .other),
            ("false", .other), ("null", .other),
        ])
    func numbers(text: String, member: JSONMember) throws {
        #expect(try scan("{\"a\":\(text)}", "a") == [member])
    }
}

@Suite("JSON: what is refused")
struct JSONRefusalTests {
    @Test(
        "a text that is no object",
        arguments: ["[]", "\"a\"", "1", "null", "x", "\u{feff}{}", "}", "\u{b}{}", "\u{a0}{}"])
    func notAnObject(text: String) {
        #expect(error(text) == .notAnObject)
    }

    @Test("anything behind the object", arguments: ["{}{}", "{} x", "{},", "{}\u{0}", "{}\u{b}"])
    func trailing(text: String) {
        #expect(error(text) == .trailingBytes)
    }

    @Test(
        "a name twice in one object, after unescaping, at any level",
        arguments: [
            #"{"a":1,"a":1}"#, #"{"a":1,"\u0061":2}"#, #"{"é":1,"\u00e9":1}"#, #"{"":1,"":2}"#,
            #"{"x":{"b":1,"b":2}}"#, #"{"x":[[{"b":1,"c":{},"b":2}]]}"#, #"{"\/":1,"/":1}"#,
            #"{"😀":1,"\ud83d\ude00":1}"#,
        ])
    func duplicates(text: String) {
        #expect(error(text) == .duplicateName)
    }

    @Test("one name in two objects is no duplicate, nor are names that only look alike")
    func notDuplicates() {
        #expect(error(#"{"a":{"a":{"a":1}},"b":[{"a":1},{"a":1}],"c":{"b":1}}"#) == nil)
        #expect(error(#"{"a":1,"A":2,"a ":3,"é":4,"e\u0301":5}"#) == nil)
    }

    @Test(
        "a duplicate is found among many members, wherever both stand",
        arguments: [2, 16, 17, 18, 40])
    func manyMembers(count: Int) {
        for first in [0, 1, 15, 16, count - 2] where first < count - 1 {
            var names = (0..<count).map { "n\($0)" }
            let distinct = "{" + names.map { "\"\($0)\":{\"n0\":1}" }.joined(separator: ",") + "}"
            #expect(error(distinct) == nil)
            names[count - 1] = names[first]
            let text = "{" + names.map { "\"\($0)\":{\"n0\":1}" }.joined(separator: ",") + "}"
            #expect(error(text) == .duplicateName)
        }
    }

    @Test("sixteen levels are read, seventeen are not")
    func depth() {
        func nested(_ open: String, _ close: String, _ count: Int) -> String {
            #"{"a":"# + String(repeating: open, count: count)
                + String(repeating: close, count: count) + "}"
        }
        #expect(error(nested("[", "]", 15)) == nil)
        #expect(error(nested("[", "]", 16)) == .depthExceeded)
        let inner =
            String(repeating: #"{"b":"#, count: 14) + "{}" + String(repeating: "}", count: 14)
        #expect(error(#"{"a":\#(inner)}"#) == nil)
        #expect(error(#"{"a":{"b":\#(inner)}}"#) == .depthExceeded)
        #expect(error(nested("[", "]", 100_000)) == .depthExceeded)
        #expect(error(#"{"a":[[[[[[]]]]],[[[[[[[[[[[[[[]]]]]]]]]]]]]]]}"#) == nil)
    }

    @Test(
        "octets out of place",
        arguments: [
            "{,}", "{\"a\"}", "{\"a\" 1}", "{\"a\":}", "{\"a\":,}", "{\"a\":1,}",
            "{\"a\":1 \"b\":2}",
            "{a:1}", "{'a':1}", "{1:1}", "{\"a\":[1,]}", "{\"a\":[,1]}", "{\"a\":[1 2]}",
            "{\"a\":[1}", "{\"a\":{]", "{\"a\":tru}", "{\"a\":True}", "{\"a\":nul1}", "{\"a\":NaN}",
            "{\"a\":+1}", "{\"a\":.5}", "{\"a\":'b'}", "{\"a\":\u{b}1}", "{\"a\":1\u{c}}",
            "{\"a\"::1}", "{\"a\":1;}", "{/**/}", "{\"a\":0x1}", "{\"a\":1_0}", "{\"a\":Infinity}",
            "{\"a\":falsf}",
        ])
    func unexpected(text: String) {
        #expect(error(text) == .unexpectedByte)
    }

    @Test(
        "numbers outside the grammar",
        arguments: [
            "01", "-01", "00", "-", "-a", "1.", "1.e1", "1.a", "1e", "1e+", "1eA", "1e-}", "--1",
            "-.5", "-Infinity",
        ])
    func numbers(text: String) {
        #expect(error("{\"a\":\(text)}") == .numberInvalid)
    }

    @Test("a control character in a string or name, raw")
    func controls() {
        for octet in UInt8(0)..<0x20 {
            #expect(
                error(Array("{\"a\":\"".utf8) + [octet] + Array("\"}".utf8)) == .controlCharacter)
            #expect(error(Array("{\"".utf8) + [octet] + Array("\":1}".utf8)) == .controlCharacter)
        }
        #expect(error("{\"a\":\"\u{7f}\"}") == nil)
    }

    @Test(
        "escapes that JSON does not have",
        arguments: [
            #"\a"#, #"\'"#, #"\x41"#, #"\0"#, #"\U0041"#, #"\u004"#, #"\u00g0"#, #"\u 041"#,
            #"\ud83d\u00"#,
        ])
    func escapes(text: String) {
        #expect(error("{\"a\":\"\(text)\"}") == .escapeInvalid)
    }

    @Test(
        "half a surrogate pair",
        arguments: [
            #"\ud800"#, #"\ud83dx"#, #"\ud83d\n"#, #"\ud83d\ud83d"#, #"\ude00"#, #"\udfff\ud800"#,
            #"\ud83d\u0041"#, #"\uDC00"#, #"\udbff\ue000"#, #"\ud800\ue000"#, #"\ud83dxude00"#,
            #"\ud83d\nde00"#,
        ])
    func surrogates(text: String) {
        #expect(error("{\"a\":\"\(text)\"}") == .loneSurrogate)
        #expect(error("{\"\(text)\":1}") == .loneSurrogate)
    }

    @Test("the first and last pair are scalars")
    func pairs() throws {
        #expect(
            try scan(#"{"a":"\ud800\udc00\udbff\udfff"}"#, "a") == [string("\u{10000}\u{10ffff}")])
        #expect(
            try scan(#"{"a":"\ud7ff\ue000\uffff"}"#, "a") == [string("\u{d7ff}\u{e000}\u{ffff}")])
    }

    @Test(
        "octets that are not well-formed UTF-8",
        arguments: [
            [0x80], [0xbf], [0xc0, 0x80], [0xc0, 0xaf], [0xc1, 0xbf], [0xc2, 0x22], [0xc2, 0xc2],
            [0xe0, 0x80, 0x80], [0xe0, 0x9f, 0xbf], [0xed, 0xa0, 0x80], [0xed, 0xbf, 0xbf],
            [0xe1, 0x80, 0x22], [0xe1, 0x80, 0xc0], [0xe1, 0x7f, 0x80], [0xf0, 0x80, 0x80, 0x80],
            [0xf0, 0x8f, 0xbf, 0xbf], [0xf4, 0x90, 0x80, 0x80], [0xf1, 0x80, 0x80, 0x22],
            [0xf1, 0x80, 0xc0, 0x80], [0xf5, 0x80, 0x80, 0x80], [0xf8, 0x88, 0x80, 0x80], [0xff],
            [0xfe],
        ] as [[UInt8]])
    func malformed(octets: [UInt8]) {
        #expect(error(Array("{\"a\":\"".utf8) + octets + Array("\"}".utf8)) == .utf8Invalid)
        #expect(error(Array("{\"".utf8) + octets + Array("\":1}".utf8)) == .utf8Invalid)
    }

    @Test("the first and last of each length are well-formed")
    func wellFormed() throws {
        let text =
            "\u{80}\u{7ff}\u{800}\u{fff}\u{1000}\u{cfff}\u{d000}\u{d7ff}\u{e000}\u{ffff}"
            + "\u{10000}\u{3ffff}\u{40000}\u{fffff}\u{100000}\u{10ffff}"
        #expect(try scan("{\"a\":\"\(text)\"}", "a") == [string(text)])
    }

    @Test("a text cut anywhere ends too early")
    func cuts() throws {
        let text = #"{"a":"é\ud83d\ude00","b":[-1.5e+3,true,{"c":null}],"d":false}"#
        let bytes = Array(text.utf8)
        #expect(error(bytes) == nil)
        for end in 0..<bytes.count {
            #expect(error(Array(bytes[..<end])) == .endOfText, "cut at \(end)")
        }
    }

    @Test("with one octet changed nothing is taken that Foundation refuses")
    func corrupted() throws {
        let bytes = Array(#"{"ab":"é\u00e9","b":[-1.5e+3,true,{"c":null}],"d":10}"#.utf8)
        for index in bytes.indices {
            for octet in UInt8(0)...255 {
                var changed = bytes
                changed[index] = octet
                guard error(changed) == nil else { continue }
                let value = try? JSONSerialization.jsonObject(with: Data(changed))
                #expect(value is [String: Any], "octet \(octet) at \(index)")
            }
        }
    }

    @Test("a long object costs linear time")
    func longObject() {
        let text = "{" + (0..<20_000).map { "\"\($0)\":0" }.joined(separator: ",") + "}"
        #expect(error(text) == nil)
    }
}
