internal import GateBytes

// Certificates: what a `tls` block names is read and examined here, by the source.
extension Builder {
    /// The `tls` block of a listener.
    mutating func buildTLS(_ line: ParsedLine) -> ListenerTLS? {
        guard let body = line.body else { return nil }
        requireGiven(line, body)
        func setting(_ name: String) -> Setting {
            resolver.setting(name, .listenerTLS, in: [body])
        }
        let certificates = body.all("certificate").compactMap { buildCertificate($0) }
        let tickets = setting("tickets")
        return ListenerTLS(
            certificates: certificates,
            minVersion: ListenerTLS.MinVersion(rawValue: setting("min_version").text) ?? .tls12,
            clientCA: buildClientCA(setting("client_ca")),
            ticketPeriod: tickets.text == "off" ? nil : tickets.words.last?.duration)
    }

    private mutating func buildClientCA(_ setting: Setting) -> ListenerTLS.ClientCA {
        guard let argument = setting.words.last,
            let authorities = buildAuthorities(argument)
        else { return .off }
        return setting.text == "require" ? .require(authorities) : .optional(authorities)
    }

    /// The content of a file of authorities; nil where the argument names none or it has a fault.
    mutating func buildAuthorities(_ argument: ParsedArgument) -> [UInt8]? {
        guard let place = argument.place, case .reference(let reference) = argument.value,
            let text = contents(of: reference, "certificate", at: place)
        else { return nil }
        do throws(SourceError) {
            try source.examine(authorities: text)
            return text
        } catch {
            faults.error(
                place, "\(reference.shown) holds no authorities: \(error.reason)",
                "write their certificates into it, as PEM")
            return nil
        }
    }

    /// A `certificate FILE SECRET` line, of either side.
    mutating func buildCertificate(_ line: ParsedLine) -> CertificatePair? {
        guard !line.isFaulty, line.arguments.count == 2,
            let place = line.arguments[0].place, let keyPlace = line.arguments[1].place,
            case .reference(let reference) = line.arguments[0].value,
            case .reference(let keyReference) = line.arguments[1].value
        else { return nil }
        let chain = contents(of: reference, "certificate", at: place)
        let key = contents(of: keyReference, "private key", at: keyPlace)
        guard let chain, let key else { return nil }
        let pair = CertificatePair(chain: chain, key: key)
        let name = reference.shown
        do throws(CertificateFault) {
            let facts = try source.examine(certificate: pair)
            check(facts, name, at: place)
        } catch {
            switch error {
            case .certificate(let reason):
                faults.error(
                    place, "certificate \(name) cannot be used: \(reason)",
                    "write the certificate and what stands behind it into it, as PEM")
            case .foreignKey:
                faults.error(
                    keyPlace,
                    "key \(keyReference.shown) does not belong to certificate \(reference.short)",
                    "name the key that the certificate was made for")
            case .key(let reason):
                faults.error(
                    keyPlace, "key \(keyReference.shown) cannot be used: \(reason)",
                    "write the private key into it, as PEM and without a passphrase")
            }
        }
        return pair
    }

    /// The `tls` block of an upstream with these servers.
    mutating func buildTLS(_ line: ParsedLine, servers: [Upstream.Server]) -> UpstreamTLS? {
        guard let body = line.body else { return nil }
        func setting(_ name: String) -> Setting {
            resolver.setting(name, .upstreamTLS, in: [body])
        }
        let verify = setting("verify")
        let authority = setting("ca")
        let tls = UpstreamTLS(
            isVerified: verify.text != "off", name: setting("name").text,
            authorities: authority.words.first.flatMap { buildAuthorities($0) },
            certificate: body.first("certificate").flatMap { buildCertificate($0) })
        if !tls.isVerified, let place = verify.place {
            faults.warning(
                place, "verify off takes any server for this upstream",
                "write \"ca file:PATH\" with the authority of its certificate")
        }
        if !tls.isVerified, let place = authority.place {
            faults.warning(place, "\"ca\" has no use beside verify off", "delete one of them")
        }
        // A socket's path is no name, and without one any certificate would do.
        let nameless = servers.first { server in
            if case .unix = server.endpoint { true } else { false }
        }
        if let nameless, tls.name.isEmpty, !line.isFaulty {
            faults.error(
                line.place, "server \(nameless.text.quoted) has no name for its certificate",
                "write \"name NAME\" in this block")
        }
        return tls
    }

    private mutating func check(_ facts: CertificateFacts, _ name: String, at place: Place) {
        let secondsPerDay: Int64 = 86_400
        func day(_ second: Int64) -> String {
            let date = CivilDate(daysSince1970: Int(clamping: second / secondsPerDay))
            func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
            return "\(date.year)-\(two(date.month))-\(two(date.day))"
        }
        func days(_ count: Int64) -> String { count == 1 ? "1 day" : "\(count) days" }
        if facts.now > facts.validity.upperBound {
            let ago = (facts.now - facts.validity.upperBound) / secondsPerDay
            faults.error(
                place,
                "certificate \(name) ended on \(day(facts.validity.upperBound)) "
                    + "(\(ago == 0 ? "today" : "\(days(ago)) ago"))",
                "renew it")
        } else if facts.now < facts.validity.lowerBound {
            faults.error(
                place,
                "certificate \(name) is not valid before \(day(facts.validity.lowerBound))",
                "correct this machine's clock, or take the one before it")
        } else if facts.validity.upperBound - facts.now < Limits.certificateWarningSeconds {
            let left = (facts.validity.upperBound - facts.now) / secondsPerDay
            faults.warning(
                place,
                "certificate \(name) ends on \(day(facts.validity.upperBound)) "
                    + "(\(left == 0 ? "within a day" : "in \(days(left))"))", "renew it")
        }
    }
}

extension Reference {
    /// As messages show it: a path bare, the others as written.
    var shown: String {
        if case .file(let path) = self { path } else { text }
    }

    /// The last part of a path.
    var short: String {
        guard case .file(let path) = self else { return text }
        return path.split(separator: "/").last.map(String.init) ?? path
    }
}

extension ParsedArgument {
    /// Its duration, where it is one.
    var duration: Duration? {
        if case .duration(let value) = value { value } else { nil }
    }
}
