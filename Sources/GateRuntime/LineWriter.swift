internal import CGateLinux
internal import Dispatch
internal import GateLock
internal import Glibc

/// Writes whole lines to a descriptor from a queue of its own, so that no loop waits for a
/// terminal, a pipe or a disk.
///
/// What waits to be written is bounded; lines beyond that, and those the descriptor does not take,
/// are dropped and counted. The count is written once there is room, and the owner is told.
package final class LineWriter: Sendable {
    private struct State: Sendable {
        var waiting: [UInt8] = []
        var isScheduled = false
        var dropped = 0
        /// Whether the last line was cut short: the next must not be glued to it.
        var isCut = false
        var descriptor: Int32
        var path: String?
    }

    private let state: Lock<State>
    private let queue: DispatchQueue

    private let onFailure: @Sendable (SystemError) -> Void

    private static let waitingBytesMax = 8 * 1024 * 1024
    /// How long a reader that takes nothing, of a pipe that does not block, is waited for.
    private static let stallMillisecondsMax: Int32 = 1000

    /// A writer to standard output.
    /// - Parameter onFailure: Told why lines could not be written; they are counted.
    package static func standardOutput(
        onFailure: @escaping @Sendable (SystemError) -> Void
    ) -> LineWriter {
        LineWriter(descriptor: STDOUT_FILENO, path: nil, onFailure: onFailure)
    }

    /// A writer to standard error.
    package static func standardError() -> LineWriter {
        // What cannot be written there has nowhere to be told.
        LineWriter(descriptor: STDERR_FILENO, path: nil, onFailure: { _ in })
    }

    /// A writer that appends to the file at `path`, created 0640.
    /// - Parameter onFailure: As for standard output.
    package static func file(
        _ path: String, onFailure: @escaping @Sendable (SystemError) -> Void
    ) throws(SystemError) -> LineWriter {
        LineWriter(descriptor: try openLog(path), path: path, onFailure: onFailure)
    }

    private init(
        descriptor: Int32, path: String?,
        onFailure: @escaping @Sendable (SystemError) -> Void
    ) {
        self.onFailure = onFailure
        state = Lock(State(descriptor: descriptor, path: path))
        queue = DispatchQueue(label: "attestgate.lines")
    }

    deinit {
        state.withLock { state in
            if state.path != nil { close(state.descriptor) }
        }
    }

    /// Queues `lines`, each ending in a line feed. Callable from any thread.
    package func write(_ lines: [UInt8]) {
        guard !lines.isEmpty else { return }
        let mustSchedule = state.withLock { state in
            guard state.waiting.count + lines.count <= LineWriter.waitingBytesMax else {
                state.dropped += lines.count { $0 == UInt8(ascii: "\n") }
                return false
            }
            state.waiting += lines
            defer { state.isScheduled = true }
            return !state.isScheduled
        }
        if mustSchedule { queue.async { self.drain() } }
    }

    /// Opens the file again under its path, for log rotation; nothing for the standard streams.
    package func reopen() throws(SystemError) {
        guard let path = state.withLock({ $0.path }) else { return }
        let fresh = try LineWriter.openLog(path)
        queue.async {
            let old = self.state.withLock { state in
                defer { state.descriptor = fresh }
                return state.descriptor
            }
            close(old)
        }
    }

    /// Waits until everything queued so far has been written, a second at most: the last act of a
    /// process, which must end even where nobody reads what it writes.
    package func flush() {
        let done = DispatchSemaphore(value: 0)
        queue.async {
            self.drain()
            done.signal()
        }
        _ = done.wait(timeout: .now() + .seconds(1))
    }

    private func drain() {
        var hasFailed = false
        while let batch = takeWaiting(hasFailed: hasFailed) {
            var bytes = batch.isCut ? [LineWriter.lineFeed] : []
            bytes += batch.waiting
            if batch.dropped > 0 {
                bytes += Array("{\"dropped_lines\":\(batch.dropped)}\n".utf8)
            }
            let (written, error) = LineWriter.writeAll(batch.descriptor, bytes)
            guard let error else { continue }
            hasFailed = true
            // The note about earlier ones is among what is lost; it comes again with the next.
            let unwritten = bytes[max(written, batch.isCut ? 1 : 0)...]
            var lost = unwritten.count { $0 == LineWriter.lineFeed }
            if batch.dropped > 0 { lost += batch.dropped - 1 }
            state.withLock { state in
                state.dropped += lost
                state.isCut = written > 0 ? bytes[written - 1] != LineWriter.lineFeed : batch.isCut
            }
            onFailure(error)
        }
    }

    /// What is to be written now; nil when that is nothing. After a failure the count of dropped
    /// lines alone is no reason to try again.
    private func takeWaiting(hasFailed: Bool) -> State? {
        state.withLock { state in
            guard !state.waiting.isEmpty || (state.dropped > 0 && !hasFailed) else {
                state.isScheduled = false
                return nil
            }
            defer {
                state.waiting = []
                state.dropped = 0
                state.isCut = false
            }
            return state
        }
    }

    private static let lineFeed = UInt8(ascii: "\n")

    /// Writes `bytes`.
    /// - Returns: How many were written, and what kept the rest.
    private static func writeAll(
        _ descriptor: Int32, _ bytes: [UInt8]
    ) -> (written: Int, error: SystemError?) {
        var start = 0
        while start < bytes.count {
            let count = unsafe bytes.withUnsafeBytes { all in
                System.retrying {
                    unsafe Glibc.write(
                        descriptor, all.baseAddress?.advanced(by: start), bytes.count - start)
                }
            }
            if count > 0 {
                start += count
            } else {
                let error = SystemError("write")
                guard error.code == EAGAIN, waitForRoom(descriptor) else { return (start, error) }
            }
        }
        return (start, nil)
    }

    private static func waitForRoom(_ descriptor: Int32) -> Bool {
        var entry = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        return System.retrying { Int(unsafe poll(&entry, 1, stallMillisecondsMax)) } > 0
    }

    private static func openLog(_ path: String) throws(SystemError) -> Int32 {
        let number = unsafe gate_open_file(path, O_WRONLY | O_APPEND | O_CREAT, 0o640)
        guard number >= 0 else { throw SystemError("open") }
        return number
    }
}
