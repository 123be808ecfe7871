/// The directory a store lives in, as few calls as the log needs.
///
/// `FileStorage` is the file system; the tests have one in memory that fails, tears and forgets.
/// What the log relies on, and nothing more:
/// - bytes written are durable once `sync` of their file has returned, and not before;
/// - a name made, changed or removed is durable once `syncDirectory` has returned;
/// - a created file has all its bytes, as zeros, and writing inside it needs no more space;
/// - a write that was not synced may be there after a crash in whole, in part, or not at all.
package protocol Storage: Sendable {
    /// The directory's path, for messages.
    var location: String { get }

    /// Makes the directory where it is absent (0700) and takes its lock, until `unlock` or the end
    /// of the process; `.locked` when another holds it.
    func lock() throws(StorageFailure)
    /// Gives the lock back.
    func unlock()
    /// The names in the directory, in any order.
    func list() throws(StorageFailure) -> [String]
    /// Opens a file that exists, to read and write.
    func open(_ name: String) throws(StorageFailure) -> StorageFile
    /// Makes a file (0600) of `byteCount` zeros, all of them allocated; replaces nothing.
    func create(_ name: String, byteCount: Int) throws(StorageFailure) -> StorageFile
    /// Adds zeros to a file's end, all of them allocated, until it has `byteCount` bytes.
    func extend(_ file: StorageFile, to byteCount: Int) throws(StorageFailure)
    /// All bytes of an open file.
    func read(_ file: StorageFile) throws(StorageFailure) -> [UInt8]
    /// `count` bytes of an open file from `offset` on, fewer where it ends.
    func read(_ file: StorageFile, at offset: Int, count: Int) throws(StorageFailure) -> [UInt8]
    /// Writes all of `bytes` at `offset`, inside the file's size.
    func write(_ file: StorageFile, _ bytes: [UInt8], at offset: Int) throws(StorageFailure)
    /// Makes the file's bytes durable. Never called again on a file after it failed.
    func sync(_ file: StorageFile) throws(StorageFailure)
    /// Closes a file; bytes not synced stay so.
    func close(_ file: StorageFile)
    /// Gives a file another name, replacing what has it.
    func rename(_ name: String, to newName: String) throws(StorageFailure)
    /// Removes a file.
    func delete(_ name: String) throws(StorageFailure)
    /// Makes names durable.
    func syncDirectory() throws(StorageFailure)
}

/// An open file of a ``Storage``, which alone knows what the number means.
package struct StorageFile: Sendable, Hashable {
    /// The storage's number for it.
    package let number: Int32
    /// The name it was opened or made under, for messages.
    package let name: String

    /// A file by its storage's number and its name.
    package init(number: Int32, name: String) {
        self.number = number
        self.name = name
    }
}

/// A storage call that failed.
package struct StorageFailure: Error, Sendable, Equatable {
    /// The calls of ``Storage``.
    package enum Operation: String, Sendable, CaseIterable {
        case create, delete, extend, list, lock, open, read, rename, sync, syncDirectory, write
    }

    /// Why a call failed.
    package enum Cause: Sendable, Equatable {
        /// There is no such file.
        case absent
        /// Another process, by its id where it is known, holds the directory.
        case locked(pid: Int32?)
        /// Another error of the system, by its number and words.
        case other(code: Int32, text: String)
        /// No space, or over a quota.
        case outOfSpace
        /// There is such a file already.
        case present
    }

    /// The call.
    package var operation: Operation
    /// The path it was for.
    package var path: String
    /// Why it failed.
    package var cause: Cause

    /// A failure by its parts.
    package init(operation: Operation, path: String, cause: Cause) {
        self.operation = operation
        self.path = path
        self.cause = cause
    }
}

extension StorageFailure: CustomStringConvertible {
    /// The failure in words, with its path.
    package var description: String {
        switch cause {
        case .absent: "\(path): \(verb): no such file"
        case .locked(let pid?): "\(path): in use by process \(pid)"
        case .locked(nil): "\(path): in use by another process"
        case .other(let code, let text): "\(path): \(verb): \(text) (error \(code))"
        case .outOfSpace: "\(path): \(verb): no space left"
        case .present: "\(path): \(verb): exists already"
        }
    }

    private var verb: String {
        operation == .syncDirectory ? "sync" : operation.rawValue
    }
}
