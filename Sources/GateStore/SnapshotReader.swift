internal import GateBytes

/// Reads a snapshot, a few megabytes at a time.
struct SnapshotReader {
    /// What a snapshot holds and what it knows of the log.
    struct Summary: Equatable {
        var name: String
        var header: SnapshotFormat.Header
        var end: SnapshotFormat.End
        var byteCount: Int
    }

    /// Bytes read at once; more where a batch is longer.
    private static let windowBytes = 4 << 20

    private let storage: any Storage
    private let storeID: LogFormat.StoreID

    init(storage: any Storage, storeID: LogFormat.StoreID) {
        self.storage = storage
        self.storeID = storeID
    }

    /// Reads the snapshot called `name` whole and passes each record but the last to `apply`.
    func read(
        _ name: String, apply: (SnapshotFormat.Item) -> Void
    ) throws(StoreError) -> Summary {
        let file: StorageFile
        do {
            file = try storage.open(name)
        } catch {
            throw .storage(error)
        }
        defer { storage.close(file) }
        let header = try readHeader(file, name)
        var position = LogFormat.blockBytes
        var records: UInt64 = 0
        var windowBytes = SnapshotReader.windowBytes
        while true {
            let bytes = try read(file, at: position, byteCount: windowBytes)
            var offset = 0
            while let batch = LogFormat.parseBatch(bytes, at: offset) {
                guard batch.firstSequence == records + 1 else {
                    throw damaged(name, position + offset)
                }
                var reader = ByteReader(bytes, batch.records)
                while records < batch.lastSequence {
                    guard let item = SnapshotFormat.Item.parse(&reader) else {
                        throw damaged(name, position + reader.position)
                    }
                    records += 1
                    guard case .end(let end) = item else {
                        apply(item)
                        continue
                    }
                    return Summary(
                        name: name, header: header, end: end, byteCount: position + batch.end)
                }
                guard reader.isAtEnd else { throw damaged(name, position + reader.position) }
                offset = batch.end
            }
            if offset == 0 {
                // Nothing whole in the window: a longer batch, or damage.
                guard bytes.count == windowBytes, windowBytes < 1 << 30 else {
                    throw damaged(name, position)
                }
                windowBytes *= 4
            } else {
                position += offset
            }
        }
    }

    private func readHeader(
        _ file: StorageFile, _ name: String
    ) throws(StoreError) -> SnapshotFormat.Header {
        let bytes = try read(file, at: 0, byteCount: LogFormat.blockBytes)
        let header: SnapshotFormat.Header
        do {
            header = try SnapshotFormat.parseHeader(bytes)
        } catch {
            throw StoreError(error, file: path(name))
        }
        guard header.storeID == storeID,
            header.firstSequence == LogFormat.firstSequence(snapshotName: name)
        else { throw .corrupted(file: path(name), offset: 16, .misplaced) }
        return header
    }

    private func read(
        _ file: StorageFile, at offset: Int, byteCount: Int
    ) throws(StoreError) -> [UInt8] {
        do {
            return try storage.read(file, at: offset, count: byteCount)
        } catch {
            throw .storage(error)
        }
    }

    private func damaged(_ name: String, _ offset: Int) -> StoreError {
        .corrupted(file: path(name), offset: offset, .snapshot)
    }

    private func path(_ name: String) -> String {
        storage.location + "/" + name
    }
}
