import GateBytes
import Testing

@Suite("Bytes: bounded readers, buffers and checks")
struct BytesTests {
    @Test("a value of 32 bytes keeps their order")
    func bytes32KeepsOrder() throws {
        let bytes = (0..<32).map { UInt8($0 * 7) }
        let value = try #require(Bytes32(bytes))
        #expect(value.array == bytes)
        #expect(value[5] == 35)
        #expect(Bytes32(Array(bytes.dropLast())) == nil)
        #expect(Bytes32(bytes + [1]) == nil)
        var other = value
        other[31] ^= 1
        #expect(other != value)
    }

    @Test("a reader gives exactly what is there or nothing")
    func readerIsBounded() {
        var reader = ByteReader([1, 2, 3, 4, 5, 6, 7])
        #expect(reader.readUInt32() == 0x0102_0304)
        #expect(reader.readUInt32() == nil)
        #expect(reader.readUInt16() == 0x0506)
        #expect(reader.readBytes(2) == nil)
        #expect(reader.readBytes(-1) == nil)
        #expect(reader.readByte() == 7)
        #expect(reader.readByte() == nil)
        #expect(reader.isAtEnd)
    }

    @Test("a buffer keeps bytes in order while it moves and grows")
    func bufferKeepsOrder() {
        var buffer = ByteBuffer()
        var expected: [UInt8] = []
        var next: UInt8 = 0
        for round in 1...200 {
            let added = (0..<(round % 13)).map { _ -> UInt8 in
                next &+= 1
                return next
            }
            buffer.append(added)
            expected += added
            let taken = min(expected.count, round % 7)
            #expect(
                Array(buffer.storage[buffer.readable].prefix(taken))
                    == Array(expected.prefix(taken)))
            buffer.consume(taken)
            expected.removeFirst(taken)
            #expect(buffer.count == expected.count)
        }
        #expect(Array(buffer.storage[buffer.readable]) == expected)
        #expect(buffer.storage.count < 4096)
    }

    @Test("CRC-32C gives the check value of RFC 3720")
    func crcCheckValue() {
        #expect(CRC32C.checksum(Array("123456789".utf8)) == 0xe306_9283)
        #expect(CRC32C.checksum([UInt8](repeating: 0, count: 32)) == 0x8a91_36aa)
    }

    @Test("hexadecimal reads either case and refuses the rest")
    func hex() {
        #expect(Hex.decode("00fFaB") == [0, 255, 0xab])
        #expect(Hex.encode([0, 255, 0xab]) == "00ffab")
        #expect(Hex.decode("0") == nil)
        #expect(Hex.decode("0g") == nil)
    }
}
