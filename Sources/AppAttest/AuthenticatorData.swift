internal import GateBytes

// Authenticator data, as App Attest lays it out. All integers are big endian.
//
//     0   32  relying party ID hash
//     32   1  flags
//     33   4  sign counter
//     attestation only:
//     37  16  AAGUID
//     53   2  credential ID length, 32
//     55  32  credential ID, the key ID
//     87  77  COSE key {1: 2, 3: -7, -1: 1, -2: x, -3: y}
//     then, in both, optionally one CBOR map of extensions
//
// The flags say nothing about the layout: assertions have AT set with no credential data behind,
// and extensions come with ED set or clear. Which of the two layouts it is, the caller knows;
// whether there are extensions, the length tells.

/// The part that attestations and assertions share.
struct AuthenticatorDataHead {
    static let count = 37

    let relyingPartyIDHash: Bytes32
    let flags: UInt8
    let signCounter: UInt32

    /// The first 37 bytes of `bytes[range]`; nil when there are fewer.
    init?(_ bytes: [UInt8], _ range: Range<Int>) {
        var reader = ByteReader(bytes, range)
        guard let hash = reader.readBytes32(), let flags = reader.readByte(),
            let counter = reader.readUInt32()
        else { return nil }
        relyingPartyIDHash = hash
        self.flags = flags
        signCounter = counter
    }
}

/// The authenticator data of an attestation.
struct AttestationAuthenticatorData {
    let head: AuthenticatorDataHead
    let aaguid: [UInt8]
    let credentialID: Bytes32
    /// The coordinates of the COSE key.
    let publicKey: P256Point
    /// Where the extensions are; empty when there are none.
    let extensions: Range<Int>

    /// The authenticator data that `bytes[range]` are.
    init(_ bytes: [UInt8], _ range: Range<Int>) throws(AuthenticatorDataError) {
        guard let head = AuthenticatorDataHead(bytes, range) else {
            throw .tooShort(count: range.count)
        }
        self.head = head
        var reader = ByteReader(
            bytes, (range.lowerBound + AuthenticatorDataHead.count)..<range.upperBound)
        guard let aaguid = reader.readBytes(16), let length = reader.readUInt16() else {
            throw .tooShort(count: range.count)
        }
        self.aaguid = aaguid
        guard length == 32 else { throw .credentialIDLength(Int(length)) }
        guard let credentialID = reader.readBytes32() else { throw .tooShort(count: range.count) }
        self.credentialID = credentialID
        var cose = CBORReader(bytes, reader.position..<range.upperBound)
        do {
            publicKey = try AttestationAuthenticatorData.readKey(&cose, bytes)
        } catch {
            throw .credentialKey(error)
        }
        extensions = cose.position..<range.upperBound
    }

    /// The five members of an EC2 key for ES256 on P-256 (RFC 9053 §7.1.1), in any order.
    private static func readKey(
        _ reader: inout CBORReader, _ bytes: [UInt8]
    ) throws(CBORError) -> P256Point {
        let start = reader.position
        let expected: [Int64: Int64] = [1: 2, 3: -7, -1: 1]
        var scalars: [Int64: Int64] = [:]
        var coordinates: [Int64: Bytes32] = [:]
        for _ in 0..<(try reader.readMap()) {
            let offset = reader.position
            let label = try reader.readInteger()
            guard scalars[label] == nil, coordinates[label] == nil else {
                throw .duplicateKey(offset: offset)
            }
            switch label {
            case -2, -3:
                guard let coordinate = Bytes32(bytes, try reader.readBytes()) else {
                    throw .typeMismatch(expected: .bytes, offset: offset)
                }
                coordinates[label] = coordinate
            default:
                scalars[label] = try reader.readInteger()
            }
        }
        guard scalars == expected, let x = coordinates[-2], let y = coordinates[-3] else {
            throw .typeMismatch(expected: .map, offset: start)
        }
        return P256Point(x: x, y: y)
    }
}

/// What is wrong with an attestation's authenticator data.
@nonexhaustive
public enum AuthenticatorDataError: Error, Equatable, Sendable {
    /// The credential ID is not 32 bytes long.
    case credentialIDLength(Int)
    /// The credential key is not the COSE form of a P-256 key.
    case credentialKey(CBORError)
    /// There are too few bytes.
    case tooShort(count: Int)
}

extension AuthenticatorDataError: CustomStringConvertible {
    /// The fault as a clause.
    public var description: String {
        switch self {
        case .credentialIDLength(let length):
            return "expected a credential ID of 32 bytes, got \(length)"
        case .credentialKey(let error): return "credential key: \(error)"
        case .tooShort(let count): return "authenticator data cut off after \(count) bytes"
        }
    }
}
