import GateBytes
import GateSimulation
import GateStore
import Testing

/// The bytes of ReceiptFormat.swift and of the records that name them, made by another program from
/// their text; zeros at their end are left out.
private enum Golden {
    static let segment =
        "41475354524350310a9d32e500000002000102030405060708090a0b0c0d0e0f00000001000020"
    static let entry1 =
        "41475231a6dc6fd00000000300000000111111111111111111111111111111111111111111111111"
        + "1111111111111111aabbcc"
    static let entry2 =
        "4147523188fbc0370000002300000000111111111111111111111111111111111111111111111111"
        + "11111111111111110102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20"
        + "21"
    static let batch1 =
        "414742316f7179fe000000c600000001000000000000000100000000000000010000000000000000"
        + "02111111111111111111111111111111111111111111111111111111111111111122222222222222"
        + "22222222222222222222222222222222222222222222222222333333333333333333333333333333"
        + "333333333333333333333333333333333300000000000f424000030005616c696365000473686f70"
        + "0100033431320000010000200003000f42f4c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1000f436c"
    static let batch2 =
        "414742317245e3500000005c00000001000000000000000200000000000000020000000000000001"
        + "07111111111111111111111111111111111111111111111111111111111111111103001093c00000"
        + "0100002400230011000f4308"
    static let batch3 =
        "414742311ae8cb760000004e00000001000000000000000300000000000000030000000000000002"
        + "071111111111111111111111111111111111111111111111111111111111111111"

    static func bytes(_ hex: String, filledTo count: Int) -> [UInt8] {
        let bytes = Hex.decode(hex) ?? []
        return bytes + [UInt8](repeating: 0, count: count - bytes.count)
    }

    /// A segment of receipts with the first `count` entries.
    static func receipts(_ count: Int) -> [UInt8] {
        let entries = [bytes(entry1, filledTo: 64), bytes(entry2, filledTo: 96)].prefix(count)
        let used = bytes(segment, filledTo: 512) + entries.joined()
        return used + [UInt8](repeating: 0, count: 8192 - used.count)
    }

    /// The batches of the log, one behind the other.
    static let log = [batch1, batch2, batch3].flatMap { bytes($0, filledTo: 512) }
}

private func receiptsName(_ number: Int) -> String { "receipts-0000000\(number)" }

@Suite("Receipts: apart from the log")
struct ReceiptTests {
    let storage = FaultStorage(seed: 1)
    let first: [UInt8] = [0xaa, 0xbb, 0xcc]
    /// Ends with zeros, as real ones do.
    let second = (1...33).map { UInt8($0) } + [0, 0]

    private func open(now: UInt32 = noon) throws -> Store {
        try Store.open(storage: storage, options: options(now: now))
    }

    private var key: NewKey {
        var key = newKey(1, receipt: first)
        key.refreshAt = noon + 180
        return key
    }

    @Test("a store writes the bytes its format says")
    func golden() throws {
        let store = try open()
        let key = NewKey(
            keyID: bytes32(0x11), publicKey: P256Point(x: bytes32(0x22), y: bytes32(0x33)),
            account: Array("alice".utf8), app: "shop", environment: 0, receipt: first,
            refreshAt: noon + 180, category: 3, bundleVersion: "412")
        #expect(store.enrolNow(key, challenge(0xc1), now: noon) == .enrolled)
        let update = ReceiptUpdate(
            metric: RiskMetric(17, time: noon + 200), refreshAt: noon + 86_400)
        #expect(store.keepNow(second, 0x11, update) == .done)
        #expect(store.updateNow(0x11, ReceiptUpdate(refreshAt: nil)) == .done)
        // The identity is random: what is checked is everything behind it.
        let segment = try #require(storage[receiptsName(1)])
        let expected = Golden.receipts(2)
        #expect(segment[..<8] == expected[..<8])
        #expect(segment[12..<16] == expected[12..<16])
        #expect(segment[32...] == expected[32...])
        let log = try #require(storage[segmentName(1)])
        #expect(Array(log[512..<512 * 4]) == Golden.log)
        let record = try #require(store.key(bytes32(0x11)))
        #expect(record.metric == RiskMetric(17, time: noon + 200))
        #expect(record.refreshAt == nil)
        #expect(store.receiptNow(0x11) == second)
    }

    @Test("a receipt, its metric and its next refresh come back after a crash")
    func restart() throws {
        let store = try open()
        #expect(store.enrolNow(key, challenge(1)) == .enrolled)
        #expect(store.enrolNow(newKey(2), challenge(2)) == .enrolled)
        #expect(store.receiptNow(1) == first)
        #expect(store.receiptNow(2) == nil)
        let update = ReceiptUpdate(metric: RiskMetric(70_000, time: 5), refreshAt: noon + 9)
        #expect(store.keepNow(second, 1, update) == .done)
        let before = store.key(bytes32(1))
        #expect(before?.metric?.value == 65_534)
        storage.cutPower(.nothing)
        let again = try open()
        #expect(again.key(bytes32(1)) == before)
        #expect(again.receiptNow(1) == second)
        #expect(again.updateNow(1, ReceiptUpdate(refreshAt: noon + 10)) == .done)
        #expect(again.key(bytes32(1))?.metric == before?.metric)
        #expect(again.receiptNow(1) == second)
    }

    @Test("the log holds no receipt, however large")
    func apart() throws {
        let store = try open()
        let large = [UInt8](repeating: 0x5a, count: 7000)
        #expect(store.enrolNow(newKey(1, receipt: large), challenge(1)) == .enrolled)
        #expect(store.figures.segments == 1)
        let log = try #require(storage[segmentName(1)])
        #expect(log.count { $0 == 0x5a } < 8)
        #expect(store.receiptNow(1) == large)
    }

    @Test("a record names a place only once the receipt is on disk")
    func order() throws {
        let store = try open()
        #expect(store.enrolNow(newKey(9, receipt: first), challenge(9)) == .enrolled)
        let reply = Reply<EnrolOutcome>()
        store.enrol(key, challenge: challenge(1), keysPerAccount: 0, now: noon, reply: reply.call)
        let syncs = storage.syncs
        store.stepReceipts()
        #expect(storage.syncs == syncs + 1)
        #expect(reply.outcomes.isEmpty)
        storage.cutPower(.nothing)
        // The orphan of the crash is written over by nothing, and read by nobody.
        let again = try open()
        #expect(again.key(bytes32(1)) == nil)
        #expect(again.enrolNow(newKey(1, receipt: second), challenge(1)) == .enrolled)
        #expect(again.receiptNow(1) == second)
        #expect(again.receiptNow(9) == first)
    }

    @Test("receipts that wait are written with one sync, and go on in a new segment when full")
    func segments() throws {
        let store = try open()
        var keys: [UInt8: [UInt8]] = [:]
        for round in 0..<4 {
            let syncs = storage.syncs
            for byte in 1...5 {
                let number = UInt8(round * 5 + byte)
                let receipt = [UInt8](repeating: number, count: 500 + Int(number))
                keys[number] = receipt
                store.enrol(
                    newKey(number, receipt: receipt), challenge: challenge(number),
                    keysPerAccount: 0, now: noon, reply: { _ in })
            }
            store.stepReceipts()
            if round == 1 { #expect(storage.syncs == syncs + 1) }
            store.step()
        }
        #expect(storage.names.contains(receiptsName(2)))
        for (number, receipt) in keys { #expect(store.receiptNow(number) == receipt) }
        storage.kill()
        let again = try open()
        for (number, receipt) in keys { #expect(again.receiptNow(number) == receipt) }
        #expect(again.enrolNow(newKey(77, receipt: first), challenge(77)) == .enrolled)
        for (number, receipt) in keys { #expect(again.receiptNow(number) == receipt) }
        #expect(again.receiptNow(77) == first)
    }

    @Test("nothing is written for an enrolment that is refused, or known already")
    func nothingWritten() throws {
        let store = try open()
        #expect(store.enrolNow(key, challenge(1)) == .enrolled)
        let before = storage[receiptsName(1)]
        #expect(store.enrolNow(newKey(2, receipt: second), challenge(1)) == .challengeSpent)
        #expect(store.enrolNow(newKey(1, receipt: second), challenge(2)) == .alreadyKnown)
        #expect(storage[receiptsName(1)] == before)
        #expect(store.receiptNow(1) == first)
    }

    @Test("an unknown, a revoked and a key that waits have no receipt to change")
    func refused() throws {
        let store = try open()
        let update = ReceiptUpdate(refreshAt: noon)
        #expect(store.updateNow(1, update) == .keyUnknown)
        #expect(store.keepNow(first, 1, update) == .keyUnknown)
        store.enrol(
            newKey(1), challenge: challenge(1), keysPerAccount: 0, now: noon, reply: { _ in })
        let reply = Reply<ReceiptOutcome>()
        store.update(receiptOf: bytes32(1), update, reply: reply.call)
        #expect(reply.outcome == .keyUnknown)
        store.step()
        #expect(store.revokeNow(1) == .revoked)
        #expect(store.updateNow(1, update) == .keyUnknown)
    }

    @Test("where receipts cannot be written clients come again, and requests go on")
    func failed() throws {
        let store = try open()
        #expect(store.enrolNow(newKey(3, receipt: first), challenge(3)) == .enrolled)
        storage.failNext(.sync)
        #expect(store.enrolNow(key, challenge(1)) == .unavailable)
        #expect(!store.isSpent(challenge(1)))
        #expect(store.isReady)
        #expect(store.admitNow(challenge(4), 3, 1) == .admitted(previousCounter: 0))
        // A failed sync is final: nothing is tried again before the next start.
        #expect(store.enrolNow(key, challenge(1)) == .unavailable)
        #expect(!storage.hasRetriedSync)
        #expect(store.keepNow(second, 3, ReceiptUpdate(refreshAt: nil)) == .unavailable)
        #expect(store.receiptNow(3) == first)
        storage.kill()
        let again = try open()
        #expect(again.enrolNow(key, challenge(1)) == .enrolled)
        #expect(again.receiptNow(1) == first)
        #expect(again.receiptNow(3) == first)
    }

    @Test("without space for a segment clients come again until there is some")
    func outOfSpace() throws {
        let store = try open()
        storage.capacity = storage.used
        #expect(store.enrolNow(key, challenge(1)) == .unavailable)
        #expect(store.isReady)
        storage.mend()
        #expect(store.enrolNow(key, challenge(1)) == .enrolled)
        #expect(store.receiptNow(1) == first)
    }

    @Test("a receipt whose file is damaged or gone is not there, and nothing else is missed")
    func damaged() throws {
        let store = try open()
        #expect(store.enrolNow(key, challenge(1)) == .enrolled)
        let whole = try #require(storage[receiptsName(1)])
        for index in 512..<(512 + 64) {
            var bytes = whole
            bytes[index] ^= 1
            storage[receiptsName(1)] = bytes
            #expect(store.receiptNow(1) == nil, "byte \(index)")
        }
        for count in [0, 512, 520, 560, 575] {
            storage[receiptsName(1)] = Array(whole[..<count])
            #expect(store.receiptNow(1) == nil, "cut at \(count)")
        }
        storage.kill()
        storage[receiptsName(1)] = nil
        let again = try open()
        #expect(again.key(bytes32(1))?.hasReceipt == true)
        #expect(again.receiptNow(1) == nil)
        #expect(again.keepNow(second, 1, ReceiptUpdate(refreshAt: nil)) == .done)
        #expect(again.receiptNow(1) == second)
        #expect(storage.names.contains(receiptsName(2)))
    }

    @Test("a file of receipts of another store, or with a damaged header, stops the start")
    func foreign() throws {
        let other = FaultStorage(seed: 2)
        let store = try Store.open(storage: other, options: options())
        #expect(store.enrolNow(key, challenge(1)) == .enrolled)
        let theirs = try #require(other[receiptsName(1)])
        storage[receiptsName(1)] = theirs
        #expect(
            throws: StoreError.corrupted(
                file: "/store/" + receiptsName(1), offset: 16, .misplaced)
        ) { try open() }
        storage.kill()
        storage[receiptsName(1)] = Array(theirs[..<100])
        #expect(
            throws: StoreError.corrupted(file: "/store/" + receiptsName(1), offset: 0, .header)
        ) { try open() }
    }

    @Test("the search for due keys finds each, looks at so many at a time, and begins anew")
    func due() throws {
        let store = try open()
        for byte in 1...40 {
            var key = newKey(UInt8(byte), account: "", receipt: byte == 7 ? [] : [1])
            key.refreshAt = byte == 8 ? nil : noon + UInt32(byte)
            key.app = byte == 9 ? "bank" : "shop"
            #expect(store.enrolNow(key, challenge(UInt8(byte))) == .enrolled)
        }
        #expect(store.revokeNow(10) == .revoked)
        func search(_ now: UInt32, looking: Int = 1000, limit: Int = 1000) -> Set<Bytes32> {
            var found: Set<Bytes32> = []
            var cursor = ReceiptCursor()
            for _ in 0..<1000 {
                let (keys, isAtEnd) = store.dueReceipts(
                    from: &cursor, looking: looking, limit: limit, now: now
                ) { app, environment in app == "shop" && environment == 0 }
                #expect(keys.count <= limit)
                #expect(found.isDisjoint(with: keys))
                found.formUnion(keys)
                if isAtEnd { return found }
            }
            Issue.record("no end")
            return found
        }
        #expect(search(noon) == [])
        #expect(search(noon + 3) == Set([1, 2, 3].map { bytes32($0) }))
        let all = Set((1...40).filter { ![7, 8, 9, 10].contains($0) }.map { bytes32(UInt8($0)) })
        #expect(search(noon + 40) == all)
        #expect(search(noon + 40, looking: 3) == all)
        #expect(search(noon + 40, limit: 2) == all)
        #expect(store.updateNow(1, ReceiptUpdate(refreshAt: noon + 100)) == .done)
        #expect(search(noon + 40) == all.subtracting([bytes32(1)]))
    }

    @Test("a store of the format before is refused, with what to do")
    func olderFormat() throws {
        var meta = try #require(
            { () -> [UInt8]? in
                _ = try? open()
                return storage["meta"]
            }())
        storage.kill()
        meta[15] = 1
        var checksum = CRC32C.checksum(meta, 12..<512)
        for index in (8..<12).reversed() {
            meta[index] = UInt8(truncatingIfNeeded: checksum)
            checksum >>= 8
        }
        storage["meta"] = meta
        let error = StoreError.olderFormat(file: "/store/meta", version: 1)
        #expect(throws: error) { try open() }
        #expect("\(error)".contains("empty directory"))
    }

    @Test("a store with threads of its own answers as one that is turned by hand")
    func threads() throws {
        let store = try Store.open(storage: storage, options: options(writer: .thread))
        let reply = Reply<EnrolOutcome>()
        store.enrol(key, challenge: challenge(1), keysPerAccount: 0, now: noon, reply: reply.call)
        store.close()
        #expect(reply.outcome == .enrolled)
        let again = try open()
        #expect(again.receiptNow(1) == first)
    }
}
