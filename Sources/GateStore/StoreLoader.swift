internal import GateBytes
internal import GateLock

/// Reads a store's directory into memory: the meta file, the newest snapshot that is whole, the log
/// since.
///
/// A snapshot was synced before it had its name, so one that is damaged was damaged later. An older
/// one, or none, stands in for it where the whole log since is there; the outcome is the same.
struct StoreLoader {
    /// What a directory holds.
    struct Loaded {
        var shards: Shards
        var end: LogReader.End
        var snapshot: SnapshotReader.Summary?
        /// Snapshots and segments that are not needed any more.
        var leftovers: [String]
    }

    let storage: any Storage
    let meta: LogFormat.Meta
    /// The names in the directory.
    let names: [String]
    /// Whether the directory is this process's, to be made good where it has to be.
    let isOwner: Bool

    /// Loads everything into shards that `makeShards` makes.
    func load(
        log: (StoreNotice) -> Void, makeShards: () -> Shards
    ) throws(StoreError) -> Loaded {
        let snapshots = names.compactMap(LogFormat.firstSequence(snapshotName:)).sorted()
        var damage: StoreError?
        for first in snapshots.reversed().map(Optional.some) + [nil] {
            do throws(StoreError) {
                let loaded = try load(snapshot: first, into: makeShards())
                if let damage { log(.snapshotPassedOver(damage)) }
                return loaded
            } catch {
                // What the disk refuses now it may give the next time.
                if case .storage = error { throw error }
                guard first != nil, error.isOfSnapshot else { throw damage ?? error }
                damage = damage ?? error
            }
        }
        preconditionFailure("a start without a snapshot returns or throws")
    }

    private func load(
        snapshot first: UInt64?, into shards: Shards
    ) throws(StoreError) -> Loaded {
        var snapshot: SnapshotReader.Summary?
        if let first {
            let reader = SnapshotReader(storage: storage, storeID: meta.storeID)
            let summary = try reader.read(LogFormat.snapshotName(first)) { shards.restore($0) }
            shards.forget(before: summary.end.oldestGeneration)
            snapshot = summary
        }
        var reader = LogReader(
            storage: storage, meta: meta, snapshot: snapshot, isOwner: isOwner)
        let end = try reader.replay(names) { shards.apply($0) }
        return Loaded(
            shards: shards, end: end, snapshot: snapshot,
            leftovers: StoreLoader.leftovers(names, behind: first))
    }

    /// The snapshots and segments among `names` that a start from the snapshot of `first` on does
    /// not read.
    static func leftovers(_ names: [String], behind first: UInt64?) -> [String] {
        guard let first else { return [] }
        let kept = Set(LogReader.starts(names, from: first))
        return names.filter { name in
            if let start = LogFormat.firstSequence(segmentName: name) {
                return !kept.contains(start)
            }
            return LogFormat.firstSequence(snapshotName: name).map { $0 < first } ?? false
        }
    }
}

extension StoreLoader {
    /// The meta file and the names beside it; nil for the meta file of an empty directory.
    static func readMeta(
        _ storage: some Storage, isOwner: Bool
    ) throws(StoreError) -> (LogFormat.Meta?, [String]) {
        let path = storage.location + "/" + LogFormat.metaName
        let (names, bytes) = try readFiles(storage, isOwner: isOwner)
        if let bytes {
            do throws(LogFormat.HeaderFault) {
                return (try LogFormat.parseMeta(bytes), names)
            } catch {
                throw StoreError(error, file: path)
            }
        }
        let isEmpty = names.allSatisfy {
            LogFormat.firstSequence(segmentName: $0) == nil
                && LogFormat.firstSequence(snapshotName: $0) == nil
        }
        guard isEmpty else { throw .metaMissing(file: path) }
        return (nil, names)
    }

    /// The directory's names, half-made files removed, and the bytes of the meta file where it is
    /// there.
    private static func readFiles(
        _ storage: some Storage, isOwner: Bool
    ) throws(StoreError) -> (names: [String], meta: [UInt8]?) {
        do throws(StorageFailure) {
            let names = try storage.list()
            let halfMade = [
                LogFormat.segmentTemporaryName, LogFormat.metaTemporaryName,
                ReceiptFormat.temporaryName, SnapshotFormat.temporaryName,
            ]
            for name in halfMade where isOwner && names.contains(name) {
                try storage.delete(name)
            }
            guard names.contains(LogFormat.metaName) else { return (names, nil) }
            let file = try storage.open(LogFormat.metaName)
            defer { storage.close(file) }
            return (names, try storage.read(file))
        } catch {
            throw .storage(error)
        }
    }
}

extension StoreError {
    /// Whether a snapshot is not what was written.
    fileprivate var isOfSnapshot: Bool {
        guard case .corrupted(let file, _, let damage) = self else { return false }
        switch damage {
        case .snapshot: return true
        case .header:
            let name = file.split(separator: "/").last.map(String.init) ?? ""
            return LogFormat.firstSequence(snapshotName: name) != nil
        case .batch, .end, .misplaced, .record, .sequence: return false
        }
    }
}
