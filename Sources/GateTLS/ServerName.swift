// The server_name extension of a client's hello (RFC 6066 §3):
//
//   list length (2) │ type 0 (1) │ name length (2) │ name
//
// OpenSSL reads it again and refuses what is malformed; here such an extension names nobody.

enum ServerName {
    /// The longest DNS name.
    static let bytesMax = 255

    /// The host name of an extension's data; nil when there is none.
    static func parse(_ bytes: UnsafeBufferPointer<UInt8>) -> String? {
        guard bytes.count > 5, unsafe bytes[2] == 0 else { return nil }
        let listCount = unsafe Int(bytes[0]) << 8 | Int(bytes[1])
        let count = unsafe Int(bytes[3]) << 8 | Int(bytes[4])
        guard listCount == bytes.count - 2, count == bytes.count - 5 else { return nil }
        return unsafe lowercased(UnsafeBufferPointer(rebasing: bytes[5...]))
    }

    /// `bytes` in lower case; nil unless they are visible ASCII of a name's length.
    static func lowercased(_ bytes: UnsafeBufferPointer<UInt8>) -> String? {
        guard (1...bytesMax).contains(bytes.count) else { return nil }
        var name: [UInt8] = []
        name.reserveCapacity(bytes.count)
        for index in bytes.indices {
            let byte = unsafe bytes[index]
            guard (0x21...0x7e).contains(byte) else { return nil }
            name.append((0x41...0x5a).contains(byte) ? byte | 0x20 : byte)
        }
        return String(decoding: name, as: UTF8.self)
    }
}
