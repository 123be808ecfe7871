internal import GateRuntime
internal import Glibc

/// Files as the commands read and write them, whole; every fault as the clause that a user needs.
enum FileAccess {
    /// The bytes of the file at `path`, at most `bytesMax`.
    static func read(_ path: String, bytesMax: Int) throws(CommandError) -> [UInt8] {
        let descriptor = unsafe Glibc.open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw fault(path, "open") }
        defer { close(descriptor) }
        return try read(descriptor, name: path, bytesMax: bytesMax)
    }

    /// The bytes of an open file, which `name` is, up to its end.
    static func read(
        _ descriptor: Int32, name: String, bytesMax: Int
    ) throws(CommandError) -> [UInt8] {
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 16 * 1024)
        while true {
            let count = unsafe piece.withUnsafeMutableBytes { buffer in
                unsafe Glibc.read(descriptor, buffer.baseAddress, buffer.count)
            }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw fault(name, "read") }
            if count == 0 { return bytes }
            bytes += piece[..<count]
            guard bytes.count <= bytesMax else {
                throw .environment("\(name): expected at most \(bytesMax) bytes")
            }
        }
    }

    /// Writes `bytes` to the file at `path`, whole or not at all, readable by its owner alone
    /// unless `mode` says more. A file that is there is replaced only where `isReplacing`.
    static func write(
        _ bytes: [UInt8], to path: String, mode: mode_t = 0o600, isReplacing: Bool
    ) throws(CommandError) {
        let temporary = "\(path).\(getpid()).tmp"
        let descriptor = unsafe Glibc.open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode)
        guard descriptor >= 0 else { throw fault(path, "create") }
        let isWritten = writeAll(bytes, descriptor)
        let failure = isWritten ? nil : fault(path, "write")
        close(descriptor)
        // A link, unlike a rename, refuses to replace.
        let moved =
            unsafe isReplacing ? Glibc.rename(temporary, path) : Glibc.link(temporary, path)
        let moveFailure = moved == 0 || !isWritten ? nil : fault(path, "create")
        if !isReplacing || moved != 0 { _ = unsafe unlink(temporary) }
        if let failure = failure ?? moveFailure { throw failure }
    }

    /// Whether there is anything at `path`.
    static func exists(_ path: String) -> Bool {
        unsafe access(path, F_OK) == 0
    }

    /// Writes all of `bytes` to a descriptor that may block.
    /// - Returns: Whether all of them went; errno says why not.
    static func writeAll(_ bytes: [UInt8], _ descriptor: Int32) -> Bool {
        var start = 0
        while start < bytes.count {
            let count = unsafe bytes.withUnsafeBytes { all in
                unsafe Glibc.write(
                    descriptor, all.baseAddress?.advanced(by: start), bytes.count - start)
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            start += count
        }
        return true
    }

    private static func fault(_ path: String, _ call: String) -> CommandError {
        .environment("\(path): \(SystemError(call))")
    }
}

/// A new directory for as long as a command runs.
struct TemporaryDirectory: Sendable {
    /// Where it is.
    let path: String

    /// Makes one below `$TMPDIR`, or `/tmp`, that its owner alone can enter.
    init(prefix: String) throws(CommandError) {
        let parent = unsafe getenv("TMPDIR").map { unsafe String(cString: $0) } ?? ""
        var template = Array("\(parent.isEmpty ? "/tmp" : parent)/\(prefix)-XXXXXX".utf8CString)
        let isMade = unsafe template.withUnsafeMutableBufferPointer { buffer in
            guard let base = buffer.baseAddress else { return false }
            return unsafe mkdtemp(base) != nil
        }
        let name = template.dropLast().map { UInt8(bitPattern: $0) }
        path = String(decoding: name, as: UTF8.self)
        guard isMade else { throw .environment("\(path): \(SystemError("mkdtemp"))") }
    }

    /// Removes it and all in it; what cannot be removed stays.
    func remove() {
        TemporaryDirectory.remove(path)
    }

    private static func remove(_ path: String) {
        if let directory = unsafe opendir(path) {
            while let entry = unsafe readdir(directory) {
                let name = unsafe withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                    unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
                }
                guard name != ".", name != ".." else { continue }
                let child = path + "/" + name
                // A link is removed, never followed.
                if unsafe entry.pointee.d_type == UInt8(DT_DIR) {
                    remove(child)
                } else {
                    _ = unsafe unlink(child)
                }
            }
            unsafe closedir(directory)
        }
        _ = unsafe rmdir(path)
    }
}
