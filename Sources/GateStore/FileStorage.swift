internal import CGateLinux
internal import GateLock
internal import Glibc

/// The store's directory in the file system: one system call a method, `errno` read at once.
///
/// Assumed of the file system: `fdatasync` and an `fsync` of the directory mean what they say,
/// `rename` is atomic, and allocated space can be written.
package final class FileStorage: Sendable {
    /// The directory.
    package let location: String
    private let lockFile = Lock<Int32?>(nil)
    private let onSync: @Sendable (UInt64) -> Void

    private static let lockName = "lock"

    /// A storage in `directory`; it and its parents are made where they are missing.
    /// - Parameter onSync: Told of each sync of a file's data but a snapshot's, in nanoseconds, by
    ///   whoever synced.
    package init(directory: String, onSync: @escaping @Sendable (UInt64) -> Void = { _ in }) {
        self.onSync = onSync
        var path = directory
        while path.utf8.count > 1, path.hasSuffix("/") { path.removeLast() }
        location = path
    }
}

extension FileStorage: Storage {
    /// Makes the directory, with missing parents, and locks the file `lock` in it.
    package func lock() throws(StorageFailure) {
        try makeDirectory(location, mode: 0o700)
        let path = path(FileStorage.lockName)
        let file = unsafe gate_open_file(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0o600)
        try check(file, .lock, path)
        do throws(StorageFailure) {
            try check(flock(file, LOCK_EX | LOCK_NB), .lock, location)
            try writeOwner(file, path)
        } catch {
            let owner = error.cause == .locked(pid: nil) ? readOwner(file) : nil
            release(file)
            guard let owner else { throw error }
            throw StorageFailure(operation: .lock, path: location, cause: .locked(pid: owner))
        }
        lockFile.withLock { $0 = file }
    }

    /// Gives the lock back.
    package func unlock() {
        lockFile.withLock { file in
            if let open = file { release(open) }
            file = nil
        }
    }

    /// The names in the directory.
    package func list() throws(StorageFailure) -> [String] {
        let directory = unsafe opendir(location)
        try unsafe check(directory == nil ? -1 : 0, .list, location)
        guard let directory = unsafe directory else { return [] }
        defer { unsafe _ = closedir(directory) }
        var names: [String] = []
        while true {
            errno = 0
            guard let entry = unsafe readdir(directory) else {
                try check(errno == 0 ? 0 : -1, .list, location)
                return names
            }
            let name = unsafe withUnsafePointer(to: entry.pointee.d_name) { pointer in
                unsafe pointer.withMemoryRebound(to: CChar.self, capacity: 256) {
                    unsafe String(cString: $0)
                }
            }
            if name != ".", name != ".." { names.append(name) }
        }
    }

    /// Opens a file to read and write.
    package func open(_ name: String) throws(StorageFailure) -> StorageFile {
        let path = path(name)
        let file = unsafe gate_open_file(path, O_RDWR | O_NOFOLLOW, 0)
        try check(file, .open, path)
        return StorageFile(number: file, name: name)
    }

    /// Makes a file and allocates all of it.
    package func create(
        _ name: String, byteCount: Int
    ) throws(StorageFailure) -> StorageFile {
        let path = path(name)
        let file = unsafe gate_open_file(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)
        try check(file, .create, path)
        var code: Int32
        repeat { code = posix_fallocate(file, 0, byteCount) } while code == EINTR
        guard code == 0 else {
            _ = Glibc.close(file)
            // What it took must be given back, or a full volume stays full.
            unsafe _ = unlink(path)
            throw StorageFailure(operation: .create, path: path, cause: cause(code))
        }
        return StorageFile(number: file, name: name)
    }

    /// Allocates what a file is to have more.
    package func extend(_ file: StorageFile, to byteCount: Int) throws(StorageFailure) {
        let path = path(file.name)
        let present = try size(file)
        guard byteCount > present else { return }
        var code: Int32
        repeat {
            code = posix_fallocate(file.number, off_t(present), off_t(byteCount - present))
        } while code == EINTR
        guard code == 0 else {
            throw StorageFailure(operation: .extend, path: path, cause: cause(code))
        }
    }

    /// All bytes of a file.
    package func read(_ file: StorageFile) throws(StorageFailure) -> [UInt8] {
        try read(file, at: 0, count: size(file))
    }

    /// Some bytes of a file.
    package func read(
        _ file: StorageFile, at offset: Int, count byteCount: Int
    ) throws(StorageFailure) -> [UInt8] {
        let path = path(file.name)
        var code: Int32 = 0
        let bytes = unsafe [UInt8](unsafeUninitializedCapacity: byteCount) { buffer, count in
            while count < byteCount {
                let part = unsafe pread(
                    file.number, buffer.baseAddress.map { unsafe $0 + count }, byteCount - count,
                    off_t(offset + count))
                if part < 0, errno == EINTR { continue }
                if part < 0 { code = errno }
                guard part > 0 else { return }
                count += part
            }
        }
        guard code == 0 else {
            throw StorageFailure(operation: .read, path: path, cause: cause(code))
        }
        return bytes
    }

    /// Writes all of `bytes`.
    package func write(
        _ file: StorageFile, _ bytes: [UInt8], at offset: Int
    ) throws(StorageFailure) {
        try write(file.number, bytes, at: offset, path(file.name))
    }

    /// Makes a file's bytes durable.
    package func sync(_ file: StorageFile) throws(StorageFailure) {
        let started = gate_monotonic_nanoseconds()
        try check(fdatasync(file.number), .sync, path(file.name))
        // Of a snapshot nobody waits.
        guard file.name != SnapshotFormat.temporaryName else { return }
        onSync(UInt64(clamping: gate_monotonic_nanoseconds() &- started))
    }

    /// Closes a file.
    package func close(_ file: StorageFile) {
        _ = Glibc.close(file.number)
    }

    /// Renames a file.
    package func rename(_ name: String, to newName: String) throws(StorageFailure) {
        try unsafe check(Glibc.rename(path(name), path(newName)), .rename, path(name))
    }

    /// Removes a file.
    package func delete(_ name: String) throws(StorageFailure) {
        try unsafe check(unlink(path(name)), .delete, path(name))
    }

    /// Makes the directory's names durable.
    package func syncDirectory() throws(StorageFailure) {
        try syncDirectory(at: location)
    }
}

extension FileStorage {
    private func size(_ file: StorageFile) throws(StorageFailure) -> Int {
        var status = stat()
        try unsafe check(fstat(file.number, &status), .read, path(file.name))
        return Int(status.st_size)
    }

    private func path(_ name: String) -> String {
        location + "/" + name
    }

    private func parent(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// Makes a directory, its missing parents first, each name durable in its own parent.
    private func makeDirectory(_ path: String, mode: mode_t) throws(StorageFailure) {
        let parent = parent(of: path)
        do throws(StorageFailure) {
            try unsafe check(mkdir(path, mode), .create, path)
        } catch {
            switch error.cause {
            case .present: return
            case .absent where parent != path:
                try makeDirectory(parent, mode: 0o755)
                try unsafe check(mkdir(path, mode), .create, path)
            default: throw error
            }
        }
        try syncDirectory(at: parent)
    }

    private func syncDirectory(at path: String) throws(StorageFailure) {
        let directory = unsafe gate_open_file(path, O_RDONLY | O_DIRECTORY, 0)
        try check(directory, .syncDirectory, path)
        defer { _ = Glibc.close(directory) }
        try check(fsync(directory), .syncDirectory, path)
    }

    private func write(
        _ file: Int32, _ bytes: [UInt8], at offset: Int, _ path: String
    ) throws(StorageFailure) {
        var written = 0
        while written < bytes.count {
            let part = unsafe bytes.withUnsafeBytes { buffer in
                unsafe pwrite(
                    file, buffer.baseAddress.map { unsafe $0 + written }, buffer.count - written,
                    off_t(offset + written))
            }
            if part < 0, errno == EINTR { continue }
            try check(part < 0 ? -1 : 0, .write, path)
            written += part
        }
    }

    /// Unlocks before it closes: a child that was forked and has not yet run its program holds the
    /// same open file.
    private func release(_ file: Int32) {
        _ = flock(file, LOCK_UN)
        _ = Glibc.close(file)
    }

    private func writeOwner(_ file: Int32, _ path: String) throws(StorageFailure) {
        try check(ftruncate(file, 0), .lock, path)
        do throws(StorageFailure) {
            try write(file, Array("\(getpid())\n".utf8), at: 0, path)
        } catch {
            // On a full volume the lock holds all the same; only the owner's number is missing.
            guard error.cause == .outOfSpace else { throw error }
        }
    }

    /// The owner's number in the lock file; nil while it has not written it.
    private func readOwner(_ file: Int32) -> Int32? {
        var bytes = [UInt8](repeating: 0, count: 16)
        let count = unsafe bytes.withUnsafeMutableBytes { buffer in
            unsafe pread(file, buffer.baseAddress, buffer.count, 0)
        }
        guard count > 0, let end = bytes.firstIndex(of: UInt8(ascii: "\n")) else { return nil }
        return Int32(String(decoding: bytes[..<end], as: UTF8.self))
    }

    /// Throws what `errno` says when `result`, of the system call just made, is negative.
    private func check(
        _ result: Int32, _ operation: StorageFailure.Operation, _ path: @autoclosure () -> String
    ) throws(StorageFailure) {
        guard result < 0 else { return }
        let code = errno
        throw StorageFailure(operation: operation, path: path(), cause: cause(code))
    }

    private func cause(_ code: Int32) -> StorageFailure.Cause {
        switch code {
        case EEXIST: .present
        case ENOENT: .absent
        case ENOSPC, EDQUOT: .outOfSpace
        case EWOULDBLOCK: .locked(pid: nil)
        default: unsafe .other(code: code, text: String(cString: strerror(code)))
        }
    }
}
