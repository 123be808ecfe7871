package import GateBytes

/// Why bytes are not client data of the binding `client_data`.
package enum ClientDataError: Error, Equatable, Sendable {
    /// A member that must be base64 and is not.
    case base64Invalid(ClientData.Member)
    /// Not an object of strict JSON.
    case json(JSONError)
    /// A required member is absent.
    case memberMissing(ClientData.Member)
    /// A required member is no string.
    case memberNotString(ClientData.Member)
}

/// The client data of the binding `client_data`: a JSON object that says what was signed.
///
/// Exactly one each of `challengeID`, `challenge` (base64), `method`, `path` and `bodySHA256`
/// (base64), all strings; perhaps `operationID` and, where an envelope carries the body,
/// `contentType`; other members are let be. Only the form is judged here: whether the members are
/// those of the request is the gate's to say.
package struct ClientData: Equatable, Sendable {
    /// The members with a meaning.
    package enum Member: String, CaseIterable, Sendable {
        case challengeID
        case challenge
        case method
        case path
        case bodySHA256
        case operationID
        case contentType
    }

    /// The challenge's id, as text.
    package let challengeID: [UInt8]
    /// The challenge's bytes, decoded; thirty-two in one the gate issued.
    package let challenge: [UInt8]
    /// The request's method.
    package let method: [UInt8]
    /// The request's target: path, and query where there is one.
    package let path: [UInt8]
    /// The SHA-256 of the body, decoded; thirty-two bytes in one that can be right.
    package let bodySHA256: [UInt8]
    /// The operation's id. Absent is nil; present but not a string of 1 to ``operationIDBytesMax``
    /// visible ASCII characters is `.some(nil)`.
    package let operationID: [UInt8]??
    /// The media type of an envelope's body. Absent is nil; present but not a string of 1 to
    /// ``contentTypeBytesMax`` visible ASCII characters, spaces between them, is `.some(nil)`.
    package let contentType: [UInt8]??

    /// The longest operation id, in bytes.
    package static let operationIDBytesMax = 128
    /// The longest content type, in bytes.
    package static let contentTypeBytesMax = 256

    /// The client data that `bytes` is.
    package static func parse(_ bytes: [UInt8]) throws(ClientDataError) -> ClientData {
        var members: [JSONMember?]
        do {
            members = try JSONMembers.scan(bytes, named: names)
        } catch {
            throw .json(error)
        }
        let contentType = members.removeLast()
        let operation = members.removeLast()
        var texts: [[UInt8]] = []
        texts.reserveCapacity(members.count)
        for (member, value) in zip(Member.allCases, members) {
            switch value {
            case nil: throw .memberMissing(member)
            case .string(let text): texts.append(text)
            case .integer, .other: throw .memberNotString(member)
            }
        }
        guard let challenge = Base64.decode(texts[1]) else { throw .base64Invalid(.challenge) }
        guard let bodySHA256 = Base64.decode(texts[4]) else { throw .base64Invalid(.bodySHA256) }
        return ClientData(
            challengeID: texts[0], challenge: challenge, method: texts[2], path: texts[3],
            bodySHA256: bodySHA256, operationID: operation.map(operationID),
            contentType: contentType.map(contentTypeValue))
    }

    /// The JSON a client signs; every text must be ASCII.
    package static func encode(
        challengeID: [UInt8], challenge: Bytes32, method: [UInt8], path: [UInt8],
        bodySHA256: Bytes32, operationID: [UInt8]? = nil, contentType: [UInt8]? = nil
    ) -> [UInt8] {
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("challengeID", challengeID)
        writer.member("challenge", Base64.encode(challenge.array))
        writer.member("method", method)
        writer.member("path", path)
        writer.member("bodySHA256", Base64.encode(bodySHA256.array))
        if let operationID { writer.member("operationID", operationID) }
        if let contentType { writer.member("contentType", contentType) }
        writer.endObject()
        return writer.bytes
    }

    private static let names = Member.allCases.map { Array($0.rawValue.utf8) }

    private static func operationID(_ member: JSONMember) -> [UInt8]? {
        guard case .string(let text) = member, (1...operationIDBytesMax).contains(text.count),
            text.allSatisfy({ 0x21...0x7e ~= $0 })
        else { return nil }
        return text
    }

    private static func contentTypeValue(_ member: JSONMember) -> [UInt8]? {
        guard case .string(let text) = member, (1...contentTypeBytesMax).contains(text.count),
            text.first != 0x20, text.last != 0x20, text.allSatisfy({ 0x20...0x7e ~= $0 })
        else { return nil }
        return text
    }
}

/// The client data of the binding `request`, which both ends build for themselves.
package enum RequestBinding {
    /// `attestgate-v1 LF method LF target LF challenge id LF base64(challenge) LF
    /// base64(SHA-256(body))`, without a final LF, base64 padded.
    package static func clientData(
        method: [UInt8], target: [UInt8], challengeID: [UInt8], challenge: Bytes32,
        bodySHA256: Bytes32
    ) -> [UInt8] {
        var bytes = Array("attestgate-v1\n".utf8)
        bytes.reserveCapacity(method.count + target.count + challengeID.count + 128)
        for part in [method, target, challengeID] {
            bytes.append(contentsOf: part)
            bytes.append(0x0a)
        }
        bytes.append(contentsOf: Base64.encode(challenge.array).utf8)
        bytes.append(0x0a)
        bytes.append(contentsOf: Base64.encode(bodySHA256.array).utf8)
        return bytes
    }
}
