internal import CGateOpenSSL

/// SHA-1, for the one thing that still asks for it: `Sec-WebSocket-Accept` (RFC 6455 §1.3), which
/// shows that a service has read a request as a WebSocket's, and protects nothing.
package enum SHA1 {
    /// Bytes of a hash.
    package static let count = 20

    /// The hash of `bytes`; nil where the library refuses the algorithm (a FIPS provider alone).
    package static func hash(_ bytes: [UInt8]) -> [UInt8]? {
        var hash = [UInt8](repeating: 0, count: count)
        var written = 0
        let result = unsafe bytes.withUnsafeBufferPointer { data in
            unsafe hash.withUnsafeMutableBufferPointer { hash in
                unsafe EVP_Q_digest(
                    nil, "SHA1", nil, data.baseAddress, data.count, hash.baseAddress, &written)
            }
        }
        return result == 1 && written == count ? hash : nil
    }
}
