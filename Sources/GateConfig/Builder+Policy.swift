// What a route asks for besides the proof: the part that is judged, the fallback, `require`.
extension Builder {
    /// The share of `mode enforce N% by=… else=…`; nil without, and where it is not whole.
    mutating func share(_ setting: Setting) -> Share? {
        guard setting.text == "enforce", !setting.isFaulty else { return nil }
        let basis = setting.argument("by").flatMap { Share.Basis(rawValue: $0.text) }
        let otherwise = setting.argument("else").flatMap { Share.Otherwise(rawValue: $0.text) }
        guard case .share(let percent)? = setting.words.last?.value else {
            if let key = setting.keys.first, let place = key.place {
                faults.error(
                    place, "\"\(key.key ?? "")=\" goes with a share",
                    "write mode enforce 25% by=key_id else=monitor")
            }
            return nil
        }
        guard let basis, let otherwise else {
            let text = setting.words.last?.text ?? ""
            if let place = setting.words.last?.place {
                let missing = basis == nil ? "by=key_id, by=account or by=address" : ""
                let other = otherwise == nil ? "else=monitor or else=off" : ""
                faults.error(
                    place,
                    "\"mode enforce \(text)\" needs "
                        + [missing, other].filter { !$0.isEmpty }.joined(separator: ", and "),
                    "write mode enforce \(text) by=key_id else=monitor")
            }
            return nil
        }
        return Share(percent: percent, basis: basis, otherwise: otherwise)
    }

    /// A share by account needs accounts, one by key ID a key ID that is seen in time.
    mutating func checkShare(
        _ route: Route, _ chain: [ParsedBlock], _ host: ParsedBlock, _ built: Host
    ) {
        guard let place = resolver.setting("mode", .route, in: chain).argument("by")?.place else {
            return
        }
        if route.share?.basis == .keyID, route.binding == .envelope {
            faults.warning(
                place, "by=key_id sees no key ID on a route with bind envelope: all are inside",
                "it stands in the body there; write by=account or by=address")
        }
        guard route.share?.basis == .account, built.account == .none,
            !resolver.setting("account", .host, in: [host]).isFaulty
        else { return }
        faults.error(
            place, "by=account needs accounts, and \(host.title) has none",
            "write by=key_id or by=address, or give the host an account")
    }

    /// What becomes of a request that says its device cannot attest.
    mutating func fallback(_ setting: Setting) -> Fallback {
        guard !setting.isFaulty else { return .deny }
        switch setting.text {
        case "allow_unverified":
            if let place = setting.words.first?.place {
                faults.warning(
                    place, "every client passes without proof that says it cannot attest",
                    "anyone can say so; the service must look at App-Attest-Verdict: unverified")
            }
            return .allowUnverified
        case "devicecheck":
            func bit(_ name: String) -> Bool? { setting.argument(name).map { $0.text == "1" } }
            return .deviceCheck(
                Fallback.DeviceCheck(
                    bit0: bit("bit0"), bit1: bit("bit1"), rate: setting.rate("rate"),
                    isAlsoEnrolled: setting.words.contains { $0.text == "also_enrolled" },
                    timeout: setting.duration("timeout")))
        default: return .deny
        }
    }

    /// The conditions of the `require` lines; each kind comes from the nearest block that has it.
    mutating func requirements(_ chain: [ParsedBlock]) -> Requirements {
        var requirements = Requirements()
        func setting(_ kind: String) -> Setting? {
            let setting = resolver.setting("require", .route, in: chain, first: kind)
            return setting.isGiven && !setting.isFaulty ? setting : nil
        }
        requirements.category = setting("category").flatMap { category($0) }
        if let setting = setting("bundle_version"), setting.words.count > 2,
            let least = DottedNumber(setting.words[2].text)
        {
            requirements.bundleVersion = Requirements.BundleVersion(
                least: least, isAbsentAllowed: setting.words.last?.text == "absent")
        }
        if let setting = setting("metric"), setting.words.count > 2,
            case .count(let most) = setting.words[2].value
        {
            requirements.metric = Requirements.Metric(
                most: most, isAbsentAllowed: setting.words.last?.text == "absent")
        }
        if case .duration(let age)? = setting("key_age")?.words.last?.value {
            requirements.keyAge = age
        }
        return requirements
    }

    private mutating func category(_ setting: Setting) -> Requirements.Category? {
        var names = setting.words.dropFirst()
        let isAbsentAllowed = names.last?.text == "absent"
        if isAbsentAllowed { names = names.dropLast() }
        if names.isEmpty, let place = setting.place {
            faults.error(
                place, "\"require category\" names no category",
                "write require category app_store testflight absent")
        }
        var allowed: Set<UInt32> = []
        for name in names {
            guard let place = name.place else { continue }
            let known = Requirements.Category.names
            if name.text == "absent" {
                faults.error(place, "\"absent\" stands behind all categories", "write it last")
            } else if let number = known.firstIndex(of: name.text) {
                guard !allowed.insert(UInt32(number)).inserted else { continue }
                faults.error(place, "category \(name.text.quoted) is named twice", "delete one")
            } else if let near = NearestWord.find(name.text, in: known + ["absent"]) {
                faults.error(
                    place, "unknown category \(name.text.quoted); did you mean \"\(near)\"?")
            } else {
                faults.error(
                    place, "unknown category \(name.text.quoted)",
                    "known: \(known.joined(separator: ", "))")
            }
        }
        return Requirements.Category(allowed: allowed, isAbsentAllowed: isAbsentAllowed)
    }

    /// Conditions on a route that asks for no proof are none.
    mutating func checkRequirements(_ body: ParsedBlock, _ route: Route) {
        guard route.mode != .enforce, route.mode != .monitor, let line = body.first("require")
        else { return }
        let mode = if case .off = route.mode { "off" } else { "deny" }
        faults.warning(
            line.place, "\"require\" does nothing on a route whose mode is \(mode)",
            "delete it, or write mode enforce")
    }
}
