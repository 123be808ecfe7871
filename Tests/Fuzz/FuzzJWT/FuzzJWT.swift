import GateCrypto
import GateProxy

/// Tokens and key sets out of any bytes: never a trap; a token that names an account has a
/// signature of the one key there is, so no change to a good token leaves it one with another
/// account.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzJWT(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let bytes = Array(UnsafeBufferPointer(start: data, count: count))
    if bytes.first == UInt8(ascii: "{") {
        guard let set = try? TokenKeySet.parse(set: bytes) else { return 0 }
        precondition(set.count + set.omissions.count <= TokenKeySet.keysMax)
        _ = account(Array(token.utf8), set)
        return 0
    }
    guard let found = account(bytes, keys) else { return 0 }
    precondition(found == Array("alice".utf8), "a forged account")
    precondition(bytes.count == token.utf8.count, "a good token in another spelling")
    return 0
}

private func account(_ text: [UInt8], _ keys: TokenKeySet) -> [UInt8]? {
    let rules = TokenRules()
    guard let token = try? JSONWebToken(text, algorithms: rules.algorithms) else { return nil }
    return try? token.account(keys, rules, now: 1_800_000_000)
}

private let keys: TokenKeySet = {
    guard let set = try? TokenKeySet.parse(set: Array(setText.utf8)) else {
        preconditionFailure("the set is good")
    }
    return set
}()

private let token = #"""
    eyJhbGciOiAiRWREU0EiLCAia2lkIjogImsxIiwgInR5cCI6ICJKV1QifQ.eyJzdWIiOiAiYWxpY2UiL\#
    CAiZXhwIjogMjAwMDAwMDAwMH0.3JJfjltMG5rRekhH9y7yrpnZd6ToW7TW7x21lFFUOaXMqcP06ZFBp\#
    ldPF1NSDgaIlrKU2r6h86LHD-LpHtkKAw
    """#

private let setText = #"""
    {"keys":[{"kty":"OKP","crv":"Ed25519","x":"058yrDwjI597fqukT-0Y0m5mv1jifbNBrpsRx\#
    QhjHKU","kid":"k1","use":"sig","alg":"EdDSA"}]}
    """#
