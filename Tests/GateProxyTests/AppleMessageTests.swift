import AppAttestWire
import GateBytes
import GateConfig
import GateCrypto
import GateProxy
import Testing

@Suite("Messages of Apple's servers")
struct AppleMessageTests {
    private func bits(_ text: String) -> DeviceCheckMessage.Bits? {
        DeviceCheckMessage.bits(Array(text.utf8))
    }

    @Test("a call's body has the token as base64, whole milliseconds and, if any, both bits")
    func body() {
        let query = DeviceCheckMessage.body(
            token: [0xfb, 0xff], transaction: "t-1", time: 1_796_000_000_123)
        #expect(
            String(decoding: query, as: UTF8.self)
                == "{\"device_token\":\"+/8=\",\"transaction_id\":\"t-1\","
                + "\"timestamp\":1796000000123}")
        let update = DeviceCheckMessage.body(
            token: [], transaction: "t", time: 1, bits: .init(bit0: true, bit1: false))
        #expect(
            String(decoding: update, as: UTF8.self).hasSuffix(
                "\"timestamp\":1,\"bit0\":true,\"bit1\":false}"))
    }

    @Test("bits are read from the object alone; any other text is no state")
    func bitsRead() {
        #expect(
            bits("{\"bit0\":true,\"bit1\":false,\"last_update_time\":\"2026-11\"}")
                == .init(bit0: true, bit1: false))
        #expect(bits("{\"bit1\":true,\"bit0\":false}") == .init(bit0: false, bit1: true))
        for text in [
            "Failed to find bit state", "Bit State Not Found", "", "{}", "{\"bit0\":true}",
            "{\"bit0\":1,\"bit1\":0}", "{\"bit0\":\"true\",\"bit1\":true}", "[true,true]",
            "{\"bit0\":true,\"bit1\":true,\"bit0\":false}",
        ] {
            #expect(bits(text) == nil, "\(text)")
            // Of an object the bits must be known.
            #expect(
                DeviceCheckMessage.isObject(Array(" \(text)".utf8)) == text.hasPrefix("{"))
        }
        #expect(DeviceCheckMessage.isKnownNoState(Array("Failed to find bit state".utf8)))
        #expect(!DeviceCheckMessage.isKnownNoState(Array("something new".utf8)))
    }

    @Test("conditions are met bit by bit, and a bit that is not set stays as it is")
    func conditions() {
        func terms(_ bit0: Bool?, _ bit1: Bool?) -> Fallback.DeviceCheck {
            Fallback.DeviceCheck(bit0: bit0, bit1: bit1, timeout: .seconds(1))
        }
        let bits = DeviceCheckMessage.Bits(bit0: true, bit1: false)
        #expect(bits.meet(terms(nil, nil)) && bits.meet(terms(true, false)))
        #expect(!bits.meet(terms(false, nil)) && !bits.meet(terms(true, true)))
        #expect(bits.setting(DeviceBits(bit1: true)) == .init(bit0: true, bit1: true))
        #expect(bits.setting(DeviceBits(bit0: false)) == .init(bit0: false, bit1: false))
    }

    @Test("a text in the log is short, on one line, and holds nothing that could be a token")
    func excerpt() {
        let token = Base64.encode([UInt8](repeating: 7, count: 100))
        #expect(
            AppleText.excerpt(Array("Bad Device Token \(token)\r\nX".utf8))
                == "Bad Device Token … X")
        #expect(AppleText.excerpt(Array("Server Error".utf8)) == "Server Error")
        #expect(AppleText.excerpt([UInt8](repeating: 0x61, count: 9999)).utf8.count < 20)
    }

    @Test("a 400 about the authorization or the clock is the gate's own fault")
    func ownFault() {
        for text in [
            "Bad Authorization Token", "Missing or badly formatted authorization token",
            "Missing or incorrectly formatted time stamp", "Bad Timestamp",
        ] {
            #expect(AppleText.isOwnFault(Array(text.utf8)), "\(text)")
        }
        for text in ["Bad Device Token", "Missing or incorrectly formatted device token payload"] {
            #expect(!AppleText.isOwnFault(Array(text.utf8)), "\(text)")
        }
    }
}

@Suite("Apple's token")
struct AppleTokenTests {
    private static let pem = """
        -----BEGIN PRIVATE KEY-----
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgAIm/+8mGG8MTqYXq
        nixUpYLgPyTzQMNnqFUbSgE509yhRANCAASWbHTPRTpXAUi6y13oIx7lGo+6wS8V
        6HfevpqNcQzWs0GMeJUIVN6H+s1AiV+c6yAzPElVhzpGo4qO94GfekzC
        -----END PRIVATE KEY-----
        """
    private let key: ServiceSigningKey
    private let token: AppleToken

    init() throws {
        key = try ServiceSigningKey(pem: Array(AppleTokenTests.pem.utf8))
        token = AppleToken(teamID: "ABCDE12345", keyID: "KEY1234567", key: key)
    }

    @Test("it names the key and the team, and is signed with r and s")
    func form() throws {
        let parts = token.text(now: 1_796_000_000).split(separator: ".").map(String.init)
        #expect(parts.count == 3)
        let header = try #require(Base64.decode(parts[0]))
        let claims = try #require(Base64.decode(parts[1]))
        #expect(
            String(decoding: header, as: UTF8.self)
                == "{\"alg\":\"ES256\",\"kid\":\"KEY1234567\"}")
        #expect(
            String(decoding: claims, as: UTF8.self)
                == "{\"iss\":\"ABCDE12345\",\"iat\":1796000000}")
        #expect(Base64.decode(parts[2])?.count == 64)
        #expect(!parts.joined().contains("="))
    }

    @Test("it is used for forty minutes, and not when the clock was set back")
    func life() {
        let first = token.text(now: 10_000)
        #expect(token.text(now: 10_000 + 2399) == first)
        let second = token.text(now: 10_000 + 2400)
        #expect(second != first)
        #expect(token.text(now: 12_399) != second)
    }

    @Test("no message shows it")
    func hidden() {
        _ = token.text(now: 1)
        #expect(Mirror(reflecting: token).children.isEmpty)
    }
}
