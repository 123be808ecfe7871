// The PROXY protocol, both versions, as its receiver reads it (doc/proxy-protocol.txt of HAProxy):
// what a balancer says of the client before the first octet of the connection itself.
//
//   1:  PROXY SP ( TCP4 | TCP6 ) SP source SP destination SP port SP port CRLF     ≤ 107 octets
//       PROXY SP UNKNOWN [ SP anything ] CRLF
//   2:  signature (12) | version, command | family, transport | length (2) | addresses | TLVs
//
// Nothing is guessed: whoever calls expects a header, and what is none is an error at its first
// wrong octet. Nothing behind the header is taken.

package import GateBytes

/// What a PROXY header says of the connection behind it.
package enum ProxyHeader: Equatable, Sendable {
    /// The client's address and port.
    case client(IPAddress, port: UInt16)
    /// Nothing: the sender speaks for itself (`LOCAL`), or for a client that has no address here
    /// (`UNKNOWN`, unspecified, a unix socket, datagrams). The peer is whom it is.
    case peer
}

/// Why a PROXY header was refused.
package enum ProxyHeaderError: Error, Equatable, Sendable {
    /// A version 2 header too short for its addresses.
    case addressesTruncated
    /// A version 1 line whose addresses or ports are none, or not of the family it names.
    case addressInvalid
    /// The CRC-32C that the header carries is not its own.
    case checksumMismatch
    /// A version 2 command other than LOCAL and PROXY.
    case commandUnknown
    /// A version 2 family or transport without a meaning.
    case familyUnknown
    /// A version 1 line that is not as the grammar has it.
    case lineInvalid
    /// A version 1 line of more than 107 octets, or a version 2 header over the limit.
    case tooLong
    /// Neither version begins so.
    case signatureInvalid
    /// A TLV that does not end with the header, or whose length its type does not allow.
    case valueInvalid
    /// A version other than 2 behind the signature of version 2.
    case versionUnknown
}

/// Takes one PROXY header off the front of a stream.
package enum ProxyHeaderDecoder {
    /// The header at the front of `buffer`, taken out of it; nil when it is not complete yet.
    ///
    /// Each call looks at the whole header again: it is short, and seldom comes in pieces.
    package static func next(
        _ buffer: inout ByteBuffer
    ) throws(ProxyHeaderError) -> ProxyHeader? {
        guard let first = buffer.first else { return nil }
        let bytes = Array(buffer.storage[buffer.readable].prefix(headerBytesMax))
        let found: (header: ProxyHeader, count: Int)?
        switch first {
        case UInt8(ascii: "P"): found = try ProxyHeaderLine.read(bytes)
        case Octet.carriageReturn: found = try ProxyHeaderBlock.read(bytes)
        default: throw .signatureInvalid
        }
        guard let found else { return nil }
        buffer.consume(found.count)
        return found.header
    }

    /// The longest header taken, addresses and TLVs included: what nginx takes. A TLS
    /// client's certificate among the TLVs is the largest thing that senders put there.
    static let headerBytesMax = 4096

    /// Whether `bytes` begins as `signature` does, as far as there are bytes.
    fileprivate static func begins(_ bytes: [UInt8], _ signature: [UInt8]) -> Bool {
        for (byte, expected) in zip(bytes, signature) where byte != expected { return false }
        return true
    }
}

/// Version 1: a line of text.
private enum ProxyHeaderLine {
    /// With CRLF, as the protocol has it: the longest line a sender can make.
    static let bytesMax = 107

    static let signature = Array("PROXY ".utf8)

    static func read(
        _ bytes: [UInt8]
    ) throws(ProxyHeaderError) -> (header: ProxyHeader, count: Int)? {
        guard ProxyHeaderDecoder.begins(bytes, signature) else { throw .signatureInvalid }
        let end = Octet.skip(bytes, 0, min(bytes.count, bytesMax), while: isPrintable)
        guard end < bytes.count else {
            guard end < bytesMax else { throw .tooLong }
            return nil
        }
        guard end < bytesMax - 1 else { throw .tooLong }
        guard bytes[end] == Octet.carriageReturn else { throw .lineInvalid }
        guard end + 1 < bytes.count else { return nil }
        guard bytes[end + 1] == Octet.lineFeed else { throw .lineInvalid }
        return (try header(bytes[..<end]), end + 2)
    }

    private static func isPrintable(_ byte: UInt8) -> Bool { byte &- 0x20 < 0x5f }

    private static func header(_ line: ArraySlice<UInt8>) throws(ProxyHeaderError) -> ProxyHeader {
        let words = line.split(separator: Octet.space, omittingEmptySubsequences: false)
            .map { String(decoding: $0, as: UTF8.self) }
        // What follows UNKNOWN means nothing, whatever it is.
        if words.count >= 2, words[1] == "UNKNOWN" { return .peer }
        guard words.count == 6, words[1] == "TCP4" || words[1] == "TCP6" else {
            throw .lineInvalid
        }
        let isIPv4 = words[1] == "TCP4"
        guard let source = address(words[2], isIPv4: isIPv4),
            address(words[3], isIPv4: isIPv4) != nil,
            let port = port(words[4]), self.port(words[5]) != nil
        else { throw .addressInvalid }
        return .client(source, port: port)
    }

    /// An address in the form of its family. An IPv4 address in colon form is of the other one.
    private static func address(_ text: String, isIPv4: Bool) -> IPAddress? {
        guard text.utf8.contains(Octet.colon) != isIPv4 else { return nil }
        return IPAddress(text)
    }

    /// 0 to 65535 in decimal, without leading zeros.
    private static func port(_ text: String) -> UInt16? {
        guard (1...5).contains(text.utf8.count), text.utf8.allSatisfy(Octet.isDigit),
            text == "0" || text.utf8.first != UInt8(ascii: "0")
        else { return nil }
        return UInt16(text)
    }
}

/// Version 2: a block of octets.
private enum ProxyHeaderBlock {
    static let signature: [UInt8] = [
        0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a,
    ]
    /// Signature, version and command, family and transport, length.
    static let fixedBytes = 16

    static func read(
        _ bytes: [UInt8]
    ) throws(ProxyHeaderError) -> (header: ProxyHeader, count: Int)? {
        guard ProxyHeaderDecoder.begins(bytes, signature) else { throw .signatureInvalid }
        guard bytes.count > 12 else { return nil }
        guard bytes[12] >> 4 == 2 else { throw .versionUnknown }
        guard bytes[12] & 15 <= 1 else { throw .commandUnknown }
        let isLocal = bytes[12] & 15 == 0
        guard bytes.count > 13 else { return nil }
        let family = bytes[13] >> 4
        let transport = bytes[13] & 15
        // LOCAL says nothing of a client: family and addresses are skipped, whatever they are.
        guard isLocal || (family <= 3 && transport <= 2) else { throw .familyUnknown }
        guard bytes.count >= fixedBytes else { return nil }
        let count = fixedBytes + (Int(bytes[14]) << 8 | Int(bytes[15]))
        guard count <= ProxyHeaderDecoder.headerBytesMax else { throw .tooLong }
        guard bytes.count >= count else { return nil }
        guard !isLocal, family > 0 else { return (.peer, count) }

        var reader = ByteReader(bytes, fixedBytes..<count)
        let source = try address(&reader, family: family)
        try checkValues(&reader, header: bytes[..<count])
        guard transport == stream, let source else { return (.peer, count) }
        return (source, count)
    }

    private static let stream: UInt8 = 1

    /// Takes both addresses and their ports; nil where the family has none of ours.
    private static func address(
        _ reader: inout ByteReader, family: UInt8
    ) throws(ProxyHeaderError) -> ProxyHeader? {
        switch family {
        case 1:
            guard let source = reader.readUInt32(), reader.readUInt32() != nil,
                let port = reader.readUInt16(), reader.readUInt16() != nil
            else { throw .addressesTruncated }
            return .client(IPAddress(ipv4: source), port: port)
        case 2:
            guard let high = reader.readUInt64(), let low = reader.readUInt64(),
                reader.readRange(16) != nil, let port = reader.readUInt16(),
                reader.readUInt16() != nil
            else { throw .addressesTruncated }
            return .client(IPAddress(high: high, low: low), port: port)
        default:
            // Two paths of a unix socket.
            guard reader.readRange(2 * 108) != nil else { throw .addressesTruncated }
            return nil
        }
    }

    /// Walks the TLVs to the header's end and checks the CRC-32C where there is one.
    private static func checkValues(
        _ reader: inout ByteReader, header: ArraySlice<UInt8>
    ) throws(ProxyHeaderError) {
        var checksum: Range<Int>?
        while !reader.isAtEnd {
            guard let type = reader.readByte(), let count = reader.readUInt16(),
                let value = reader.readRange(Int(count))
            else { throw .valueInvalid }
            guard type == checksumType else { continue }
            guard value.count == 4, checksum == nil else { throw .valueInvalid }
            checksum = value
        }
        guard let checksum else { return }
        let stated = header[checksum].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        var zeroed = Array(header)
        for index in checksum { zeroed[index] = 0 }
        guard CRC32C.checksum(zeroed) == stated else { throw .checksumMismatch }
    }

    private static let checksumType: UInt8 = 0x03
}
