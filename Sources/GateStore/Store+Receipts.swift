package import GateBytes
internal import GateLock

/// What is new about a key's receipt: what the record `receipt` of the log says.
package struct ReceiptUpdate: Sendable, Equatable {
    /// The fraud metric, and unix seconds at which Apple said so; nil where it stays as it is.
    package var metric: RiskMetric?
    /// Unix seconds of the next refresh; nil for none.
    package var refreshAt: UInt32?

    /// An update by its parts.
    package init(metric: RiskMetric? = nil, refreshAt: UInt32?) {
        self.metric = metric
        self.refreshAt = refreshAt
    }
}

/// Apple's fraud metric of a key's device.
package struct RiskMetric: Sendable, Equatable {
    /// Approximately how many keys have been attested on the device lately.
    package var value: UInt16
    /// Unix seconds at which Apple said so.
    package var time: UInt32

    /// The greatest value that is kept; what is above it is no more telling.
    package static let valueMax = UInt16.max - 1

    /// A metric; one above ``valueMax`` is that.
    package init(_ value: UInt32, time: UInt32) {
        self.value = UInt16(min(value, UInt32(RiskMetric.valueMax)))
        self.time = time
    }
}

/// The answer to a change of a key's receipt.
package enum ReceiptOutcome: Sendable, Equatable {
    /// Everything is stored, durably.
    case done
    /// The key is not known, or revoked.
    case keyUnknown
    /// The store cannot say.
    case unavailable
}

/// Where a search for receipts to refresh goes on.
package struct ReceiptCursor: Sendable, Equatable {
    var shard = 0
    var index = 0

    /// At the beginning.
    package init() {}
}

extension Store {
    /// Stores a new receipt of `keyID` in place of the old one, with what is new about it.
    ///
    /// The receipt is on disk before the record that names its place is written, so a crash between
    /// the two leaves the old one in force.
    package func keep(
        receipt: [UInt8], of keyID: Bytes32, _ update: ReceiptUpdate,
        reply: @escaping @Sendable (ReceiptOutcome) -> Void
    ) {
        guard isReady else { return reply(.unavailable) }
        write(receipt, of: keyID) { [self] place in
            guard let place else { return reply(.unavailable) }
            change(keyID, update, place: place, reply)
        }
    }

    /// Stores what is new about the receipt of `keyID`, and leaves the receipt as it is.
    package func update(
        receiptOf keyID: Bytes32, _ update: ReceiptUpdate,
        reply: @escaping @Sendable (ReceiptOutcome) -> Void
    ) {
        change(keyID, update, place: nil, reply)
    }

    /// The receipt of `key`; nil when there is none, or it cannot be read any more.
    package func receipt(of key: KeyRecord, reply: @escaping @Sendable ([UInt8]?) -> Void) {
        guard let place = key.receipt else { return reply(nil) }
        let read = ReceiptQueue.Read(keyID: key.keyID, place: place, then: reply)
        guard receipts.queue.withLock({ $0.append(read) }) else { return reply(nil) }
        receipts.queue.wake()
    }

    /// Good keys with a receipt that are due to be refreshed by `now`: looks at `count` keys at
    /// most from `cursor` on, and gives at most `limit`.
    /// - Parameter isWanted: Whether keys of this app and environment are.
    /// - Returns: The keys, and whether the search has come to the end and begins anew.
    package func dueReceipts(
        from cursor: inout ReceiptCursor, looking count: Int, limit: Int, now: UInt32,
        isWanted: (_ app: String, _ environment: UInt8) -> Bool
    ) -> (keys: [Bytes32], isAtEnd: Bool) {
        shards.dueReceipts(
            from: &cursor, looking: count, limit: limit, now: now, isWanted: isWanted)
    }

    /// Writes a receipt; `then` has its place.
    func write(
        _ receipt: [UInt8], of keyID: Bytes32,
        then: @escaping @Sendable (ReceiptLocation?) -> Void
    ) {
        let write = ReceiptQueue.Write(
            entry: ReceiptFile.Entry(keyID: keyID, receipt: receipt), then: then)
        guard !receipt.isEmpty, receipt.count <= receipts.receiptBytesMax,
            receipts.queue.withLock({ $0.append(write) })
        else { return then(nil) }
        receipts.queue.wake()
    }

    private func change(
        _ keyID: Bytes32, _ update: ReceiptUpdate, place: ReceiptLocation?,
        _ reply: @escaping @Sendable (ReceiptOutcome) -> Void
    ) {
        let outcome = shards.withKeys(keyID) { keys, _ -> ReceiptOutcome? in
            guard let index = keys.find(keyID), !keys[index].isPending, !keys[index].isRevoked
            else { return .keyUnknown }
            let record = Record.Receipt(keyID: keyID, place: place, update: update)
            guard append(.receipt(record), .receipt(reply)) != nil else { return .unavailable }
            keys[index].apply(record)
            return nil
        }
        if let outcome { reply(outcome) }
    }
}

/// The files of a store's receipts and what waits for them.
final class Receipts: Sendable {
    let queue = Lock(ReceiptQueue())
    let receiptBytesMax: Int
    private let file: Lock<ReceiptFile>
    private let onFailure: @Sendable (StorageFailure) -> Void

    init(_ file: ReceiptFile, onFailure: @escaping @Sendable (StorageFailure) -> Void) {
        receiptBytesMax = file.receiptBytesMax
        self.file = Lock(file)
        self.onFailure = onFailure
    }

    /// Does what waits: all writes with one sync a segment, then the reads.
    func step() {
        let (writes, reads) = queue.withLock { $0.take() }
        if !writes.isEmpty {
            for (write, place) in zip(writes, append(writes.map(\.entry))) { write.then(place) }
        }
        for read in reads { read.then(receipt(read)) }
    }

    private func append(_ entries: [ReceiptFile.Entry]) -> [ReceiptLocation?] {
        do {
            return try file.withLock { (file) throws(StorageFailure) in try file.append(entries) }
        } catch {
            onFailure(error)
            return [ReceiptLocation?](repeating: nil, count: entries.count)
        }
    }

    private func receipt(_ read: ReceiptQueue.Read) -> [UInt8]? {
        do {
            return try file.withLock { (file) throws(StorageFailure) in
                try file.read(read.place, of: read.keyID)
            }
        } catch {
            onFailure(error)
            return nil
        }
    }

    /// Does what comes until the store is closed.
    func run() {
        while true {
            let isDone = queue.wait(seconds: nil) { queue in
                queue.isClosing || queue.hasWork
            } then: { queue in
                queue.isClosing && !queue.hasWork
            }
            if isDone { return }
            step()
        }
    }

    /// Takes nothing more; what waits is still done.
    func close() {
        queue.withLock { $0.isClosing = true }
        queue.wake()
    }

    /// Closes the files.
    func closeFile() {
        file.withLock { $0.close() }
    }
}

extension Shards {
    /// The greatest place that a key names.
    var lastReceipt: ReceiptLocation? {
        ReceiptLocation(packed: reduceKeys(0) { max($0, $1.receipt) })
    }
}

extension KeyEntry {
    /// Does what a record says of the key's receipt: the latest holds.
    mutating func apply(_ record: Record.Receipt) {
        if let place = record.place { receipt = place.packed }
        if let metric = record.update.metric {
            self.metric = metric.value
            metricTime = metric.time
        }
        refreshAt = record.update.refreshAt ?? 0
    }
}
