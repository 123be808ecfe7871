// Where accounts come from (conf.md, `account` and `jwt`).
extension Builder {
    mutating func buildAccount(_ body: ParsedBlock, _ proof: ProofFields) -> Host.Account {
        let setting = resolver.setting("account", .host, in: [body])
        guard !setting.isFaulty, let place = setting.place else { return .none }
        switch setting.text {
        case "client_cert": return buildCertificateAccount(setting, body, place)
        case "header": return buildHeaderAccount(setting, body, proof, place)
        case "jwt":
            guard let block = body.first("account")?.body else { return .none }
            return buildTokenAccount(block, body, proof, place)
        case "subrequest": return buildSubrequestAccount(setting)
        default: return .none
        }
    }

    // MARK: header

    private mutating func buildHeaderAccount(
        _ setting: Setting, _ body: ParsedBlock, _ proof: ProofFields, _ place: Place
    ) -> Host.Account {
        guard setting.words.count == 2, let fieldPlace = setting.words[1].place else {
            return .none
        }
        let field = setting.words[1].text
        checkAccountField(
            field, "the account", FieldNames.reasonNotToRead(field), proof, fieldPlace)
        for listener in listeners(of: body) {
            guard let block = listener.body else { continue }
            let trusted = resolver.setting("trusted_proxies", .listener, in: [block])
            guard !trusted.isFaulty, !listener.isFaulty,
                trusted.words.allSatisfy({ $0.text == "none" })
            else { continue }
            faults.fault(
                .error, place, "", and: listener.place, "",
                "account header \(field.quoted) needs \"trusted_proxies\" in listener "
                    + "\(listener.words.first?.quoted ?? "") "
                    + "(\(faults.line(listener.place, from: place)))",
                "without it every client could name itself")
        }
        return .header(field)
    }

    /// Reports a field that what `what` says cannot stand in.
    private mutating func checkAccountField(
        _ field: String, _ what: String, _ reason: String?, _ proof: ProofFields, _ place: Place
    ) {
        if let reason {
            faults.error(
                place, "\(what) cannot stand in \(field.quoted): \(reason)",
                "choose another field")
        } else if FieldNames.fold(field).hasPrefix("app-attest-")
            || proof.all.contains(where: { FieldNames.fold($0.field) == FieldNames.fold(field) })
        {
            faults.error(
                place, "\(what) cannot stand in \(field.quoted): it is a proof field",
                "choose another field")
        }
    }

    /// The listener blocks that a host names.
    private func listeners(of body: ParsedBlock) -> [ParsedLine] {
        body.all("listener").flatMap(\.arguments).compactMap { argument in
            top.all("listener").first { $0.words.first == argument.text }
        }
    }

    // MARK: client_cert

    private mutating func buildCertificateAccount(
        _ setting: Setting, _ body: ParsedBlock, _ place: Place
    ) -> Host.Account {
        guard setting.words.count == 2, let name = CertificateName(rawValue: setting.words[1].text)
        else { return .none }
        let listeners = listeners(of: body)
        let without = listeners.filter { listener in
            guard !listener.isFaulty, let tls = listener.body?.first("tls"), let block = tls.body
            else { return !listener.isFaulty }
            let authority = resolver.setting("client_ca", .listenerTLS, in: [block])
            return !authority.isFaulty && !tls.isFaulty && authority.text == "off"
        }
        guard let first = without.first else { return .clientCertificate(name) }
        let listener =
            "listener \(first.words.first?.quoted ?? "") "
            + "(\(faults.line(first.place, from: place)))"
        if without.count == listeners.count {
            faults.fault(
                .error, place, "", and: first.place, "",
                "account client_cert needs \"client_ca\" in the tls block of \(listener)",
                "write client_ca require file:PATH")
        } else {
            faults.fault(
                .warning, place, "", and: first.place, "",
                "nobody has an account on \(listener): it asks for no certificate",
                "write client_ca in its tls block, or take the listener from this host")
        }
        return .clientCertificate(name)
    }

    // MARK: subrequest

    private mutating func buildSubrequestAccount(_ setting: Setting) -> Host.Account {
        guard setting.words.count == 4, let place = setting.words[2].place,
            let fieldPlace = setting.words[3].place
        else { return .none }
        let defined = top.all("upstream").compactMap(\.words.first)
        guard check(setting.words[1], names: "upstream", among: defined) else { return .none }
        let target = setting.words[2].text
        if !target.hasPrefix("/") || target.utf8.contains(where: { !(0x21...0x7e).contains($0) })
            || target.contains("#")
        {
            faults.error(
                place, "\(target.quoted) is no path to ask for",
                "write it as it stands in a request line, /auth or /auth?from=gate")
        }
        let field = setting.words[3].text
        if FieldNames.isOfMessage(field) {
            faults.error(
                fieldPlace,
                "the account cannot stand in \(field.quoted): it belongs to the message itself",
                "choose another field")
        }
        return .subrequest(
            SubrequestAccount(
                upstream: setting.words[1].text, target: target, field: field,
                cache: setting.optionalDuration("cache")))
    }

    // MARK: jwt

    private mutating func buildTokenAccount(
        _ block: ParsedBlock, _ host: ParsedBlock, _ proof: ProofFields, _ place: Place
    ) -> Host.Account {
        func setting(_ name: String) -> Setting { resolver.setting(name, .jwt, in: [block]) }
        let header = setting("header")
        if let fieldPlace = header.words.first?.place, !header.isFaulty {
            let isCredential = FieldNames.fold(header.text) == "authorization"
            checkAccountField(
                header.text, "the token",
                isCredential ? nil : FieldNames.reasonNotToRead(header.text), proof, fieldPlace)
        }
        let keys = buildTokenKeys(block, place)
        let issuer = setting("issuer")
        let audience = setting("audience")
        for (name, setting) in [("issuer", issuer), ("audience", audience)] {
            if !setting.isGiven {
                faults.warning(
                    place, "\"\(name)\" is missing in account jwt: tokens made for others pass",
                    "write \(name) TEXT")
            } else if setting.text.isEmpty, !setting.isFaulty, let place = setting.place {
                faults.error(place, "\"\(name)\" is empty", "write \(name) TEXT, or delete it")
            }
        }
        let claim = setting("claim")
        if claim.text.isEmpty, !claim.isFaulty, let place = claim.place {
            faults.error(place, "\"claim\" is empty", "write claim sub")
        }
        let algorithms = setting("algorithms").words.compactMap {
            TokenAccount.Algorithm(rawValue: $0.text)
        }
        guard let keys else { return .none }
        return .token(
            TokenAccount(
                header: header.text, keys: keys, issuer: issuer.isGiven ? issuer.text : nil,
                audience: audience.isGiven ? audience.text : nil, claim: claim.text,
                algorithms: algorithms, leeway: setting("leeway").duration()))
    }

    /// Exactly one of `key` and `jwks`.
    private mutating func buildTokenKeys(_ block: ParsedBlock, _ place: Place) -> TokenAccount.Keys?
    {
        let key = block.first("key")
        let set = block.first("jwks")
        if let key, let set {
            faults.fault(
                .error, set.place, "", and: key.place, "",
                "account jwt takes one of \"key\" and \"jwks\"", "delete one")
            return nil
        }
        guard let line = key ?? set else {
            faults.error(
                place, "account jwt has no keys", "write key file:PATH or jwks https://host/path")
            return nil
        }
        guard !line.isFaulty, let argument = line.arguments.first(where: { $0.key == nil }),
            let valuePlace = argument.place
        else { return nil }
        let refresh = line.arguments.first { $0.key == "refresh" }
        guard case .reference(let reference) = argument.value else {
            return buildKeySetURL(argument, valuePlace, block)
        }
        if let refreshPlace = refresh?.place {
            faults.error(
                refreshPlace, "\"refresh=\" belongs to a URL; a file is read at each reload",
                "delete it")
        }
        let what = key == nil ? "key set" : "key"
        guard let text = contents(of: reference, what, at: valuePlace) else { return nil }
        do throws(SourceError) {
            let omissions = try source.examine(tokenKeys: text, isSet: key == nil)
            for omission in omissions {
                faults.warning(
                    valuePlace, "\(what) \(reference.shown): \(omission)",
                    "tokens signed with it are refused")
            }
        } catch {
            faults.error(
                valuePlace, "\(what) \(reference.shown) cannot be used: \(error.reason)",
                key == nil
                    ? "write a JWK Set with public keys into it"
                    : "write one public key into it, as PEM")
        }
        return key == nil ? .set(text) : .key(text)
    }

    private mutating func buildKeySetURL(
        _ argument: ParsedArgument, _ place: Place, _ block: ParsedBlock
    ) -> TokenAccount.Keys? {
        guard let url = ServiceURL(argument.text) else { return nil }
        let upstream = buildImplicitUpstream("key set", url, at: place)
        if !implicitUpstreams.contains(where: { $0.name == upstream.name }) {
            implicitUpstreams.append(upstream)
        }
        let refresh = resolver.setting("jwks", .jwt, in: [block]).optionalDuration("refresh")
        return .url(
            TokenAccount.KeySetURL(
                url: url, refresh: refresh ?? Defaults.keySetRefresh, upstream: upstream.name))
    }
}
