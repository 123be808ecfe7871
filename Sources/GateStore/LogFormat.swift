// The store's directory, byte for byte. Integers are big endian; what is not named is zero.
//
//   lock                 the owner holds a lock on it; its pid in decimal and a line feed
//   meta                 512 bytes, replaced whole (written beside, synced, renamed)
//   log-FFFFFFFFFFFFFFFF a segment, named for its first sequence number in 16 hexadecimal digits
//   receipts-FFFFFFFF    receipts, which are not part of the log: ReceiptFormat.swift
//   snapshot-FFFFFFFFFFFFFFFF
//                        a snapshot (SnapshotFormat.swift), named for the first sequence number
//                        that is to be replayed on top of it
//   *.tmp                half-made files of an earlier start, removed by the next
//
// meta
//     0   8  magic "AGSTMETA"
//     8   4  CRC-32C of bytes 12 to 511
//    12   4  format version, 2
//    16  16  store id, random
//    32   4  epoch, from 1 up; part of every challenge id
//    36   4  unix seconds until which the previous secret is honoured; 0 when there is none
//    40   8  first sequence number of the newest segment; 0 before the first
//    48  32  challenge secret
//    80  32  previous challenge secret
//   112   1  1 while a process may acknowledge what is not synced, and in a copy that may be older
//            than what was acknowledged: the next start moves the epoch on; else 0
//
// segment: a header of 512 bytes, then batches, then zeros to its size
//     0   8  magic "AGSTLOG1"
//     8   4  CRC-32C of bytes 12 to 511
//    12   4  format version, 2
//    16  16  store id
//    32   4  epoch when it was made
//    36   4  size of the segment in bytes
//    40   8  first sequence number
//
// batch: begins at a multiple of 512, filled with zeros to the next one
//     0   4  magic "AGB1"
//     4   4  CRC-32C of everything behind it, the filling included
//     8   4  length of header and records, without the filling
//    12   4  epoch when it was written
//    16   8  sequence number of its first record, from 1 up
//    24   8  sequence number of its last record
//    32   8  the last sequence number known to be synced when it was written
//    40      records (Record.swift), one for each sequence number
//
// A batch is valid if and only if its magic, length and checksum hold, its numbers are in order and
// it holds exactly its records. It is the next one if its first number follows the last of the
// batch before it. Records end where the next segment's first number is reached; in the last
// segment, before the first batch that is not valid or not the next. What is behind that end is
// - nothing, when it is zeros;
// - a torn tail, when neither a valid batch there nor the snapshot knows the missing number as
//   synced: dropped, the epoch moves on, and the log goes on in a new segment;
// - otherwise corruption: the start stops.
//
// A start reads the newest snapshot that is whole, if there is one, then the segments from the one
// that holds its first number on. Segments whose records all come before it are leftovers, and go.
//
// A segment is made whole before the meta file names it, and the meta file names it before it holds
// a batch; so a newest segment that is not there has been lost, and one the meta file does not name
// yet is empty. The bytes of a batch are synced before a second one is written, and a start writes
// again what was not known to be synced, since the file cache may show bytes whose sync failed.
internal import GateBytes

enum LogFormat {
    /// Version 1 held receipts in its records.
    static let version: UInt32 = 2
    static let blockBytes = 512
    static let batchHeaderBytes = 40
    /// Room for a batch's header, in front of its records.
    static let room = [UInt8](repeating: 0, count: batchHeaderBytes)
    static let metaName = "meta"
    static let segmentTemporaryName = "segment.tmp"
    static let metaTemporaryName = "meta.tmp"

    private static let metaMagic = Array("AGSTMETA".utf8)
    private static let segmentMagic = Array("AGSTLOG1".utf8)
    private static let batchMagic: UInt32 = 0x4147_4231

    /// What the meta file says.
    struct Meta: Equatable {
        var storeID: StoreID
        var epoch: UInt32
        var newestSegment: UInt64
        var secrets: StoreSecrets
        /// Whether acknowledged writes may be missing after it: the next start moves the epoch on.
        var isUncertain = false
    }

    /// Sixteen random bytes that a store's files share.
    struct StoreID: Equatable {
        var high: UInt64
        var low: UInt64
    }

    /// What a segment's header says.
    struct SegmentHeader: Equatable {
        var storeID: StoreID
        var epoch: UInt32
        var byteCount: UInt32
        var firstSequence: UInt64
    }

    /// What a batch's header says, and where its records are.
    struct Batch: Equatable {
        var epoch: UInt32
        var firstSequence: UInt64
        var lastSequence: UInt64
        var syncedSequence: UInt64
        var records: Range<Int>
        /// The first byte behind it and its filling.
        var end: Int
    }

    /// Why a header cannot be read.
    enum HeaderFault: Error, Equatable {
        case newerFormat(UInt32)
        case olderFormat(UInt32)
        case unreadable
    }

    /// The next multiple of a block's bytes.
    static func padded(_ count: Int) -> Int {
        (count + blockBytes - 1) / blockBytes * blockBytes
    }
}

extension LogFormat {
    /// The name of the segment that begins with `firstSequence`.
    static func segmentName(_ firstSequence: UInt64) -> String {
        name(segmentPrefix, firstSequence)
    }

    /// The first sequence number of the segment called `name`; nil for another file.
    static func firstSequence(segmentName name: String) -> UInt64? {
        sequence(name, segmentPrefix)
    }

    /// The name of the snapshot on top of which the log is replayed from `firstSequence` on.
    static func snapshotName(_ firstSequence: UInt64) -> String {
        name(snapshotPrefix, firstSequence)
    }

    /// The first sequence number to replay on the snapshot called `name`; nil for another file.
    static func firstSequence(snapshotName name: String) -> UInt64? {
        sequence(name, snapshotPrefix)
    }

    private static let segmentPrefix = "log-"
    private static let snapshotPrefix = "snapshot-"

    private static func name(_ prefix: String, _ sequence: UInt64) -> String {
        var bytes: [UInt8] = []
        bytes.append(bigEndian: sequence)
        return prefix + Hex.encode(bytes)
    }

    private static func sequence(_ name: String, _ prefix: String) -> UInt64? {
        guard name.hasPrefix(prefix), name.utf8.count == prefix.utf8.count + 16,
            let bytes = Hex.decode(String(name.dropFirst(prefix.count)))
        else { return nil }
        var reader = ByteReader(bytes)
        guard let sequence = reader.readUInt64(), self.name(prefix, sequence) == name else {
            return nil
        }
        return sequence
    }
}

extension LogFormat {
    static func encode(_ meta: Meta) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.append(bigEndian: version)
        bytes.append(bigEndian: meta.storeID.high)
        bytes.append(bigEndian: meta.storeID.low)
        bytes.append(bigEndian: meta.epoch)
        bytes.append(bigEndian: meta.secrets.previous?.until ?? 0)
        bytes.append(bigEndian: meta.newestSegment)
        bytes.append(meta.secrets.current)
        bytes.append(meta.secrets.previous?.secret ?? Bytes32())
        bytes.append(meta.isUncertain ? 1 : 0)
        return sealed(metaMagic, bytes)
    }

    static func parseMeta(_ bytes: [UInt8]) throws(HeaderFault) -> Meta {
        var reader = try opened(metaMagic, bytes)
        guard bytes.count == blockBytes, let high = reader.readUInt64(),
            let low = reader.readUInt64(), let epoch = reader.readUInt32(),
            let until = reader.readUInt32(), let newest = reader.readUInt64(),
            let current = reader.readBytes32(), let previous = reader.readBytes32(),
            let flag = reader.readByte(), flag < 2
        else { throw .unreadable }
        return Meta(
            storeID: StoreID(high: high, low: low), epoch: epoch, newestSegment: newest,
            secrets: StoreSecrets(
                current: current,
                previous: until == 0
                    ? nil : StoreSecrets.Previous(secret: previous, until: until)),
            isUncertain: flag == 1)
    }

    static func encode(_ header: SegmentHeader) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.append(bigEndian: version)
        bytes.append(bigEndian: header.storeID.high)
        bytes.append(bigEndian: header.storeID.low)
        bytes.append(bigEndian: header.epoch)
        bytes.append(bigEndian: header.byteCount)
        bytes.append(bigEndian: header.firstSequence)
        return sealed(segmentMagic, bytes)
    }

    static func parseSegmentHeader(_ bytes: [UInt8]) throws(HeaderFault) -> SegmentHeader {
        var reader = try opened(segmentMagic, bytes)
        guard let high = reader.readUInt64(), let low = reader.readUInt64(),
            let epoch = reader.readUInt32(), let byteCount = reader.readUInt32(),
            let first = reader.readUInt64()
        else { throw .unreadable }
        return SegmentHeader(
            storeID: StoreID(high: high, low: low), epoch: epoch, byteCount: byteCount,
            firstSequence: first)
    }

    /// A block of `magic`, the checksum of the rest, and `body`.
    static func sealed(_ magic: [UInt8], _ body: [UInt8]) -> [UInt8] {
        let rest = body + [UInt8](repeating: 0, count: blockBytes - magic.count - 4 - body.count)
        var bytes = magic
        bytes.append(bigEndian: CRC32C.checksum(rest))
        return bytes + rest
    }

    /// A reader behind the version of a block that ``sealed(_:_:)`` made.
    static func opened(
        _ magic: [UInt8], _ bytes: [UInt8]
    ) throws(HeaderFault) -> ByteReader {
        guard bytes.count >= blockBytes, bytes[..<8].elementsEqual(magic) else { throw .unreadable }
        var reader = ByteReader(bytes, 8..<blockBytes)
        guard let checksum = reader.readUInt32(), let found = reader.readUInt32() else {
            throw .unreadable
        }
        guard found <= version else { throw .newerFormat(found) }
        guard checksum == CRC32C.checksum(bytes, 12..<blockBytes), found > 0 else {
            throw .unreadable
        }
        guard found == version else { throw .olderFormat(found) }
        return reader
    }
}

extension LogFormat {
    /// Fills in the header of a batch whose first ``batchHeaderBytes`` are free and whose records
    /// follow, and pads it.
    static func seal(
        _ bytes: inout [UInt8], epoch: UInt32, first: UInt64, last: UInt64, synced: UInt64
    ) {
        var header: [UInt8] = []
        header.append(bigEndian: batchMagic)
        header.append(bigEndian: UInt32(0))
        header.append(bigEndian: UInt32(bytes.count))
        header.append(bigEndian: epoch)
        header.append(bigEndian: first)
        header.append(bigEndian: last)
        header.append(bigEndian: synced)
        bytes.replaceSubrange(0..<batchHeaderBytes, with: header)
        bytes.append(
            contentsOf: repeatElement(0, count: padded(bytes.count) - bytes.count))
        let checksum = CRC32C.checksum(bytes, 8..<bytes.count)
        for index in 0..<4 {
            bytes[4 + index] = UInt8(truncatingIfNeeded: checksum >> UInt32(24 - 8 * index))
        }
    }

    /// The batch at `offset` of a segment; nil when there is no valid one. Whether its records are
    /// good is for who reads them.
    static func parseBatch(_ bytes: [UInt8], at offset: Int) -> Batch? {
        guard offset + batchHeaderBytes <= bytes.count else { return nil }
        var reader = ByteReader(bytes, offset..<bytes.count)
        guard reader.readUInt32() == batchMagic, let checksum = reader.readUInt32(),
            let length = reader.readUInt32(), length >= batchHeaderBytes,
            padded(Int(length)) <= bytes.count - offset, let epoch = reader.readUInt32(),
            let first = reader.readUInt64(), let last = reader.readUInt64(),
            let synced = reader.readUInt64(), synced < first, first <= last
        else { return nil }
        let end = offset + padded(Int(length))
        guard CRC32C.checksum(bytes, (offset + 8)..<end) == checksum else { return nil }
        return Batch(
            epoch: epoch, firstSequence: first, lastSequence: last, syncedSequence: synced,
            records: (offset + batchHeaderBytes)..<(offset + Int(length)), end: end)
    }
}
