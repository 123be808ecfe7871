/// CRC-32C (Castagnoli, RFC 3720 §12.1): the check of the store's batches.
package enum CRC32C {
    /// The checksum of `bytes[range]`, continuing from `previous` (0 to begin).
    ///
    /// Eight bytes at a step, with a table for each ("slicing by eight"): a start reads hundreds of
    /// megabytes.
    package static func checksum(
        _ bytes: [UInt8], _ range: Range<Int>, continuing previous: UInt32 = 0
    ) -> UInt32 {
        precondition(range.lowerBound >= 0 && range.upperBound <= bytes.count)
        let tables = tables
        return unsafe bytes.withUnsafeBytes { bytes in
            unsafe tables.withUnsafeBufferPointer { tables in
                var value = ~previous
                var index = range.lowerBound
                while index + 8 <= range.upperBound {
                    let word =
                        unsafe UInt64(
                            littleEndian: bytes.loadUnaligned(
                                fromByteOffset: index, as: UInt64.self)) ^ UInt64(value)
                    value = 0
                    for step in 0..<8 {
                        let byte = Int(truncatingIfNeeded: word >> UInt64(8 * step)) & 0xff
                        value ^= unsafe tables[(7 - step) * 256 + byte]
                    }
                    index += 8
                }
                while index < range.upperBound {
                    value = unsafe tables[Int((value ^ UInt32(bytes[index])) & 0xff)] ^ value >> 8
                    index += 1
                }
                return ~value
            }
        }
    }

    /// The checksum of all of `bytes`.
    package static func checksum(_ bytes: [UInt8]) -> UInt32 {
        checksum(bytes, 0..<bytes.count)
    }

    private static let polynomial: UInt32 = 0x82f6_3b78

    /// What a byte does to the checksum, then what it does with one, two … seven zeros behind it.
    private static let tables: [UInt32] = {
        var tables: [UInt32] = (0..<256).map { byte in
            (0..<8).reduce(UInt32(byte)) { value, _ in
                value & 1 == 1 ? value >> 1 ^ polynomial : value >> 1
            }
        }
        for index in 256..<2048 {
            let value = tables[index - 256]
            tables.append(tables[Int(value & 0xff)] ^ value >> 8)
        }
        return tables
    }()
}
