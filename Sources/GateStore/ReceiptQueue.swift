internal import GateBytes

/// What is to be done with the files of receipts, and has to wait for the disk: written in one go
/// by whoever turns the queue, off the loops. Behind a lock that is held together with no other.
struct ReceiptQueue {
    /// A receipt to be written, and what follows with its place; nil when it could not be.
    struct Write: Sendable {
        var entry: ReceiptFile.Entry
        var then: @Sendable (ReceiptLocation?) -> Void
    }

    /// A receipt to be read, and what follows with it; nil when it is not there any more.
    struct Read: Sendable {
        var keyID: Bytes32
        var place: ReceiptLocation
        var then: @Sendable ([UInt8]?) -> Void
    }

    private(set) var writes: [Write] = []
    private(set) var reads: [Read] = []
    private var waitingBytes = 0
    /// Whether the store is being closed: nothing more is taken.
    var isClosing = false

    /// Bytes of receipts that may wait, and reads that may.
    static let waitingBytesMax = 1 << 20
    static let readsMax = 1024

    /// Whether there is something to do.
    var hasWork: Bool { !writes.isEmpty || !reads.isEmpty }

    /// Lets a receipt wait to be written; false when nothing is taken.
    mutating func append(_ write: Write) -> Bool {
        let count = write.entry.receipt.count
        guard !isClosing, waitingBytes + count <= ReceiptQueue.waitingBytesMax else {
            return false
        }
        waitingBytes += count
        writes.append(write)
        return true
    }

    /// Lets a call wait for a receipt; false when nothing is taken.
    mutating func append(_ read: Read) -> Bool {
        guard !isClosing, reads.count < ReceiptQueue.readsMax else { return false }
        reads.append(read)
        return true
    }

    /// Takes everything.
    mutating func take() -> (writes: [Write], reads: [Read]) {
        defer {
            writes = []
            reads = []
            waitingBytes = 0
        }
        return (writes, reads)
    }
}
