// A file that nobody else can open, on one loop for life: that of what it holds.

internal import CGateLinux
package import GateBytes
internal import Glibc

/// A file without a name (`O_TMPFILE`): gone when it is closed, whatever becomes of the process.
package final class UnlinkedFile {
    private let descriptor: Descriptor
    /// Bytes written so far.
    package private(set) var count = 0

    /// Opens a file in `directory`, mode 0600.
    package init(in directory: String) throws(SystemError) {
        let number = unsafe gate_open_unlinked(directory)
        guard number >= 0 else { throw SystemError("open") }
        descriptor = Descriptor(number)
    }

    /// Appends `bytes[range]`, whole.
    package func append(_ bytes: [UInt8], _ range: Range<Int>) throws(SystemError) {
        var start = range.lowerBound
        while start < range.upperBound {
            let written = unsafe bytes.withUnsafeBytes { all in
                System.retrying {
                    unsafe pwrite(
                        descriptor.number, all.baseAddress?.advanced(by: start),
                        range.upperBound - start, off_t(count))
                }
            }
            guard written > 0 else { throw SystemError("pwrite") }
            start += written
            count += written
        }
    }

    /// Reads up to `limit` bytes at `offset` into `buffer`.
    /// - Returns: How many were read, at least one while `offset` is inside the file.
    package func read(
        at offset: Int, limit: Int, into buffer: inout ByteBuffer
    ) throws(SystemError) -> Int {
        var failure: SystemError?
        let number = descriptor.number
        let count = buffer.write(atLeast: limit) { span, start in
            let count = unsafe span.withUnsafeMutableBytes { bytes in
                System.retrying {
                    unsafe pread(
                        number, bytes.baseAddress?.advanced(by: start),
                        min(limit, bytes.count - start), off_t(offset))
                }
            }
            if count < 0 { failure = SystemError("pread") }
            return max(0, count)
        }
        if let failure { throw failure }
        return count
    }
}
