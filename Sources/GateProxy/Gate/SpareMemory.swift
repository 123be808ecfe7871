internal import GateBytes
internal import GateRuntime

/// Read buffers of one loop that no connection needs at the moment: an idle connection holds none,
/// and a busy one need not have the allocator make and clear it a new one for each request.
final class SpareMemory {
    private var spare: [[UInt8]] = []

    private static let countMax = 64
    private static let bytesMax = 2 * Socket.readBytes

    /// Gives `buffer` memory to read into, where it has none and some is spare.
    func lend(to buffer: inout ByteBuffer) {
        guard !buffer.hasMemory, let memory = spare.popLast() else { return }
        buffer.adopt(memory)
    }

    /// Takes the memory of an empty buffer back. What is larger than a read needs, or more than
    /// enough, goes to the allocator.
    func take(from buffer: inout ByteBuffer) {
        guard buffer.hasMemory else { return }
        let memory = buffer.surrender()
        guard memory.count <= SpareMemory.bytesMax, spare.count < SpareMemory.countMax else {
            return
        }
        spare.append(memory)
    }
}
