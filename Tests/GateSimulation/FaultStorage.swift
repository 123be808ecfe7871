import GateLock
import GateStore

/// A storage in memory that fails where it is told, and forgets at a crash what was not synced.
///
/// A file has the bytes that reads see and the bytes that a power cut leaves; pages written since
/// the last sync differ. A failed sync leaves a random part of them durable and takes all of them
/// for clean, as Linux does. Names are made and changed at once for who looks, for good at
/// `syncDirectory`.
package final class FaultStorage: Storage {
    package static let pageBytes = 512

    /// What of the unsynced pages and names a power cut keeps.
    package enum Survival: Sendable, CaseIterable {
        case everything, nothing, subset, torn
    }

    fileprivate struct Inode {
        var seen: [UInt8]
        /// Nil before the first sync: not even the size is certain.
        var durable: [UInt8]?
        var dirty: Set<Int> = []
    }

    fileprivate enum NameChange {
        case link(String, Int)
        case move(String, String, Int)
        case unlink(String)
    }

    fileprivate struct State {
        var inodes: [Int: Inode] = [:]
        var names: [String: Int] = [:]
        var durableNames: [String: Int] = [:]
        var changes: [NameChange] = []
        var open: [Int32: Int] = [:]
        var failedSyncs: Set<Int> = []
        var hasRetriedSync = false
        var nextNumber = 1
        var isLocked = false
        var capacity = Int.max
        var calls = 0
        var syncs = 0
        var failures: [Int: StorageFailure.Cause] = [:]
        var failuresByOperation: [StorageFailure.Operation: StorageFailure.Cause] = [:]
        var random: SeededGenerator
    }

    private let state: Lock<State>
    private let isStuck = Lock(false)

    /// An empty directory whose accidents `seed` fixes.
    package init(seed: UInt64 = 0) {
        state = Lock(State(random: SeededGenerator(seed: seed)))
    }

    private init(_ state: State) {
        self.state = Lock(state)
    }

    /// Another directory with the same files, as a power cut that keeps everything would leave it.
    package func copy() -> FaultStorage {
        let copy = FaultStorage(state.withLock { $0 })
        copy.kill()
        return copy
    }

    /// Lets the call with this number from now on, 0 the next, fail.
    package func failCall(_ number: Int, _ cause: StorageFailure.Cause = FaultStorage.broken) {
        state.withLock { $0.failures[$0.calls + number] = cause }
    }

    /// Lets the next call of `operation` fail.
    package func failNext(
        _ operation: StorageFailure.Operation,
        _ cause: StorageFailure.Cause = FaultStorage.broken
    ) {
        state.withLock { $0.failuresByOperation[operation] = cause }
    }

    /// Lets syncs hang, as a disk does that answers no more.
    package func hangSyncs() {
        isStuck.withLock { $0 = true }
    }

    /// Lets the syncs that hang go on.
    package func resumeSyncs() {
        isStuck.withLock { $0 = false }
        isStuck.wake()
    }

    /// Takes back all failures that have not happened.
    package func mend() {
        state.withLock {
            $0.failures = [:]
            $0.failuresByOperation = [:]
            $0.capacity = .max
        }
    }

    /// What a broken disk says.
    package static let broken = StorageFailure.Cause.other(code: 5, text: "input/output error")

    /// The most bytes of all files; `create` over it is out of space.
    package var capacity: Int {
        get { state.withLock { $0.capacity } }
        set { state.withLock { $0.capacity = newValue } }
    }

    /// The bytes of all files.
    package var used: Int {
        state.withLock { state in state.names.values.reduce(0) { $0 + state.size($1) } }
    }

    /// Calls that may fail, made so far.
    package var calls: Int { state.withLock { $0.calls } }

    /// Syncs of files, failed ones included.
    package var syncs: Int { state.withLock { $0.syncs } }

    /// Whether a file was synced again after its sync had failed, with nothing written in between.
    package var hasRetriedSync: Bool { state.withLock { $0.hasRetriedSync } }

    /// Ends the process: its lock and files are let go, what was written can still be read.
    package func kill() {
        state.withLock {
            $0.open = [:]
            $0.isLocked = false
            $0.failedSyncs = []
        }
    }

    /// Ends the machine: of what was not synced, `survival` is left.
    package func cutPower(_ survival: Survival) {
        kill()
        state.withLock { state in
            var names = state.durableNames
            for change in state.changes where state.keeps(survival) {
                FaultStorage.apply(change, to: &names)
            }
            state.names = names
            state.durableNames = names
            state.changes = []
            for number in Set(state.inodes.keys).subtracting(names.values) {
                state.inodes[number] = nil
            }
            for number in state.inodes.keys.sorted() { state.settle(number, survival) }
        }
    }

    /// The names in the directory, sorted.
    package var names: [String] { state.withLock { $0.names.keys.sorted() } }

    /// The bytes of a file; setting them makes them durable.
    package subscript(name: String) -> [UInt8]? {
        get { state.withLock { state in state.names[name].flatMap { state.inodes[$0]?.seen } } }
        set {
            state.withLock { state in
                guard let newValue else {
                    state.names[name] = nil
                    state.durableNames[name] = nil
                    return
                }
                let number = state.names[name] ?? state.newNumber()
                state.inodes[number] = Inode(seen: newValue, durable: newValue)
                state.names[name] = number
                state.durableNames[name] = number
            }
        }
    }

    fileprivate static func apply(_ change: NameChange, to names: inout [String: Int]) {
        switch change {
        case .link(let name, let number): names[name] = number
        case .move(let old, let new, let number):
            if names[old] == number { names[old] = nil }
            names[new] = number
        case .unlink(let name): names[name] = nil
        }
    }
}

extension FaultStorage {
    package var location: String { "/store" }

    package func lock() throws(StorageFailure) {
        try call(.lock, location)
        let isTaken = state.withLock { state in
            defer { state.isLocked = true }
            return state.isLocked
        }
        guard !isTaken else {
            throw StorageFailure(operation: .lock, path: location, cause: .locked(pid: 1))
        }
    }

    package func unlock() {
        state.withLock { $0.isLocked = false }
    }

    package func list() throws(StorageFailure) -> [String] {
        try call(.list, location)
        return names
    }

    package func open(_ name: String) throws(StorageFailure) -> StorageFile {
        try call(.open, name)
        let file = state.withLock { state in state.names[name].map { state.opened($0, name) } }
        guard let file else { throw failure(.open, name, .absent) }
        return file
    }

    package func create(
        _ name: String, byteCount: Int
    ) throws(StorageFailure) -> StorageFile {
        try call(.create, name)
        return try state.withLock { (state) throws(StorageFailure) -> StorageFile in
            guard state.names[name] == nil else { throw failure(.create, name, .present) }
            let used = state.names.values.reduce(0) { $0 + state.size($1) }
            guard used + byteCount <= state.capacity else {
                throw failure(.create, name, .outOfSpace)
            }
            let number = state.newNumber()
            state.inodes[number] = Inode(seen: [UInt8](repeating: 0, count: byteCount))
            state.names[name] = number
            state.changes.append(.link(name, number))
            return state.opened(number, name)
        }
    }

    package func extend(_ file: StorageFile, to byteCount: Int) throws(StorageFailure) {
        try call(.extend, file.name)
        try state.withLock { (state) throws(StorageFailure) in
            let number = state.inode(file)
            let missing = byteCount - state.size(number)
            guard missing > 0 else { return }
            let used = state.names.values.reduce(0) { $0 + state.size($1) }
            guard used + missing <= state.capacity else {
                throw failure(.extend, file.name, .outOfSpace)
            }
            state.inodes[number]?.seen += [UInt8](repeating: 0, count: missing)
        }
    }

    package func read(_ file: StorageFile) throws(StorageFailure) -> [UInt8] {
        try call(.read, file.name)
        return state.withLock { $0.inodes[$0.inode(file)]?.seen ?? [] }
    }

    package func read(
        _ file: StorageFile, at offset: Int, count: Int
    ) throws(StorageFailure) -> [UInt8] {
        let bytes = try read(file)
        let start = min(offset, bytes.count)
        return Array(bytes[start..<min(start + count, bytes.count)])
    }

    package func write(
        _ file: StorageFile, _ bytes: [UInt8], at offset: Int
    ) throws(StorageFailure) {
        do throws(StorageFailure) {
            try call(.write, file.name)
        } catch {
            state.withLock { state in
                let count = Int.random(in: 0...bytes.count, using: &state.random)
                state.put(bytes[..<count], at: offset, state.inode(file))
            }
            throw error
        }
        state.withLock { $0.put(bytes[...], at: offset, $0.inode(file)) }
    }

    package func sync(_ file: StorageFile) throws(StorageFailure) {
        isStuck.wait(seconds: 60, until: { !$0 }, then: { _ in })
        state.withLock { state in
            state.syncs += 1
            if state.failedSyncs.contains(state.inode(file)) { state.hasRetriedSync = true }
        }
        do throws(StorageFailure) {
            try call(.sync, file.name)
        } catch {
            state.withLock { state in
                let number = state.inode(file)
                state.failedSyncs.insert(number)
                state.keepSome(number)
            }
            throw error
        }
        state.withLock { state in
            let number = state.inode(file)
            guard var inode = state.inodes[number] else { return }
            if var durable = inode.durable {
                // What was added since, pages that were not written included, is zeros.
                if durable.count < inode.seen.count {
                    durable += [UInt8](repeating: 0, count: inode.seen.count - durable.count)
                }
                for page in inode.dirty {
                    let range = inode.page(page)
                    durable.replaceSubrange(range, with: inode.seen[range])
                }
                inode.durable = durable
            } else {
                inode.durable = inode.seen
            }
            inode.dirty = []
            state.inodes[number] = inode
        }
    }

    package func close(_ file: StorageFile) {
        state.withLock { $0.open[file.number] = nil }
    }

    package func rename(_ name: String, to newName: String) throws(StorageFailure) {
        try call(.rename, name)
        try change(name, .rename) { .move(name, newName, $0) }
    }

    package func delete(_ name: String) throws(StorageFailure) {
        try call(.delete, name)
        try change(name, .delete) { _ in .unlink(name) }
    }

    package func syncDirectory() throws(StorageFailure) {
        try call(.syncDirectory, location)
        state.withLock { state in
            state.durableNames = state.names
            state.changes = []
        }
    }

    private func change(
        _ name: String, _ operation: StorageFailure.Operation, _ change: (Int) -> NameChange
    ) throws(StorageFailure) {
        let isThere = state.withLock { state in
            guard let number = state.names[name] else { return false }
            let change = change(number)
            FaultStorage.apply(change, to: &state.names)
            state.changes.append(change)
            return true
        }
        guard isThere else { throw failure(operation, name, .absent) }
    }

    private func call(
        _ operation: StorageFailure.Operation, _ path: String
    ) throws(StorageFailure) {
        let cause = state.withLock { state in
            defer { state.calls += 1 }
            return state.failures.removeValue(forKey: state.calls)
                ?? state.failuresByOperation.removeValue(forKey: operation)
        }
        if let cause { throw failure(operation, path, cause) }
    }

    private func failure(
        _ operation: StorageFailure.Operation, _ path: String, _ cause: StorageFailure.Cause
    ) -> StorageFailure {
        StorageFailure(operation: operation, path: path, cause: cause)
    }
}

extension FaultStorage.Inode {
    fileprivate func page(_ number: Int) -> Range<Int> {
        let start = number * FaultStorage.pageBytes
        return start..<min(start + FaultStorage.pageBytes, seen.count)
    }
}

extension FaultStorage.State {
    fileprivate mutating func newNumber() -> Int {
        defer { nextNumber += 1 }
        return nextNumber
    }

    fileprivate mutating func opened(_ inode: Int, _ name: String) -> StorageFile {
        let file = StorageFile(number: Int32(newNumber()), name: name)
        open[file.number] = inode
        return file
    }

    fileprivate func inode(_ file: StorageFile) -> Int {
        guard let number = open[file.number] else { fatalError("\(file.name) is not open") }
        return number
    }

    fileprivate func size(_ inode: Int) -> Int {
        inodes[inode]?.seen.count ?? 0
    }

    fileprivate mutating func put(_ bytes: ArraySlice<UInt8>, at offset: Int, _ number: Int) {
        guard let inode = inodes[number], !bytes.isEmpty else { return }
        precondition(offset + bytes.count <= inode.seen.count, "a write past the file's end")
        inodes[number]?.seen.replaceSubrange(offset..<offset + bytes.count, with: bytes)
        let first = offset / FaultStorage.pageBytes
        let last = (offset + bytes.count - 1) / FaultStorage.pageBytes
        inodes[number]?.dirty.formUnion(first...last)
        failedSyncs.remove(number)
    }

    fileprivate mutating func keeps(_ survival: FaultStorage.Survival) -> Bool {
        switch survival {
        case .everything: true
        case .nothing: false
        case .subset, .torn: random.chance(50)
        }
    }

    /// What a failed sync does: some pages are durable, none is dirty any more.
    fileprivate mutating func keepSome(_ number: Int) {
        guard var inode = inodes[number] else { return }
        if var durable = inode.durable {
            if durable.count < inode.seen.count {
                durable += [UInt8](repeating: 0, count: inode.seen.count - durable.count)
            }
            for page in inode.dirty.sorted() where random.chance(50) {
                let range = inode.page(page)
                durable.replaceSubrange(range, with: inode.seen[range])
            }
            inode.durable = durable
        }
        inode.dirty = []
        inodes[number] = inode
    }

    /// What a power cut does to one file.
    fileprivate mutating func settle(_ number: Int, _ survival: FaultStorage.Survival) {
        guard var inode = inodes[number] else { return }
        var left: [UInt8]
        if let durable = inode.durable {
            left = durable
            if left.count < inode.seen.count, keeps(survival) || !inode.dirty.isEmpty {
                left += [UInt8](repeating: 0, count: inode.seen.count - left.count)
            }
        } else {
            guard keeps(survival) else {
                inodes[number] = FaultStorage.Inode(seen: [], durable: [])
                return
            }
            left = [UInt8](repeating: 0, count: inode.seen.count)
        }
        for page in inode.dirty.sorted() where keeps(survival) {
            var range = inode.page(page)
            if survival == .torn, random.chance(50) {
                let cut = Int.random(in: 0...range.count, using: &random)
                range =
                    random.chance(50)
                    ? range.lowerBound..<range.lowerBound + cut
                    : range.lowerBound + cut..<range.upperBound
            }
            left.replaceSubrange(range, with: inode.seen[range])
        }
        inode = FaultStorage.Inode(seen: left, durable: left)
        inodes[number] = inode
    }
}

extension FaultStorage: CustomReflectable {
    /// Nothing: a failing test should not print its disk.
    package var customMirror: Mirror { Mirror(self, children: []) }
}
