import GateBytes
import GateCrypto
import GateProxy
import GateRuntime
import Testing

@Suite("Held bodies: exact bytes, memory first, bounded")
struct HeldBodyTests {
    let spool = Spool(directory: "/tmp", bytesMax: 1000, filesMax: 2)

    @Test("what is read back is what came in, whatever the sizes of the pieces")
    func exactBytes() throws {
        let bytes = (0..<900).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 3) }
        for piece in [1, 7, 64, 100, 899] {
            let held = HeldBody(memoryBytesMax: 100, bytesMax: 900, spool: spool)
            for start in stride(from: 0, to: bytes.count, by: piece) {
                try held.append(bytes, start..<min(bytes.count, start + piece))
            }
            #expect(held.finish() == SHA256.hash(bytes))
            #expect(held.count == bytes.count)
            var buffer = ByteBuffer()
            var offset = 0
            while offset < held.count {
                offset += try held.read(at: offset, limit: 50, into: &buffer)
            }
            #expect(Array(buffer.storage[buffer.readable]) == bytes)
        }
        #expect(spool.usage == Spool.Usage())
    }

    @Test("a body of exactly the limit passes, one byte more does not")
    func limit() throws {
        let bytes = [UInt8](repeating: 7, count: 101)
        let held = HeldBody(memoryBytesMax: 10, bytesMax: 100, spool: spool)
        try held.append(bytes, 0..<100)
        #expect(throws: HeldBodyError.tooLarge) { try held.append(bytes, 0..<1) }
        let other = HeldBody(memoryBytesMax: 10, bytesMax: 100, spool: spool)
        #expect(throws: HeldBodyError.tooLarge) { try other.append(bytes, 0..<101) }
    }

    @Test("an empty body has the hash of nothing")
    func empty() {
        let held = HeldBody(memoryBytesMax: 10, bytesMax: 100, spool: spool)
        #expect(held.finish() == SHA256.hash([]))
        #expect(held.count == 0)
    }

    @Test("a body within memory opens no file")
    func memoryOnly() throws {
        let held = HeldBody(memoryBytesMax: 100, bytesMax: 100, spool: spool)
        try held.append([UInt8](repeating: 1, count: 100), 0..<100)
        #expect(spool.usage.files == 0)
        #expect(held.bytes.count == 100)
    }

    @Test("the spool's bytes and files are limits over all bodies, and come back")
    func spoolLimits() throws {
        let bytes = [UInt8](repeating: 1, count: 800)
        var first: HeldBody? = HeldBody(memoryBytesMax: 0, bytesMax: 5000, spool: spool)
        try first?.append(bytes, 0..<800)
        let second = HeldBody(memoryBytesMax: 0, bytesMax: 5000, spool: spool)
        #expect(throws: HeldBodyError.spoolFull) { try second.append(bytes, 0..<800) }
        try second.append(bytes, 0..<200)
        let third = HeldBody(memoryBytesMax: 0, bytesMax: 5000, spool: spool)
        #expect(throws: HeldBodyError.spoolFull) { try third.append(bytes, 0..<1) }
        first = nil
        try third.append(bytes, 0..<700)
        #expect(spool.usage == Spool.Usage(bytes: 900, files: 2))
    }

    @Test("a body that may go to no file stays in memory, within the spool's limits")
    func withoutFile() throws {
        let nowhere = Spool(directory: "/nonexistent/attestgate", bytesMax: 1000, filesMax: 1)
        let bytes = (0..<900).map { UInt8(truncatingIfNeeded: $0) }
        func body() -> HeldBody {
            HeldBody(memoryBytesMax: 100, bytesMax: 2000, isFileAllowed: false, spool: nowhere)
        }
        var held: HeldBody? = body()
        try held?.append(bytes, 0..<100)
        #expect(nowhere.usage == Spool.Usage())
        try held?.append(bytes, 100..<900)
        #expect(nowhere.usage == Spool.Usage(bytes: 800, files: 1))
        #expect(held?.fitsInMemory(1) == false)
        #expect(held?.bytes == bytes)
        #expect(held?.finish() == SHA256.hash(bytes))
        #expect(throws: HeldBodyError.spoolFull) { try held?.append(bytes, 0..<201) }
        let other = body()
        #expect(throws: HeldBodyError.spoolFull) { try other.append(bytes, 0..<101) }
        held = nil
        #expect(nowhere.usage == Spool.Usage())
        try other.append(bytes, 0..<101)
        #expect(throws: HeldBodyError.tooLarge) {
            try other.append([UInt8](repeating: 1, count: 1900), 0..<1900)
        }
    }

    @Test("a spool directory that is not there is a failure, not a full spool")
    func missingDirectory() {
        let gone = Spool(directory: "/nonexistent/attestgate", bytesMax: 1000, filesMax: 2)
        let held = HeldBody(memoryBytesMax: 0, bytesMax: 5000, spool: gone)
        let error = #expect(throws: HeldBodyError.self) { try held.append([1], 0..<1) }
        guard case .spoolFailed = error else {
            Issue.record("expected a failed spool, got \(String(describing: error))")
            return
        }
        #expect(gone.usage == Spool.Usage())
    }
}
