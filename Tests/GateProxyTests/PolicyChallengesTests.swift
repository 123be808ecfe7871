import GateBytes
import GateCrypto
import GateProxy
import GateStore
import Testing

/// A generator that counts: ids differ and are the same in every run.
struct CountingRandom: RandomNumberGenerator {
    var value: UInt64 = 0x0102_0304_0506_0708

    mutating func next() -> UInt64 {
        value &+= 0x9e37_79b9_7f4a_7c15
        return value
    }
}

private let secret = SHA256.hash([1])
private let oldSecret = SHA256.hash([2])
private let scope = ChallengeScope(host: "api.example.com", app: "shop", purpose: "request")
private let account = Array("alice".utf8)
/// Unix milliseconds.
private let now: Int64 = 1_800_000_000_000

private func issue(_ challenges: Challenges = Challenges(current: secret)) -> IssuedChallenge {
    var random = CountingRandom()
    return challenges.issue(
        scope, account: account, lifetime: 300_000, epoch: 7, now: now, using: &random)
}

private func refusal(
    _ text: [UInt8], _ scope: ChallengeScope = scope, account: [UInt8] = account,
    epoch: UInt32 = 7, now: Int64 = now, under challenges: Challenges = Challenges(current: secret)
) -> ChallengeError? {
    do {
        _ = try challenges.open(text, scope, account: account, epoch: epoch, now: now)
        return nil
    } catch {
        return error
    }
}

@Suite("Challenge: issue and open")
struct ChallengeTests {
    @Test("an id is 60 characters of base64url and the text by value 104")
    func sizes() {
        let issued = issue()
        #expect(issued.id.count == 60)
        #expect(issued.value.count == 104)
        let letters = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
        #expect(issued.id.allSatisfy(letters.contains))
        #expect(Array(issued.value.prefix(61)) == issued.id + [UInt8(ascii: ".")])
    }

    @Test("id and bytes are what the protocol says, computed apart")
    func golden() throws {
        let issued = issue()
        func prefixed(_ parts: [[UInt8]]) -> [UInt8] {
            parts.flatMap { [UInt8($0.count >> 8), UInt8($0.count & 255)] + $0 }
        }
        let bound = ["api.example.com", "shop", "request", "alice"].map { Array($0.utf8) }
        let raw = try #require(Base64.decode(issued.id))
        #expect(Array(raw[0..<5]) == [1, 0, 0, 0, 7])
        let expiry = raw[5..<13].reduce(0) { $0 << 8 | Int64($1) }
        #expect(expiry == now + 300_000)
        let tag = HMACSHA256(key: secret.array).authenticate(
            prefixed([Array("tag".utf8), Array(raw[..<29])] + bound))
        #expect(Array(raw[29...]) == Array(tag.array[..<16]))
        let mac = HMACSHA256(key: secret.array).authenticate(prefixed([issued.id] + bound))
        #expect(issued.bytes == mac)
        #expect(Base64.decode(Array(issued.value.dropFirst(61))) == mac.array)
    }

    @Test("what was issued opens in both forms, with one nonce")
    func opens() throws {
        let issued = issue()
        let challenges = Challenges(current: secret)
        let byID = try challenges.open(issued.id, scope, account: account, epoch: 7, now: now)
        let byValue = try challenges.open(
            issued.value, scope, account: account, epoch: 7, now: now)
        #expect(byID.form == .id)
        #expect(byValue.form == .value)
        #expect(byID.bytes == issued.bytes)
        #expect(byValue.bytes == issued.bytes)
        #expect(byID.id == issued.id)
        #expect(byValue.id == issued.id)
        #expect(byID.spent == byValue.spent)
        #expect(byID.spent.expiry == 1_800_000_301)
        let raw = try #require(Base64.decode(issued.id))
        let nonce = raw[13..<29].reduce(into: [UInt8]()) { $0.append($1) }
        var seen: [UInt8] = []
        seen.append(bigEndian: byID.spent.nonceHigh)
        seen.append(bigEndian: byID.spent.nonceLow)
        #expect(seen == nonce)
    }

    @Test("two challenges differ in id and nonce")
    func distinct() {
        var random = CountingRandom()
        let challenges = Challenges(current: secret)
        let all = (0..<50).map { _ in
            challenges.issue(
                scope, account: [], lifetime: 300_000, epoch: 0, now: now, using: &random)
        }
        #expect(Set(all.map(\.id)).count == 50)
        #expect(Set(all.map(\.bytes)).count == 50)
    }

    @Test("a challenge of another host is unknown")
    func otherHost() {
        let other = ChallengeScope(host: "api.example.org", app: "shop", purpose: "request")
        #expect(refusal(issue().id, other) == .unknown)
    }

    @Test("a challenge of another app is unknown")
    func otherApp() {
        let other = ChallengeScope(host: "api.example.com", app: "pos", purpose: "request")
        #expect(refusal(issue().id, other) == .unknown)
    }

    @Test("a challenge for another purpose is unknown")
    func otherPurpose() {
        let other = ChallengeScope(host: "api.example.com", app: "shop", purpose: "revoke")
        #expect(refusal(issue().id, other) == .unknown)
    }

    @Test("a challenge of another account, or of none, is unknown")
    func otherAccount() {
        #expect(refusal(issue().id, account: Array("bob".utf8)) == .unknown)
        #expect(refusal(issue().id, account: []) == .unknown)
    }

    @Test("parts cannot move their border: host and app are not joined")
    func borders() {
        let other = ChallengeScope(host: "api.example.coms", app: "hop", purpose: "request")
        #expect(refusal(issue().id, other) == .unknown)
        let moved = ChallengeScope(host: "api.example.com", app: "shop", purpose: "requesta")
        #expect(refusal(issue().id, moved, account: Array("lice".utf8)) == .unknown)
    }

    @Test("every part is bound in the thirty-two bytes as well as in the tag")
    func boundBytes() {
        var seen: Set<Bytes32> = []
        let scopes = [
            scope, ChallengeScope(host: "b", app: "shop", purpose: "request"),
            ChallengeScope(host: "api.example.com", app: "b", purpose: "request"),
            ChallengeScope(host: "api.example.com", app: "shop", purpose: "b"),
        ]
        for scope in scopes {
            var random = CountingRandom()
            seen.insert(
                Challenges(current: secret).issue(
                    scope, account: account, lifetime: 300_000, epoch: 7, now: now, using: &random
                ).bytes)
        }
        #expect(seen.count == scopes.count)
    }

    @Test("a challenge of another epoch is refused as such")
    func otherEpoch() {
        #expect(refusal(issue().id, epoch: 8) == .epoch)
        #expect(refusal(issue().id, epoch: 6) == .epoch)
    }

    @Test("a challenge is good until its expiry and not at it")
    func expiry() {
        #expect(refusal(issue().id, now: now + 299_999) == nil)
        #expect(refusal(issue().id, now: now + 300_000) == .expired)
        #expect(refusal(issue().value, now: now + 300_000) == .expired)
    }

    @Test("an expiry past what the field holds is the greatest it holds")
    func expiryClamps() throws {
        var random = CountingRandom()
        let issued = Challenges(current: secret).issue(
            scope, account: account, lifetime: .max, epoch: 7, now: now, using: &random)
        let opened = try Challenges(current: secret).open(
            issued.id, scope, account: account, epoch: 7, now: now)
        #expect(opened.spent.expiry == .max)
    }

    @Test("another secret's challenge is unknown")
    func otherSecret() {
        #expect(refusal(issue().id, under: Challenges(current: oldSecret)) == .unknown)
    }

    @Test("the previous secret's challenges are good until its end, in both forms")
    func previousSecret() {
        let issued = issue(Challenges(current: oldSecret))
        let rotated = Challenges(current: secret, previous: oldSecret, previousUntil: now + 100)
        #expect(refusal(issued.id, under: rotated) == nil)
        #expect(refusal(issued.value, under: rotated) == nil)
        #expect(refusal(issued.id, now: now + 99, under: rotated) == nil)
        #expect(refusal(issued.id, now: now + 100, under: rotated) == .unknown)
        #expect(refusal(issue().id, under: rotated) == nil)
    }

    @Test("the store's secrets are taken as they are")
    func storeSecrets() {
        let issued = issue(Challenges(current: oldSecret))
        let alone = Challenges(StoreSecrets(current: secret))
        #expect(refusal(issue().id, under: alone) == nil)
        #expect(refusal(issued.id, under: alone) == .unknown)
        let both = Challenges(
            StoreSecrets(
                current: secret, previous: .init(secret: oldSecret, until: 1_800_000_009)))
        #expect(refusal(issued.id, now: now + 8_999, under: both) == nil)
        #expect(refusal(issued.id, now: now + 9_000, under: both) == .unknown)
    }

    @Test("every other character in every place of an id is refused")
    func flippedID() {
        let issued = issue()
        for index in issued.id.indices {
            for byte in UInt8.min...UInt8.max where byte != issued.id[index] {
                var id = issued.id
                id[index] = byte
                if refusal(id) != .unknown { Issue.record("place \(index), byte \(byte)") }
            }
        }
    }

    @Test("every other character in every place of a text by value is refused")
    func flippedValue() {
        let issued = issue()
        for index in issued.value.indices {
            for byte in UInt8.min...UInt8.max where byte != issued.value[index] {
                var value = issued.value
                value[index] = byte
                if refusal(value) != .unknown { Issue.record("place \(index), byte \(byte)") }
            }
        }
    }

    @Test("an id or a text by value cut anywhere is refused; so is one with more behind it")
    func cut() {
        let issued = issue()
        for length in 0..<issued.value.count where length != issued.id.count {
            #expect(refusal(Array(issued.value[..<length])) == .unknown)
        }
        for tail in ["A", "=", ".", "..", " "] {
            #expect(refusal(issued.id + Array(tail.utf8)) == .unknown)
            #expect(refusal(issued.value + Array(tail.utf8)) == .unknown)
        }
        #expect(refusal([UInt8](repeating: 65, count: 100_000)) == .unknown)
    }

    @Test("an id in the other alphabet or with padding is refused: it has one spelling")
    func spelling() {
        var random = CountingRandom()
        let challenges = Challenges(current: secret)
        var tried = 0
        for _ in 0..<40 {
            let issued = challenges.issue(
                scope, account: account, lifetime: 300_000, epoch: 7, now: now, using: &random)
            let swapped = issued.id.map {
                $0 == UInt8(ascii: "-") ? UInt8(ascii: "+") : $0 == UInt8(ascii: "_") ? 47 : $0
            }
            guard swapped != issued.id else { continue }
            tried += 1
            #expect(refusal(swapped) == .unknown)
            #expect(throws: ChallengeError.unknown) {
                try challenges.open(id: swapped, scope, account: account, epoch: 7, now: now)
            }
        }
        #expect(tried > 0)
    }

    @Test("a version this gate does not know is refused although its tag holds")
    func version() {
        var bytes: [UInt8] = [2]
        bytes.append(bigEndian: UInt32(7))
        bytes.append(bigEndian: UInt64(now + 300_000))
        bytes.append(bigEndian: UInt64(1))
        bytes.append(bigEndian: UInt64(2))
        func prefixed(_ parts: [[UInt8]]) -> [UInt8] {
            parts.flatMap { [UInt8($0.count >> 8), UInt8($0.count & 255)] + $0 }
        }
        let bound = ["api.example.com", "shop", "request", "alice"].map { Array($0.utf8) }
        let tag = HMACSHA256(key: secret.array).authenticate(
            prefixed([Array("tag".utf8), bytes] + bound))
        #expect(refusal(Array(Base64.encodeURL(bytes + tag.array[..<16]).utf8)) == .unknown)
        bytes[0] = 1
        let good = HMACSHA256(key: secret.array).authenticate(
            prefixed([Array("tag".utf8), bytes] + bound))
        #expect(refusal(Array(Base64.encodeURL(bytes + good.array[..<16]).utf8)) == nil)
    }

    @Test("bytes beside an id must be its own, and thirty-two")
    func presentedBytes() throws {
        let issued = issue()
        let challenges = Challenges(current: secret)
        func open(_ bytes: [UInt8]) throws {
            _ = try challenges.open(
                id: issued.id, bytes: bytes, scope, account: account, epoch: 7, now: now)
        }
        try open(issued.bytes.array)
        for index in 0..<32 {
            var bytes = issued.bytes.array
            bytes[index] ^= 1
            #expect(throws: ChallengeError.unknown) { try open(bytes) }
        }
        for length in [0, 1, 31, 33, 64] {
            #expect(throws: ChallengeError.unknown) {
                try open([UInt8](repeating: 0, count: length))
            }
        }
        #expect(throws: ChallengeError.unknown) { try open(issued.bytes.array + [0]) }
    }

    @Test("an attestation hashes bytes, their text, or the text by value, as form and app say")
    func attestationHash() throws {
        let issued = issue()
        let challenges = Challenges(current: secret)
        let byID = try challenges.open(issued.id, scope, account: account, epoch: 7, now: now)
        let byValue = try challenges.open(
            issued.value, scope, account: account, epoch: 7, now: now)
        #expect(byID.attestationHash(isTextHashed: false) == SHA256.hash(issued.bytes.array))
        let text = Array(Base64.encode(issued.bytes.array).utf8)
        #expect(byID.attestationHash(isTextHashed: true) == SHA256.hash(text))
        #expect(byValue.attestationHash(isTextHashed: false) == SHA256.hash(issued.value))
        #expect(byValue.attestationHash(isTextHashed: true) == SHA256.hash(issued.value))
    }

    @Test("each way of not being good has its reason")
    func reasons() {
        #expect(ChallengeError.unknown.reason == .challengeUnknown)
        #expect(ChallengeError.expired.reason == .challengeExpired)
        #expect(ChallengeError.epoch.reason == .challengeEpoch)
    }
}
