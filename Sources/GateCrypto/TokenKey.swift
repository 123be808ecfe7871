// Signatures of tokens (RFC 7518 §3, RFC 8037 §3.1).
//
//   algorithm   key                  signature
//   RS256       RSA, 2048–8192 bit   RSASSA-PKCS1-v1_5, SHA-256
//   PS256       RSA, 2048–8192 bit   RSASSA-PSS, SHA-256, MGF1 with SHA-256, 32 bytes of salt
//   ES256       P-256                r ‖ s, 32 bytes each, never DER
//   EdDSA       Ed25519              64 bytes
//
// The key decides what it can verify. A signature by an algorithm that is another type's is not
// even looked at, so that no word of a token turns a key into what it is not.

internal import CGateOpenSSL

/// A signature algorithm of tokens; the raw value is its name in `alg`.
package enum TokenAlgorithm: String, CaseIterable, Sendable {
    case es256 = "ES256"
    case edDSA = "EdDSA"
    case ps256 = "PS256"
    case rs256 = "RS256"
}

/// A public key that verifies tokens; the owner of one `EVP_PKEY`, which never changes, so any
/// thread may use it. Leaves OpenSSL's error queue of the thread empty.
@safe package final class TokenKey: Sendable {
    /// What sort of key it is.
    package enum Kind: Sendable, Equatable {
        case ed25519
        case p256
        case rsa(bits: Int)
    }

    /// What sort of key it is.
    package let kind: Kind
    nonisolated(unsafe) private let pointer: OpaquePointer
    /// Owns the point's key, which has an owner of its own.
    private let curveKey: ECKey?

    /// Bits of a modulus: under the first it can be factored, over the last a verification costs
    /// too much.
    package static let rsaBits = 2048...8192
    /// Bytes of a public exponent: all in use are 3 or 65537, and long ones are slow.
    private static let exponentBytesMax = 4

    private init(_ kind: Kind, owning pointer: OpaquePointer) {
        self.kind = kind
        unsafe self.pointer = pointer
        curveKey = nil
    }

    private init(_ key: ECKey) {
        kind = .p256
        unsafe pointer = key.pointer
        curveKey = key
    }

    deinit {
        if curveKey == nil { unsafe EVP_PKEY_free(pointer) }
    }

    // MARK: Making one

    /// The key of an RSA modulus and exponent, big endian.
    package static func rsa(
        modulus: [UInt8], exponent: [UInt8]
    ) throws(TokenKeyError) -> TokenKey {
        let modulus = Array(modulus.drop { $0 == 0 })
        let exponent = Array(exponent.drop { $0 == 0 })
        let bits = modulus.count * 8 - (modulus.first?.leadingZeroBitCount ?? 0)
        guard rsaBits.contains(bits) else {
            throw .kind("an RSA key of \(bits) bits is none of 2048 to 8192")
        }
        guard exponent.count <= exponentBytesMax, let last = exponent.last, last & 1 == 1,
            exponent != [1], let lowest = modulus.last, lowest & 1 == 1
        else { throw .numbers }
        guard let context = unsafe EVP_PKEY_CTX_new_from_name(nil, "RSA", nil) else {
            throw .numbers
        }
        defer { unsafe EVP_PKEY_CTX_free(context) }
        guard unsafe EVP_PKEY_fromdata_init(context) == 1 else { throw .numbers }
        // libcrypto reads numbers in the machine's order.
        var n = Array(modulus.reversed())
        var e = Array(exponent.reversed())
        var pointer: OpaquePointer?
        let result = unsafe n.withUnsafeMutableBufferPointer { n in
            unsafe e.withUnsafeMutableBufferPointer { e in
                var parameters = unsafe [
                    gate_param_rsa_modulus(n.baseAddress, n.count),
                    gate_param_rsa_exponent(e.baseAddress, e.count),
                    OSSL_PARAM_construct_end(),
                ]
                return unsafe EVP_PKEY_fromdata(
                    context, &pointer, gate_pkey_public_key(), &parameters)
            }
        }
        guard result == 1, let pointer = unsafe pointer else {
            ERR_clear_error()
            throw .numbers
        }
        return unsafe TokenKey(.rsa(bits: bits), owning: pointer)
    }

    /// The key of a point of P-256, whose coordinates have 32 bytes each.
    package static func p256(x: [UInt8], y: [UInt8]) throws(TokenKeyError) -> TokenKey {
        guard x.count == 32, y.count == 32,
            let key = ECKey.publicKey(.p256, point: [0x04] + x + y)
        else { throw .numbers }
        return TokenKey(key)
    }

    /// The key whose encoded point of Ed25519 is `x`, 32 bytes.
    package static func ed25519(x: [UInt8]) throws(TokenKeyError) -> TokenKey {
        guard x.count == 32,
            let pointer = unsafe EVP_PKEY_new_raw_public_key_ex(nil, "ED25519", nil, x, x.count)
        else {
            ERR_clear_error()
            throw .numbers
        }
        return unsafe TokenKey(.ed25519, owning: pointer)
    }

    /// The key of a PEM text that holds one `PUBLIC KEY`.
    package static func parse(pem text: [UInt8]) throws(TokenKeyError) -> TokenKey {
        let der = try PublicKeyText.decode(text)
        let damaged = TokenKeyError.text("its PEM holds no public key that can be read")
        var consumed = 0
        let pointer = unsafe der.withUnsafeBufferPointer { der in
            var place = der.baseAddress
            let key = unsafe d2i_PUBKEY_ex(nil, &place, der.count, nil, nil)
            if let base = der.baseAddress, let place = unsafe place {
                consumed = unsafe place - base
            }
            return unsafe key
        }
        guard let pointer = unsafe pointer else {
            ERR_clear_error()
            throw damaged
        }
        defer { unsafe EVP_PKEY_free(pointer) }
        guard consumed == der.count else { throw damaged }
        defer { ERR_clear_error() }
        // Made anew out of its numbers, so that there is one place where keys are judged.
        if unsafe EVP_PKEY_is_a(pointer, "RSA") == 1 {
            let modulus = unsafe number(OSSL_PKEY_PARAM_RSA_N, of: pointer)
            let exponent = unsafe number(OSSL_PKEY_PARAM_RSA_E, of: pointer)
            return try rsa(modulus: modulus, exponent: exponent)
        }
        if unsafe EVP_PKEY_is_a(pointer, "EC") == 1 {
            let point = unsafe octets(OSSL_PKEY_PARAM_PUB_KEY, of: pointer)
            guard point.count == 65, unsafe EVP_PKEY_get_bits(pointer) == 256 else {
                throw .kind("an elliptic-curve key that is not of P-256")
            }
            return try p256(x: Array(point[1..<33]), y: Array(point[33...]))
        }
        if unsafe EVP_PKEY_is_a(pointer, "ED25519") == 1 {
            let point = unsafe octets(OSSL_PKEY_PARAM_PUB_KEY, of: pointer)
            return try ed25519(x: point)
        }
        throw .kind("a key of a type other than RSA, P-256 and Ed25519")
    }

    private static func number(_ name: String, of pointer: OpaquePointer) -> [UInt8] {
        var number: OpaquePointer?
        guard unsafe EVP_PKEY_get_bn_param(pointer, name, &number) == 1 else { return [] }
        defer { unsafe BN_free(number) }
        var bytes = [UInt8](repeating: 0, count: Int(unsafe BN_num_bits(number) + 7) / 8)
        guard unsafe BN_bn2binpad(number, &bytes, Int32(bytes.count)) >= 0 else { return [] }
        return bytes
    }

    private static func octets(_ name: String, of pointer: OpaquePointer) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: 160)
        var count = 0
        guard
            unsafe EVP_PKEY_get_octet_string_param(pointer, name, &bytes, bytes.count, &count) == 1
        else { return [] }
        return Array(bytes[..<count])
    }

    // MARK: Verifying

    /// Whether signatures by `algorithm` are of this key's type.
    package func fits(_ algorithm: TokenAlgorithm) -> Bool {
        switch (kind, algorithm) {
        case (.rsa, .rs256), (.rsa, .ps256), (.p256, .es256), (.ed25519, .edDSA): true
        case (.rsa, .es256), (.rsa, .edDSA), (.p256, .rs256), (.p256, .ps256), (.p256, .edDSA),
            (.ed25519, .rs256), (.ed25519, .ps256), (.ed25519, .es256):
            false
        }
    }

    /// Whether `signature` is this key's over `message[range]` by `algorithm`; never where the key
    /// does not fit it.
    package func isValidSignature(
        _ signature: [UInt8], over message: [UInt8], _ range: Range<Int>,
        _ algorithm: TokenAlgorithm
    ) -> Bool {
        guard fits(algorithm) else { return false }
        var signature = signature
        switch kind {
        case .ed25519:
            guard signature.count == 64 else { return false }
        case .p256:
            guard signature.count == 64 else { return false }
            signature = ECDSASignature.der(raw: signature)
        case .rsa(let bits):
            guard signature.count == (bits + 7) / 8 else { return false }
        }
        guard let context = unsafe EVP_MD_CTX_new() else { return false }
        defer {
            unsafe EVP_MD_CTX_free(context)
            ERR_clear_error()
        }
        var parameters: OpaquePointer?
        let digest: String? = kind == .ed25519 ? nil : "SHA256"
        guard
            unsafe EVP_DigestVerifyInit_ex(
                context, &parameters, digest, nil, nil, pointer, nil) == 1,
            unsafe setPadding(parameters, algorithm)
        else { return false }
        return unsafe signature.withUnsafeBufferPointer { signature in
            unsafe message.withUnsafeBufferPointer { message in
                let text = unsafe UnsafeBufferPointer(rebasing: message[range])
                return unsafe EVP_DigestVerify(
                    context, signature.baseAddress, signature.count, text.baseAddress, text.count)
            }
        } == 1
    }

    private func setPadding(_ context: OpaquePointer?, _ algorithm: TokenAlgorithm) -> Bool {
        switch algorithm {
        case .es256, .edDSA:
            return true
        case .rs256:
            return unsafe EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_PADDING) == 1
        case .ps256:
            return unsafe EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_PSS_PADDING) == 1
                && EVP_PKEY_CTX_set_rsa_mgf1_md_name(context, "SHA256", nil) == 1
                && EVP_PKEY_CTX_set_rsa_pss_saltlen(context, 32) == 1
        }
    }
}

/// The two forms of an ECDSA signature.
enum ECDSASignature {
    /// The DER (RFC 3279 §2.2.3) of `r ‖ s`, 32 bytes each.
    static func der(raw: [UInt8]) -> [UInt8] {
        let body = integer(raw[..<32]) + integer(raw[32...])
        return [0x30, UInt8(body.count)] + body
    }

    private static func integer(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
        var number = Array(bytes.drop { $0 == 0 })
        // A sign bit would make it negative, and zero has one byte.
        if number.first.map({ $0 >= 0x80 }) ?? true { number.insert(0, at: 0) }
        return [0x02, UInt8(number.count)] + number
    }
}
