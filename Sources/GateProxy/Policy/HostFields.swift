internal import AppAttestWire
package import GateConfig
package import GateHTTP

/// What one host's configuration says about request fields, prepared once when it is loaded.
package struct HostFields: Sendable {
    let table: FieldTable
    /// What becomes of names with an underscore.
    package let underscores: Host.Underscores
    /// Names that `Connection` may not list (`protocol.md` §6): for ``HopByHop``.
    package let protectedNames: [FieldName]
    /// Whether the host has a source of accounts, so that every request needs one.
    package let hasAccounts: Bool
    /// `shop;env=production`; empty where the host has no app.
    let appValue: [UInt8]
    /// Whether a proof may leave its key ID out (`key_id account`).
    let isKeyIDOptional: Bool

    /// The fields of `host`, whose app is `app`; nil where the host has none.
    package init(_ host: Host, app: App?) {
        let proof = host.proof
        var account: [(String, FieldUse)] = []
        if case .header(let name) = host.account { account = [(name, .account)] }
        let proofFields: [(String, FieldUse)] = [
            (proof.keyID, .keyID), (proof.assertion, .assertion),
            (proof.clientData, .clientData), (proof.challenge, .challenge),
            (proof.attestation, .attestation), (proof.unsupported, .unsupported),
            (proof.deviceToken, .deviceToken),
        ]
        table = FieldTable(
            HostFields.owned + proofFields + account
                + HostFields.unnamed + (host.isProtected ? HostFields.methodOverrides : [])
                + HostFields.common,
            prefixes: HostFields.prefixes)
        underscores = host.underscores
        isKeyIDOptional = proof.isKeyIDOptional
        hasAccounts = host.account != .none
        // The two fields that never count as proof may be named: dropping them changes nothing.
        var named = HostFields.protected + proofFields.prefix(5).map(\.0) + account.map(\.0)
        if case .token(let settings) = host.account { named.append(settings.header) }
        protectedNames = named.compactMap { FieldName(parsing: $0) }
        appValue = app.map { Array("\($0.name);env=\($0.environment.rawValue)".utf8) } ?? []
    }

    /// The gate's own names: first, so that no configured name can take one over.
    private static let owned: [(String, FieldUse)] = [
        ("App-Attest-Verdict", .dropped), ("App-Attest-Verified-Key", .dropped),
        ("App-Attest-Account", .dropped), ("App-Attest-App", .dropped),
        ("App-Attest-Counter", .dropped), ("App-Attest-Risk", .dropped),
        ("App-Attest-Next-Challenge", .dropped),
        // The gate writes the length itself; a spelling the codec does not know must not pass
        // either.
        ("Content-Length", .dropped), ("Transfer-Encoding", .dropped),
    ]

    /// The proof's names where others were configured: no proof here, and none behind.
    private static let unnamed: [(String, FieldUse)] = [
        (DefaultFieldNames.keyID, .dropped), (DefaultFieldNames.assertion, .dropped),
        (DefaultFieldNames.clientData, .dropped), (DefaultFieldNames.challenge, .dropped),
        (DefaultFieldNames.attestation, .dropped), (DefaultFieldNames.unsupported, .dropped),
        (DefaultFieldNames.deviceToken, .dropped),
    ]

    private static let common: [(String, FieldUse)] = [
        ("Content-Type", .contentType), ("Forwarded", .droppedUntrusted),
        ("HTTP2-Settings", .dropped),
        ("Idempotency-Key", .idempotencyKey), ("Keep-Alive", .dropped), ("Proxy", .dropped),
        ("Proxy-Authorization", .dropped), ("Proxy-Connection", .dropped),
        ("traceparent", .trace), ("tracestate", .trace),
        ("X-Forwarded-For", .forwardedFor), ("X-Forwarded-Host", .forwardedHost),
        ("X-Forwarded-Proto", .forwardedProto), ("X-Real-IP", .droppedUntrusted),
        ("X-Request-Id", .requestID), ("X-Rewrite-URL", .dropped),
    ]

    private static let prefixes: [(String, FieldUse)] = [
        ("X-Forwarded-", .droppedUntrusted), ("X-Original-", .dropped),
    ]

    private static let methodOverrides: [(String, FieldUse)] = [
        ("X-HTTP-Method", .dropped), ("X-HTTP-Method-Override", .dropped),
        ("X-Method-Override", .dropped),
    ]

    private static let protected = [
        "Host", "Content-Length", "Transfer-Encoding", "Authorization", "Cookie", "Content-Type",
        "Content-Encoding",
    ]
}

extension Host {
    /// Whether the gate refuses or judges anything here, so that a field which changes the method
    /// behind it would be a way past.
    var isProtected: Bool {
        unmatched != .off || routes.contains { $0.mode != .off }
    }
}

/// The rule for field names with an underscore.
package enum UnderscoreRule {
    /// Whether `head` must be refused: some name has one, and the host says `underscores reject`.
    package static func refuses(_ head: RequestHead, _ fields: HostFields) -> Bool {
        guard fields.underscores == .reject else { return false }
        return head.fields.contains { hasUnderscore(head.bytes, $0.name) }
    }

    static func hasUnderscore(_ bytes: [UInt8], _ name: Range<Int>) -> Bool {
        for index in name where bytes[index] == UInt8(ascii: "_") { return true }
        return false
    }
}
