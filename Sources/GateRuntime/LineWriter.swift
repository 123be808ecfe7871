internal import CGateLinux
internal import Dispatch
internal import GateLock
internal import Glibc

/// Writes whole lines to a descriptor from a queue of its own, so that no loop waits for a
/// terminal, a pipe or a disk.
///
/// What waits to be written is bounded; lines beyond that are dropped and counted, and the count is
/// written once there is room.
package final class LineWriter: Sendable {
    private struct State: Sendable {
        var waiting: [UInt8] = []
        var isScheduled = false
        var dropped = 0
        var descriptor: Int32
        var path: String?
    }

    private let state: Lock<State>
    private let queue: DispatchQueue

    private static let waitingBytesMax = 8 * 1024 * 1024

    /// A writer to standard output.
    package static func standardOutput() -> LineWriter {
        LineWriter(descriptor: STDOUT_FILENO, path: nil)
    }

    /// A writer to standard error.
    package static func standardError() -> LineWriter {
        LineWriter(descriptor: STDERR_FILENO, path: nil)
    }

    /// A writer that appends to the file at `path`, created 0640.
    package static func file(_ path: String) throws(SystemError) -> LineWriter {
        LineWriter(descriptor: try openLog(path), path: path)
    }

    private init(descriptor: Int32, path: String?) {
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
        while true {
            let (bytes, descriptor, dropped) = state.withLock { state in
                defer {
                    if state.waiting.isEmpty { state.isScheduled = false }
                    state.waiting = []
                    state.dropped = 0
                }
                return (state.waiting, state.descriptor, state.dropped)
            }
            if bytes.isEmpty, dropped == 0 { return }
            LineWriter.writeAll(descriptor, bytes)
            if dropped > 0 {
                LineWriter.writeAll(descriptor, Array("{\"dropped_lines\":\(dropped)}\n".utf8))
            }
        }
    }

    private static func writeAll(_ descriptor: Int32, _ bytes: [UInt8]) {
        var start = 0
        while start < bytes.count {
            let count = unsafe bytes.withUnsafeBytes { all in
                System.retrying {
                    unsafe Glibc.write(
                        descriptor, all.baseAddress?.advanced(by: start), bytes.count - start)
                }
            }
            // A log that cannot be written has nowhere to say so; requests go on.
            guard count > 0 else { return }
            start += count
        }
    }

    private static func openLog(_ path: String) throws(SystemError) -> Int32 {
        let number = unsafe gate_open_file(path, O_WRONLY | O_APPEND | O_CREAT, 0o640)
        guard number >= 0 else { throw SystemError("open") }
        return number
    }
}
