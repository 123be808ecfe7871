// What a protected request's body is held in, on one loop for life: that of its exchange.

package import GateBytes
internal import GateCrypto
package import GateRuntime

/// Why a body cannot be held.
package enum HeldBodyError: Error, Equatable {
    /// It is longer than the route's `body max`.
    case tooLarge
    /// The spool file failed.
    case spoolFailed(SystemError)
    /// The spool's bytes or files are used up.
    case spoolFull
}

/// A request body held until its request has been judged: hashed while it arrives, in memory up to
/// a limit, beyond that in an unlinked file.
///
/// The first `memoryBytesMax` bytes stay in memory, the file has the rest; what is read back is
/// exactly what came in.
package final class HeldBody {
    /// Bytes held.
    package private(set) var count = 0
    /// SHA-256 of the body; nil before ``finish()``.
    package private(set) var hash: Bytes32?

    private var memory: [UInt8] = []
    private var file: SpoolFile?
    /// Of a body that never goes to a file: what is over `memoryBytesMax` counts like one.
    private var share: SpoolShare?
    private var hasher: SHA256Hasher?
    private let memoryBytesMax: Int
    private let bytesMax: Int
    private let isFileAllowed: Bool
    private let spool: Spool

    /// - Parameters:
    ///   - bytesMax: The longest body taken; over it ``append(_:_:)`` throws `tooLarge`.
    ///   - isFileAllowed: Whether what is over `memoryBytesMax` goes to a file; otherwise it stays
    ///     in memory, within the spool's limits all the same.
    package init(memoryBytesMax: Int, bytesMax: Int, isFileAllowed: Bool = true, spool: Spool) {
        self.memoryBytesMax = memoryBytesMax
        self.bytesMax = bytesMax
        self.isFileAllowed = isFileAllowed
        self.spool = spool
        hasher = SHA256Hasher()
    }

    /// The body that came inside of `wire`, whose part of the spool's limits it takes over.
    init(_ bytes: [UInt8], inside wire: HeldBody) {
        memory = bytes
        count = bytes.count
        hash = SHA256.hash(bytes)
        share = wire.share
        memoryBytesMax = bytes.count
        bytesMax = bytes.count
        isFileAllowed = false
        spool = wire.spool
    }

    /// Whether `more` bytes still fit into memory.
    package func fitsInMemory(_ more: Int) -> Bool {
        file == nil && share == nil && count + more <= memoryBytesMax
    }

    /// Adds the next bytes of the body.
    package func append(_ bytes: [UInt8], _ range: Range<Int>) throws(HeldBodyError) {
        guard range.count <= bytesMax - count else { throw .tooLarge }
        if fitsInMemory(range.count) {
            memory.append(contentsOf: bytes[range])
        } else if !isFileAllowed {
            if share == nil { share = try SpoolShare(in: spool) }
            try share?.take(range.count)
            memory.append(contentsOf: bytes[range])
        } else {
            let file = try openFile()
            try file.append(bytes, range)
        }
        hasher?.update(bytes, range)
        count += range.count
    }

    private func openFile() throws(HeldBodyError) -> SpoolFile {
        if let file { return file }
        let opened = try SpoolFile(in: spool)
        file = opened
        return opened
    }

    /// Ends the body and gives its hash.
    package func finish() -> Bytes32 {
        if let hash { return hash }
        let hash = hasher.take()?.finish() ?? SHA256.hash([])
        self.hash = hash
        return hash
    }

    /// The body as one array; only for bodies that were limited to memory.
    package var bytes: [UInt8] { memory }

    /// The whole body as one array, read back where it is in a file.
    func whole() throws(SystemError) -> [UInt8] {
        guard count > memory.count else { return memory }
        var buffer = ByteBuffer()
        buffer.append(memory)
        while buffer.count < count {
            _ = try read(at: buffer.count, limit: HeldBody.pieceBytes, into: &buffer)
        }
        return Array(buffer.storage[buffer.readable])
    }

    private static let pieceBytes = 64 * 1024

    /// Appends up to `limit` bytes from `offset` on to `buffer`.
    /// - Returns: How many, at least one while `offset < count`.
    package func read(
        at offset: Int, limit: Int, into buffer: inout ByteBuffer
    ) throws(SystemError) -> Int {
        if offset < memory.count {
            let end = min(memory.count, offset + limit)
            buffer.append(memory, offset..<end)
            return end - offset
        }
        guard let file, offset < count else { return 0 }
        let read = try file.read(at: offset - memory.count, limit: limit, into: &buffer)
        // A spool file shorter than what was written to it must never become a shorter request.
        guard read > 0 else { throw SystemError("pread", code: 5) }
        return read
    }
}
