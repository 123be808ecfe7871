import GateBytes
import GateHTTP
import Testing

/// What becomes of `bytes`: the header and how many octets it took; nil while it is not complete.
private func read(
    _ bytes: [UInt8]
) throws(ProxyHeaderError) -> (header: ProxyHeader, taken: Int)? {
    var buffer = ByteBuffer()
    buffer.append(bytes)
    guard let header = try ProxyHeaderDecoder.next(&buffer) else {
        #expect(buffer.count == bytes.count, "an incomplete header takes nothing")
        return nil
    }
    return (header, bytes.count - buffer.count)
}

private func fault(_ bytes: [UInt8]) -> ProxyHeaderError? {
    do throws(ProxyHeaderError) {
        _ = try read(bytes)
        return nil
    } catch {
        return error
    }
}

private func address(_ text: String) throws -> IPAddress {
    try #require(IPAddress(text))
}

/// No header may be told from one of its beginnings, and nothing behind it matters.
private func checkEveryCut(_ bytes: [UInt8]) throws {
    for count in 0..<bytes.count {
        #expect(try read(Array(bytes[..<count])) == nil, "cut at \(count)")
    }
    let whole = try #require(try read(bytes))
    #expect(whole.taken == bytes.count)
    let longer = try #require(try read(bytes + latin1("GET / HTTP/1.1\r\n")))
    #expect(longer.header == whole.header)
    #expect(longer.taken == bytes.count)
}

@Suite("PROXY protocol, version 1")
struct ProxyLineTests {
    @Test("an address of either family, and a line that names none")
    func good() throws {
        let lines: [(String, ProxyHeader)] = [
            (
                "PROXY TCP4 192.0.2.1 10.0.0.1 56324 443",
                .client(try address("192.0.2.1"), port: 56324)
            ),
            (
                "PROXY TCP4 0.0.0.0 255.255.255.255 0 65535",
                .client(try address("0.0.0.0"), port: 0)
            ),
            (
                "PROXY TCP6 2001:db8::1 ::1 1 2", .client(try address("2001:db8::1"), port: 1)
            ),
            (
                "PROXY TCP6 ::ffff:192.0.2.1 ::1 65535 2",
                .client(try address("192.0.2.1"), port: 65535)
            ),
            ("PROXY UNKNOWN", .peer), ("PROXY UNKNOWN ", .peer),
            ("PROXY UNKNOWN ffff::1 and whatever else 1 2 3 4", .peer),
            (
                "PROXY UNKNOWN " + String(repeating: "f", count: 107 - 16), .peer
            ),
        ]
        for (line, header) in lines {
            let bytes = latin1(line + "\r\n")
            #expect(try read(bytes)?.header == header, "\(line)")
            try checkEveryCut(bytes)
        }
    }

    @Test("what is no line of the grammar is refused")
    func lines() {
        for line in [
            "PROXY", "PROXY ", "PROXY  TCP4 1.2.3.4 1.2.3.4 1 2", "PROXY TCP4",
            "PROXY TCP4 1.2.3.4 1.2.3.4 1", "PROXY TCP4 1.2.3.4 1.2.3.4 1 2 ",
            "PROXY TCP4 1.2.3.4 1.2.3.4 1 2 3", "PROXY TCP4  1.2.3.4 1.2.3.4 1 2",
            "PROXY tcp4 1.2.3.4 1.2.3.4 1 2", "PROXY TCP 1.2.3.4 1.2.3.4 1 2",
            "PROXY TCP5 1.2.3.4 1.2.3.4 1 2", "PROXY UDP4 1.2.3.4 1.2.3.4 1 2",
            "PROXY UNKNOWNX", "PROXY unknown",
        ] {
            #expect(
                [.lineInvalid, .signatureInvalid].contains(fault(latin1(line + "\r\n"))), "\(line)")
        }
        for line in ["proxy TCP4", "PROXYTCP4", " PROXY", "PRI * HTTP/2.0", "POST / HTTP/1.1"] {
            #expect(fault(latin1(line)) == .signatureInvalid, "\(line)")
        }
    }

    @Test("a line ends with CRLF alone, and holds no other control octet")
    func ends() {
        for text in [
            "PROXY TCP4 1.2.3.4 1.2.3.4 1 2\n", "PROXY TCP4 1.2.3.4 1.2.3.4 1 2\r\r\n",
            "PROXY TCP4 1.2.3.4 1.2.3.4 1 2\rX", "PROXY TCP4\t1.2.3.4 1.2.3.4 1 2\r\n",
            "PROXY UNKNOWN \n\r\n", "PROXY UNKNOWN \0\r\n", "PROXY UNKNOWN \u{7f}\r\n",
            "PROXY UNKNOWN \u{e9}\r\n",
        ] {
            #expect(fault(latin1(text)) == .lineInvalid, "\(text.debugDescription)")
        }
    }

    @Test("addresses and ports are of their family, in their shortest form, and in range")
    func addresses() {
        for words in [
            "TCP4 1.2.3 1.2.3.4 1 2", "TCP4 1.2.3.4 1.2.3 1 2", "TCP4 1.2.3.256 1.2.3.4 1 2",
            "TCP4 01.2.3.4 1.2.3.4 1 2", "TCP4 1.2.3.4.5 1.2.3.4 1 2", "TCP4 ::1 1.2.3.4 1 2",
            "TCP4 1.2.3.4 ::1 1 2", "TCP4 0x1.2.3.4 1.2.3.4 1 2", "TCP4 16909060 1.2.3.4 1 2",
            "TCP4 ::ffff:1.2.3.4 1.2.3.4 1 2", "TCP6 1.2.3.4 ::1 1 2", "TCP6 ::1 1.2.3.4 1 2",
            "TCP6 1::2::3 ::1 1 2", "TCP6 fe80::1%eth0 ::1 1 2", "TCP6 [::1] ::1 1 2",
            "TCP6 1:2:3:4:5:6:7 ::1 1 2", "TCP6 12345::1 ::1 1 2", "TCP4 1.2.3.4 1.2.3.4 65536 2",
            "TCP4 1.2.3.4 1.2.3.4 1 65536", "TCP4 1.2.3.4 1.2.3.4 01 2",
            "TCP4 1.2.3.4 1.2.3.4 1 02", "TCP4 1.2.3.4 1.2.3.4 -1 2", "TCP4 1.2.3.4 1.2.3.4 +1 2",
            "TCP4 1.2.3.4 1.2.3.4 1 0x2", "TCP4 1.2.3.4 1.2.3.4 000001 2",
        ] {
            #expect(fault(latin1("PROXY \(words)\r\n")) == .addressInvalid, "\(words)")
        }
    }

    @Test("107 octets with CRLF are a line, 108 are none, with or without an end")
    func length() throws {
        let start = "PROXY UNKNOWN "
        let longest = start + String(repeating: "x", count: 105 - start.count)
        #expect(try read(latin1(longest + "\r\n"))?.taken == 107)
        #expect(fault(latin1(longest + "x\r\n")) == .tooLong)
        #expect(fault(latin1(longest + "xx")) == .tooLong)
        #expect(try read(latin1(longest + "x")) == nil)
    }

    @Test("every wrong octet is told as soon as it has come")
    func early() {
        let line = latin1("PROXY TCP4 192.0.2.1 10.0.0.1 56324 443\r\n")
        for index in line.indices.dropFirst() {
            var wrong = Array(line[...index])
            wrong[index] = 0
            #expect(fault(wrong) != nil, "octet \(index)")
        }
        for first in UInt8.min...UInt8.max where first != 0x50 && first != 0x0d {
            #expect(fault([first]) == .signatureInvalid)
        }
    }
}

/// A version 2 header of these parts.
private func block(
    _ rest: [UInt8], command: UInt8 = 0x21, family: UInt8 = 0x11, length: Int? = nil
) -> [UInt8] {
    let count = length ?? rest.count
    return [0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a] + [
        command, family, UInt8(count >> 8), UInt8(count & 0xff),
    ] + rest
}

private let inet: [UInt8] = [192, 0, 2, 1, 10, 0, 0, 1, 0xdc, 0x04, 0x01, 0xbb]
private let inet6: [UInt8] =
    [0x20, 0x01, 0x0d, 0xb8] + [UInt8](repeating: 0, count: 11) + [7]
    + [UInt8](repeating: 0, count: 15) + [1] + [0xdc, 0x04, 0x01, 0xbb]

private func value(_ type: UInt8, _ bytes: [UInt8]) -> [UInt8] {
    [type, UInt8(bytes.count >> 8), UInt8(bytes.count & 0xff)] + bytes
}

/// The header with a CRC-32C of its own behind `rest`.
private func checked(_ rest: [UInt8], behind: [UInt8] = []) -> [UInt8] {
    var bytes = block(rest + value(3, [0, 0, 0, 0]) + behind)
    let checksum = CRC32C.checksum(bytes)
    let at = bytes.count - behind.count - 4
    for index in 0..<4 { bytes[at + index] = UInt8(checksum >> (24 - 8 * index) & 0xff) }
    return bytes
}

@Suite("PROXY protocol, version 2")
struct ProxyBlockTests {
    @Test("an address of either family, with and without TLVs")
    func good() throws {
        let four = ProxyHeader.client(try address("192.0.2.1"), port: 56324)
        let six = ProxyHeader.client(try address("2001:db8::7"), port: 56324)
        let values = value(2, latin1("a.example")) + value(4, []) + value(0xea, [1, 2, 3])
        for (bytes, header) in [
            (block(inet), four), (block(inet6, family: 0x21), six), (block(inet + values), four),
            (block(inet6 + values, family: 0x21), six),
        ] {
            #expect(try read(bytes)?.header == header)
            try checkEveryCut(bytes)
        }
    }

    @Test("LOCAL keeps the peer, whatever family and addresses stand there")
    func local() throws {
        for family in UInt8.min...UInt8.max {
            let bytes = block(inet, command: 0x20, family: family)
            #expect(try read(bytes)?.header == .peer, "\(family)")
            #expect(try read(bytes)?.taken == bytes.count)
        }
        try checkEveryCut(block([], command: 0x20, family: 0x00))
        try checkEveryCut(block([1, 2, 3], command: 0x20, family: 0x00))
    }

    @Test("an unspecified family, a unix socket and datagrams keep the peer")
    func peer() throws {
        let paths = [UInt8](repeating: 0x2f, count: 216)
        for (family, rest): (UInt8, [UInt8]) in [
            (0x00, []), (0x00, [1, 2, 3]), (0x01, []), (0x10, inet), (0x12, inet), (0x20, inet6),
            (0x22, inet6), (0x30, paths), (0x31, paths), (0x32, paths),
        ] {
            let bytes = block(rest, family: family)
            #expect(try read(bytes)?.header == .peer, "\(family)")
            try checkEveryCut(bytes)
        }
    }

    @Test("a family, transport, command or version without a meaning is refused")
    func meanings() {
        for family in UInt8.min...UInt8.max where family >> 4 > 3 || family & 15 > 2 {
            #expect(fault(block(inet, family: family)) == .familyUnknown, "\(family)")
        }
        for command in UInt8.min...UInt8.max where command != 0x20 && command != 0x21 {
            let expected: ProxyHeaderError =
                command >> 4 == 2 ? .commandUnknown : .versionUnknown
            #expect(fault(block(inet, command: command)) == expected, "\(command)")
        }
    }

    @Test("every wrong octet of the signature is told as soon as it has come")
    func signature() {
        let bytes = block(inet)
        for index in 1..<12 {
            var wrong = Array(bytes[...index])
            wrong[index] ^= 1
            #expect(fault(wrong) == .signatureInvalid, "octet \(index)")
        }
    }

    @Test("a header too short for its addresses is refused")
    func short() {
        for count in 0..<inet.count {
            #expect(fault(block(Array(inet[..<count]))) == .addressesTruncated, "\(count)")
        }
        for count in 0..<inet6.count {
            let rest = Array(inet6[..<count])
            #expect(fault(block(rest, family: 0x21)) == .addressesTruncated, "\(count)")
        }
        let paths = [UInt8](repeating: 0, count: 215)
        #expect(fault(block(paths, family: 0x31)) == .addressesTruncated)
    }

    @Test("TLVs end where the header ends")
    func values() {
        let whole = value(2, latin1("a.example"))
        for count in 1..<whole.count {
            #expect(fault(block(inet + whole[..<count])) == .valueInvalid, "\(count)")
        }
        #expect(fault(block(inet + [2, 0xff, 0xff])) == .valueInvalid)
        #expect(fault(block(inet + [0])) == .valueInvalid)
    }

    @Test("a CRC-32C that is there is checked, once and of four octets")
    func checksum() throws {
        let good = checked(inet + value(2, [1]), behind: value(4, [0, 0]))
        #expect(try read(good)?.header == .client(try address("192.0.2.1"), port: 56324))
        try checkEveryCut(good)
        let typeOfChecksum = 32
        // Without its type it is no checksum at all.
        for index in good.indices where index > 15 && index != typeOfChecksum {
            var wrong = good
            wrong[index] ^= 0x10
            #expect(fault(wrong) != nil, "octet \(index)")
        }
        var wrong = good
        wrong[16] ^= 1
        #expect(fault(wrong) == .checksumMismatch)
        #expect(fault(block(inet + value(3, [0, 0, 0]))) == .valueInvalid)
        #expect(fault(block(inet + value(3, [0, 0, 0, 0, 0]))) == .valueInvalid)
        #expect(fault(checked(inet + value(3, [0, 0, 0, 0]))) == .valueInvalid)
    }

    @Test("4096 octets are taken, more are refused before they come")
    func length() throws {
        let most = 4096 - 16
        let filler = value(4, [UInt8](repeating: 0, count: most - inet.count - 3))
        #expect(try read(block(inet + filler))?.taken == 4096)
        #expect(fault(block([], length: most + 1)) == .tooLong)
        #expect(fault(block([], command: 0x20, family: 0x00, length: 0xffff)) == .tooLong)
        #expect(try read(block([], length: most)) == nil)
    }
}
