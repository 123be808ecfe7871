import AppAttest
import AppAttestDevice
import Foundation
import GateBytes
import GateCrypto

/// The internal name of what `body` throws; nil when it does not throw.
func reason<Value>(_ body: () throws -> Value) -> String? {
    do {
        _ = try body()
        return nil
    } catch let error as AttestationError {
        return error.reason
    } catch let error as AssertionError {
        return error.reason
    } catch {
        return "another error: \(error)"
    }
}

func readFile(_ url: URL) throws -> Data {
    try Data(contentsOf: url)
}

/// Simulated devices under one private root, and the instant at which they were attested.
enum DeviceFixture {
    static let now: Int64 = 1_790_000_000
    static let root = DeviceRoot.generate(at: now)
    static let trust: TrustRoot = {
        do {
            return try TrustRoot(der: root.certificate)
        } catch {
            fatalError("the simulated root is no root: \(error)")
        }
    }()
    static let appID = "TEAM123456.com.example.shop"
    static let hash = SHA256.hash(Array("challenge".utf8)).array

    static func device(
        _ shape: DeviceShape = .iOS27, isProduction: Bool = true, appID: String = appID
    ) -> Device {
        Device(root: root, appID: appID, isProduction: isProduction, shape: shape)
    }

    /// Verifies an object of `device`, with other arguments where they are given.
    static func verify(
        _ object: [UInt8], of device: Device, hash: [UInt8] = hash, root: TrustRoot = trust,
        at now: Int64 = now
    ) throws -> VerifiedAttestation {
        try Attestation.verify(
            object: object, clientDataHash: hash, keyID: KeyID(device.keyID),
            appIDs: [device.appID],
            environment: device.isProduction ? .production : .development, root: root, at: now)
    }

    /// Verifies an assertion of `device`; the counter that passed.
    static func verify(
        assertion: [UInt8], of device: Device, hash: [UInt8] = hash, previousCounter: UInt32 = 0
    ) throws -> UInt32 {
        guard let key = PublicKey(x963: device.key.point.x963) else { return 0 }
        return try Assertion.verify(
            object: assertion, clientDataHash: hash, publicKey: key, appID: device.appID,
            previousCounter: previousCounter
        ).signCounter
    }
}
