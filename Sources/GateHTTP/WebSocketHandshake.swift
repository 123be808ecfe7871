// The opening handshake of a WebSocket (RFC 6455 §4) as an intermediary judges it: whether a
// request is one, and whether an answer accepts it. What is not whole is no handshake, and then no
// `Upgrade` goes on: nobody behind may take for a WebSocket what the gate does not (threat T09).

internal import GateBytes

/// The opening handshake of a WebSocket.
package enum WebSocketHandshake {
    /// `Sec-WebSocket-Key` of a request that asks for a WebSocket in the one way there is: a GET in
    /// HTTP/1.1 without a body, `Connection` with `upgrade`, `Upgrade: websocket` and nothing else,
    /// version 13, and a key of sixteen bytes. Nil for any other request.
    package static func key(of head: RequestHead) -> Range<Int>? {
        guard head.knownMethod == .get, head.version == .http11, head.framing == .none,
            head.wantsUpgrade, isWebSocket(head.fields, head.bytes),
            let version = head.onlyValue(of: versionName),
            Token.isExactly(head.bytes, version, "13"),
            let key = head.onlyValue(of: keyName), key.count == keyCharacters,
            head.bytes[key].suffix(2).allSatisfy({ $0 == UInt8(ascii: "=") }),
            !head.bytes[key].contains(where: { $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "_") }
            ),
            Base64.decode(head.bytes, key)?.count == 16
        else { return nil }
        return key
    }

    /// What `Sec-WebSocket-Accept` is the hash of, for `key`.
    package static func accepted(key: some Collection<UInt8>) -> [UInt8] {
        Array(key) + Array("258EAFA5-E914-47DA-95CA-C5AB0DC85B11".utf8)
    }

    /// Whether `head` accepts a handshake: 101 in HTTP/1.1, `Connection` with `upgrade`,
    /// `Upgrade: websocket`, and `Sec-WebSocket-Accept` once and equal to `accept`.
    package static func isAccepted(_ head: ResponseHead, accept: [UInt8]) -> Bool {
        guard head.status == 101, head.version == .http11,
            hasUpgradeOption(head.fields, head.bytes), isWebSocket(head.fields, head.bytes),
            let value = head.onlyValue(of: acceptName)
        else { return false }
        return head.bytes[value].elementsEqual(accept)
    }

    private static let acceptName = FieldName("sec-websocket-accept")
    private static let connectionName = FieldName("connection")
    private static let keyName = FieldName("sec-websocket-key")
    private static let upgradeName = FieldName("upgrade")
    private static let versionName = FieldName("sec-websocket-version")
    /// Sixteen bytes in base64, padding and all.
    private static let keyCharacters = 24

    private static func isWebSocket(_ fields: [FieldLine], _ bytes: [UInt8]) -> Bool {
        guard let value = fields.onlyValue(of: upgradeName, in: bytes) else { return false }
        return Token.equals(bytes, value, "websocket")
    }

    private static func hasUpgradeOption(_ fields: [FieldLine], _ bytes: [UInt8]) -> Bool {
        for value in fields.values(of: connectionName, in: bytes) {
            var options = TokenList(value)
            while let option = options.next(bytes) {
                if Token.equals(bytes, option, "upgrade") { return true }
            }
        }
        return false
    }
}
