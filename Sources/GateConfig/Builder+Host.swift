// Hosts: names, references, account, rates, proof fields.
extension Builder {
    mutating func buildHost(_ line: ParsedLine) -> Host? {
        guard let body = line.body else { return nil }
        let names = defineNames(line)
        requireGiven(line, body)
        func setting(_ name: String) -> Setting { resolver.setting(name, .host, in: [body]) }
        let proof = buildProof(body)
        var host = Host(
            names: names, listeners: buildListeners(body),
            app: reference("app", body),
            upstream: reference("upstream", body),
            unmatched: Host.Unmatched(rawValue: setting("unmatched").text) ?? .deny,
            enroll: buildEnroll(setting("enroll")),
            account: buildAccount(body, proof),
            challengeLifetime: setting("challenge").duration("ttl"),
            attestationChallengeLifetime: setting("challenge").duration("attestation_ttl"),
            rates: buildRates(body), proof: proof, isPathStrict: setting("paths").text != "matched",
            underscores: Host.Underscores(rawValue: setting("underscores").text) ?? .drop,
            isPreflightPassed: setting("preflight").text != "deny", routes: [],
            unmatchedRoute: buildUnmatched(body, line))
        host.routes = body.all("route").compactMap { buildRoute($0, body, host) }
        host.unmatchedRoute.upstream = host.upstream
        host.unmatchedRoute.mode =
            switch host.unmatched {
            case .deny: .deny(404)
            case .enforce: .enforce
            case .off: .off
            }
        host.unmatchedRoute.share = nil
        host.unmatchedRoute.name = "\(names.first ?? "") unmatched"
        checkHost(host, line, body)
        checkKeySearch(host, body)
        return host
    }

    private mutating func defineNames(_ line: ParsedLine) -> [String] {
        var names: [String] = []
        for argument in line.arguments {
            guard case .text(let name) = argument.value else { continue }
            if let earlier = places.hosts[name] {
                faults.fault(
                    .error, line.place, "", and: earlier, "",
                    "host \(name.quoted) is already defined at \(faults.text(earlier))",
                    "rename one or delete it")
                continue
            }
            places.hosts[name] = line.place
            names.append(name)
        }
        return names
    }

    private mutating func buildListeners(_ body: ParsedBlock) -> [String] {
        var names: [String] = []
        for argument in body.all("listener").flatMap(\.arguments) {
            let defined = top.all("listener").compactMap(\.words.first)
            guard check(argument, names: "listener", among: defined) else { continue }
            if names.contains(argument.text), let place = argument.place {
                faults.error(place, "listener \(argument.text.quoted) is named twice", "delete one")
                continue
            }
            names.append(argument.text)
        }
        return names
    }

    /// The name of the one app or upstream of a block; empty without, and where there is none of
    /// that name.
    mutating func reference(_ kind: String, _ body: ParsedBlock) -> String {
        guard let argument = body.first(kind)?.arguments.first else { return "" }
        let defined = top.all(kind).compactMap(\.words.first)
        guard check(argument, names: kind, among: defined) else { return "" }
        return argument.text
    }

    private mutating func buildEnroll(_ setting: Setting) -> String {
        guard let argument = setting.words.first, let place = argument.place,
            case .path(let path, let isPrefix) = argument.value
        else { return "" }
        if isPrefix {
            faults.error(
                place, "\"enroll\" takes a prefix already",
                "write \(path.isEmpty ? "/v1/app-attest" : path)")
        }
        let key = String(decoding: RoutePattern.wideKey(Array(path.utf8)), as: UTF8.self)
        if key.isEmpty {
            faults.error(
                place, "\"enroll /\" would take every path", "write a path such as /v1/app-attest")
        }
        return path
    }

    private mutating func buildRates(_ body: ParsedBlock) -> Rates {
        for line in body.all("rate") where !line.isFaulty && line.arguments.count == 1 {
            let name = line.words.first ?? ""
            faults.error(
                line.place, "\"rate \(name)\" has no limit",
                "write rate \(name) per_account=10/1m per_address=60/1m, or off for none")
        }
        func rate(_ name: String, _ key: String) -> Rate? {
            resolver.setting("rate", .host, in: [body], first: name).rate(key)
        }
        return Rates(
            challengesPerAccount: rate("challenges", "per_account"),
            challengesPerAddress: rate("challenges", "per_address"),
            attestationsPerAccount: rate("attestations", "per_account"),
            attestationsPerAddress: rate("attestations", "per_address"),
            failedSignaturesPerAccount: rate("failed_signatures", "per_account"),
            failedSignaturesPerAddress: rate("failed_signatures", "per_address"))
    }

    private mutating func buildProof(_ body: ParsedBlock) -> ProofFields {
        let block = body.first("proof")?.body
        func setting(_ name: String) -> Setting {
            resolver.setting(name, .proof, in: block.map { [$0] } ?? [])
        }
        func field(_ name: String) -> String { setting(name).words.last?.text ?? "" }
        let isKeyIDOptional = setting("key_id").text == "account"
        let fields = ProofFields(
            keyID: isKeyIDOptional ? Self.keyIDFieldDefault : field("key_id"),
            assertion: field("assertion"), clientData: field("client_data"),
            challenge: field("challenge"), attestation: field("attestation"),
            unsupported: field("unsupported"), deviceToken: field("device_token"),
            isKeyIDOptional: isKeyIDOptional)
        for (index, (name, field)) in fields.all.enumerated() {
            guard let place = setting(name).words.last?.place else { continue }
            if let reason = FieldNames.reasonNotToProve(field) {
                faults.error(
                    place, "\(name) cannot stand in \(field.quoted): \(reason)",
                    "choose another field")
            }
            let other = fields.all.enumerated().first {
                $0.offset != index && FieldNames.fold($0.element.field) == FieldNames.fold(field)
            }
            if let other, other.offset < index || setting(other.element.name).place == nil {
                faults.error(
                    place, "field \(field.quoted) is used for \(other.element.name) and \(name)",
                    "choose another field")
            }
        }
        return fields
    }
}

extension ProofFields {
    /// The fields with their directives, in the order of protocol.md §3.
    var all: [(name: String, field: String)] {
        [
            ("key_id", keyID), ("assertion", assertion), ("client_data", clientData),
            ("challenge", challenge), ("attestation", attestation), ("unsupported", unsupported),
            ("device_token", deviceToken),
        ]
    }
}
