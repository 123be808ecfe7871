package import GateBytes
package import GateConfig
package import GateHTTP

/// The address that limits, rollout and logs count as the client's.
package enum ClientAddress {
    /// The peer, unless it is a trusted proxy: then the right-most address of `X-Forwarded-For`
    /// that is none (threat T26). An entry that is no address ends the walk, and the last trusted
    /// hop counts: what stands left of it, anybody may have written.
    package static func find(
        peer: IPAddress, trusted: [Network], _ head: RequestHead
    ) -> IPAddress {
        guard isTrusted(peer, trusted) else { return peer }
        var client = peer
        for line in head.fields.reversed() where line.isNamed(name, in: head.bytes) {
            var end = line.value.upperBound
            while true {
                var start = end
                while start > line.value.lowerBound, head.bytes[start - 1] != UInt8(ascii: ",") {
                    start -= 1
                }
                guard let hop = address(head.bytes, start..<end) else { return client }
                client = hop
                guard isTrusted(hop, trusted) else { return client }
                guard start > line.value.lowerBound else { break }
                end = start - 1
            }
        }
        return client
    }

    /// Whether `address` is in one of `networks`.
    package static func isTrusted(_ address: IPAddress, _ networks: [Network]) -> Bool {
        networks.contains { $0.contains(address) }
    }

    private static let name = FieldName("x-forwarded-for")
    /// The longest address: IPv6 with an IPv4 tail, in brackets, with a port.
    private static let charactersMax = 53

    /// An address, bare, or as some proxies write it: `[v6]`, `[v6]:port`, `v4:port`.
    private static func address(_ bytes: [UInt8], _ range: Range<Int>) -> IPAddress? {
        var range = range
        while let first = range.first, isBlank(bytes[first]) {
            range = (first + 1)..<range.upperBound
        }
        while let last = range.last, isBlank(bytes[last]) { range = range.lowerBound..<last }
        guard let first = range.first, range.count <= charactersMax else { return nil }
        if bytes[first] == UInt8(ascii: "[") {
            guard let end = range.first(where: { bytes[$0] == UInt8(ascii: "]") }),
                end + 1 == range.upperBound || isPort(bytes, (end + 1)..<range.upperBound)
            else { return nil }
            let address = IPAddress(text(bytes, (first + 1)..<end))
            return address.flatMap { $0.isIPv4 ? nil : $0 }
        }
        if let colon = range.first(where: { bytes[$0] == UInt8(ascii: ":") }),
            isPort(bytes, colon..<range.upperBound)
        {
            return IPAddress(text(bytes, range.lowerBound..<colon))
        }
        return IPAddress(text(bytes, range))
    }

    /// Whether `bytes[range]` is a colon and one to five digits.
    private static func isPort(_ bytes: [UInt8], _ range: Range<Int>) -> Bool {
        guard (2...6).contains(range.count), bytes[range.lowerBound] == UInt8(ascii: ":") else {
            return false
        }
        return range.dropFirst().allSatisfy { ASCII.isDigit(bytes[$0]) }
    }

    private static func isBlank(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t")
    }

    private static func text(_ bytes: [UInt8], _ range: Range<Int>) -> String {
        String(decoding: bytes[range], as: UTF8.self)
    }
}
