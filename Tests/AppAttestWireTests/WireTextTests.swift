import AppAttestWire
import Foundation
import GateBytes
import Testing

@Suite("JSONWriter: one line, read back the same")
struct JSONWriterTests {
    @Test("members, objects and arrays are parted by commas")
    func structure() {
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("a", "x")
        writer.member("b", 12)
        writer.member("c", true)
        writer.beginArray("d")
        writer.beginObject()
        writer.member("e", -1)
        writer.endObject()
        writer.beginObject()
        writer.endObject()
        writer.element("f")
        writer.beginArray()
        writer.endArray()
        writer.endArray()
        writer.beginObject("g")
        writer.endObject()
        writer.member("h", Array("-yes-".utf8), 1..<4)
        writer.member("i", false)
        writer.endObject()
        let expected =
            #"{"a":"x","b":12,"c":true,"d":[{"e":-1},{},"f",[]],"g":{},"h":"yes","i":false}"#
        #expect(String(decoding: writer.bytes, as: UTF8.self) == expected)
    }

    @Test("every byte outside visible ASCII, quote and backslash is escaped")
    func escaping() throws {
        for octet in UInt8(0)...255 {
            var writer = JSONWriter()
            writer.beginObject()
            writer.member("a", [octet])
            writer.endObject()
            let isPlain = 0x20...0x7e ~= octet && octet != 0x22 && octet != 0x5c
            let text = isPlain ? [octet] : Array(String(format: "\\u%04x", octet).utf8)
            #expect(writer.bytes == Array(#"{"a":""#.utf8) + text + Array(#""}"#.utf8))
            let scalar = String(Unicode.Scalar(octet))
            #expect(
                try JSONMembers.scan(writer.bytes, named: ["a"]) == [.string(Array(scalar.utf8))])
        }
    }

    @Test(
        "durations are seconds with six digits",
        arguments: [
            (Duration.zero, "0.000000"), (.microseconds(1), "0.000001"),
            (.milliseconds(1500), "1.500000"),
            (.nanoseconds(1999), "0.000001"), (.seconds(12), "12.000000"),
            (.microseconds(-1_500_000), "-1.500000"), (.microseconds(999_999), "0.999999"),
        ])
    func durations(value: Duration, text: String) {
        var writer = JSONWriter(appendingTo: Array("x".utf8))
        writer.beginObject()
        writer.member("d", seconds: value)
        writer.member("e", 1)
        writer.endObject()
        #expect(String(decoding: writer.bytes, as: UTF8.self) == "x{\"d\":\(text),\"e\":1}")
    }
}

@Suite("Proof fields: their texts")
struct ProofTextTests {
    private let mac = Bytes32([UInt8](repeating: 0xfb, count: 32)) ?? Bytes32()

    private func challenge(_ text: String) -> ChallengeText? {
        let bytes = Array("<\(text)>".utf8)
        return ChallengeText(bytes, 1..<(bytes.count - 1))
    }

    @Test("an id alone, or with its mac")
    func challenges() {
        let id = String(repeating: "a", count: 64)
        #expect(challenge("aZ_-9") == .id(1..<6))
        #expect(challenge(id) == .id(1..<65))
        let text = String(
            decoding: ChallengeText.byValue(id: Array("a-b".utf8), mac: mac), as: UTF8.self)
        #expect(text == "a-b.-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_s")
        #expect(challenge(text) == .byValue(id: 1..<4, mac: mac))
        let long = String(
            decoding: ChallengeText.byValue(id: Array(id.utf8), mac: mac), as: UTF8.self)
        #expect(long.utf8.count == 108)
        #expect(challenge(long) == .byValue(id: 1..<65, mac: mac))
    }

    @Test("nothing else is a challenge")
    func notChallenges() {
        let tail = "-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_"
        for text in [
            "", ".", "a b", "a+b", "a=", "é", String(repeating: "a", count: 65), "a.", ".\(tail)s",
            "a.\(tail)s=", "a.\(tail)t", "a.\(tail)", "a.\(tail)sA", "a.b.\(tail)s",
            "a.+/v7\(tail.dropFirst(4))s",
            String(repeating: "a", count: 65) + ".\(tail)s",
        ] {
            #expect(challenge(text) == nil, "\(text)")
        }
    }

    @Test("a key ID is base64 of 32 bytes")
    func keyIDs() {
        func keyID(_ text: String) -> Bytes32? {
            ProofText.keyID(Array(text.utf8), 0..<text.utf8.count)
        }
        #expect(keyID(Base64.encode(mac.array)) == mac)
        #expect(keyID(Base64.encodeURL(mac.array)) == mac)
        #expect(keyID(Base64.encode(Array(mac.array.dropLast()))) == nil)
        #expect(keyID(Base64.encode(mac.array + [0])) == nil)
        #expect(keyID("") == nil)
        #expect(keyID(Base64.encode(mac.array) + " ") == nil)
    }

    @Test("?1 and ?0 and nothing else")
    func unsupported() {
        func read(_ text: String) -> Bool? {
            ProofText.unsupported(Array(text.utf8), 0..<text.utf8.count)
        }
        #expect(read("?1") == true)
        #expect(read("?0") == false)
        for text in ["", "1", "?", "?2", "?1 ", "?1;a", "!1", "??", "true"] {
            #expect(read(text) == nil)
        }
    }

    @Test("the default names are those of the protocol")
    func names() {
        #expect(
            DefaultFieldNames.proof == [
                "App-Attest-Key-Id", "App-Attest-Assertion", "App-Attest-Client-Data",
                "App-Attest-Challenge", "App-Attest-Attestation",
            ])
        #expect(DefaultFieldNames.unsupported == "App-Attest-Unsupported")
        #expect(DefaultFieldNames.deviceToken == "App-Attest-Device-Token")
        #expect(DefaultFieldNames.nextChallenge == "App-Attest-Next-Challenge")
    }
}
