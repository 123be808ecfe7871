import AppAttestWire
import GateBytes
import Testing

private let challenge = Bytes32([UInt8](0..<32)) ?? Bytes32()
private let digest = Bytes32([UInt8](100..<132)) ?? Bytes32()
private let challengeText = Base64.encode(challenge.array)
private let digestText = Base64.encode(digest.array)

private func json(
    _ changes: [String: String] = [:], omitting omitted: ClientData.Member? = nil,
    extra: String = ""
) -> [UInt8] {
    var members = [
        ("challengeID", "\"id\""), ("challenge", "\"\(challengeText)\""), ("method", "\"POST\""),
        ("path", "\"/v1/a?b\""), ("bodySHA256", "\"\(digestText)\""),
    ]
    members = members.filter { $0.0 != omitted?.rawValue }
    members = members.map { ($0.0, changes[$0.0] ?? $0.1) }
    let text = members.map { "\"\($0.0)\":\($0.1)" } + (extra.isEmpty ? [] : [extra])
    return Array("{\(text.joined(separator: ","))}".utf8)
}

@Suite("Client data: members and their form")
struct ClientDataTests {
    @Test("the members are read, decoded, and in any order")
    func plain() throws {
        let data = try ClientData.parse(json(extra: #""other":[1,{"challenge":2}]"#))
        #expect(data.challengeID == Array("id".utf8))
        #expect(data.challenge == challenge.array)
        #expect(data.method == Array("POST".utf8))
        #expect(data.path == Array("/v1/a?b".utf8))
        #expect(data.bodySHA256 == digest.array)
        #expect(data.operationID == .none)
    }

    @Test("a content type is visible ASCII with spaces inside, or it is bad")
    func contentType() throws {
        func parsed(_ value: String) throws -> [UInt8]?? {
            try ClientData.parse(json(extra: "\"contentType\":\(value)")).contentType
        }
        #expect(try ClientData.parse(json()).contentType == .none)
        for text in ["a/b", "text/plain; charset=utf-8", String(repeating: "x", count: 256), "!"] {
            #expect(try parsed("\"\(text)\"") == .some(Array(text.utf8)), "\(text)")
        }
        let long = String(repeating: "x", count: 257)
        for value in [
            "1", "null", "[]", #""""#, #"" a""#, #""a ""#, #""a\tb""#, #""a\r\nb: c""#, #""é""#,
            #""\u007f""#, "\"\(long)\"",
        ] {
            #expect(try parsed(value) == .some(nil), "\(value)")
        }
    }

    @Test("a required member absent is an error", arguments: ClientData.Member.allCases)
    func absent(member: ClientData.Member) throws {
        guard member != .operationID, member != .contentType else { return }
        #expect(throws: ClientDataError.memberMissing(member)) {
            try ClientData.parse(json(omitting: member))
        }
    }

    @Test(
        "a required member of another type is an error",
        arguments: ["1", "null", "true", "[]", "{}", "1.5"])
    func otherType(value: String) {
        for member in ClientData.Member.allCases
        where member != .operationID && member != .contentType {
            #expect(throws: ClientDataError.memberNotString(member)) {
                try ClientData.parse(json([member.rawValue: value]))
            }
        }
    }

    @Test("a member twice is an error, required or not")
    func twice() {
        for extra in [#""method":"POST""#, #""p\u0061th":"/x""#, #""x":1,"x":2"#] {
            #expect(throws: ClientDataError.json(.duplicateName)) {
                try ClientData.parse(json(extra: extra))
            }
        }
        #expect(throws: ClientDataError.json(.notAnObject)) {
            try ClientData.parse(Array("[]".utf8))
        }
        #expect(throws: ClientDataError.json(.endOfText)) { try ClientData.parse([]) }
    }

    @Test("what must be base64 is", arguments: ["A", "====", "AA=A", " AAA", "A_+A", "AAB="])
    func base64(value: String) {
        #expect(throws: ClientDataError.base64Invalid(.challenge)) {
            try ClientData.parse(json(["challenge": "\"\(value)\""]))
        }
        #expect(throws: ClientDataError.base64Invalid(.bodySHA256)) {
            try ClientData.parse(json(["bodySHA256": "\"\(value)\""]))
        }
    }

    @Test("base64 of another length is well-formed, base64url too")
    func otherLengths() throws {
        let data = try ClientData.parse(json(["challenge": "\"AAA\"", "bodySHA256": "\"_-8\""]))
        #expect(data.challenge == [0, 0])
        #expect(data.bodySHA256 == [0xff, 0xef])
    }

    @Test("escapes in the path are the characters they stand for")
    func escapedPath() throws {
        let data = try ClientData.parse(json(["path": #""\/v1\u002fa""#]))
        #expect(data.path == Array("/v1/a".utf8))
    }

    @Test("an operation id is 1 to 128 visible ASCII characters, else marked as not good")
    func operationID() throws {
        func read(_ value: String) throws -> [UInt8]?? {
            try ClientData.parse(json(extra: "\"operationID\":\(value)")).operationID
        }
        let longest = String(repeating: "~", count: 128)
        #expect(try read("\"!\"") == .some(Array("!".utf8)))
        #expect(try read("\"\(longest)\"") == .some(Array(longest.utf8)))
        for bad in [
            "\"\"", "\"\(longest)~\"", "\"a b\"", "\"\\u007f\"", "\"é\"", "\"\\n\"", "1", "null",
        ] {
            #expect(try read(bad) == .some(nil))
        }
    }

    @Test("what a client writes the gate reads")
    func roundTrip() throws {
        for operation in [nil, Array("op-1".utf8)] {
            let bytes = ClientData.encode(
                challengeID: Array("a-_9".utf8), challenge: challenge, method: Array("PUT".utf8),
                path: Array("/a\"\\b%20?c".utf8), bodySHA256: digest, operationID: operation)
            let data = try ClientData.parse(bytes)
            #expect(data.challengeID == Array("a-_9".utf8))
            #expect(data.challenge == challenge.array)
            #expect(data.method == Array("PUT".utf8))
            #expect(data.path == Array("/a\"\\b%20?c".utf8))
            #expect(data.bodySHA256 == digest.array)
            #expect(data.operationID == operation.map { .some($0) })
        }
    }

    @Test("client data cut anywhere is refused")
    func cuts() {
        let bytes = json(extra: #""operationID":"x""#)
        for end in 0..<bytes.count {
            #expect(throws: ClientDataError.json(.endOfText)) {
                try ClientData.parse(Array(bytes[..<end]))
            }
        }
    }
}

@Suite("Binding request: the text both ends build")
struct RequestBindingTests {
    @Test("six lines parted by LF, no final one")
    func text() {
        let bytes = RequestBinding.clientData(
            method: Array("POST".utf8), target: Array("/v1/a?b=c".utf8),
            challengeID: Array("id_1".utf8),
            challenge: challenge, bodySHA256: digest)
        let expected = """
            attestgate-v1
            POST
            /v1/a?b=c
            id_1
            AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=
            ZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXp7fH1+f4CBgoM=
            """
        #expect(String(decoding: bytes, as: UTF8.self) == expected)
    }
}
