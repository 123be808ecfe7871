internal import GateBytes
internal import GateLock

/// Writes one snapshot beside live traffic, a piece at a turn: a lock of a shard is held for a copy
/// of some 250 entries, and nothing else of the store is. Owned by whoever turns it.
///
/// - *reading*: key shards, then accounts, spent challenges and spent tokens, each in pieces.
/// - *waiting*: everything is written; the last record appended by then is not synced yet.
/// - *done*: synced, renamed, its directory synced.
struct SnapshotWriter {
    /// What a turn has led to.
    enum Turn: Equatable {
        case working
        /// The log has to go on first.
        case waiting
        case done(Written)
        case failed(StorageFailure)
    }

    /// A snapshot that is there.
    struct Written: Equatable {
        var name: String
        var firstSequence: UInt64
        var keys: Int
        var byteCount: Int
        var begunAt: UInt32

        init(name: String, firstSequence: UInt64, keys: Int, byteCount: Int, begunAt: UInt32) {
            self.name = name
            self.firstSequence = firstSequence
            self.keys = keys
            self.byteCount = byteCount
            self.begunAt = begunAt
        }

        /// The one that a start has read.
        init(_ summary: SnapshotReader.Summary) {
            self.init(
                name: summary.name, firstSequence: summary.header.firstSequence,
                keys: Int(clamping: summary.end.keys), byteCount: summary.byteCount,
                begunAt: summary.header.begunAt)
        }
    }

    private enum Place: Equatable {
        case keys(shard: Int, index: Int)
        case accounts(shard: Int, index: Int)
        case spent(shard: Int, SpentTable.Cursor)
        case tokens(shard: Int)
        case end
    }

    /// Entries of a shard that are copied at once.
    static let entriesMax = 256
    /// Slots of spent challenges that are looked at at once.
    static let slotsMax = 4096
    /// Bytes of a batch, or a few more.
    private static let batchBytes = 128 << 10
    /// Bytes that are written before they are synced: what a sync of the log may have to wait for.
    static let unsyncedBytesMax = 1 << 20

    private let storage: any Storage
    private let shards: Shards
    private let header: SnapshotFormat.Header
    private let stepBytes: Int
    private var file: StorageFile?
    private var fileBytes: Int
    private var position = LogFormat.blockBytes
    private var unsyncedBytes = 0
    private var buffer = LogFormat.room
    private var recordsInBuffer: UInt64 = 0
    private var recordsWritten: UInt64 = 0
    private var place = Place.keys(shard: 0, index: 0)
    private var keys = 0
    /// The last record whose effects may be in the snapshot, once all is read.
    private var lastSequence: UInt64?

    /// Begins a snapshot on top of which the log is replayed from `header.firstSequence` on.
    /// - Parameter stepBytes: How much the file grows at a time.
    init(
        storage: any Storage, shards: Shards, header: SnapshotFormat.Header, stepBytes: Int
    ) throws(StorageFailure) {
        self.storage = storage
        self.shards = shards
        self.header = header
        self.stepBytes = stepBytes
        fileBytes = max(stepBytes, LogFormat.blockBytes)
        try storage.deleteIfPresent(SnapshotFormat.temporaryName)
        let file = try storage.create(SnapshotFormat.temporaryName, byteCount: fileBytes)
        self.file = file
        do {
            try storage.write(file, SnapshotFormat.encode(header), at: 0)
        } catch {
            abandon()
            throw error
        }
    }

    /// Does the next piece.
    mutating func turn(_ queue: Lock<LogQueue>) -> Turn {
        do throws(StorageFailure) {
            if place != .end {
                try read()
                return .working
            }
            let (last, durable) = queue.withLock { ($0.lastSequence, $0.durableSequence) }
            let lastSequence = self.lastSequence ?? last
            self.lastSequence = lastSequence
            guard durable >= lastSequence else {
                return .waiting
            }
            return .done(try finish(lastSequence))
        } catch {
            abandon()
            return .failed(error)
        }
    }

    /// Gives up: nothing of it stays.
    mutating func abandon() {
        if let file { storage.close(file) }
        file = nil
        // What stays is removed by the next snapshot or start.
        try? storage.delete(SnapshotFormat.temporaryName)
    }

    private mutating func read() throws(StorageFailure) {
        switch place {
        case .keys(let shard, let index): readKeys(shard, index)
        case .accounts(let shard, let index): readAccounts(shard, index)
        case .spent(let shard, let cursor): readSpent(shard, cursor)
        case .tokens(let shard): readTokens(shard)
        case .end: break
        }
        if buffer.count >= SnapshotWriter.batchBytes { try flush() }
    }

    private mutating func readKeys(_ shard: Int, _ index: Int) {
        let found = shards.keys(shard: shard, from: index, most: SnapshotWriter.entriesMax)
        for key in found {
            append(.key(key))
        }
        keys += found.count
        if found.count == SnapshotWriter.entriesMax {
            place = .keys(shard: shard, index: index + found.count)
        } else {
            place =
                shard + 1 < shards.count
                ? .keys(shard: shard + 1, index: 0) : .accounts(shard: 0, index: 0)
        }
    }

    private mutating func readAccounts(_ shard: Int, _ index: Int) {
        let found = shards.blocked(shard: shard, from: index, most: SnapshotWriter.entriesMax)
        for account in found.accounts { append(.blocked(account)) }
        if let next = found.next {
            place = .accounts(shard: shard, index: next)
        } else {
            place =
                shard + 1 < shards.count
                ? .accounts(shard: shard + 1, index: 0) : .spent(shard: 0, SpentTable.Cursor())
        }
    }

    private mutating func readSpent(_ shard: Int, _ cursor: SpentTable.Cursor) {
        var cursor = cursor
        if let found = shards.spent(
            shard: shard, at: &cursor, most: SnapshotWriter.slotsMax)
        {
            if !found.nonces.isEmpty {
                append(.spent(generation: found.generation, nonces: found.nonces))
            }
            place = .spent(shard: shard, cursor)
        } else {
            place =
                shard + 1 < shards.count
                ? .spent(shard: shard + 1, SpentTable.Cursor()) : .tokens(shard: 0)
        }
    }

    private mutating func readTokens(_ shard: Int) {
        for (day, hashes) in shards.tokens(shard: shard) {
            append(.tokens(day: day, hashes: Array(hashes)))
        }
        place = shard + 1 < shards.count ? .tokens(shard: shard + 1) : .end
    }

    private mutating func append(_ item: SnapshotFormat.Item) {
        item.encode(to: &buffer)
        recordsInBuffer += 1
    }

    private mutating func flush() throws(StorageFailure) {
        guard recordsInBuffer > 0, let file else { return }
        let first = recordsWritten + 1
        recordsWritten += recordsInBuffer
        LogFormat.seal(
            &buffer, epoch: header.epoch, first: first, last: recordsWritten, synced: 0)
        if position + buffer.count > fileBytes {
            let missing = position + buffer.count - fileBytes
            fileBytes += (missing + stepBytes - 1) / stepBytes * stepBytes
            try storage.extend(file, to: fileBytes)
        }
        try storage.write(file, buffer, at: position)
        position += buffer.count
        unsyncedBytes += buffer.count
        recordsInBuffer = 0
        buffer = LogFormat.room
        if unsyncedBytes >= SnapshotWriter.unsyncedBytesMax {
            try storage.sync(file)
            unsyncedBytes = 0
        }
    }

    private mutating func finish(_ lastSequence: UInt64) throws(StorageFailure) -> Written {
        try flush()
        append(
            .end(
                SnapshotFormat.End(
                    lastSequence: lastSequence, oldestGeneration: shards.oldestGeneration,
                    keys: UInt64(keys))))
        try flush()
        guard let file else { preconditionFailure("a snapshot without a file") }
        try storage.sync(file)
        storage.close(file)
        self.file = nil
        let name = LogFormat.snapshotName(header.firstSequence)
        try storage.rename(SnapshotFormat.temporaryName, to: name)
        try storage.syncDirectory()
        return Written(
            name: name, firstSequence: header.firstSequence, keys: keys, byteCount: fileBytes,
            begunAt: header.begunAt)
    }
}

extension Storage {
    /// Removes a file that may be there.
    func deleteIfPresent(_ name: String) throws(StorageFailure) {
        do {
            try delete(name)
        } catch {
            guard error.cause == .absent else { throw error }
        }
    }
}
