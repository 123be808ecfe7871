import GateBytes
import GateLock
import GateSimulation
import GateStore

/// A moment, in unix seconds.
let noon: UInt32 = 1_000_000

/// Thirty-two times `byte`.
func bytes32(_ byte: UInt8) -> Bytes32 {
    Bytes32([UInt8](repeating: byte, count: 32)) ?? Bytes32()
}

/// A challenge whose nonce is sixteen times `byte`.
func challenge(_ byte: UInt8, expiry: UInt32 = noon + 300) -> SpentChallenge {
    let word = UInt64(byte) &* 0x0101_0101_0101_0101
    return SpentChallenge(nonceHigh: word, nonceLow: word, expiry: expiry)
}

/// A challenge of its own for each number.
func challenge(number: Int, expiry: UInt32 = noon + 300) -> SpentChallenge {
    var generator = SeededGenerator(seed: UInt64(number))
    return SpentChallenge(
        nonceHigh: generator.next(), nonceLow: generator.next(), expiry: expiry)
}

func newKey(
    _ byte: UInt8, account: String = "alice", app: String = "shop", environment: UInt8 = 0,
    receipt: [UInt8] = []
) -> NewKey {
    NewKey(
        keyID: bytes32(byte), publicKey: P256Point(x: bytes32(byte), y: bytes32(byte)),
        account: Array(account.utf8), app: app, environment: environment, receipt: receipt)
}

func options(
    now: UInt32 = noon, shards: Int = 4, segmentBytes: Int = 8192, keysMax: Int = 1000,
    writer: StoreOptions.Writer = .stepped,
    onStateChange: @escaping @Sendable (StoreState) -> Void = { _ in }
) -> StoreOptions {
    StoreOptions(
        shards: shards, keysMax: keysMax, now: now, segmentBytes: segmentBytes,
        receiptSegmentBytes: 8192, writer: writer,
        onStateChange: onStateChange)
}

/// The notices of one store.
final class Notices: Sendable {
    private let kept = Lock<[StoreNotice]>([])

    var all: [StoreNotice] { kept.withLock { $0 } }
    var log: @Sendable (StoreNotice) -> Void {
        { notice in self.kept.withLock { $0.append(notice) } }
    }
}

extension Store {
    /// Admits and turns the writer; nil when that did not answer exactly once.
    func admitNow(
        _ challenge: SpentChallenge?, _ key: UInt8, _ counter: UInt32, revoking: Bool = false,
        now: UInt32 = noon
    ) -> AdmitOutcome? {
        let reply = Reply<AdmitOutcome>()
        admit(
            challenge: challenge, keyID: bytes32(key), counter: counter, revoking: revoking,
            now: now, reply: reply.call)
        step()
        return reply.outcome
    }

    /// Enrols and turns the writer; nil when that did not answer exactly once.
    func enrolNow(
        _ key: NewKey, _ challenge: SpentChallenge, keysPerAccount: Int = 0, now: UInt32 = noon
    ) -> EnrolOutcome? {
        let reply = Reply<EnrolOutcome>()
        enrol(
            key, challenge: challenge, keysPerAccount: keysPerAccount, now: now, reply: reply.call)
        step()
        return reply.outcome
    }

    /// Keeps a receipt and turns the writers; nil when that did not answer exactly once.
    func keepNow(_ receipt: [UInt8], _ key: UInt8, _ update: ReceiptUpdate) -> ReceiptOutcome? {
        let reply = Reply<ReceiptOutcome>()
        keep(receipt: receipt, of: bytes32(key), update, reply: reply.call)
        step()
        return reply.outcome
    }

    /// Updates and turns the writers; nil when that did not answer exactly once.
    func updateNow(_ key: UInt8, _ update: ReceiptUpdate) -> ReceiptOutcome? {
        let reply = Reply<ReceiptOutcome>()
        self.update(receiptOf: bytes32(key), update, reply: reply.call)
        step()
        return reply.outcome
    }

    /// The receipt of a key; nil without one.
    func receiptNow(_ key: UInt8) -> [UInt8]? {
        guard let record = self.key(bytes32(key)) else { return nil }
        let reply = Reply<[UInt8]?>()
        receipt(of: record, reply: reply.call)
        step()
        return reply.outcome ?? nil
    }

    /// Revokes and turns the writer; nil when that did not answer exactly once.
    func revokeNow(
        _ key: UInt8, account: String? = nil, app: String? = nil, now: UInt32 = noon
    ) -> RevokeOutcome? {
        let reply = Reply<RevokeOutcome>()
        revoke(
            keyID: bytes32(key), account: account.map { Array($0.utf8) }, app: app, now: now,
            reply: reply.call)
        step()
        return reply.outcome
    }

    /// Blocks or unblocks and turns the writer; nil when that did not answer exactly once.
    func blockNow(_ account: String, _ isBlocked: Bool = true, now: UInt32 = noon) -> BlockOutcome?
    {
        let reply = Reply<BlockOutcome>()
        block(account: Array(account.utf8), isBlocked: isBlocked, now: now, reply: reply.call)
        step()
        return reply.outcome
    }
}

extension Store {
    /// Spends a token and turns the writer; nil when that did not answer exactly once.
    func spendTokenNow(_ hash: Bytes32, now: UInt32 = noon) -> TokenOutcome? {
        let reply = Reply<TokenOutcome>()
        spendToken(hash, now: now, reply: reply.call)
        step()
        return reply.outcome
    }
}

/// A segment's name by its first sequence number.
func segmentName(_ first: Int) -> String {
    let digits = String(first, radix: 16)
    return "log-" + String(repeating: "0", count: 16 - digits.count) + digits
}

/// A snapshot's name by the first sequence number that is replayed on top of it.
func snapshotName(_ first: Int) -> String {
    segmentName(first).replacing("log-", with: "snapshot-")
}
