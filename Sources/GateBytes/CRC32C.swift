/// CRC-32C (Castagnoli, RFC 3720 §12.1): the check of the store's batches.
package enum CRC32C {
    /// The checksum of `bytes[range]`, continuing from `previous` (0 to begin).
    package static func checksum(
        _ bytes: [UInt8], _ range: Range<Int>, continuing previous: UInt32 = 0
    ) -> UInt32 {
        var value = ~previous
        for index in range {
            value = table[Int((value ^ UInt32(bytes[index])) & 0xff)] ^ value >> 8
        }
        return ~value
    }

    /// The checksum of all of `bytes`.
    package static func checksum(_ bytes: [UInt8]) -> UInt32 {
        checksum(bytes, 0..<bytes.count)
    }

    private static let polynomial: UInt32 = 0x82f6_3b78

    private static let table: [UInt32] = (0..<256).map { byte in
        (0..<8).reduce(UInt32(byte)) { value, _ in
            value & 1 == 1 ? value >> 1 ^ polynomial : value >> 1
        }
    }
}
