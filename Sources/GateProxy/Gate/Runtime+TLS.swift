internal import GateConfig
internal import GateRuntime
internal import GateTLS

// What `tls` blocks come to: contexts, made anew with each configuration.
extension ListenerRuntime {
    /// The context of a listener; nil where it is clear.
    static func makeTLS(
        _ listener: Listener, clock: any Clock
    ) throws(StartError) -> TLSServerContext? {
        guard let tls = listener.tls else { return nil }
        do throws(TLSSetupError) {
            var identities: [TLSIdentity] = []
            for pair in tls.certificates { identities.append(try TLSIdentity(pair)) }
            let settings = TLSServerSettings(
                identities: identities, minVersion: tls.minVersion == .tls12 ? .tls12 : .tls13,
                clientCertificates: .init(tls.clientCA), ticketPeriod: tls.ticketPeriod,
                protocols: listener.http.names, name: listener.name)
            return try TLSServerContext(settings, clock: clock)
        } catch {
            throw StartError("listener \"\(listener.name)\": tls: \(error)")
        }
    }
}

extension UpstreamServers {
    /// The context of an upstream; nil where it is clear.
    static func makeTLS(_ upstream: Upstream) throws(StartError) -> TLSClientContext? {
        guard let tls = upstream.tls else { return nil }
        do throws(TLSSetupError) {
            var identity: TLSIdentity?
            if let pair = tls.certificate { identity = try TLSIdentity(pair) }
            return try TLSClientContext(
                TLSClientSettings(
                    isVerified: tls.isVerified, authorities: tls.authorities, identity: identity,
                    protocols: [upstream.protocol == .http2 ? "h2" : "http/1.1"]))
        } catch {
            throw StartError("upstream \"\(upstream.name)\": tls: \(error)")
        }
    }
}

extension TLSIdentity {
    convenience init(_ pair: CertificatePair) throws(TLSSetupError) {
        try self.init(chain: pair.chain, key: pair.key)
    }
}

extension TLSServerSettings.ClientCertificates {
    fileprivate init(_ authorities: ListenerTLS.ClientCA) {
        switch authorities {
        case .off: self = .none
        case .optional(let text): self = .optional(text)
        case .require(let text): self = .require(text)
        }
    }
}

extension HTTPProtocols {
    /// What ALPN offers, the dearest first (RFC 9113 §3.2).
    fileprivate var names: [String] {
        (contains(.h2) ? ["h2"] : []) + (contains(.h1) ? ["http/1.1"] : [])
    }
}
