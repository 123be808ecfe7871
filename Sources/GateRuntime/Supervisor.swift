internal import CGateLinux
internal import Glibc

/// systemd's side of a service: readiness, reload and stop messages, and passed sockets
/// (sd_notify(3), sd_listen_fds(3)).
package struct Supervisor: Sendable {
    private let notifySocket: String?

    /// - Parameter notifySocket: The value of `$NOTIFY_SOCKET`, nil when not run by a service
    ///   manager.
    package init(notifySocket: String?) {
        self.notifySocket = notifySocket
    }

    /// Says `READY=1`.
    package func ready(status: String) { send("READY=1\nSTATUS=\(status)") }

    /// Says `RELOADING=1`; ``ready(status:)`` ends it. `now` is the monotonic clock's.
    package func reloading(now: Moment) {
        send("RELOADING=1\nMONOTONIC_USEC=\(now.nanoseconds / 1000)")
    }

    /// Says `STOPPING=1`.
    package func stopping() { send("STOPPING=1") }

    private func send(_ message: String) {
        guard let notifySocket, !notifySocket.isEmpty else { return }
        let number = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard number >= 0 else { return }
        let descriptor = Descriptor(number)
        var path = Array(notifySocket.utf8)
        // "@name" is the abstract namespace: its first byte is NUL.
        if path[0] == UInt8(ascii: "@") { path[0] = 0 }
        var raw = sockaddr_un()
        raw.sun_family = sa_family_t(AF_UNIX)
        guard path.count < MemoryLayout.size(ofValue: raw.sun_path) else { return }
        unsafe withUnsafeMutableBytes(of: &raw.sun_path) { unsafe $0.copyBytes(from: path) }
        let length = socklen_t(MemoryLayout<sa_family_t>.size + path.count)
        let bytes = Array(message.utf8)
        unsafe withUnsafePointer(to: &raw) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                // A manager that is gone needs no news, and one that does not read must not hold
                // up a loop.
                _ = unsafe sendto(
                    descriptor.number, bytes, bytes.count,
                    Int32(MSG_NOSIGNAL | MSG_DONTWAIT), address, length)
            }
        }
    }

    /// The sockets that systemd passed, by name.
    /// - Parameters: The values of `$LISTEN_PID`, `$LISTEN_FDS` and `$LISTEN_FDNAMES`.
    package static func passedSockets(
        pid: String?, count: String?, names: String?
    ) -> [(name: String, descriptor: Int32)] {
        guard let pid, Int32(pid) == getpid(), let count, let count = Int32(count), count > 0
        else { return [] }
        let names = (names ?? "").split(separator: ":", omittingEmptySubsequences: false)
        return (0..<count).map { index in
            (Int(index) < names.count ? String(names[Int(index)]) : "unknown", 3 + index)
        }
    }
}
