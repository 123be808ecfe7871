internal import GateBytes

/// Reads the log at the start: finds its segments, replays their records in order, and tells a torn
/// tail from corruption by the rules of LogFormat.swift.
struct LogReader {
    /// Where the log ends, and how to go on.
    struct End: Equatable {
        /// The last record.
        var lastSequence: UInt64
        /// The segment that has room behind its last batch; nil when a new one must be made.
        var segment: Segment?
        /// The number of segments.
        var segments: Int
        /// Bytes of all segments.
        var byteCount: Int
        /// The first sequence number of the last segment; 0 without any.
        var newestSegment: UInt64
        /// What was dropped, if anything.
        var tornTail: StoreNotice?
    }

    /// An open segment.
    struct Segment: Equatable {
        var file: StorageFile
        var byteCount: Int
        /// Where the next batch goes.
        var position: Int
    }

    /// A batch whose records are to be applied.
    struct Entry {
        var record: Record
        var sequence: UInt64
        var epoch: UInt32
    }

    private let storage: any Storage
    private let meta: LogFormat.Meta
    private let snapshot: SnapshotReader.Summary?
    /// Whether what is not known to be synced is written again: not by who only looks.
    private let isOwner: Bool
    private var expected: UInt64 = 1
    /// The greatest number any header knows as synced.
    private var synced: UInt64 = 0

    /// A reader of the log behind `snapshot`, or of all of it.
    init(
        storage: any Storage, meta: LogFormat.Meta, snapshot: SnapshotReader.Summary? = nil,
        isOwner: Bool = true
    ) {
        self.storage = storage
        self.meta = meta
        self.snapshot = snapshot
        self.isOwner = isOwner
    }

    /// The first record that is applied; those before it are in the snapshot.
    private var first: UInt64 { snapshot?.header.firstSequence ?? 1 }

    /// Replays the segments called `names` into `apply`, which answers whether a record follows
    /// from those before it.
    mutating func replay(
        _ names: [String], apply: (Entry) -> Bool
    ) throws(StoreError) -> End {
        let starts = LogReader.starts(names, from: first)
        if let missing = missingSegment(starts) {
            throw .segmentMissing(file: path(missing))
        }
        var end = End(
            lastSequence: 0, segment: nil, segments: starts.count, byteCount: 0,
            newestSegment: starts.last ?? 0)
        expected = starts.first ?? 1
        for (index, start) in starts.enumerated() {
            let next = index + 1 < starts.count ? starts[index + 1] : nil
            try replaySegment(start, next: next, end: &end, apply: apply)
        }
        end.lastSequence = expected - 1
        return end
    }

    /// The first numbers of the segments that a replay from `first` on needs: the one that holds
    /// it, and those behind.
    static func starts(_ names: [String], from first: UInt64) -> [UInt64] {
        let starts = names.compactMap(LogFormat.firstSequence(segmentName:)).sorted()
        let holding = starts.lastIndex { $0 <= first } ?? 0
        return Array(starts[holding...])
    }

    /// The first segment that must be there and is not.
    private func missingSegment(_ starts: [UInt64]) -> UInt64? {
        if let start = starts.first, start > first { return first }
        // One that the snapshot has made needless may go before the meta file names the next.
        if meta.newestSegment >= max(starts.first ?? 1, 1), !starts.contains(meta.newestSegment) {
            return meta.newestSegment
        }
        return nil
    }

    private mutating func replaySegment(
        _ start: UInt64, next: UInt64?, end: inout End, apply: (Entry) -> Bool
    ) throws(StoreError) {
        let name = LogFormat.segmentName(start)
        let (file, bytes) = try read(name)
        do {
            let header = try readHeader(name, bytes, start: start)
            end.byteCount += bytes.count
            let unsynced = try replayBatches(name, bytes, next: next, apply: apply)
            if next != nil {
                storage.close(file)
                return
            }
            let position = unsynced.upperBound
            if !unsynced.isEmpty, isOwner { try makeDurable(file, bytes, unsynced) }
            var tail = bytes.count
            while tail > position, bytes[tail - 1] == 0 { tail -= 1 }
            if tail == position, bytes.count == Int(header.byteCount) {
                end.segment = Segment(file: file, byteCount: bytes.count, position: position)
            } else {
                end.tornTail = .tornTail(
                    file: path(name), offset: position, bytes: tail - position,
                    lastSequence: expected - 1)
                storage.close(file)
            }
        } catch {
            storage.close(file)
            throw error
        }
    }

    /// Replays what is valid, and gives the range of the batches that are not known to be synced;
    /// its end is where the records end.
    private mutating func replayBatches(
        _ name: String, _ bytes: [UInt8], next: UInt64?, apply: (Entry) -> Bool
    ) throws(StoreError) -> Range<Int> {
        var position = LogFormat.blockBytes
        var batches: [(last: UInt64, offset: Int)] = []
        while next == nil || expected != next {
            guard let batch = LogFormat.parseBatch(bytes, at: position),
                batch.firstSequence == expected
            else { break }
            try replayRecords(name, bytes, batch, apply: apply)
            synced = max(synced, batch.syncedSequence)
            batches.append((batch.lastSequence, position))
            expected = batch.lastSequence + 1
            position = batch.end
        }
        if let next {
            guard expected == next else {
                throw .corrupted(
                    file: path(name), offset: position, .sequence(expected: expected, found: next))
            }
        } else if let proof = proofOfSync(bytes, behind: position) {
            throw .corrupted(
                file: path(name), offset: position, .batch(sequence: expected, provenAt: proof))
        } else if let snapshot, expected <= snapshot.end.lastSequence {
            throw .corrupted(
                file: path(name), offset: position,
                .end(sequence: expected, knownFrom: snapshot.name))
        }
        let firstUnsynced = batches.first { $0.last > synced }?.offset ?? position
        return firstUnsynced..<position
    }

    private func replayRecords(
        _ name: String, _ bytes: [UInt8], _ batch: LogFormat.Batch, apply: (Entry) -> Bool
    ) throws(StoreError) {
        var reader = ByteReader(bytes, batch.records)
        var sequence = batch.firstSequence
        while sequence <= batch.lastSequence {
            let offset = reader.position
            guard let record = Record.parse(&reader),
                sequence < first
                    || apply(Entry(record: record, sequence: sequence, epoch: batch.epoch)),
                sequence < .max
            else { throw .corrupted(file: path(name), offset: offset, .record(sequence: sequence)) }
            sequence += 1
        }
        guard reader.isAtEnd else {
            throw .corrupted(
                file: path(name), offset: reader.position, .record(sequence: sequence))
        }
    }

    /// The offset of a valid batch behind `position` that knows the missing record as synced.
    private func proofOfSync(_ bytes: [UInt8], behind position: Int) -> Int? {
        var offset = position
        while offset < bytes.count {
            if let batch = LogFormat.parseBatch(bytes, at: offset),
                batch.syncedSequence >= expected
            {
                return offset
            }
            offset += LogFormat.blockBytes
        }
        return nil
    }

    private func readHeader(
        _ name: String, _ bytes: [UInt8], start: UInt64
    ) throws(StoreError) -> LogFormat.SegmentHeader {
        let header: LogFormat.SegmentHeader
        do {
            header = try LogFormat.parseSegmentHeader(bytes)
        } catch {
            throw StoreError(error, file: path(name))
        }
        guard header.storeID == meta.storeID, header.firstSequence == start,
            bytes.count <= Int(header.byteCount)
        else { throw .corrupted(file: path(name), offset: 16, .misplaced) }
        return header
    }

    private func read(_ name: String) throws(StoreError) -> (StorageFile, [UInt8]) {
        do throws(StorageFailure) {
            let file = try storage.open(name)
            do throws(StorageFailure) {
                return (file, try storage.read(file))
            } catch {
                storage.close(file)
                throw error
            }
        } catch {
            throw .storage(error)
        }
    }

    private func makeDurable(
        _ file: StorageFile, _ bytes: [UInt8], _ range: Range<Int>
    ) throws(StoreError) {
        do {
            try storage.write(file, Array(bytes[range]), at: range.lowerBound)
            try storage.sync(file)
        } catch {
            throw .storage(error)
        }
    }

    private func path(_ segment: UInt64) -> String {
        path(LogFormat.segmentName(segment))
    }

    private func path(_ name: String) -> String {
        storage.location + "/" + name
    }
}

extension StoreError {
    /// A header that cannot be read, with the file it is in.
    init(_ fault: LogFormat.HeaderFault, file: String) {
        switch fault {
        case .newerFormat(let version): self = .newerFormat(file: file, version: version)
        case .olderFormat(let version): self = .olderFormat(file: file, version: version)
        case .unreadable: self = .corrupted(file: file, offset: 0, .header)
        }
    }
}
