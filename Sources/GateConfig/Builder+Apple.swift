// The `apple` block, and what needs it.
extension Builder {
    /// A line that asks Apple's servers for something.
    private struct AppleUse {
        let place: Place
        /// Whether the line has a fault of its own.
        let isFaulty: Bool
        /// As messages call it, `fallback devicecheck`.
        let text: String

        init(_ line: ParsedLine, _ text: String) {
            place = line.place
            isFaulty = line.isFaulty
            self.text = text
        }
    }

    mutating func buildApple(
        _ apps: [App], _ upstreams: inout [Upstream]
    ) -> AppleSettings? {
        let deviceCheck = deviceCheckUses()
        let refreshed = refreshUses()
        guard let line = top.first("apple"), let body = line.body else {
            for use in deviceCheck + refreshed.map(\.use) where !use.isFaulty {
                faults.error(
                    use.place, "\(use.text.quoted) asks Apple's servers, and there is no \"apple\"",
                    "write apple { with team_id, key_id and key")
            }
            return nil
        }
        requireGiven(line, body)
        if deviceCheck.isEmpty, refreshed.isEmpty {
            faults.warning(
                line.place, "\"apple\" is not used",
                "no route has fallback devicecheck or set_bits, no app has receipts refresh")
        }
        let authorities = buildAppleTests(body)
        var settings = AppleSettings(
            teamID: text("team_id", body), keyID: text("key_id", body), key: buildAppleKey(body),
            deviceCheck: [:], attestData: [:])
        if !deviceCheck.isEmpty {
            for environment in Set(apps.map(\.environment)).sorted() {
                settings.deviceCheck[environment] = service(
                    "devicecheck_url", body, AppleHosts.deviceCheck(environment), authorities,
                    &upstreams)
            }
        }
        let names = Set(refreshed.map(\.app))
        for environment in Set(apps.filter { names.contains($0.name) }.map(\.environment)).sorted()
        {
            settings.attestData[environment] = service(
                "attest_data_url", body, AppleHosts.attestData(environment), authorities,
                &upstreams)
        }
        return settings
    }

    /// The bits of a `set_bits` line; nil without.
    func setBits(_ setting: Setting) -> DeviceBits? {
        guard setting.isGiven, !setting.isFaulty else { return nil }
        func bit(_ name: String) -> Bool? { setting.argument(name).map { $0.text == "1" } }
        return DeviceBits(bit0: bit("bit0"), bit1: bit("bit1"))
    }

    /// Bits are set for whoever has shown a proof or a device.
    mutating func checkSetBits(_ body: ParsedBlock, _ route: Route) {
        guard route.mode != .enforce, route.mode != .monitor, let line = body.first("set_bits")
        else { return }
        let mode = if case .off = route.mode { "off" } else { "deny" }
        faults.warning(
            line.place, "\"set_bits\" does nothing on a route whose mode is \(mode)",
            "delete it, or write mode enforce")
    }

    /// Lines of routes, and of `defaults`, that ask DeviceCheck.
    private func deviceCheckUses() -> [AppleUse] {
        let hosts = top.all("host").compactMap(\.body)
        let blocks = (hosts + [top]).flatMap { $0.all("defaults") + $0.all("route") }
        return blocks.compactMap(\.body).flatMap { block in
            block.all("fallback").filter { $0.words.first == "devicecheck" }
                .map { AppleUse($0, "fallback devicecheck") }
                + block.all("set_bits").map { AppleUse($0, "set_bits") }
        }
    }

    /// Apps whose receipts are exchanged for new ones.
    private func refreshUses() -> [(app: String, use: AppleUse)] {
        top.all("app").compactMap { app in
            guard let line = app.body?.first("receipts"), line.words.first == "refresh" else {
                return nil
            }
            return (app.words.first ?? "", AppleUse(line, "receipts refresh"))
        }
    }

    /// A text of ten characters, as Apple gives its teams and keys; another is warned about.
    private mutating func text(_ name: String, _ body: ParsedBlock) -> String {
        guard let argument = body.first(name)?.arguments.first, let place = argument.place else {
            return ""
        }
        let text = argument.text
        if text.isEmpty || !text.utf8.allSatisfy({ (0x21...0x7e).contains($0) }) {
            faults.error(place, "\(text.quoted) is no \(name)", "it is ten letters and digits")
        } else if text.utf8.count != 10 {
            faults.warning(
                place, "\(name) \(text.quoted) has not ten characters",
                "take it from the developer account")
        }
        return text
    }

    private mutating func buildAppleKey(_ body: ParsedBlock) -> [UInt8] {
        guard let argument = body.first("key")?.arguments.first, let place = argument.place,
            case .reference(let reference) = argument.value,
            let text = contents(of: reference, "private key", at: place)
        else { return [] }
        do throws(SourceError) {
            try source.examine(serviceKey: text)
        } catch {
            faults.error(
                place, "key \(reference.shown) cannot be used: \(error.reason)",
                "write the .p8 file of the developer account into it, a P-256 key as PKCS #8 PEM")
        }
        return text
    }

    /// What is meant for tests, warned about; the authorities that `ca` names.
    private mutating func buildAppleTests(_ body: ParsedBlock) -> [UInt8]? {
        for (name, what) in [
            ("devicecheck_url", "device tokens"), ("attest_data_url", "receipts"),
        ] {
            guard let argument = body.first(name)?.arguments.first, let place = argument.place
            else { continue }
            faults.warning(
                place, "\(name) sends \(what) to \(argument.text) and not to Apple",
                "what answers there decides; meant for tests")
            if argument.text.contains("?") {
                faults.error(place, "\(name) has a query", "the path of each call is appended")
            }
        }
        guard let argument = body.first("ca")?.arguments.first, let place = argument.place else {
            return nil
        }
        faults.warning(
            place, "ca \(argument.text) replaces the system's authorities for Apple's servers",
            "what it certifies is taken for Apple; meant for tests")
        return buildAuthorities(argument)
    }

    private mutating func service(
        _ directive: String, _ body: ParsedBlock, _ address: String, _ authorities: [UInt8]?,
        _ upstreams: inout [Upstream]
    ) -> AppleSettings.Service? {
        let argument = body.first(directive)?.arguments.first
        guard let place = argument?.place ?? top.first("apple")?.place,
            let url = ServiceURL(argument?.text ?? address)
        else { return nil }
        let upstream = buildImplicitUpstream("apple", url, authorities: authorities, at: place)
        // Both environments, or both services, may have one test server.
        if !upstreams.contains(where: { $0.name == upstream.name }) { upstreams.append(upstream) }
        return AppleSettings.Service(url: url, upstream: upstream.name)
    }
}

extension Set<App.Environment> {
    /// In an order that every start has.
    fileprivate func sorted() -> [App.Environment] {
        sorted { $0.rawValue < $1.rawValue }
    }
}
