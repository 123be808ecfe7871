internal import GateBytes
internal import GateLock
internal import GateRuntime

/// The directory that bodies over `body memory` go to, and its limits: shared by all loops.
package final class Spool: Sendable {
    /// The directory; it exists.
    let directory: String
    private let bytesMax: Int
    private let filesMax: Int
    private let used = Lock(Usage())

    /// What the spool holds now.
    package struct Usage: Sendable, Equatable {
        /// Bytes of all spool files.
        package var bytes: Int
        /// Open spool files.
        package var files: Int

        package init(bytes: Int = 0, files: Int = 0) {
            self.bytes = bytes
            self.files = files
        }
    }

    /// A spool in `directory`.
    package init(directory: String, bytesMax: Int, filesMax: Int) {
        self.directory = directory
        self.bytesMax = bytesMax
        self.filesMax = filesMax
    }

    /// What is used now.
    package var usage: Usage { used.withLock { $0 } }

    /// The limits as the configuration says them.
    var limits: String { "\(bytesMax) bytes, files=\(filesMax)" }

    fileprivate func takeFile() -> Bool {
        used.withLock { used in
            guard used.files < filesMax else { return false }
            used.files += 1
            return true
        }
    }

    fileprivate func take(_ bytes: Int) -> Bool {
        used.withLock { used in
            guard used.bytes + bytes <= bytesMax else { return false }
            used.bytes += bytes
            return true
        }
    }

    fileprivate func giveBack(bytes: Int) {
        used.withLock { used in
            used.files -= 1
            used.bytes -= bytes
        }
    }
}

/// One body's part of the spool's limits, for as long as it lives.
final class SpoolShare {
    private let spool: Spool
    private var taken = 0

    /// A share of no bytes, which counts as a file.
    init(in spool: Spool) throws(HeldBodyError) {
        guard spool.takeFile() else { throw .spoolFull }
        self.spool = spool
    }

    deinit { spool.giveBack(bytes: taken) }

    /// Takes `bytes` more.
    func take(_ bytes: Int) throws(HeldBodyError) {
        guard spool.take(bytes) else { throw .spoolFull }
        taken += bytes
    }
}

/// One spool file, counted against the spool's limits for as long as it lives.
final class SpoolFile {
    private let file: UnlinkedFile
    private let share: SpoolShare
    /// Bytes that are not in the file yet: small pieces are gathered.
    private var gathered: [UInt8] = []

    private static let gatherBytes = 16 * 1024

    /// Opens a file.
    init(in spool: Spool) throws(HeldBodyError) {
        share = try SpoolShare(in: spool)
        do throws(SystemError) {
            file = try UnlinkedFile(in: spool.directory)
        } catch {
            throw .spoolFailed(error)
        }
    }

    func append(_ bytes: [UInt8], _ range: Range<Int>) throws(HeldBodyError) {
        try share.take(range.count)
        if gathered.count + range.count < SpoolFile.gatherBytes {
            gathered.append(contentsOf: bytes[range])
            return
        }
        do throws(SystemError) {
            try writeGathered()
            try file.append(bytes, range)
        } catch {
            throw .spoolFailed(error)
        }
    }

    private func writeGathered() throws(SystemError) {
        guard !gathered.isEmpty else { return }
        try file.append(gathered, 0..<gathered.count)
        gathered.removeAll(keepingCapacity: true)
    }

    func read(at offset: Int, limit: Int, into buffer: inout ByteBuffer) throws(SystemError) -> Int
    {
        try writeGathered()
        return try file.read(at: offset, limit: limit, into: &buffer)
    }
}
