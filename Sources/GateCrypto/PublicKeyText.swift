internal import GateBytes

/// Why a text is no public key that tokens can be verified with.
package enum TokenKeyError: Error, Equatable, Sendable, CustomStringConvertible {
    /// A curve, type or size that no algorithm here is for.
    case kind(String)
    /// Numbers that are no key: off the curve, even, out of range.
    case numbers
    /// Not one `PUBLIC KEY` in PEM.
    case text(String)

    /// One lowercase clause.
    package var description: String {
        switch self {
        case .kind(let what): what
        case .numbers: "its numbers are no public key"
        case .text(let what): what
        }
    }
}

/// The one `PUBLIC KEY` (SubjectPublicKeyInfo, RFC 5280 §4.1.2.7) of a PEM text (RFC 7468 §13).
enum PublicKeyText {
    /// The most bytes of such a text: a key of 8192 bits has under two thousand.
    static let bytesMax = 16 * 1024

    /// The DER that `text` holds.
    static func decode(_ text: [UInt8]) throws(TokenKeyError) -> [UInt8] {
        guard text.count <= bytesMax else { throw .text("it is too long for a public key") }
        var label: String?
        var body: [UInt8] = []
        var isEnded = false
        for line in text.split(separator: UInt8(ascii: "\n")) {
            let words = String(decoding: line, as: UTF8.self).filter {
                !$0.isWhitespace || $0 == " "
            }
            if words.hasPrefix("-----BEGIN "), words.hasSuffix("-----") {
                guard label == nil else { throw .text("more than one key stands in it") }
                label = String(words.dropFirst(11).dropLast(5))
            } else if words.hasPrefix("-----END ") {
                isEnded = label != nil
            } else if label != nil, !isEnded {
                body += words.utf8.filter { $0 != 0x20 }
            }
        }
        guard let label else { throw .text("no PEM stands in it") }
        guard label == "PUBLIC KEY" else { throw .text(advice(label)) }
        guard isEnded, let der = Base64.decode(body), !der.isEmpty else {
            throw .text("its PEM is damaged")
        }
        return der
    }

    private static func advice(_ label: String) -> String {
        if label.hasSuffix("PRIVATE KEY") { return "it holds a private key" }
        if label == "CERTIFICATE" { return "it holds a certificate and no bare key" }
        return "it holds no \"PUBLIC KEY\""
    }
}
