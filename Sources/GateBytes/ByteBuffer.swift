/// A growable queue of bytes between a socket and a codec: written at one end, consumed at the
/// other, one array underneath.
///
/// Readable bytes are `storage[readable]`. Consuming moves an index; space is reclaimed when the
/// buffer runs empty or before it would have to grow.
package struct ByteBuffer: Sendable {
    /// The bytes; only `readable` of them mean anything.
    package private(set) var storage: [UInt8]
    /// The indices of the bytes not yet consumed.
    package private(set) var readable: Range<Int>

    /// An empty buffer.
    package init() {
        storage = []
        readable = 0..<0
    }

    /// The number of bytes not yet consumed.
    package var count: Int { readable.count }

    /// Whether nothing is left to consume.
    package var isEmpty: Bool { readable.isEmpty }

    /// Drops `count` bytes from the front; traps when there are fewer.
    package mutating func consume(_ count: Int) {
        precondition(count >= 0 && count <= readable.count)
        readable = (readable.lowerBound + count)..<readable.upperBound
        if readable.isEmpty { readable = 0..<0 }
    }

    /// Drops everything and keeps the memory.
    package mutating func removeAll() {
        readable = 0..<0
    }

    /// Whether there is memory to write into without making any.
    package var hasMemory: Bool { !storage.isEmpty }

    /// Gives the memory away, for another buffer to ``adopt(_:)``: what an idle connection should
    /// do. Traps while there are bytes left to consume.
    package mutating func surrender() -> [UInt8] {
        precondition(readable.isEmpty)
        let given = storage
        storage = []
        readable = 0..<0
        return given
    }

    /// Takes memory that another buffer gave away; traps unless this one has none.
    package mutating func adopt(_ memory: consuming [UInt8]) {
        precondition(storage.isEmpty)
        storage = memory
    }

    /// Appends `bytes`.
    package mutating func append(_ bytes: [UInt8]) {
        append(bytes, 0..<bytes.count)
    }

    /// Appends `bytes[range]`.
    package mutating func append(_ bytes: [UInt8], _ range: Range<Int>) {
        makeRoom(range.count)
        let start = readable.upperBound
        storage.replaceSubrange(start..<(start + range.count), with: bytes[range])
        readable = readable.lowerBound..<(start + range.count)
    }

    /// Appends `bytes`, which C lends.
    package mutating func append(_ bytes: UnsafeBufferPointer<UInt8>) {
        makeRoom(bytes.count)
        let start = readable.upperBound
        unsafe storage.replaceSubrange(start..<(start + bytes.count), with: bytes)
        readable = readable.lowerBound..<(start + bytes.count)
    }

    /// Gives `body` the storage and the index where at least `atLeast` bytes are free; it answers
    /// how many it wrote from there.
    package mutating func write<Failure: Error>(
        atLeast: Int, _ body: (inout MutableSpan<UInt8>, Int) throws(Failure) -> Int
    ) throws(Failure) -> Int {
        makeRoom(atLeast)
        let start = readable.upperBound
        var span = storage.mutableSpan
        let written = try body(&span, start)
        precondition(written >= 0 && written <= storage.count - start)
        readable = readable.lowerBound..<(start + written)
        return written
    }

    private mutating func makeRoom(_ count: Int) {
        if storage.count - readable.upperBound >= count { return }
        if readable.lowerBound > 0 {
            let length = readable.count
            for offset in 0..<length {
                storage[offset] = storage[readable.lowerBound + offset]
            }
            readable = 0..<length
            if storage.count - length >= count { return }
        }
        let wanted = max(readable.upperBound + count, storage.count * 2)
        storage.append(contentsOf: repeatElement(0, count: wanted - storage.count))
    }
}
