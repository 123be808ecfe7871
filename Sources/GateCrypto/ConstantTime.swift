internal import CGateOpenSSL

/// Comparing secrets without telling by time where they differ.
package enum ConstantTime {
    /// Whether `left` and `right` are the same bytes. Only their lengths show in the time it takes.
    package static func equal(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        guard left.count == right.count else { return false }
        guard !left.isEmpty else { return true }
        return unsafe left.withUnsafeBytes { leftBytes in
            unsafe right.withUnsafeBytes { rightBytes in
                unsafe CRYPTO_memcmp(leftBytes.baseAddress, rightBytes.baseAddress, left.count) == 0
            }
        }
    }
}
