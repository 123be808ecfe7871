internal import GateBytes

/// `host[:port]`, octet by octet (RFC 9110 §7.2, RFC 3986 §3.2.2).
///
/// A host is a name of letters, digits, `-`, `_` in labels parted by single dots, perhaps with a
/// trailing one, or an IPv6 address in brackets. Userinfo, percent-encoding, sub-delimiters, empty
/// labels and an empty host are refused: each is a name that some server reads differently. A port
/// is one to five digits, 1 to 65535.
struct AuthorityScanner: Sendable {
    private enum State: UInt8 {
        case start
        case label
        case afterDot
        case address
        case afterAddress
        case port
    }

    private var state = State.start
    private var addressText: [UInt8] = []
    private var port = 0
    private var portDigits = 0
    /// Octets taken.
    private(set) var count = 0
    /// Octets of the host, without a trailing dot and without the port.
    private(set) var hostCount = 0

    /// Takes one octet; false when no authority can have it there.
    mutating func take(_ byte: UInt8) -> Bool {
        guard step(byte) else { return false }
        count += 1
        if state == .label || state == .address || state == .afterAddress { hostCount = count }
        return true
    }

    /// Whether what was taken is a whole authority.
    var isComplete: Bool {
        switch state {
        case .label, .afterDot, .afterAddress: return true
        case .port: return port > 0
        case .start, .address: return false
        }
    }

    private mutating func step(_ byte: UInt8) -> Bool {
        switch state {
        case .start:
            if byte == UInt8(ascii: "[") {
                state = .address
                return true
            }
            return label(byte)
        case .label:
            switch byte {
            case Octet.dot: state = .afterDot
            case Octet.colon: state = .port
            default: return label(byte)
            }
            return true
        case .afterDot:
            if byte == Octet.colon {
                state = .port
                return true
            }
            return label(byte)
        case .address: return address(byte)
        case .afterAddress:
            state = .port
            return byte == Octet.colon
        case .port: return digit(byte)
        }
    }

    private mutating func label(_ byte: UInt8) -> Bool {
        state = .label
        return Octet.isHostName(byte)
    }

    private mutating func address(_ byte: UInt8) -> Bool {
        if byte == UInt8(ascii: "]") {
            state = .afterAddress
            return IPAddress(String(decoding: addressText, as: UTF8.self)).map { _ in true }
                ?? false
        }
        let isPart = Octet.hexadecimal(byte) != nil || byte == Octet.colon || byte == Octet.dot
        // An IPv6 address has a colon among its first five octets and at most 45 octets.
        guard isPart, addressText.count < 45 else { return false }
        addressText.append(byte)
        return addressText.count != 5 || addressText.contains(Octet.colon)
    }

    private mutating func digit(_ byte: UInt8) -> Bool {
        guard Octet.isDigit(byte), portDigits < 5 else { return false }
        portDigits += 1
        port = port * 10 + Int(byte &- 0x30)
        return port <= 65535
    }
}
