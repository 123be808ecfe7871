internal import GateBytes

/// One change of the store, as the log keeps it.
///
/// A record is a type byte and its fields, big endian, one after the other; a text is two bytes of
/// length and its bytes.
/// ```
/// challenge  nonce 16 · expiry 4 (unix seconds)
/// 1 admit    key ID 32 · counter 4 · time 4 · flags 1 (1 revokes the key, 2 a challenge follows)
///            · [challenge 20]
/// 2 enrol    key ID 32 · x 32 · y 32 · counter 4 · time 4 · environment 1 · category 1 (255 none)
///            · account text · app text · version 1 (1 a text follows) · [bundle version text]
///            · place of the receipt 8 (ReceiptFormat.swift) · next refresh 4 (0 none)
///            · challenge 20
/// 3 revoke   key ID 32 · time 4
/// 4 spend    challenge 20
/// 5 block    time 4 · blocked 1 (0 or 1) · account text
/// 6 token    hash of a DeviceCheck token 32 · time 4, when it was spent
/// 7 receipt  key ID 32 · flags 1 (1 a place follows, 2 a metric follows) · next refresh 4 (0 none)
///            · [place of the receipt 8] · [metric 2 · time of the metric 4]
/// 8 replace  key ID 32, which is revoked in the same step · what 2 has
/// ```
/// Every record may be replayed more than once: a counter takes the maximum, a set inserts, a
/// revocation sticks, and the last block record of an account and the last receipt record of a key
/// hold.
enum Record: Equatable {
    case admit(Admit)
    case block(account: [UInt8], isBlocked: Bool, time: UInt32)
    case enrol(Enrolment)
    case receipt(Receipt)
    case revoke(keyID: Bytes32, time: UInt32)
    case spend(SpentChallenge)
    case token(Bytes32, time: UInt32)

    /// A key; its receipt's bytes are elsewhere.
    struct Enrolment: Equatable {
        var key: NewKey
        var receipt: ReceiptLocation?
        var challenge: SpentChallenge
        var time: UInt32
        /// The key that makes room for it; nil where there is room.
        var retired: Bytes32?
    }

    struct Receipt: Equatable {
        var keyID: Bytes32
        /// Nil where the receipt stays.
        var place: ReceiptLocation?
        var update: ReceiptUpdate
    }

    struct Admit: Equatable {
        var keyID: Bytes32
        var counter: UInt32
        var time: UInt32
        var isRevoking: Bool
        var challenge: SpentChallenge?
    }

    /// Whether every text fits its length; one that does not is never written.
    var isEncodable: Bool {
        switch self {
        case .admit, .receipt, .revoke, .spend, .token:
            true
        case .block(let account, _, _):
            account.count <= StoreLimits.textBytesMax
        case .enrol(let enrolment):
            [
                enrolment.key.account.count, enrolment.key.app.utf8.count,
                enrolment.key.bundleVersion?.utf8.count ?? 0,
            ].allSatisfy { $0 <= StoreLimits.textBytesMax } && enrolment.key.category != 255
        }
    }

    /// The bytes it takes, or a few more.
    var byteCountMax: Int {
        switch self {
        case .admit: 62
        case .block(let account, _, _): 8 + account.count
        case .enrol(let enrolment):
            148 + enrolment.key.account.count + enrolment.key.app.utf8.count
                + (enrolment.key.bundleVersion?.utf8.count ?? 0)
                + (enrolment.retired == nil ? 0 : 32)
        case .receipt: 52
        case .revoke: 37
        case .spend: 21
        case .token: 37
        }
    }
}

extension Record {
    /// Appends the record to `bytes`.
    func encode(to bytes: inout [UInt8]) {
        switch self {
        case .admit(let admit):
            admit.encode(to: &bytes)
        case .block(let account, let isBlocked, let time):
            bytes.append(5)
            bytes.append(bigEndian: time)
            bytes.append(isBlocked ? 1 : 0)
            bytes.append(text: account)
        case .enrol(let enrolment):
            bytes.append(enrolment.retired == nil ? 2 : 8)
            if let retired = enrolment.retired { bytes.append(retired) }
            Record.encode(enrolment.key, enrolment.time, to: &bytes)
            bytes.append(bigEndian: enrolment.receipt?.packed ?? 0)
            bytes.append(bigEndian: enrolment.key.refreshAt ?? 0)
            bytes.append(enrolment.challenge)
        case .receipt(let receipt):
            bytes.append(7)
            receipt.encode(to: &bytes)
        case .revoke(let keyID, let time):
            bytes.append(3)
            bytes.append(keyID)
            bytes.append(bigEndian: time)
        case .spend(let challenge):
            bytes.append(4)
            bytes.append(challenge)
        case .token(let hash, let time):
            bytes.append(6)
            bytes.append(hash)
            bytes.append(bigEndian: time)
        }
    }

    private static func encode(_ key: NewKey, _ time: UInt32, to bytes: inout [UInt8]) {
        bytes.append(key.keyID)
        bytes.append(key.publicKey.x)
        bytes.append(key.publicKey.y)
        bytes.append(bigEndian: key.signCounter)
        bytes.append(bigEndian: time)
        bytes.append(key.environment)
        bytes.append(key.category ?? 255)
        bytes.append(text: key.account)
        bytes.append(text: Array(key.app.utf8))
        bytes.append(key.bundleVersion == nil ? 0 : 1)
        if let version = key.bundleVersion { bytes.append(text: Array(version.utf8)) }
    }

    /// The next record of `reader`; nil when the bytes there are none.
    static func parse(_ reader: inout ByteReader) -> Record? {
        switch reader.readByte() {
        case 1: parseAdmit(&reader)
        case 2: parseEnrol(&reader, retired: nil)
        case 3: parseRevoke(&reader)
        case 4: reader.readChallenge().map(Record.spend)
        case 5: parseBlock(&reader)
        case 6: parseToken(&reader)
        case 7: parseReceipt(&reader)
        case 8: reader.readBytes32().flatMap { parseEnrol(&reader, retired: $0) }
        default: nil
        }
    }

    private static func parseAdmit(_ reader: inout ByteReader) -> Record? {
        guard let keyID = reader.readBytes32(), let counter = reader.readUInt32(),
            let time = reader.readUInt32(), let flags = reader.readByte(), flags < 4
        else { return nil }
        var challenge: SpentChallenge?
        if flags & 2 != 0 {
            challenge = reader.readChallenge()
            guard challenge != nil else { return nil }
        }
        return .admit(
            Admit(
                keyID: keyID, counter: counter, time: time, isRevoking: flags & 1 != 0,
                challenge: challenge))
    }

    private static func parseBlock(_ reader: inout ByteReader) -> Record? {
        guard let time = reader.readUInt32(), let flag = reader.readByte(), flag < 2,
            let account = reader.readText()
        else { return nil }
        return .block(account: account, isBlocked: flag == 1, time: time)
    }

    private static func parseRevoke(_ reader: inout ByteReader) -> Record? {
        guard let keyID = reader.readBytes32(), let time = reader.readUInt32() else { return nil }
        return .revoke(keyID: keyID, time: time)
    }

    private static func parseToken(_ reader: inout ByteReader) -> Record? {
        guard let hash = reader.readBytes32(), let time = reader.readUInt32() else { return nil }
        return .token(hash, time: time)
    }

    private static func parseEnrol(_ reader: inout ByteReader, retired: Bytes32?) -> Record? {
        guard let keyID = reader.readBytes32(), let x = reader.readBytes32(),
            let y = reader.readBytes32(), let counter = reader.readUInt32(),
            let time = reader.readUInt32(), let environment = reader.readByte(),
            let category = reader.readByte(), let account = reader.readText(),
            let app = reader.readText(), let hasVersion = reader.readByte(), hasVersion < 2
        else { return nil }
        var version: [UInt8]?
        if hasVersion == 1 {
            version = reader.readText()
            guard version != nil else { return nil }
        }
        guard let place = reader.readUInt64(), let refreshAt = reader.readUInt32(),
            let challenge = reader.readChallenge()
        else { return nil }
        let key = NewKey(
            keyID: keyID, publicKey: P256Point(x: x, y: y), account: account,
            app: String(decoding: app, as: UTF8.self), environment: environment,
            signCounter: counter, refreshAt: refreshAt == 0 ? nil : refreshAt,
            category: category == 255 ? nil : category,
            bundleVersion: version.map { String(decoding: $0, as: UTF8.self) })
        return .enrol(
            Enrolment(
                key: key, receipt: ReceiptLocation(packed: place), challenge: challenge,
                time: time, retired: retired))
    }

    private static func parseReceipt(_ reader: inout ByteReader) -> Record? {
        guard let keyID = reader.readBytes32(), let flags = reader.readByte(), flags < 4,
            let refreshAt = reader.readUInt32()
        else { return nil }
        var update = ReceiptUpdate(refreshAt: refreshAt == 0 ? nil : refreshAt)
        var place: ReceiptLocation?
        if flags & 1 != 0 {
            place = reader.readUInt64().flatMap(ReceiptLocation.init(packed:))
            guard place != nil else { return nil }
        }
        if flags & 2 != 0 {
            guard let metric = reader.readUInt16(), metric <= RiskMetric.valueMax,
                let time = reader.readUInt32()
            else { return nil }
            update.metric = RiskMetric(UInt32(metric), time: time)
        }
        return .receipt(Receipt(keyID: keyID, place: place, update: update))
    }
}

extension Record.Receipt {
    fileprivate func encode(to bytes: inout [UInt8]) {
        bytes.append(keyID)
        bytes.append((place == nil ? 0 : 1) | (update.metric == nil ? 0 : 2))
        bytes.append(bigEndian: update.refreshAt ?? 0)
        if let place { bytes.append(bigEndian: place.packed) }
        if let metric = update.metric {
            bytes.append(bigEndian: metric.value)
            bytes.append(bigEndian: metric.time)
        }
    }
}

extension Record.Admit {
    /// The record of every request: written into room made once, not byte by byte with a look at
    /// the room each time.
    fileprivate func encode(to bytes: inout [UInt8]) {
        bytes.append(addingCapacity: 62) { (output: inout OutputSpan<UInt8>) in
            output.append(1)
            for word in 0..<4 { output.append(keyID[word: word], byteCount: 8) }
            output.append(UInt64(counter), byteCount: 4)
            output.append(UInt64(time), byteCount: 4)
            output.append((isRevoking ? 1 : 0) | (challenge != nil ? 2 : 0))
            guard let challenge else { return }
            output.append(challenge.nonceHigh, byteCount: 8)
            output.append(challenge.nonceLow, byteCount: 8)
            output.append(UInt64(challenge.expiry), byteCount: 4)
        }
    }
}

extension OutputSpan<UInt8> {
    /// Appends the low bytes of `value`, big endian.
    @inline(__always)
    fileprivate mutating func append(_ value: UInt64, byteCount: Int) {
        for index in (0..<byteCount).reversed() {
            append(UInt8(truncatingIfNeeded: value >> UInt64(8 * index)))
        }
    }
}

extension Array where Element == UInt8 {
    fileprivate mutating func append(_ challenge: SpentChallenge) {
        append(bigEndian: challenge.nonceHigh)
        append(bigEndian: challenge.nonceLow)
        append(bigEndian: challenge.expiry)
    }

    /// Appends two bytes of length and the bytes.
    mutating func append(text: [UInt8]) {
        append(bigEndian: UInt16(text.count))
        append(contentsOf: text)
    }
}

extension ByteReader {
    fileprivate mutating func readChallenge() -> SpentChallenge? {
        guard let high = readUInt64(), let low = readUInt64(), let expiry = readUInt32() else {
            return nil
        }
        return SpentChallenge(nonceHigh: high, nonceLow: low, expiry: expiry)
    }

    /// Takes what `append(text:)` wrote.
    mutating func readText() -> [UInt8]? {
        guard let count = readUInt16() else { return nil }
        return readBytes(Int(count))
    }
}
