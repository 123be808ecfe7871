import GateBytes
import GateConfig
import GateCrypto
import GateHTTP
import GateProxy
import Testing

private func read(
    _ lines: [String], trusted: Bool = true, host: Host = makeHost()
) throws -> AccountReading {
    AccountReader.read(try request("GET /a", lines), makeFields(host), isTrusted: trusted)
}

@Suite("Account: the field of account header")
struct AccountReaderTests {
    @Test("a trusted proxy's field is the account, spelled in any case")
    func present() throws {
        #expect(try read(["x-ACCOUNT-id: alice"]) == .account(Array("alice".utf8)))
        #expect(try read(["X-Account-Id:  a b\u{e9}  "]) == .account(Array("a b\u{e9}".utf8)))
    }

    @Test("any other peer's field is as good as absent, doubled or not")
    func untrusted() throws {
        #expect(try read(["X-Account-Id: alice"], trusted: false) == .absent)
        #expect(
            try read(["X-Account-Id: a", "X-Account-Id: b"], trusted: false) == .absent)
    }

    @Test("no field or an empty one is absent")
    func absent() throws {
        #expect(try read([]) == .absent)
        #expect(try read(["X-Account-Id:"]) == .absent)
        #expect(try read(["X-Account-Id:   "]) == .absent)
    }

    @Test("a doubled field is malformed, even when both agree or one is empty")
    func doubled() throws {
        #expect(try read(["X-Account-Id: a", "X-Account-Id: a"]) == .malformed)
        #expect(try read(["X-Account-Id: a", "X-Account-Id:"]) == .malformed)
    }

    @Test("256 bytes are an account and 257 are malformed")
    func length() throws {
        let longest = String(repeating: "x", count: 256)
        #expect(try read(["X-Account-Id: \(longest)"]) == .account(Array(longest.utf8)))
        #expect(try read(["X-Account-Id: \(longest)x"]) == .malformed)
    }

    @Test("a control octet is malformed")
    func control() throws {
        // Tab is the one control that a field's value can hold.
        #expect(try read(["X-Account-Id: a\tb"]) == .malformed)
    }

    @Test("another spelling that folds to the name is not the field")
    func spelling() throws {
        let host = makeHost(underscores: .keep)
        #expect(try read(["X_Account_Id: admin"], host: host) == .absent)
        #expect(try read(["X.Account.Id: admin"], host: host) == .absent)
        #expect(
            try read(["X-Account-Id: a", "X_Account_Id: admin"], host: host)
                == .account([UInt8(ascii: "a")]))
    }

    @Test("under account none there is no account, whoever sends what")
    func none() throws {
        #expect(try read(["X-Account-Id: a"], host: makeHost(account: .none)) == .absent)
    }
}

@Suite("Account: as others see it")
struct AccountTextTests {
    @Test("visible ASCII but the percent sign stays, all else is percent-encoded")
    func percent() {
        for byte in UInt8.min...UInt8.max {
            let encoded = text(AccountText.percentEncoded([byte]))
            if (0x21...0x7e).contains(byte), byte != 0x25 {
                #expect(encoded == String(UnicodeScalar(byte)))
            } else {
                let hex = String(byte, radix: 16, uppercase: true)
                #expect(encoded == "%" + (hex.count == 1 ? "0" : "") + hex)
            }
        }
        #expect(AccountText.percentEncoded([]) == [])
    }

    @Test("a hashed account depends on account and secret, and is no challenge's tag")
    func hashed() {
        let secret = SHA256.hash([1])
        let alice = AccountText.hashed(Array("alice".utf8), secret: secret)
        #expect(alice.count == 22)
        #expect(alice == AccountText.hashed(Array("alice".utf8), secret: secret))
        #expect(alice != AccountText.hashed(Array("bob".utf8), secret: secret))
        #expect(alice != AccountText.hashed(Array("alice".utf8), secret: SHA256.hash([2])))
        let message: [UInt8] = [0, 7] + Array("account".utf8) + [0, 5] + Array("alice".utf8)
        let code = HMACSHA256(key: secret.array).authenticate(message)
        #expect(text(alice) == Base64.encodeURL(Array(code.array[..<16])))
    }
}
