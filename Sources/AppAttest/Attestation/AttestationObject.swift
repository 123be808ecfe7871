internal import GateBytes

/// An attestation object taken apart: a CBOR map with nothing behind it.
///
/// ```
/// {"fmt": "apple-appattest", "attStmt": {"x5c": [leaf, intermediate], "receipt": bytes},
///  "authData": bytes}
/// ```
/// Members may come in any order, none twice. Others are checked and skipped: iOS 18.5 to 26 puts a
/// `cdHash` beside them for apps with a certain entitlement. Nothing signs it, so nothing here
/// reads it.
struct AttestationObject {
    /// Real objects take 5,200 to 6,000 bytes.
    static let bytesMax = 16_384

    let bytes: [UInt8]
    let leaf: Range<Int>
    let intermediate: Range<Int>
    let receipt: Range<Int>
    let authenticatorData: Range<Int>

    /// The object that `bytes` are.
    init(_ bytes: [UInt8]) throws(AttestationError) {
        guard bytes.count <= AttestationObject.bytesMax else {
            throw .objectTooLarge(count: bytes.count)
        }
        var parts = Parts()
        do {
            try parts.parse(bytes)
        } catch {
            throw .object(error)
        }
        guard let isFormat = parts.isFormat else { throw .memberMissing(.format) }
        guard isFormat else { throw .formatMismatch }
        guard parts.hasStatement else { throw .memberMissing(.statement) }
        guard let certificateCount = parts.certificateCount else {
            throw .memberMissing(.certificates)
        }
        guard certificateCount == 2, let leaf = parts.leaf, let intermediate = parts.intermediate
        else { throw .certificateCount(certificateCount) }
        guard let receipt = parts.receipt else { throw .memberMissing(.receipt) }
        guard let authenticatorData = parts.authenticatorData else {
            throw .memberMissing(.authenticatorData)
        }
        self.bytes = bytes
        self.leaf = leaf
        self.intermediate = intermediate
        self.receipt = receipt
        self.authenticatorData = authenticatorData
    }

    /// What has been found so far; the whole object is walked before anything is missed.
    private struct Parts {
        var isFormat: Bool?
        var hasStatement = false
        var certificateCount: Int?
        var leaf: Range<Int>?
        var intermediate: Range<Int>?
        var receipt: Range<Int>?
        var authenticatorData: Range<Int>?

        mutating func parse(_ bytes: [UInt8]) throws(CBORError) {
            var reader = CBORReader(bytes, 0..<bytes.count)
            var keys = CBORKeys()
            for _ in 0..<(try reader.readMap()) {
                let name = try reader.readText()
                try keys.insert(bytes, name)
                if bytes.equals(name, "fmt") {
                    isFormat = bytes.equals(try reader.readText(), "apple-appattest")
                } else if bytes.equals(name, "attStmt") {
                    hasStatement = true
                    try parseStatement(&reader, bytes)
                } else if bytes.equals(name, "authData") {
                    authenticatorData = try reader.readBytes()
                } else {
                    try reader.skip(depth: 1)
                }
            }
            try reader.finish()
        }

        private mutating func parseStatement(
            _ reader: inout CBORReader, _ bytes: [UInt8]
        ) throws(CBORError) {
            var keys = CBORKeys()
            for _ in 0..<(try reader.readMap()) {
                let name = try reader.readText()
                try keys.insert(bytes, name)
                if bytes.equals(name, "x5c") {
                    let count = try reader.readArray()
                    certificateCount = count
                    for index in 0..<count {
                        let certificate = try reader.readBytes()
                        if index == 0 { leaf = certificate }
                        if index == 1 { intermediate = certificate }
                    }
                } else if bytes.equals(name, "receipt") {
                    receipt = try reader.readBytes()
                } else {
                    try reader.skip(depth: 2)
                }
            }
        }
    }
}
