internal import GateBytes

/// Writes receipts to their segments (ReceiptFormat.swift), and reads them. Owned by whoever turns
/// it, one at a time.
///
/// A failed write or sync is final, as the log's is: nothing more is written until the next start.
/// Only running out of space when a segment is made is not.
struct ReceiptFile {
    /// A receipt to be written.
    struct Entry: Equatable {
        var keyID: Bytes32
        var receipt: [UInt8]
    }

    private struct Segment {
        var file: StorageFile
        var number: UInt32
        var byteCount: Int
        var position: Int
        var unwritten: [UInt8] = []
    }

    private let storage: any Storage
    private let storeID: LogFormat.StoreID
    private let segmentBytes: Int
    private var nextNumber: UInt32
    private var segment: Segment?
    /// What stopped it, if anything.
    private(set) var failure: StorageFailure?

    /// Goes on behind what is there. `last` is the greatest place that the log names.
    init(
        storage: any Storage, names: [String], storeID: LogFormat.StoreID, segmentBytes: Int,
        last: ReceiptLocation?
    ) throws(StoreError) {
        precondition(
            (4096...ReceiptLocation.segmentBytesMax).contains(segmentBytes)
                && segmentBytes % 512 == 0)
        self.storage = storage
        self.storeID = storeID
        self.segmentBytes = segmentBytes
        let newest = names.compactMap(ReceiptFormat.number(segmentName:)).max() ?? 0
        nextNumber = max(newest, last?.segment ?? 0) + 1
        // A segment that the log names and that is gone took its receipts along, no more.
        guard newest > 0, newest >= last?.segment ?? 0 else { return }
        let end = newest == last?.segment ? last?.end ?? 0 : 0
        segment = try ReceiptFile.open(newest, storage, storeID, end: end)
    }

    private static func open(
        _ number: UInt32, _ storage: any Storage, _ storeID: LogFormat.StoreID, end: Int
    ) throws(StoreError) -> Segment? {
        let name = ReceiptFormat.segmentName(number)
        let path = storage.location + "/" + name
        let file: StorageFile
        let bytes: [UInt8]
        do throws(StorageFailure) {
            // A start that failed may have left the name not yet durable.
            try storage.syncDirectory()
            file = try storage.open(name)
            bytes = try storage.read(file)
        } catch {
            throw .storage(error)
        }
        let header: ReceiptFormat.SegmentHeader
        do {
            header = try ReceiptFormat.parseSegmentHeader(bytes)
        } catch {
            storage.close(file)
            throw StoreError(error, file: path)
        }
        guard header.storeID == storeID, header.number == number else {
            storage.close(file)
            throw .corrupted(file: path, offset: 16, .misplaced)
        }
        // One that was cut short is left as it is.
        guard bytes.count == Int(header.byteCount) else {
            storage.close(file)
            return nil
        }
        var used = bytes.count
        while used > LogFormat.blockBytes, bytes[used - 1] == 0 { used -= 1 }
        return Segment(
            file: file, number: number, byteCount: bytes.count,
            position: max(ReceiptFormat.padded(used), LogFormat.blockBytes, end))
    }

    /// Writes `entries` and syncs them; their places, in the same order.
    mutating func append(_ entries: [Entry]) throws(StorageFailure) -> [ReceiptLocation] {
        if let failure { throw failure }
        var places: [ReceiptLocation] = []
        do {
            for entry in entries { places.append(try add(entry)) }
            try flush()
        } catch {
            segment?.unwritten = []
            let isAwaitable = error.cause == .outOfSpace && error.operation != .sync
            // What a write has left behind is unknown, so nothing may come behind it.
            if !isAwaitable || segment != nil { stop(error) }
            throw error
        }
        return places
    }

    private mutating func stop(_ error: StorageFailure) {
        failure = error
        if let segment { storage.close(segment.file) }
        segment = nil
    }

    private mutating func add(_ entry: Entry) throws(StorageFailure) -> ReceiptLocation {
        let bytes = ReceiptFormat.encode(entry.receipt, of: entry.keyID)
        if let open = segment, open.byteCount - open.position - open.unwritten.count < bytes.count {
            try flush()
            storage.close(open.file)
            segment = nil
        }
        if segment == nil { segment = try makeSegment() }
        guard let open = segment else { preconditionFailure("no segment to write to") }
        precondition(open.byteCount - open.position - open.unwritten.count >= bytes.count)
        segment?.unwritten += bytes
        return ReceiptLocation(
            segment: open.number, offset: open.position + open.unwritten.count,
            length: entry.receipt.count)
    }

    private mutating func flush() throws(StorageFailure) {
        guard let open = segment, !open.unwritten.isEmpty else { return }
        try storage.write(open.file, open.unwritten, at: open.position)
        try storage.sync(open.file)
        segment?.position = open.position + open.unwritten.count
        segment?.unwritten = []
    }

    private mutating func makeSegment() throws(StorageFailure) -> Segment {
        let number = nextNumber
        guard number <= ReceiptLocation.segmentMax else {
            throw StorageFailure(
                operation: .create, path: ReceiptFormat.segmentName(number),
                cause: .other(code: 0, text: "no number is left"))
        }
        let file = try storage.publish(
            ReceiptFormat.encode(
                ReceiptFormat.SegmentHeader(
                    storeID: storeID, number: number, byteCount: UInt32(segmentBytes))),
            byteCount: segmentBytes, as: ReceiptFormat.segmentName(number),
            through: ReceiptFormat.temporaryName)
        nextNumber += 1
        return Segment(
            file: file, number: number, byteCount: segmentBytes, position: LogFormat.blockBytes)
    }

    /// The receipt of `keyID` at `place`; nil where it cannot be read any more.
    func read(_ place: ReceiptLocation, of keyID: Bytes32) throws(StorageFailure) -> [UInt8]? {
        let file = try storage.open(ReceiptFormat.segmentName(place.segment))
        defer { storage.close(file) }
        let bytes = try storage.read(
            file, at: place.offset, count: ReceiptFormat.entryBytes(place.length))
        return ReceiptFormat.parseEntry(bytes, of: keyID)
    }

    /// The greatest receipt that fits in a segment.
    var receiptBytesMax: Int {
        min(0xffff, segmentBytes - LogFormat.blockBytes - ReceiptFormat.entryHeaderBytes)
    }

    /// Closes the segment; nothing is written after.
    mutating func close() {
        if let segment { storage.close(segment.file) }
        segment = nil
    }
}
