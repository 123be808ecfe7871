import GateHTTP
import Testing

@Suite("Host: exactly one, host[:port]")
struct HostTests {
    @Test(
        "a name, an address, a port",
        arguments: [
            (" a", "a"), ("a-b.c_d.9", "a-b.c_d.9"), (" API.Example.TEST:80", "api.example.test"),
            (" a.", "a"), (" a.:65535", "a"), ("\t a \t", "a"), (" 127.0.0.1:1", "127.0.0.1"),
            (" [::1]", "[::1]"), (" [FE80::1]:443", "[fe80::1]"),
            (" [::ffff:1.2.3.4]", "[::ffff:1.2.3.4]"),
        ])
    func good(value: String, name: String) throws {
        let head = try head("GET / HTTP/1.1\r\nHost:\(value)\r\n\r\n")
        #expect(head.hostName == name)
        #expect(head.text(head.authority) == value.trimmingBlanks)
    }

    @Test(
        "an octet that no host has at its place is refused as it arrives",
        arguments: [
            "@", "a@", "a/", "a?", "a#", "a\\", "a,", "a;", "a%", "a!", "a~", "a\u{e9}", "\u{a0}",
            ".", "a..", "a b", "a\tb", ":", "a:x", "a:8x", "a:8:", "a:123456", "a:000080",
            "a:65536", "a: ",
            "a:\r", "\r", " \r", "[x", "[::1\r", "[::1 ", "[]", "[1.2.3", "[12345", "[:::]",
            "[::1%", "[::1]x", "[::1]:\r", "a:0\r", "a:00000\r", "a .", "a. b",
        ])
    func bad(value: String) {
        #expect(errorAtLastByte("GET / HTTP/1.1\r\nHost:" + value) == .hostInvalid)
    }

    @Test("a control octet in it is one in a value", arguments: ["a\u{0}", "a\u{1}", "\u{7f}"])
    func control(value: String) {
        #expect(errorAtLastByte("GET / HTTP/1.1\r\nHost:" + value) == .fieldValueInvalid)
    }

    @Test("a bracket never closed is refused before it can grow")
    func endlessAddress() {
        let longest = "[" + String(repeating: "1:", count: 22) + "1"
        #expect(errorAtLastByte("GET / HTTP/1.1\r\nHost:" + longest + "1") == .hostInvalid)
    }

    @Test("none is refused with the octet that would end the head, in both versions")
    func missing() {
        #expect(errorAtLastByte("GET / HTTP/1.1\r\n\r") == .hostMissing)
        #expect(errorAtLastByte("GET / HTTP/1.0\r\n\r") == .hostMissing)
        #expect(errorAtLastByte("GET http://h/ HTTP/1.1\r\nX: y\r\n\r") == .hostMissing)
    }

    @Test("a second one is refused by its name")
    func repeated() {
        #expect(errorAtLastByte("GET / HTTP/1.1\r\nHost: a\r\nhOST:") == .hostRepeated)
    }

    @Test("each of them is answered 400")
    func status() {
        for error in [
            MessageError.hostInvalid, .hostMissing, .hostRepeated, .authorityMismatch,
            .targetInvalid, .methodInvalid, .versionInvalid, .lineEndInvalid,
        ] {
            #expect(error.status == 400)
            #expect(error.reason == "malformed")
        }
    }
}

extension String {
    /// Without spaces and tabs around it.
    var trimmingBlanks: String {
        String(split(whereSeparator: { $0 == " " || $0 == "\t" }).joined(separator: " "))
    }
}
