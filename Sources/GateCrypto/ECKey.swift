internal import CGateOpenSSL

/// An elliptic-curve key of libcrypto, public alone or with its private half; the owner of one
/// `EVP_PKEY`. It never changes after it is made, so any thread may use it.
///
/// Everything here leaves OpenSSL's error queue of the thread empty: a TLS session on the same
/// thread would take an old entry for its own.
@safe final class ECKey: Sendable {
    let curve: ECCurve
    nonisolated(unsafe) let pointer: OpaquePointer

    init(_ curve: ECCurve, owning pointer: OpaquePointer) {
        self.curve = curve
        unsafe self.pointer = pointer
    }

    deinit {
        unsafe EVP_PKEY_free(pointer)
    }

    /// A new random key.
    static func generate(_ curve: ECCurve) -> ECKey {
        guard let pointer = unsafe gate_ec_generate(curve.name) else {
            preconditionFailure("an elliptic-curve key cannot be made")
        }
        return unsafe ECKey(curve, owning: pointer)
    }

    /// The public key of the uncompressed `point`; nil unless it is of the curve's size and on the
    /// curve.
    static func publicKey(_ curve: ECCurve, point: [UInt8]) -> ECKey? {
        make(curve, point: point, scalar: nil)
    }

    /// The key pair of `scalar` (big endian) and its uncompressed `point`. That they belong
    /// together is checked.
    static func privateKey(_ curve: ECCurve, point: [UInt8], scalar: [UInt8]) -> ECKey? {
        guard scalar.count == curve.coordinateBytes else { return nil }
        guard let key = make(curve, point: point, scalar: scalar) else { return nil }
        guard let context = unsafe EVP_PKEY_CTX_new_from_pkey(nil, key.pointer, nil) else {
            return nil
        }
        defer { unsafe EVP_PKEY_CTX_free(context) }
        guard unsafe EVP_PKEY_pairwise_check(context) == 1 else {
            ERR_clear_error()
            return nil
        }
        return key
    }

    private static func make(_ curve: ECCurve, point: [UInt8], scalar: [UInt8]?) -> ECKey? {
        guard point.count == curve.pointBytes, point[0] == 0x04 else { return nil }
        guard let context = unsafe EVP_PKEY_CTX_new_from_name(nil, "EC", nil) else { return nil }
        defer { unsafe EVP_PKEY_CTX_free(context) }
        guard unsafe EVP_PKEY_fromdata_init(context) == 1 else { return nil }
        let selection = scalar == nil ? gate_pkey_public_key() : gate_pkey_keypair()
        var pointer: OpaquePointer?
        // libcrypto reads a private scalar in the machine's order.
        var native = scalar.map { Array($0.reversed()) } ?? []
        var name = Array(curve.name.utf8CString)
        var encoded = point
        let result = unsafe name.withUnsafeMutableBufferPointer { name in
            unsafe encoded.withUnsafeMutableBytes { encoded in
                unsafe native.withUnsafeMutableBufferPointer { native in
                    var parameters = unsafe [
                        gate_param_ec_group(name.baseAddress),
                        gate_param_ec_point(encoded.baseAddress, encoded.count),
                    ]
                    if scalar != nil {
                        unsafe parameters.append(
                            gate_param_ec_scalar(native.baseAddress, native.count))
                    }
                    unsafe parameters.append(OSSL_PARAM_construct_end())
                    return unsafe EVP_PKEY_fromdata(context, &pointer, selection, &parameters)
                }
            }
        }
        guard result == 1, let pointer = unsafe pointer else {
            ERR_clear_error()
            return nil
        }
        return unsafe ECKey(curve, owning: pointer)
    }

    /// The uncompressed public point.
    var point: [UInt8] {
        var bytes = [UInt8](repeating: 0, count: curve.pointBytes)
        var count = 0
        let result = unsafe EVP_PKEY_get_octet_string_param(
            pointer, OSSL_PKEY_PARAM_PUB_KEY, &bytes, bytes.count, &count)
        precondition(result == 1 && count == curve.pointBytes, "a key without its point")
        return bytes
    }

    /// The private scalar, big endian and of full length; nil for a public key.
    var scalar: [UInt8]? {
        var number: OpaquePointer?
        guard unsafe EVP_PKEY_get_bn_param(pointer, OSSL_PKEY_PARAM_PRIV_KEY, &number) == 1 else {
            ERR_clear_error()
            return nil
        }
        defer { unsafe BN_clear_free(number) }
        var bytes = [UInt8](repeating: 0, count: curve.coordinateBytes)
        let count = unsafe BN_bn2binpad(number, &bytes, Int32(curve.coordinateBytes))
        return Int(count) == bytes.count ? bytes : nil
    }

    /// Whether `signature[signatureRange]`, in DER, is this key's over `message[messageRange]`.
    func isValidSignature(
        _ signature: [UInt8], _ signatureRange: Range<Int>,
        message: [UInt8], _ messageRange: Range<Int>, digest: ECDigest
    ) -> Bool {
        guard let context = unsafe EVP_MD_CTX_new() else { return false }
        defer { unsafe EVP_MD_CTX_free(context) }
        guard
            unsafe EVP_DigestVerifyInit_ex(context, nil, digest.name, nil, nil, pointer, nil) == 1
        else { return false }
        let result = unsafe signature.withUnsafeBufferPointer { signature in
            unsafe message.withUnsafeBufferPointer { message in
                let der = unsafe UnsafeBufferPointer(rebasing: signature[signatureRange])
                let text = unsafe UnsafeBufferPointer(rebasing: message[messageRange])
                return unsafe EVP_DigestVerify(
                    context, der.baseAddress, der.count, text.baseAddress, text.count)
            }
        }
        if result != 1 { ERR_clear_error() }
        return result == 1
    }

    /// A DER signature over `message`; the key must have its private half.
    func sign(_ message: [UInt8], digest: ECDigest) -> [UInt8] {
        guard let context = unsafe EVP_MD_CTX_new() else { preconditionFailure("out of memory") }
        defer { unsafe EVP_MD_CTX_free(context) }
        var signature = [UInt8](repeating: 0, count: 2 * curve.coordinateBytes + 16)
        var count = signature.count
        let started = unsafe EVP_DigestSignInit_ex(
            context, nil, digest.name, nil, nil, pointer, nil)
        let result = unsafe message.withUnsafeBufferPointer { message in
            unsafe EVP_DigestSign(
                context, &signature, &count, message.baseAddress, message.count)
        }
        precondition(started == 1 && result == 1, "signing failed")
        signature.removeLast(signature.count - count)
        return signature
    }
}
