internal import CGateLinux
internal import Glibc

/// Directories the gate makes for itself.
package enum FileSystem {
    /// Creates the directory at `path`, 0700, with any that lead to it, 0755; one that exists stays
    /// as it is.
    package static func createDirectory(_ path: String) throws(SystemError) {
        var made = path.hasPrefix("/") ? "/" : ""
        let parts = path.split(separator: "/")
        for (index, part) in parts.enumerated() {
            made += (made.isEmpty || made == "/" ? "" : "/") + part
            let mode: mode_t = index == parts.count - 1 ? 0o700 : 0o755
            if unsafe mkdir(made, mode) != 0, errno != EEXIST {
                throw SystemError("mkdir \(made)")
            }
        }
    }

    /// Whether others than its owner may write to the directory at `path`: then they can take what
    /// is in it away, or put something else in its place.
    package static func isWritableByOthers(_ path: String) -> Bool {
        var status = stat()
        return unsafe stat(path, &status) == 0 && status.st_mode & (S_IWGRP | S_IWOTH) != 0
    }
}
