/// Why a store did not open. Nothing in its directory was changed, but for what an earlier start
/// left half made.
package enum StoreError: Error, Sendable, Equatable {
    /// Bytes at `offset` of `file` are not what was written and synced there.
    case corrupted(file: String, offset: Int, Damage)
    /// Another process, by its id where it is known, has the store open.
    case locked(directory: String, pid: Int32?)
    /// Segments are there, and the file that says whose they are is not.
    case metaMissing(file: String)
    /// The file was written by a later version.
    case newerFormat(file: String, version: UInt32)
    /// The file was written by an earlier version that this one does not read.
    case olderFormat(file: String, version: UInt32)
    /// A segment that must exist is not there.
    case segmentMissing(file: String)
    /// A call of the storage failed.
    case storage(StorageFailure)

    /// What is wrong with the bytes.
    package enum Damage: Sendable, Equatable {
        /// A batch is unreadable, and a later one, at `provenAt`, shows that it had been synced.
        case batch(sequence: UInt64, provenAt: Int)
        /// The log ends before a record that `snapshot` knows as synced.
        case end(sequence: UInt64, knownFrom: String)
        /// A header does not carry its magic or its checksum.
        case header
        /// Another store's identity, or another place in the sequence, than the file belongs to.
        case misplaced
        /// A record that follows from none before it.
        case record(sequence: UInt64)
        /// A snapshot is not whole, and no older one can stand in for it.
        case snapshot
        /// Records are missing before the next segment begins.
        case sequence(expected: UInt64, found: UInt64)
    }
}

extension StoreError: CustomStringConvertible {
    /// The error in words: file, offset and what to do.
    package var description: String {
        switch self {
        case .corrupted(let file, let offset, let damage):
            "\(file): offset \(offset): \(damage.description); the store was left as it is: "
                + StoreError.remedy
        case .locked(let directory, let pid?):
            "\(directory): in use by process \(pid); stop it, or give this gate a directory of its "
                + "own"
        case .locked(let directory, nil):
            "\(directory): in use by another process; stop it, or give this gate a directory of "
                + "its own"
        case .metaMissing(let file):
            "\(file): offset 0: missing beside a log: " + StoreError.remedy
        case .newerFormat(let file, let version):
            "\(file): offset 12: format version \(version), expected at most "
                + "\(LogFormat.version): start the version that wrote it, or a later one"
        case .olderFormat(let file, let version):
            "\(file): offset 12: format version \(version), expected \(LogFormat.version): start "
                + "with an empty directory, or go on with the version that wrote it"
        case .segmentMissing(let file):
            "\(file): offset 0: segment missing: " + StoreError.remedy
        case .storage(let failure):
            failure.description
        }
    }

    private static let remedy =
        "restore the directory from a backup, or see attestgate store check and "
        + "attestgate store repair --to DIR, which writes a copy"
}

extension StoreError.Damage: CustomStringConvertible {
    /// The damage in words.
    package var description: String {
        switch self {
        case .batch(let sequence, let offset):
            "record \(sequence) is unreadable, and offset \(offset) shows that it had been synced"
        case .end(let sequence, let snapshot):
            "record \(sequence) is missing, and \(snapshot) shows that it had been synced"
        case .header: "header is unreadable"
        case .misplaced: "file belongs to another store or another place in the log"
        case .record(let sequence): "record \(sequence) follows from none before it"
        case .snapshot: "snapshot is unreadable from here on"
        case .sequence(let expected, let found):
            "expected record \(expected), got \(found) in the next segment"
        }
    }
}

/// What a store tells the operator's log.
package enum StoreNotice: Sendable, Equatable {
    /// A store was made where there was none.
    case created(directory: String)
    /// An enrolment was refused since the store holds `keysMax` keys; told once a start.
    case keysMaxReached(Int)
    /// Receipts could not be written or read; what else the store does goes on.
    case receipts(StorageFailure)
    /// Nothing more is admitted until the gate is restarted.
    case stopped(StorageFailure)
    /// The epoch moved on, since acknowledged writes may be gone: challenges made before it are no
    /// longer good.
    case epochMoved(EpochReason, from: UInt32, to: UInt32)
    /// A snapshot was written, and the log before it has gone.
    case snapshotWritten(file: String, keys: Int, bytes: Int)
    /// A snapshot was given up; the log stays as it is, and the next one is tried when it is due.
    case snapshotFailed(StorageFailure)
    /// A snapshot that cannot be read was passed over for an older one with the whole log since.
    case snapshotPassedOver(StoreError)
    /// What a newer snapshot has made needless could not be removed; the next one tries again.
    case leftoversStay(StorageFailure)
    /// There is space again.
    case spaceReturned(directory: String)
    /// Nothing is admitted until there is space for a segment.
    case spaceExhausted(StorageFailure)
    /// `bytes` bytes from `offset` on were not known to be synced, and were dropped; `lastSequence`
    /// is the last record that was kept.
    case tornTail(file: String, offset: Int, bytes: Int, lastSequence: UInt64)
}

/// Why an epoch moved on.
package enum EpochReason: String, Sendable {
    /// An operator asked for it.
    case fence = "store fence"
    /// A torn tail was dropped.
    case tornTail = "a torn tail was dropped"
    /// A process under relaxed durability did not stop cleanly, or the directory is a backup.
    case uncertain = "what was acknowledged last may not be here"
}

extension StoreNotice: CustomStringConvertible {
    /// The notice in words.
    package var description: String {
        switch self {
        case .created(let directory): "\(directory): new store made"
        case .keysMaxReached(let count): "key refused: max_keys is \(count)"
        case .receipts(let failure): "receipts: \(failure)"
        case .stopped(let failure): "store stopped until the gate is restarted: \(failure)"
        case .leftoversStay(let failure): "old segments and snapshots stay: \(failure)"
        case .epochMoved(let reason, let from, let to):
            "epoch moved from \(from) to \(to): \(reason.rawValue)"
        case .snapshotWritten(let file, let keys, let bytes):
            "\(file): snapshot of \(keys) keys written, \(bytes) bytes"
        case .snapshotFailed(let failure): "snapshot given up: \(failure)"
        case .snapshotPassedOver(let error):
            "an older snapshot and the log since are used in its place: \(error)"
        case .spaceReturned(let directory): "\(directory): space for the log again"
        case .spaceExhausted(let failure): "store waits for space: \(failure)"
        case .tornTail(let file, let offset, let bytes, let lastSequence):
            "\(file): offset \(offset): torn tail of \(bytes) bytes dropped, "
                + "last record \(lastSequence)"
        }
    }
}
