import Foundation
import GateBytes
import GateLock
import GateSimulation
import GateStore
import Testing

/// A directory of the test's own, removed at its end.
final class TemporaryDirectory {
    let path: String

    init() {
        path = NSTemporaryDirectory() + "gate-store-" + UUID().uuidString
        try? FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }

    var store: String { path + "/store" }

    func mode(_ name: String) -> Int? {
        let attributes = try? FileManager.default.attributesOfItem(atPath: path + "/" + name)
        return (attributes?[.posixPermissions] as? NSNumber)?.intValue
    }

    func bytes(_ name: String) throws -> [UInt8] {
        Array(try Data(contentsOf: URL(fileURLWithPath: store + "/" + name)))
    }

    func write(_ name: String, _ bytes: [UInt8]) throws {
        try Data(bytes).write(to: URL(fileURLWithPath: store + "/" + name))
    }
}

@Suite("Store: in the file system") struct FileStorageTests {
    let directory = TemporaryDirectory()

    private func open(
        _ writer: StoreOptions.Writer = .stepped, segmentBytes: Int = 4096, shards: Int = 4
    ) throws -> Store {
        try Store.open(
            storage: FileStorage(directory: directory.store),
            options: options(shards: shards, segmentBytes: segmentBytes, writer: writer))
    }

    @Test("the directory is made 0700 and its files 0600, segments whole")
    func modes() throws {
        let store = try open(segmentBytes: 65536)
        #expect(directory.mode("store") == 0o700)
        for name in ["lock", "meta", segmentName(1)] {
            #expect(directory.mode("store/" + name) == 0o600, "\(name)")
        }
        #expect(try directory.bytes(segmentName(1)).count == 65536)
        #expect(try directory.bytes("meta").count == 512)
        let blocks = try #require(allocatedBytes(segmentName(1)))
        #expect(blocks >= 65536)
        store.close()
    }

    private func allocatedBytes(_ name: String) -> Int? {
        var status = stat()
        guard stat(directory.store + "/" + name, &status) == 0 else { return nil }
        return Int(status.st_blocks) * 512
    }

    @Test("a second owner is refused with the pid of the first, until that one closes")
    func lock() throws {
        let store = try open()
        let refusal = StoreError.locked(
            directory: directory.store, pid: ProcessInfo.processInfo.processIdentifier)
        #expect(throws: refusal) { try open() }
        #expect(store.enrolNow(newKey(1), challenge(1)) == .enrolled)
        store.close()
        let again = try open()
        #expect(again.key(bytes32(1)) != nil)
        again.close()
    }

    @Test("a start that is refused gives the lock back")
    func lockAfterRefusal() throws {
        try open().close()
        let meta = try directory.bytes("meta")
        try directory.write("meta", [1])
        #expect(throws: StoreError.corrupted(file: directory.store + "/meta", offset: 0, .header)) {
            try open()
        }
        try directory.write("meta", meta)
        try open().close()
    }

    @Test("a directory that cannot be made is named with the reason")
    func noDirectory() throws {
        let dangling = directory.path + "/nowhere"
        try FileManager.default.createSymbolicLink(
            atPath: dangling, withDestinationPath: directory.path + "/a/b")
        #expect {
            try Store.open(
                storage: FileStorage(directory: dangling + "/c"), options: options())
        } throws: { error in
            "\(error)" == "\(dangling)/c: create: no such file"
        }
        try Data().write(to: URL(fileURLWithPath: directory.path + "/file"))
        #expect {
            try Store.open(
                storage: FileStorage(directory: directory.path + "/file/"), options: options())
        } throws: { error in
            "\(error)".hasPrefix(directory.path + "/file/lock: lock: Not a directory")
        }
    }

    @Test("missing parents of a directory are made")
    func missingParents() throws {
        let path = directory.path + "/a/b/c/"
        try Store.open(storage: FileStorage(directory: path), options: options()).close()
        let mode = { (part: String) throws in
            try FileManager.default.attributesOfItem(atPath: directory.path + part)[
                .posixPermissions] as? Int
        }
        #expect(try mode("/a/b/c") == 0o700)
        #expect(try mode("/a/b/c/meta") == 0o600)
        #expect(try mode("/a") == mode("/a/b"))
    }

    @Test("a store goes through several segments and comes back as it was")
    func severalSegments() throws {
        let store = try open()
        #expect(store.enrolNow(newKey(1, receipt: [1, 2]), challenge(0xff)) == .enrolled)
        for number in 1...30 {
            let outcome = store.admitNow(challenge(number: number), 1, UInt32(number))
            #expect(outcome == .admitted(previousCounter: UInt32(number) - 1))
        }
        #expect(store.figures.segments == 5)
        #expect(store.figures.logBytes == 5 * 4096)
        let record = store.key(bytes32(1))
        store.close()
        let again = try open()
        #expect(again.key(bytes32(1)) == record)
        #expect(again.figures.segments == 5)
        #expect(again.figures.logBytes == 5 * 4096)
        #expect((1...30).allSatisfy { again.isSpent(challenge(number: $0)) })
        again.close()
    }

    @Test("a log cut at every byte of its last records keeps a beginning and goes on")
    func cutLog() throws {
        let store = try open()
        #expect(store.enrolNow(newKey(1), challenge(0xff)) == .enrolled)
        for number in 1...3 {
            #expect(store.admitNow(challenge(number: number), 1, UInt32(number)) != nil)
        }
        store.close()
        let whole = try directory.bytes(segmentName(1))
        let meta = try directory.bytes("meta")
        // A batch of one admit is 102 bytes; behind them it is filled with zeros.
        let cuts = [3, 4].flatMap { batch in (0...103).map { batch * 512 + $0 } } + [5 * 512]
        for count in cuts {
            try directory.write(segmentName(1), Array(whole[..<count]))
            try directory.write("meta", meta)
            let cut = try open()
            let kept = UInt32((count - 512) / 512 - 1)
            #expect(cut.key(bytes32(1))?.signCounter == kept, "cut at \(count)")
            #expect(cut.isSpent(challenge(number: 3)) == (kept == 3), "cut at \(count)")
            #expect(cut.admitNow(challenge(0xaa), 1, 9) == .admitted(previousCounter: kept))
            cut.close()
            try FileManager.default.removeItem(
                atPath: directory.store + "/" + segmentName(Int(kept) + 2))
        }
    }

    @Test(
        "of many who race for one challenge or one counter, one is admitted",
        .timeLimit(.minutes(2)))
    func races() throws {
        let store = try open(.thread, segmentBytes: 1 << 20, shards: 8)
        let enrolled = Reply<EnrolOutcome>()
        for byte: UInt8 in 1...4 {
            store.enrol(
                newKey(byte), challenge: challenge(byte), keysPerAccount: 0, now: noon,
                reply: enrolled.call)
        }
        #expect(enrolled.waitFor { $0.count == 4 })
        let rounds = 200
        let threads = 4
        let admitted = Lock<[SpentChallenge: [UInt32]]>([:])
        let answers = Reply<AdmitOutcome>()
        DispatchQueue.concurrentPerform(iterations: threads) { thread in
            for round in 1...rounds {
                let spent = challenge(number: round)
                // The same challenge with the same counter, for keys that differ on every other
                // thread.
                let key = UInt8(1 + (round + thread % 2) % 4)
                let counter = UInt32(round)
                store.admit(
                    challenge: spent, keyID: bytes32(key), counter: counter, now: noon
                ) { outcome in
                    if case .admitted = outcome {
                        admitted.withLock { $0[spent, default: []].append(counter) }
                    }
                    answers.call(outcome)
                }
            }
        }
        #expect(answers.waitFor { $0.count == rounds * threads })
        #expect(answers.outcomes.allSatisfy { $0 != .unavailable && $0 != .keyUnknown })
        let winners = admitted.withLock { $0 }
        #expect(winners.values.allSatisfy { $0.count == 1 })
        #expect(winners.count > rounds / 2)
        let records = (1...4).map { store.key(bytes32($0)) }
        let figures = store.figures
        store.close()
        let again = try open(shards: 2)
        #expect((1...4).map { again.key(bytes32($0)) } == records)
        #expect(again.figures.lastSequence == figures.lastSequence)
        #expect(winners.keys.allSatisfy { again.isSpent($0) })
        again.close()
    }
}
