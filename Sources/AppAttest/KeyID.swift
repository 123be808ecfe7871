package import GateBytes

/// What DeviceCheck calls a key: SHA-256 of the attested public point, 32 bytes. Compared as bytes,
/// never as text, since apps send base64 and base64url, with padding and without.
public struct KeyID: Hashable, Sendable {
    /// The 32 bytes by value.
    package let value: Bytes32

    /// The key ID `value` is.
    package init(_ value: Bytes32) {
        self.value = value
    }

    /// The key ID of 32 bytes; nil for any other number.
    public init?(bytes: [UInt8]) {
        guard let value = Bytes32(bytes) else { return nil }
        self.value = value
    }

    /// The key ID of base64 or base64url text, padding whole or absent; nil when it is not 32
    /// bytes.
    public init?(base64: String) {
        guard let bytes = Base64.decode(base64) else { return nil }
        self.init(bytes: bytes)
    }

    /// The 32 bytes.
    public var bytes: [UInt8] { value.array }

    /// Padded base64, as DeviceCheck gives it.
    public var base64: String { Base64.encode(value.array) }
}

extension KeyID: CustomStringConvertible {
    /// The same as ``base64``.
    public var description: String { base64 }
}
