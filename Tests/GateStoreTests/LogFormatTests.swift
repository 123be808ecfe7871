import GateBytes
import GateSimulation
import GateStore
import Testing

/// The bytes of LogFormat.swift, made by another program from its text; zeros at their end are left
/// out.
private enum Golden {
    static let metaBefore =
        "414753544d45544133fb4fb300000002000102030405060708090a0b0c0d0e0f0000000177359400"
        + "00000000000000005e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e"
        + "0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d"
    static let metaAfter =
        "414753544d455441ae49aa1100000002000102030405060708090a0b0c0d0e0f0000000177359400"
        + "00000000000000015e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e"
        + "0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d"
    static let segment =
        "414753544c4f4731972fd74700000002000102030405060708090a0b0c0d0e0f0000000100002000"
        + "0000000000000001"

    static let batch1 =
        "414742316f7179fe000000c600000001000000000000000100000000000000010000000000000000"
        + "02111111111111111111111111111111111111111111111111111111111111111122222222222222"
        + "22222222222222222222222222222222222222222222222222333333333333333333333333333333"
        + "333333333333333333333333333333333300000000000f424000030005616c696365000473686f70"
        + "0100033431320000010000200003000f42f4c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1000f436c"
    static let batch2 =
        "41474231c90b6283000000b000000001000000000000000200000000000000050000000000000001"
        + "01111111111111111111111111111111111111111111111111111111111111111100000007000f42"
        + "4102c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2000f436d011111111111111111111111111111111111"
        + "11111111111111111111111111111100000009000f42420004c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3"
        + "c3000f436e05000f4243010003626f62"
    static let batch3 =
        "41474231806a4e7b0000010500000001000000000000000600000000000000080000000000000005"
        + "05000f4244000003626f620111111111111111111111111111111111111111111111111111111111"
        + "111111110000000a000f424603c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4000f436f02444444444444"
        + "44444444444444444444444444444444444444444444444444445555555555555555555555555555"
        + "55555555555555555555555555555555555566666666666666666666666666666666666666666666"
        + "6666666666666666666600000004000f424001ff0000000462616e6b000000000000000000000000"
        + "00c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5000f4370"
    static let batch4 =
        "41474231dfdc6e5c0000004d00000001000000000000000900000000000000090000000000000008"
        + "034444444444444444444444444444444444444444444444444444444444444444000f4245"

    static let snapshotHeader =
        "41475354534e5031048fbec600000002000102030405060708090a0b0c0d0e0f00000001000f424a"
        + "000000000000000b"
    static let snapshotBatch =
        "41474231d98dacdc000001af00000001000000000000000100000000000000040000000000000000"
        + "01111111111111111111111111111111111111111111111111111111111111111122222222222222"
        + "22222222222222222222222222222222222222222222222222333333333333333333333333333333"
        + "33333333333333333333333333333333330000000a000f4240000f42460000000100000100002000"
        + "03ffff00000000000f42f40003030005616c696365000473686f7000033431320144444444444444"
        + "44444444444444444444444444444444444444444444444444555555555555555555555555555555"
        + "55555555555555555555555555555555556666666666666666666666666666666666666666666666"
        + "66666666666666666600000004000f4240000f4240000000010000000000000000ffff0000000000"
        + "00000001ff010000000462616e6b0300056361726f6c0200000f4300000005c1c1c1c1c1c1c1c1c1"
        + "c1c1c1c1c1c1c1c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c4"
        + "c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5"
    static let snapshotEnd =
        "4147423196c361030000003d00000001000000000000000500000000000000050000000000000000"
        + "04000000000000000a00000f340000000000000002"

    /// The snapshot of all that the log holds, and carol blocked by a tenth record.
    static let snapshot: [UInt8] = {
        let used = bytes(snapshotHeader) + bytes(snapshotBatch) + bytes(snapshotEnd)
        return used + [UInt8](repeating: 0, count: 8192 - used.count)
    }()

    static func bytes(_ hex: String, filledTo count: Int = 512) -> [UInt8] {
        let bytes = Hex.decode(hex) ?? []
        return bytes + [UInt8](repeating: 0, count: count - bytes.count)
    }

    /// A whole segment of 8192 bytes with the first `batches` batches.
    static func log(batches count: Int) -> [UInt8] {
        let batches = [batch1, batch2, batch3, batch4].prefix(count).map { bytes($0) }
        let used = bytes(segment) + batches.joined()
        return used + [UInt8](repeating: 0, count: 8192 - used.count)
    }
}

@Suite("Log format: golden bytes") struct LogFormatTests {
    @Test("a store writes the bytes its format says")
    func written() throws {
        let storage = FaultStorage()
        storage["meta"] = Golden.bytes(Golden.metaBefore)
        let store = try Store.open(storage: storage, options: options())
        #expect(storage["meta"] == Golden.bytes(Golden.metaAfter))
        #expect(storage[segmentName(1)] == Golden.log(batches: 0))

        var key = NewKey(
            keyID: bytes32(0x11), publicKey: P256Point(x: bytes32(0x22), y: bytes32(0x33)),
            account: Array("alice".utf8), app: "shop", environment: 0,
            receipt: [0xaa, 0xbb, 0xcc], refreshAt: noon + 180, category: 3,
            bundleVersion: "412")
        #expect(store.enrolNow(key, challenge(0xc1), now: noon) == .enrolled)
        #expect(storage[segmentName(1)] == Golden.log(batches: 1))

        store.admit(
            challenge: challenge(0xc2, expiry: noon + 301), keyID: bytes32(0x11), counter: 7,
            now: noon + 1, reply: { _ in })
        store.admit(
            challenge: nil, keyID: bytes32(0x11), counter: 9, now: noon + 2, reply: { _ in })
        store.enrol(
            key, challenge: challenge(0xc3, expiry: noon + 302), keysPerAccount: 0, now: noon,
            reply: { _ in })
        #expect(store.blockNow("bob", now: noon + 3) == .done)
        #expect(storage[segmentName(1)] == Golden.log(batches: 2))

        store.block(
            account: Array("bob".utf8), isBlocked: false, now: noon + 4, reply: { _ in })
        store.admit(
            challenge: challenge(0xc4, expiry: noon + 303), keyID: bytes32(0x11), counter: 10,
            revoking: true, now: noon + 6, reply: { _ in })
        key = NewKey(
            keyID: bytes32(0x44), publicKey: P256Point(x: bytes32(0x55), y: bytes32(0x66)),
            account: [], app: "bank", environment: 1, signCounter: 4)
        #expect(store.enrolNow(key, challenge(0xc5, expiry: noon + 304)) == .enrolled)
        #expect(storage[segmentName(1)] == Golden.log(batches: 3))

        #expect(store.revokeNow(0x44, now: noon + 5) == .revoked)
        #expect(storage[segmentName(1)] == Golden.log(batches: 4))
        #expect(store.figures.lastSequence == 9)
    }

    @Test("a store reads the bytes its format says")
    func read() throws {
        let storage = FaultStorage()
        storage["meta"] = Golden.bytes(Golden.metaAfter)
        storage[segmentName(1)] = Golden.log(batches: 4)
        let notices = Notices()
        let store = try Store.open(storage: storage, options: options(), log: notices.log)
        #expect(notices.all.isEmpty)
        #expect(store.epoch == 1)
        #expect(
            store.secrets
                == StoreSecrets(
                    current: bytes32(0x5e),
                    previous: StoreSecrets.Previous(secret: bytes32(0x0d), until: 2_000_000_000)))
        let first = try #require(store.key(bytes32(0x11)))
        #expect(
            first
                == KeyRecord(
                    keyID: bytes32(0x11), publicKey: P256Point(x: bytes32(0x22), y: bytes32(0x33)),
                    account: Array("alice".utf8), app: "shop", environment: 0, signCounter: 10,
                    isRevoked: true, enrolledAt: noon, lastUsedAt: noon + 6, challengeEpoch: 1,
                    category: 3, bundleVersion: "412", receipt: first.receipt,
                    refreshAt: noon + 180))
        #expect(first.hasReceipt)
        let second = try #require(store.key(bytes32(0x44)))
        #expect(
            second
                == KeyRecord(
                    keyID: bytes32(0x44), publicKey: P256Point(x: bytes32(0x55), y: bytes32(0x66)),
                    account: [], app: "bank", environment: 1, signCounter: 4, isRevoked: true,
                    enrolledAt: noon, lastUsedAt: noon, challengeEpoch: 1, category: nil,
                    bundleVersion: nil))
        for number in 0..<5 {
            let spent = challenge(0xc1 + UInt8(number), expiry: noon + 300 + UInt32(number))
            #expect(store.isSpent(spent))
        }
        #expect(!store.isBlocked(account: Array("bob".utf8)))
        #expect(store.figures.lastSequence == 9)
        #expect(store.admitNow(challenge(0xc2, expiry: noon + 301), 0x11, 11) == .challengeSpent)
    }

    @Test("a store goes on behind the last batch of an earlier start")
    func continued() throws {
        let storage = FaultStorage()
        storage["meta"] = Golden.bytes(Golden.metaAfter)
        storage[segmentName(1)] = Golden.log(batches: 3)
        let store = try Store.open(storage: storage, options: options())
        #expect(store.revokeNow(0x44, now: noon + 5) == .revoked)
        #expect(storage[segmentName(1)] == Golden.log(batches: 4))
        #expect(storage.names == [segmentName(1), "meta"])
    }

    @Test("a store writes the snapshot its format says, and reads it back without the log")
    func snapshot() throws {
        let storage = FaultStorage()
        storage["meta"] = Golden.bytes(Golden.metaAfter)
        storage[segmentName(1)] = Golden.log(batches: 4)
        let store = try Store.open(storage: storage, options: options(shards: 1))
        #expect(store.blockNow("carol", now: noon + 7) == .done)
        let keys = [store.key(bytes32(0x11)), store.key(bytes32(0x44))]
        while store.stepSnapshot(now: noon + 10) {}
        #expect(storage[snapshotName(11)] == Golden.snapshot)
        #expect(store.figures.snapshotAt == noon + 10)
        store.close()

        let again = FaultStorage()
        again["meta"] = storage["meta"]
        again[segmentName(1)] = storage[segmentName(1)]
        again[snapshotName(11)] = Golden.snapshot
        // Of a segment before the snapshot, numbers and checksums are read, and nothing applied.
        let read = try Store.open(storage: again, options: options())
        #expect([read.key(bytes32(0x11)), read.key(bytes32(0x44))] == keys)
        #expect(read.isBlocked(account: Array("carol".utf8)))
        #expect(!read.isBlocked(account: Array("bob".utf8)))
        for number in 0..<5 {
            #expect(read.isSpent(challenge(0xc1 + UInt8(number), expiry: noon + 300)))
        }
        #expect(read.figures.spentChallenges == 5)
        #expect(read.figures.lastSequence == 10)
    }

    @Test("a segment that the meta file does not name yet is named by the next start")
    func unnamedSegment() throws {
        let storage = FaultStorage()
        storage["meta"] = Golden.bytes(Golden.metaBefore)
        storage[segmentName(1)] = Golden.log(batches: 2)
        let store = try Store.open(storage: storage, options: options())
        #expect(storage["meta"] == Golden.bytes(Golden.metaAfter))
        #expect(storage[segmentName(1)] == Golden.log(batches: 2))
        #expect(store.figures.lastSequence == 5)
    }

    @Test("replay is idempotent: what a record did once it does not do again")
    func idempotent() throws {
        let storage = FaultStorage()
        storage["meta"] = Golden.bytes(Golden.metaAfter)
        storage[segmentName(1)] = Golden.log(batches: 4)
        let store = try Store.open(storage: storage, options: options())
        let before = store.key(bytes32(0x11))
        let figures = store.figures
        store.close()
        let again = try Store.open(storage: storage, options: options())
        #expect(again.key(bytes32(0x11)) == before)
        #expect(again.figures.keys == figures.keys)
        #expect(again.figures.spentChallenges == figures.spentChallenges)
        #expect(again.figures.accounts == figures.accounts)
        #expect(storage[segmentName(1)] == Golden.log(batches: 4))
    }

    @Test("a meta file cut at any byte, or with any bit flipped, is refused")
    func damagedMeta() throws {
        let whole = Golden.bytes(Golden.metaAfter)
        for count in 0..<whole.count {
            #expect(refusal(meta: Array(whole[..<count])) == .header, "cut at \(count)")
        }
        #expect(refusal(meta: whole + [0]) == .header)
        for index in 0..<whole.count {
            var bytes = whole
            bytes[index] ^= 1 << UInt8(index % 8)
            #expect(refusal(meta: bytes) != nil, "flip at \(index)")
        }
    }

    private func refusal(meta: [UInt8]) -> StoreError.Damage? {
        let storage = FaultStorage()
        storage["meta"] = meta
        storage[segmentName(1)] = Golden.log(batches: 2)
        do {
            _ = try Store.open(storage: storage, options: options())
            return nil
        } catch .corrupted(let file, let offset, let damage) {
            return file == "/store/meta" && offset == 0 ? damage : nil
        } catch .newerFormat {
            return .header
        } catch {
            return nil
        }
    }
}
