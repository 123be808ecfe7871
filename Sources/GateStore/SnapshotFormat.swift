// A snapshot, byte for byte. Integers are big endian; what is not named is zero.
//
// The file begins with a header of 512 bytes, then come batches as in a segment (LogFormat.swift):
// they begin at multiples of 512, carry the same header and checksum, number the snapshot's own
// records from 1 up, and know nothing as synced (0). The last batch holds one record, the end;
// zeros follow it.
//
// header
//     0   8  magic "AGSTSNP1"
//     8   4  CRC-32C of bytes 12 to 511
//    12   4  format version, 2
//    16  16  store id
//    32   4  epoch when it was begun
//    36   4  unix seconds when it was begun
//    40   8  first sequence number that is to be replayed on top of it
//
// records: a type byte and its fields; a text is two bytes of length and its bytes
//    1 key      key ID 32 · x 32 · y 32 · counter 4 · enrolled 4 · last used 4 · challenge epoch 4
//               · place of the receipt 8 (0 none) · metric 2 (65535 none) · metric time 4
//               · next refresh 4 (0 none) · environment 1 · category 1 (255 none)
//               · flags 1 (1 revoked, 2 a bundle version follows) · account text · app text
//               · [bundle version text]
//    2 spent    generation 4 (expiry / 256) · count 4 · so many nonces of 16
//    3 blocked  account text
//    5 tokens   day 4 (unix seconds / 86400) · count 4 · so many hashes of 32
//    4 end      last sequence number 8 · oldest generation 4 · keys 8
//
// A snapshot is fuzzy: shards are read one after the other while the store works, so it holds some
// of what the records from its first number on did. It is published only once the last record
// appended before its end is synced; so the log behind it holds all of these, and a log that ends
// before that last number has lost some. Spent challenges of generations below the oldest are
// forgotten and stay refused.
internal import GateBytes

enum SnapshotFormat {
    static let temporaryName = "snapshot.tmp"
    private static let magic = Array("AGSTSNP1".utf8)

    /// What a snapshot's header says.
    struct Header: Equatable {
        var storeID: LogFormat.StoreID
        var epoch: UInt32
        var begunAt: UInt32
        var firstSequence: UInt64
    }

    /// One record of a snapshot.
    enum Item: Equatable {
        case key(KeyRecord)
        case spent(generation: UInt32, nonces: [SpentTable.Nonce])
        case blocked([UInt8])
        case tokens(day: UInt32, hashes: [Bytes32])
        case end(End)
    }

    /// The last record.
    struct End: Equatable {
        var lastSequence: UInt64
        var oldestGeneration: UInt32
        var keys: UInt64
    }

    static func encode(_ header: Header) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.append(bigEndian: LogFormat.version)
        bytes.append(bigEndian: header.storeID.high)
        bytes.append(bigEndian: header.storeID.low)
        bytes.append(bigEndian: header.epoch)
        bytes.append(bigEndian: header.begunAt)
        bytes.append(bigEndian: header.firstSequence)
        return LogFormat.sealed(magic, bytes)
    }

    static func parseHeader(_ bytes: [UInt8]) throws(LogFormat.HeaderFault) -> Header {
        var reader = try LogFormat.opened(magic, bytes)
        guard let high = reader.readUInt64(), let low = reader.readUInt64(),
            let epoch = reader.readUInt32(), let begunAt = reader.readUInt32(),
            let first = reader.readUInt64()
        else { throw .unreadable }
        return Header(
            storeID: LogFormat.StoreID(high: high, low: low), epoch: epoch, begunAt: begunAt,
            firstSequence: first)
    }
}

extension SnapshotFormat.Item {
    /// Appends the record to `bytes`.
    func encode(to bytes: inout [UInt8]) {
        switch self {
        case .key(let key):
            bytes.append(1)
            Self.encode(key, to: &bytes)
        case .spent(let generation, let nonces):
            bytes.append(2)
            bytes.append(bigEndian: generation)
            bytes.append(bigEndian: UInt32(nonces.count))
            for nonce in nonces {
                bytes.append(bigEndian: nonce.high)
                bytes.append(bigEndian: nonce.low)
            }
        case .blocked(let account):
            bytes.append(3)
            bytes.append(text: account)
        case .tokens(let day, let hashes):
            bytes.append(5)
            bytes.append(bigEndian: day)
            bytes.append(bigEndian: UInt32(hashes.count))
            for hash in hashes { bytes.append(hash) }
        case .end(let end):
            bytes.append(4)
            bytes.append(bigEndian: end.lastSequence)
            bytes.append(bigEndian: end.oldestGeneration)
            bytes.append(bigEndian: end.keys)
        }
    }

    private static func encode(_ key: KeyRecord, to bytes: inout [UInt8]) {
        bytes.append(key.keyID)
        bytes.append(key.publicKey.x)
        bytes.append(key.publicKey.y)
        bytes.append(bigEndian: key.signCounter)
        bytes.append(bigEndian: key.enrolledAt)
        bytes.append(bigEndian: key.lastUsedAt)
        bytes.append(bigEndian: key.challengeEpoch)
        bytes.append(bigEndian: key.receipt?.packed ?? 0)
        bytes.append(bigEndian: key.metric?.value ?? .max)
        bytes.append(bigEndian: key.metric?.time ?? 0)
        bytes.append(bigEndian: key.refreshAt ?? 0)
        bytes.append(key.environment)
        bytes.append(key.category ?? 255)
        bytes.append((key.isRevoked ? 1 : 0) | (key.bundleVersion != nil ? 2 : 0))
        bytes.append(text: key.account)
        bytes.append(text: Array(key.app.utf8))
        if let version = key.bundleVersion { bytes.append(text: Array(version.utf8)) }
    }

    /// The next record of `reader`; nil when the bytes there are none.
    static func parse(_ reader: inout ByteReader) -> SnapshotFormat.Item? {
        switch reader.readByte() {
        case 1: return parseKey(&reader).map(SnapshotFormat.Item.key)
        case 2: return parseSpent(&reader)
        case 3: return reader.readText().map(SnapshotFormat.Item.blocked)
        case 4:
            guard let last = reader.readUInt64(), let oldest = reader.readUInt32(),
                let keys = reader.readUInt64()
            else { return nil }
            return .end(
                SnapshotFormat.End(lastSequence: last, oldestGeneration: oldest, keys: keys))
        case 5: return parseTokens(&reader)
        default: return nil
        }
    }

    private static func parseTokens(_ reader: inout ByteReader) -> SnapshotFormat.Item? {
        guard let day = reader.readUInt32(), let count = reader.readUInt32(),
            Int(count) <= reader.remaining / Bytes32.count
        else { return nil }
        var hashes: [Bytes32] = []
        for _ in 0..<count {
            guard let hash = reader.readBytes32() else { return nil }
            hashes.append(hash)
        }
        return .tokens(day: day, hashes: hashes)
    }

    private static func parseKey(_ reader: inout ByteReader) -> KeyRecord? {
        guard let keyID = reader.readBytes32(), let x = reader.readBytes32(),
            let y = reader.readBytes32(), let counter = reader.readUInt32(),
            let enrolled = reader.readUInt32(), let used = reader.readUInt32(),
            let epoch = reader.readUInt32(), let receipt = reader.readUInt64(),
            let metric = reader.readUInt16(), let metricTime = reader.readUInt32(),
            let refresh = reader.readUInt32(),
            let environment = reader.readByte(), let category = reader.readByte(),
            let flags = reader.readByte(), flags < 4, let account = reader.readText(),
            let app = reader.readText()
        else { return nil }
        var version: String?
        if flags & 2 != 0 {
            guard let text = reader.readText() else { return nil }
            version = String(decoding: text, as: UTF8.self)
        }
        return KeyRecord(
            keyID: keyID, publicKey: P256Point(x: x, y: y), account: account,
            app: String(decoding: app, as: UTF8.self), environment: environment,
            signCounter: counter, isRevoked: flags & 1 != 0, enrolledAt: enrolled,
            lastUsedAt: used, challengeEpoch: epoch,
            category: category == 255 ? nil : category, bundleVersion: version,
            receipt: ReceiptLocation(packed: receipt),
            metric: metric == .max ? nil : RiskMetric(UInt32(metric), time: metricTime),
            refreshAt: refresh == 0 ? nil : refresh)
    }

    private static func parseSpent(_ reader: inout ByteReader) -> SnapshotFormat.Item? {
        guard let generation = reader.readUInt32(), let count = reader.readUInt32(),
            Int(count) <= reader.remaining / 16
        else { return nil }
        var nonces: [SpentTable.Nonce] = []
        nonces.reserveCapacity(Int(count))
        for _ in 0..<count {
            guard let high = reader.readUInt64(), let low = reader.readUInt64() else { return nil }
            nonces.append(SpentTable.Nonce(high: high, low: low))
        }
        return .spent(generation: generation, nonces: nonces)
    }
}
