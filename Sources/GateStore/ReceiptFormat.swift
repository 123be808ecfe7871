// The receipts of a store, in files of their own beside the log, byte for byte. Integers are big
// endian; what is not named is zero.
//
//   receipts-FFFFFFFF    a segment, named for its number in 8 hexadecimal digits, from 1 up
//   receipts.tmp         a half-made one of an earlier start, removed by the next
//
// segment: a header of 512 bytes, then entries, then zeros to its size
//     0   8  magic "AGSTRCP1"
//     8   4  CRC-32C of bytes 12 to 511
//    12   4  format version, 2
//    16  16  store id
//    32   4  number
//    36   4  size of the segment in bytes
//
// entry: begins at a multiple of 16, filled with zeros to the next one
//     0   4  magic "AGR1"
//     4   4  CRC-32C of everything behind it, the filling included
//     8   4  length of the receipt, 1 to 65535
//    12   4  zero
//    16  32  key ID
//    48      the receipt
//
// An entry is synced before the record of the log that names its place (Record.swift) is written,
// so every place that the log names is readable after any crash. The other way round nothing is
// promised: an entry that no record names is an orphan of a crash or of a refused enrolment, or has
// been replaced by a later receipt of its key; it is never read and takes its space until segments
// are compacted. A start goes on behind the last byte of the newest segment that is not zero or
// belongs to a place that the log names, so nothing is ever written over.
//
// A place is one number: segment 24 bits · offset in sixteens 24 bits · length 16 bits. 0 is none.
internal import GateBytes

enum ReceiptFormat {
    static let entryHeaderBytes = 48
    static let alignment = 16
    /// A segment of 16 MiB holds some 4,000 receipts.
    static let segmentBytes = 16 << 20
    static let temporaryName = "receipts.tmp"

    private static let segmentMagic = Array("AGSTRCP1".utf8)
    private static let entryMagic: UInt32 = 0x4147_5231

    /// What a segment's header says.
    struct SegmentHeader: Equatable {
        var storeID: LogFormat.StoreID
        var number: UInt32
        var byteCount: UInt32
    }

    /// The next multiple of ``alignment``.
    static func padded(_ count: Int) -> Int {
        (count + alignment - 1) / alignment * alignment
    }

    /// The bytes that an entry with a receipt of `count` bytes takes.
    static func entryBytes(_ count: Int) -> Int {
        padded(entryHeaderBytes + count)
    }

    /// The name of a segment.
    static func segmentName(_ number: UInt32) -> String {
        var bytes: [UInt8] = []
        bytes.append(bigEndian: number)
        return "receipts-" + Hex.encode(bytes)
    }

    /// The number of the segment called `name`; nil for another file.
    static func number(segmentName name: String) -> UInt32? {
        guard name.hasPrefix("receipts-"), name.utf8.count == 17,
            let bytes = Hex.decode(String(name.dropFirst(9)))
        else { return nil }
        var reader = ByteReader(bytes)
        guard let number = reader.readUInt32(), segmentName(number) == name else { return nil }
        return number
    }

    static func encode(_ header: SegmentHeader) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.append(bigEndian: LogFormat.version)
        bytes.append(bigEndian: header.storeID.high)
        bytes.append(bigEndian: header.storeID.low)
        bytes.append(bigEndian: header.number)
        bytes.append(bigEndian: header.byteCount)
        return LogFormat.sealed(segmentMagic, bytes)
    }

    static func parseSegmentHeader(
        _ bytes: [UInt8]
    ) throws(LogFormat.HeaderFault) -> SegmentHeader {
        var reader = try LogFormat.opened(segmentMagic, bytes)
        guard let high = reader.readUInt64(), let low = reader.readUInt64(),
            let number = reader.readUInt32(), let byteCount = reader.readUInt32()
        else { throw .unreadable }
        return SegmentHeader(
            storeID: LogFormat.StoreID(high: high, low: low), number: number,
            byteCount: byteCount)
    }

    /// The entry of a receipt.
    static func encode(_ receipt: [UInt8], of keyID: Bytes32) -> [UInt8] {
        var rest: [UInt8] = []
        rest.append(bigEndian: UInt32(receipt.count))
        rest.append(bigEndian: UInt32(0))
        rest.append(keyID)
        rest += receipt
        let count = entryBytes(receipt.count)
        rest.append(contentsOf: repeatElement(0, count: count - 8 - rest.count))
        var bytes: [UInt8] = []
        bytes.append(bigEndian: entryMagic)
        bytes.append(bigEndian: CRC32C.checksum(rest))
        return bytes + rest
    }

    /// The receipt in the entry that `bytes` are; nil unless they are the one of `keyID`.
    static func parseEntry(_ bytes: [UInt8], of keyID: Bytes32) -> [UInt8]? {
        var reader = ByteReader(bytes)
        guard reader.readUInt32() == entryMagic, let checksum = reader.readUInt32(),
            checksum == CRC32C.checksum(bytes, 8..<bytes.count),
            let length = reader.readUInt32(), entryBytes(Int(length)) == bytes.count,
            reader.readUInt32() == 0, reader.readBytes32() == keyID
        else { return nil }
        return reader.readBytes(Int(length))
    }
}

/// Where a receipt is.
package struct ReceiptLocation: Sendable, Hashable {
    let segment: UInt32
    /// A multiple of 16.
    let offset: Int
    let length: Int

    /// The last segment that a place can name.
    static let segmentMax: UInt32 = 0xff_ffff
    /// What a place can name of a segment.
    static let segmentBytesMax = 0xff_ffff * ReceiptFormat.alignment

    init(segment: UInt32, offset: Int, length: Int) {
        self.segment = segment
        self.offset = offset
        self.length = length
    }

    /// The place that a number is; nil for 0.
    init?(packed: UInt64) {
        guard packed != 0 else { return nil }
        segment = UInt32(packed >> 40)
        offset = Int(packed >> 16 & 0xff_ffff) * ReceiptFormat.alignment
        length = Int(packed & 0xffff)
    }

    /// The place as a number; later places in the files are greater.
    var packed: UInt64 {
        UInt64(segment) << 40 | UInt64(offset / ReceiptFormat.alignment) << 16 | UInt64(length)
    }

    /// Where the entry ends.
    var end: Int { offset + ReceiptFormat.entryBytes(length) }
}
