import AppAttest
import Foundation
import GateBytes
import Testing

/// Real objects, found beside the package; tests that need them are skipped where they are not.
enum Vectors {
    static let folder = URL(filePath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .appending(path: "../shared/vectors").standardizedFileURL

    static let arePresent = FileManager.default.fileExists(atPath: folder.path)

    static func names(_ kind: String) -> [String] {
        let files =
            (try? FileManager.default.contentsOfDirectory(atPath: folder.path + "/" + kind)) ?? []
        return files.filter { $0.hasSuffix(".json") }.map { String($0.dropLast(5)) }.sorted()
    }

    static func load<Vector: Decodable>(_ kind: String, _ name: String) throws -> Vector {
        let data = try Data(contentsOf: folder.appending(path: "\(kind)/\(name).json"))
        return try JSONDecoder().decode(Vector.self, from: data)
    }
}

struct AttestationVector: Decodable {
    let attestation: String
    let appId: String
    let environment: String
    let keyId: String
    let challenge: String?
    let clientDataHashRule: String
    let clientDataHash: String
    let validAt: String
    let leafNotBefore: String
    let leafNotAfter: String
    let publicKeyX963: String
    let flags: Int
    let extensions: [String: String]?
    let osVersionInLeaf: String?
    let osBuildInLeaf: String?
    let platformInLeaf: String?
    let aclBlobInLeaf: String?
    let expected: String

    var object: [UInt8] { get throws { try bytes(attestation) } }
    var hash: [UInt8] { get throws { try bytes(clientDataHash) } }
    var keyID: KeyID { get throws { try #require(KeyID(base64: keyId)) } }
    var place: Environment { get throws { try #require(Environment(rawValue: environment)) } }
    var validSeconds: Int64 { get throws { try seconds(validAt) } }

    /// Verifies with what the vector says, or with other arguments where they are given.
    func verify(
        object: [UInt8]? = nil, hash: [UInt8]? = nil, keyID: KeyID? = nil, appIDs: [String]? = nil,
        environment: Environment? = nil, root: TrustRoot = .apple, at now: Int64? = nil
    ) throws -> VerifiedAttestation {
        try Attestation.verify(
            object: object ?? self.object, clientDataHash: hash ?? self.hash,
            keyID: keyID ?? self.keyID, appIDs: appIDs ?? [appId],
            environment: environment ?? place, root: root, at: now ?? validSeconds)
    }
}

struct AssertionVector: Decodable {
    let assertion: String
    let appId: String
    let publicKeyX963: String
    let clientData: String?
    let clientDataHash: String
    let nonce: String
    let digestSigned: String
    let counter: UInt32
    let flags: Int
    let extensions: [String: String]?
    let expected: String

    var object: [UInt8] { get throws { try bytes(assertion) } }
    var hash: [UInt8] { get throws { try bytes(clientDataHash) } }
    var publicKey: PublicKey {
        get throws { try #require(PublicKey(x963: bytes(publicKeyX963))) }
    }
}

struct AuthenticatorDataVector: Decodable {
    let authenticatorData: String
    let of: String
    let length: Int
    let flags: Int
    let counter: UInt32
    let extensionsOffset: Int
    let extensions: [String: String]
}

func bytes(_ base64: String) throws -> [UInt8] {
    try #require(Base64.decode(base64))
}

func seconds(_ text: String) throws -> Int64 {
    Int64(try Date(text, strategy: .iso8601).timeIntervalSince1970)
}

/// What the vectors' `extensions` say in the terms of ``OSExtensions``.
func expectedExtensions(_ members: [String: String]?) throws -> OSExtensions {
    guard let members else { return .absent }
    var expected = OSExtensions.Members()
    expected.bundleVersion = members["apple_bundle_version_01"]
    expected.codeDirectoryHash = members["apple_cd_hash_hash_01"].flatMap { Hex.decode($0) }
    expected.codeDirectoryHashType = members["apple_cd_hash_type_01"].flatMap { Hex.decode($0) }
    if let text = members["apple_validation_category_01"] {
        let little = try #require(Hex.decode(text))
        expected.validationCategory = ValidationCategory(
            rawValue: little.reversed().reduce(0) { $0 << 8 | UInt32($1) })
    }
    return .members(expected)
}
