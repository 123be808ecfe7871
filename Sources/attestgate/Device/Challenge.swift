internal import AppAttestWire
internal import GateBytes

/// A challenge as a client holds it.
struct Challenge: Equatable {
    /// The id, as text.
    let id: [UInt8]
    /// The 32 bytes.
    let bytes: Bytes32

    init(id: [UInt8], bytes: Bytes32) {
        self.id = id
        self.bytes = bytes
    }

    /// The challenge that `text` is by value, `id.mac`; nil when it is none.
    init?(byValue text: String) {
        let source = Array(text.utf8)
        guard case .byValue(let id, let mac) = ChallengeText(source, 0..<source.count) else {
            return nil
        }
        self.init(id: Array(source[id]), bytes: mac)
    }

    /// The challenge in the answer of `POST {p}/challenges`; nil when there is none.
    init?(answer: [UInt8]) {
        // Whatever is wrong with it, it holds no challenge.
        guard let members = try? JSONMembers.scan(answer, named: ["id", "bytes"]),
            case .string(let id) = members[0], case .string(let text) = members[1],
            let bytes = Base64.decode(text).flatMap({ Bytes32($0) })
        else { return nil }
        self.init(id: id, bytes: bytes)
    }

    /// The challenge by value.
    var byValue: String {
        String(decoding: ChallengeText.byValue(id: id, mac: bytes), as: UTF8.self)
    }
}
