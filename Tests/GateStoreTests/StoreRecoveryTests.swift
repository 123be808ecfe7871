import GateBytes
import GateSimulation
import GateStore
import Testing

/// A small history: one key and so many admits, one batch each.
private struct History {
    /// Bytes of each batch: none is longer than a block here, but for the first.
    static let enrolments = 1
    let storage = FaultStorage(seed: 7)
    let admits: Int

    init(admits: Int, segmentBytes: Int = 4096) throws {
        self.admits = admits
        let store = try Store.open(storage: storage, options: options(segmentBytes: segmentBytes))
        #expect(store.enrolNow(newKey(1), challenge(number: 0)) == .enrolled)
        for number in 1...admits {
            #expect(store.admitNow(challenge(number: number), 1, UInt32(number)) != nil)
        }
        storage.kill()
    }

    /// How many records `store` kept; nil when it holds anything but a beginning of the history.
    func kept(_ store: Store) -> Int? {
        let last = Int(store.figures.lastSequence)
        guard last <= admits + 1 else { return nil }
        let key = store.key(bytes32(1))
        guard last > 0 else { return key == nil && store.figures.spentChallenges == 0 ? 0 : nil }
        guard key?.signCounter == UInt32(last - 1) else { return nil }
        for number in 0...admits {
            guard store.isSpent(challenge(number: number)) == (number < last) else { return nil }
        }
        return last
    }
}

@Suite("Store: recovery") struct StoreRecoveryTests {
    @Test("a log cut at every byte keeps a beginning of it, says so, and goes on")
    func cutEverywhere() throws {
        let history = try History(admits: 5)
        let name = segmentName(1)
        let whole = try #require(history.storage[name])
        for count in 0..<whole.count {
            let storage = history.storage.copy()
            storage[name] = Array(whole[..<count])
            let notices = Notices()
            guard count >= 512 else {
                #expect(throws: StoreError.corrupted(file: "/store/" + name, offset: 0, .header)) {
                    try Store.open(storage: storage, options: options(segmentBytes: 4096))
                }
                continue
            }
            let store = try Store.open(
                storage: storage, options: options(segmentBytes: 4096), log: notices.log)
            let batches = min((count - 512) / 512, 6)
            #expect(history.kept(store) == batches, "cut at \(count)")
            let notice = try #require(notices.all.first)
            guard case .tornTail(let file, let offset, _, let last) = notice else {
                Issue.record("expected a torn tail, got \(notice)")
                continue
            }
            #expect(file == "/store/" + name)
            #expect(offset == 512 + batches * 512)
            #expect(last == UInt64(batches))
            let goesOn =
                batches == 0
                ? store.enrolNow(newKey(1), challenge(0xaa)) == .enrolled
                : store.admitNow(challenge(0xaa), 1, 100)
                    == .admitted(
                        previousCounter: UInt32(batches - 1))
            #expect(goesOn, "cut at \(count)")
            storage.cutPower(.nothing)
            let again = try Store.open(storage: storage, options: options(segmentBytes: 4096))
            #expect(again.figures.lastSequence == UInt64(batches + 1), "cut at \(count)")
            #expect(again.isSpent(challenge(0xaa)))
        }
    }

    @Test("a log with any bit flipped is refused, or keeps all but its last batch")
    func flippedEverywhere() throws {
        let history = try History(admits: 5)
        let name = segmentName(1)
        let whole = try #require(history.storage[name])
        for index in 0..<whole.count {
            let storage = history.storage.copy()
            var bytes = whole
            bytes[index] ^= 1 << UInt8(index % 8)
            storage[name] = bytes
            let notices = Notices()
            do {
                let store = try Store.open(
                    storage: storage, options: options(segmentBytes: 4096), log: notices.log)
                let kept = try #require(history.kept(store), "flip at \(index)")
                #expect(kept >= 5, "flip at \(index)")
                #expect(index >= 512 + 5 * 512, "flip at \(index) was not seen")
                #expect(notices.all.count == 2, "flip at \(index)")
                #expect(store.epoch == noon, "flip at \(index)")
            } catch StoreError.corrupted(let file, let offset, let damage) {
                #expect(file == "/store/" + name)
                #expect(offset == index / 512 * 512 || damage == .header, "flip at \(index)")
                #expect(index < 512 + 5 * 512, "flip at \(index)")
                if index >= 512 {
                    let sequence = UInt64(index / 512)
                    #expect(damage == .batch(sequence: sequence, provenAt: offset + 512))
                }
            } catch StoreError.newerFormat {
                #expect((12..<16).contains(index))
            }
        }
    }

    @Test("a segment with any bit flipped is refused when another follows it")
    func flippedBeforeTheLast() throws {
        let history = try History(admits: 9)
        #expect(history.storage.names == [segmentName(1), segmentName(8), "meta"])
        let name = segmentName(1)
        let whole = try #require(history.storage[name])
        for index in 0..<whole.count {
            let storage = history.storage.copy()
            storage[name]?[index] ^= 0x10
            #expect(throws: StoreError.self, "flip at \(index)") {
                try Store.open(storage: storage, options: options(segmentBytes: 4096))
            }
        }
        let storage = history.storage.copy()
        storage[name] = Array(whole[..<3584])
        #expect(
            throws: StoreError.corrupted(
                file: "/store/" + name, offset: 3584, .sequence(expected: 7, found: 8))
        ) {
            try Store.open(storage: storage, options: options(segmentBytes: 4096))
        }
    }

    @Test("a torn tail is dropped for good, also when its bytes come back")
    func tornTailStays() throws {
        let history = try History(admits: 5)
        let storage = history.storage.copy()
        let name = segmentName(1)
        let whole = try #require(storage[name])
        storage[name]?[512 + 5 * 512 + 60] ^= 1
        let store = try Store.open(storage: storage, options: options(segmentBytes: 4096))
        #expect(store.admitNow(challenge(0xaa), 1, 50) == .admitted(previousCounter: 4))
        store.close()
        storage[name] = whole
        let notices = Notices()
        let again = try Store.open(
            storage: storage, options: options(segmentBytes: 4096), log: notices.log)
        #expect(notices.all.isEmpty)
        #expect(storage.names == [name, segmentName(6), "meta"])
        #expect(again.key(bytes32(1))?.signCounter == 50)
        #expect(!again.isSpent(challenge(number: 5)))
        #expect(again.isSpent(challenge(0xaa)))
    }

    @Test("missing segments are refused by name", arguments: [1, 8, 15])
    func missingSegment(_ first: Int) throws {
        let history = try History(admits: 17)
        let storage = history.storage.copy()
        #expect(storage.names.count == 4)
        storage[segmentName(first)] = nil
        let expected: StoreError =
            first == 8
            ? .corrupted(
                file: "/store/" + segmentName(1), offset: 4096, .sequence(expected: 8, found: 15))
            : .segmentMissing(file: "/store/" + segmentName(first))
        #expect(throws: expected) {
            try Store.open(storage: storage, options: options(segmentBytes: 4096))
        }
        #expect(throws: StoreError.self, "and the lock was given back") {
            try Store.open(storage: storage, options: options(segmentBytes: 4096))
        }
    }

    @Test("a log whose every segment is gone is refused")
    func missingLog() throws {
        let storage = try History(admits: 1).storage
        storage[segmentName(1)] = nil
        #expect(throws: StoreError.segmentMissing(file: "/store/" + segmentName(1))) {
            try Store.open(storage: storage, options: options())
        }
    }

    @Test("a log without its meta file is refused")
    func missingMeta() throws {
        let storage = try History(admits: 1).storage
        storage["meta"] = nil
        #expect(throws: StoreError.metaMissing(file: "/store/meta")) {
            try Store.open(storage: storage, options: options())
        }
    }

    @Test("a segment of another store is refused")
    func foreignSegment() throws {
        let one = try History(admits: 1).storage
        let other = try History(admits: 1).storage
        one[segmentName(1)] = other[segmentName(1)]
        #expect(
            throws: StoreError.corrupted(
                file: "/store/" + segmentName(1), offset: 16, .misplaced)
        ) {
            try Store.open(storage: one, options: options(segmentBytes: 4096))
        }
    }

    @Test("a segment under another's name is refused")
    func renamedSegment() throws {
        let storage = try History(admits: 9).storage
        storage[segmentName(8)] = storage[segmentName(1)]
        #expect(
            throws: StoreError.corrupted(
                file: "/store/" + segmentName(8), offset: 16, .misplaced)
        ) {
            try Store.open(storage: storage, options: options(segmentBytes: 4096))
        }
    }

    @Test(
        "a file of a newer format is refused with its version", arguments: ["meta", segmentName(1)])
    func newerFormat(_ name: String) throws {
        let storage = try History(admits: 1).storage
        storage[name]?[15] = 3
        #expect(throws: StoreError.newerFormat(file: "/store/" + name, version: 3)) {
            try Store.open(storage: storage, options: options(segmentBytes: 4096))
        }
    }

    @Test("a segment grown beyond its size is refused")
    func grownSegment() throws {
        let storage = try History(admits: 1).storage
        storage[segmentName(1)]?.append(0)
        #expect(throws: StoreError.self) {
            try Store.open(storage: storage, options: options(segmentBytes: 4096))
        }
    }

    @Test("records that follow from none before them are refused, valid checksum or not")
    func impossibleRecord() throws {
        let storage = try History(admits: 2).storage
        let segment = try #require(storage[segmentName(1)])
        // Batch 2, sealed again under the first place in the sequence: an admit without its key.
        var batch = Array(segment[1024..<1536])
        batch[23] = 1
        batch[31] = 1
        batch[39] = 0
        seal(&batch)
        storage[segmentName(1)]?.replaceSubrange(512..<1024, with: batch)
        #expect(
            throws: StoreError.corrupted(
                file: "/store/" + segmentName(1), offset: 552, .record(sequence: 1))
        ) {
            try Store.open(storage: storage, options: options(segmentBytes: 4096))
        }
    }

    @Test("a batch with an unknown record, or more than its records, is refused", arguments: 0..<3)
    func unknownRecord(_ part: Int) throws {
        let storage = try History(admits: 2).storage
        let segment = try #require(storage[segmentName(1)])
        var batch = Array(segment[1024..<1536])
        switch part {
        case 0: batch[40] = 9
        case 1: batch[11] += 1
        default: batch[31] += 1
        }
        seal(&batch)
        storage[segmentName(1)]?.replaceSubrange(1024..<1536, with: batch)
        #expect {
            try Store.open(storage: storage, options: options(segmentBytes: 4096))
        } throws: { error in
            guard case .corrupted(_, _, .record) = error as? StoreError else { return false }
            return true
        }
    }

    @Test("a batch at another's place is not read as the next", arguments: [2, 5])
    func misplacedBatch(_ other: Int) throws {
        let history = try History(admits: 5)
        let storage = history.storage
        let segment = try #require(storage[segmentName(1)])
        // Batch 4 is overwritten by an earlier or a later one, and batch 5 shows that it was
        // synced.
        storage[segmentName(1)]?.replaceSubrange(
            2048..<2560, with: segment[other * 512..<other * 512 + 512])
        let proof = other == 5 ? 2048 : 2560
        #expect(
            throws: StoreError.corrupted(
                file: "/store/" + segmentName(1), offset: 2048,
                .batch(sequence: 4, provenAt: proof))
        ) {
            try Store.open(storage: storage, options: options(segmentBytes: 4096))
        }
    }

    @Test("a later batch that does not know the missing one as synced is torn with it")
    func unprovenBatch() throws {
        let history = try History(admits: 5)
        let storage = history.storage
        let segment = try #require(storage[segmentName(1)])
        var last = Array(segment[3072..<3584])
        last[39] = 4
        seal(&last)
        storage[segmentName(1)]?.replaceSubrange(3072..<3584, with: last)
        storage[segmentName(1)]?[2600] ^= 1
        let notices = Notices()
        let store = try Store.open(
            storage: storage, options: options(segmentBytes: 4096), log: notices.log)
        #expect(history.kept(store) == 4)
        #expect(
            notices.all == [
                .tornTail(
                    file: "/store/" + segmentName(1), offset: 2560, bytes: 512 + 102,
                    lastSequence: 4),
                .epochMoved(.tornTail, from: 1, to: noon),
            ])
        #expect(store.admitNow(challenge(0xaa), 1, 9) == .admitted(previousCounter: 3))
    }

    @Test("a batch whose numbers are out of order is no batch", arguments: 0..<3)
    func disorderedBatch(_ part: Int) throws {
        let storage = try History(admits: 2).storage
        let segment = try #require(storage[segmentName(1)])
        var batch = Array(segment[1536..<2048])
        switch part {
        case 0:  // the last number before the first, and no record
            batch[11] = 40
            batch[31] = 2
        case 1: batch[39] = 3  // knows itself as synced
        default: batch[11] = 39  // shorter than its header
        }
        seal(&batch)
        storage[segmentName(1)]?.replaceSubrange(1536..<2048, with: batch)
        let notices = Notices()
        let store = try Store.open(
            storage: storage, options: options(segmentBytes: 4096), log: notices.log)
        #expect(store.figures.lastSequence == 2)
        #expect(notices.all.count == 2)
    }

    @Test("bytes whose sync failed are written and synced again by the next start")
    func failedSyncIsMadeGood() throws {
        for seed: UInt64 in 0..<20 {
            let storage = FaultStorage(seed: seed)
            let store = try Store.open(storage: storage, options: options())
            #expect(store.enrolNow(newKey(1), challenge(1)) == .enrolled)
            storage.failNext(.sync)
            #expect(store.admitNow(challenge(2), 1, 5) == .unavailable)
            storage.kill()
            let again = try Store.open(storage: storage, options: options())
            #expect(again.key(bytes32(1))?.signCounter == 5)
            storage.cutPower(.nothing)
            let last = try Store.open(storage: storage, options: options())
            #expect(last.key(bytes32(1))?.signCounter == 5, "seed \(seed)")
        }
    }

    @Test("half-made files of an earlier start are removed")
    func halfMadeFiles() throws {
        let storage = try History(admits: 1).storage
        storage["segment.tmp"] = [1, 2, 3]
        storage["meta.tmp"] = [1, 2, 3]
        let store = try Store.open(storage: storage, options: options(segmentBytes: 4096))
        #expect(storage.names == [segmentName(1), "meta"])
        #expect(store.key(bytes32(1)) != nil)
    }

    @Test("the secret is made once and kept")
    func secret() throws {
        let storage = FaultStorage()
        let notices = Notices()
        let store = try Store.open(storage: storage, options: options(), log: notices.log)
        #expect(notices.all == [.created(directory: "/store")])
        let secrets = store.secrets
        #expect(secrets.current != Bytes32())
        #expect(secrets.previous == nil)
        store.close()
        #expect(try Store.open(storage: storage, options: options()).secrets == secrets)
        let other = try Store.open(storage: FaultStorage(), options: options())
        #expect(other.secrets != secrets)
    }

    @Test("secrets are not printed, by themselves or in a store")
    func secretsStayInside() throws {
        let store = try Store.open(storage: FaultStorage(), options: options())
        var text = ""
        dump(store, to: &text)
        dump(store.secrets, to: &text)
        text += "\(store.secrets) \(String(reflecting: store.secrets)) \(store)"
        #expect(text.contains("one secret"))
        #expect(!text.contains("words") && !text.contains("current"))
    }

    @Test("a refusal names file, offset and what to do")
    func words() {
        let corrupted = StoreError.corrupted(
            file: "/store/log-1", offset: 1024, .batch(sequence: 2, provenAt: 1536))
        #expect(
            corrupted.description
                == "/store/log-1: offset 1024: record 2 is unreadable, and offset 1536 shows that it "
                + "had been synced; the store was left as it is: restore the directory from a backup, "
                + "or see attestgate store check and attestgate store repair --to DIR, which writes "
                + "a copy")
        #expect(
            StoreError.locked(directory: "/store", pid: 17).description
                == "/store: in use by process 17; stop it, or give this gate a directory of its own"
        )
        #expect(
            StoreNotice.tornTail(file: "/store/log-1", offset: 512, bytes: 7, lastSequence: 3)
                .description
                == "/store/log-1: offset 512: torn tail of 7 bytes dropped, last record 3")
    }

    /// Puts the right checksum into a batch of one block.
    private func seal(_ batch: inout [UInt8]) {
        let checksum = CRC32C.checksum(batch, 8..<512)
        for index in 0..<4 {
            batch[4 + index] = UInt8(truncatingIfNeeded: checksum >> UInt32(24 - 8 * index))
        }
    }
}
