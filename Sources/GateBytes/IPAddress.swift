/// An IP address as sixteen bytes; IPv4 as IPv4-mapped IPv6 (`::ffff:a.b.c.d`), so both kinds
/// compare, mask and count alike.
package struct IPAddress: Hashable, Sendable {
    /// The first eight bytes, big endian.
    package var high: UInt64
    /// The last eight bytes, big endian.
    package var low: UInt64

    /// An address from its two halves.
    package init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// An IPv4 address from its number, big endian.
    package init(ipv4 number: UInt32) {
        self.init(high: 0, low: 0xffff_0000_0000 | UInt64(number))
    }

    /// Whether this is an IPv4 address.
    package var isIPv4: Bool { high == 0 && low >> 32 == 0xffff }

    /// The address with all but its first `prefixLength` bits (0–128) cleared.
    package func masked(_ prefixLength: Int) -> IPAddress {
        precondition((0...128).contains(prefixLength))
        func mask(_ bits: Int) -> UInt64 {
            bits <= 0 ? 0 : bits >= 64 ? .max : ~(UInt64.max >> UInt64(bits))
        }
        return IPAddress(high: high & mask(prefixLength), low: low & mask(prefixLength - 64))
    }

    /// What a limit per address counts: an IPv4 address whole, an IPv6 one by its /64.
    package var limitKey: IPAddress { isIPv4 ? self : masked(64) }

    /// What shares go by: the network that one client can easily choose an address from, a /24,
    /// and a /56 of IPv6.
    package var shareKey: IPAddress { masked(isIPv4 ? 120 : 56) }

    /// The address `text` is, in dotted or colon form without brackets or zone; nil when it is
    /// neither.
    package init?(_ text: String) {
        if let number = IPAddress.parseIPv4(text[...]) {
            self.init(ipv4: number)
        } else if let halves = IPAddress.parseIPv6(text) {
            self.init(high: halves.high, low: halves.low)
        } else {
            return nil
        }
    }

    private static func parseIPv4(_ text: Substring) -> UInt32? {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 4 else { return nil }
        var number: UInt32 = 0
        for part in parts {
            guard (1...3).contains(part.utf8.count), part.utf8.allSatisfy(ASCII.isDigit),
                part.utf8.count == 1 || part.utf8.first != UInt8(ascii: "0"),
                let value = UInt8(part)
            else { return nil }
            number = number << 8 | UInt32(value)
        }
        return number
    }

    private static func parseIPv6(_ text: String) -> (high: UInt64, low: UInt64)? {
        let halves = text.components(separatedBy: "::")
        guard halves.count <= 2, text.utf8.contains(UInt8(ascii: ":")) else { return nil }
        var groups: [UInt16] = []
        var gap: Int?
        for (index, half) in halves.enumerated() {
            if index == 1 { gap = groups.count }
            guard !half.isEmpty else { continue }
            let parts = half.split(separator: ":", omittingEmptySubsequences: false)
            for (position, part) in parts.enumerated() {
                let isLast = index == halves.count - 1 && position == parts.count - 1
                if isLast, let number = parseIPv4(part) {
                    groups.append(UInt16(number >> 16))
                    groups.append(UInt16(truncatingIfNeeded: number))
                } else {
                    guard (1...4).contains(part.utf8.count),
                        part.utf8.allSatisfy({ Hex.value($0) != nil }),
                        let value = UInt16(part, radix: 16)
                    else { return nil }
                    groups.append(value)
                }
            }
        }
        if let gap {
            guard groups.count <= 7 else { return nil }
            groups.insert(contentsOf: repeatElement(0, count: 8 - groups.count), at: gap)
        }
        guard groups.count == 8 else { return nil }
        let words = groups.map(UInt64.init)
        return (
            words[0] << 48 | words[1] << 32 | words[2] << 16 | words[3],
            words[4] << 48 | words[5] << 32 | words[6] << 16 | words[7]
        )
    }
}

extension IPAddress: CustomStringConvertible {
    /// The address in dotted or colon form (RFC 5952), without brackets.
    package var description: String {
        if isIPv4 {
            return [24, 16, 8, 0].map { String(low >> $0 & 0xff) }.joined(separator: ".")
        }
        let groups = [high, low].flatMap { half in
            [48, 32, 16, 0].map { UInt16(truncatingIfNeeded: half >> UInt64($0)) }
        }
        var longest = 0..<0
        var start = 0
        while start < 8 {
            var end = start
            while end < 8, groups[end] == 0 { end += 1 }
            if end - start > longest.count { longest = start..<end }
            start = max(end, start + 1)
        }
        func text(_ range: Range<Int>) -> String {
            groups[range].map { String($0, radix: 16) }.joined(separator: ":")
        }
        guard longest.count > 1 else { return text(0..<8) }
        return text(0..<longest.lowerBound) + "::" + text(longest.upperBound..<8)
    }
}

extension String {
    /// The parts of the text between occurrences of `separator`, empty ones kept.
    fileprivate func components(separatedBy separator: String) -> [Substring] {
        var parts: [Substring] = []
        var rest = self[...]
        while let range = rest.firstRange(of: separator) {
            parts.append(rest[..<range.lowerBound])
            rest = rest[range.upperBound...]
        }
        return parts + [rest]
    }
}
