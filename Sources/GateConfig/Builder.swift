/// Builds a ``Configuration`` from parsed blocks and reports every fault of meaning.
///
/// A line with a fault of its own counts as given with its default, so that one mistake gives one
/// message.
struct Builder<Source: ConfigurationSource> {
    let source: Source
    let resolver: Resolver
    let top: ParsedBlock
    var faults: Faults
    /// Where named blocks stand.
    var places = BlockPlaces()
    /// The services of URLs that hosts name.
    var implicitUpstreams: [Upstream] = []

    init(source: Source, top: ParsedBlock, faults: Faults) {
        self.source = source
        self.top = top
        self.faults = faults
        resolver = Resolver { source.environment($0) }
    }

    /// The configuration; complete only if no error was reported.
    mutating func build() -> Configuration {
        checkPresence()
        let loops = resolver.setting("loops", .top, in: [top])
        let listeners = top.all("listener").compactMap { buildListener($0) }
        let apps = top.all("app").compactMap { buildApp($0) }
        let upstreams = top.all("upstream").compactMap { buildUpstream($0) }
        var ofApple: [Upstream] = []
        let apple = buildApple(apps, &ofApple)
        var configuration = Configuration(
            loops: loops.text == "auto" ? nil : loops.count(),
            drainTimeout: resolver.setting("drain_timeout", .top, in: [top]).duration(),
            log: buildLog(), store: buildStore(), spool: buildSpool(), admin: buildAdmin(),
            listeners: listeners, apple: apple, apps: apps, upstreams: upstreams,
            implicitUpstreams: ofApple,
            hosts: [])
        configuration.hosts = top.all("host").compactMap { buildHost($0) }
        configuration.implicitUpstreams += implicitUpstreams
        checkAddresses()
        checkWhole(configuration)
        return configuration
    }

    /// The block of a top-level line that stands once; an empty one where it is not given.
    private func single(_ name: String, _ level: Level) -> ParsedBlock {
        top.first(name)?.body ?? ParsedBlock(level: level, head: nil, title: name)
    }

    /// A gate that serves nothing is a mistake.
    private mutating func checkPresence() {
        let start = Place(file: 0, line: 1, column: 1, length: 1)
        for name in ["listener", "host"] where top.first(name) == nil && !faults.hasErrors {
            faults.error(
                start, "no \(name) is defined: the gate would serve nothing",
                "write \(name) NAME {")
        }
    }

    private mutating func buildLog() -> LogSettings {
        let block = single("log", .log)
        func setting(_ name: String) -> Setting { resolver.setting(name, .log, in: [block]) }
        let access = setting("access")
        let destination: LogSettings.Destination =
            switch access.text {
            case "stdout": .stdout
            case "off": .off
            default: .file(access.text)
            }
        if case .file = destination, !access.isFaulty, let place = access.words.first?.place {
            examine(file: access.text, at: place, "access log")
        }
        var share = 100
        if case .share(let value)? = setting("sample").words.last?.value { share = value }
        let level = setting("error").argument("level")?.text ?? ""
        return LogSettings(
            access: destination, errorLevel: LogSettings.Level(rawValue: level) ?? .info,
            sampleOffPercent: share, isQueryLogged: setting("query_in_log").text == "on",
            isAccountPlain: setting("account_in_log").text == "plain")
    }

    private mutating func buildStore() -> StoreSettings {
        let block = single("store", .store)
        let shards = resolver.setting("shards", .store, in: [block])
        let count = shards.count()
        if let place = shards.words.first?.place, count & (count - 1) != 0 {
            faults.error(place, "\(count) shards are no power of two", "write 32, 64 or 128")
        }
        let directory = resolver.setting("dir", .store, in: [block])
        examine(directory, orBlock: "store")
        let snapshot = resolver.setting("snapshot", .store, in: [block])
        return StoreSettings(
            directory: directory.text, shards: count,
            keysMax: resolver.setting("max_keys", .store, in: [block]).count(),
            relaxedMilliseconds: buildDurability(block),
            snapshotInterval: snapshot.duration("every"),
            snapshotAfterBytes: snapshot.size("after"))
    }

    /// By how many milliseconds an answer may be ahead of the disk; nil where it never is.
    private mutating func buildDurability(_ block: ParsedBlock) -> Int? {
        let setting = resolver.setting("durability", .store, in: [block])
        guard setting.text == "relaxed", setting.words.count == 2,
            case .duration(let duration) = setting.words[1].value
        else { return nil }
        let (seconds, attoseconds) = duration.components
        let milliseconds =
            Int(clamping: seconds) &* 1000 &+ Int(attoseconds / 1_000_000_000_000_000)
        if seconds > 1 || !Limits.relaxedMilliseconds.contains(milliseconds),
            let place = setting.words[1].place
        {
            faults.error(
                place, "\(setting.words[1].text) is not within 1ms to 1s",
                "write 20ms")
        }
        return milliseconds
    }

    private mutating func buildSpool() -> SpoolSettings {
        let block = single("spool", .spool)
        let directory = resolver.setting("dir", .spool, in: [block])
        examine(directory, orBlock: "spool")
        let most = resolver.setting("max", .spool, in: [block])
        return SpoolSettings(
            directory: directory.text, bytesMax: most.size(), filesMax: most.count("files"))
    }

    /// Whether a directory can be used; a default one is reported at its block, or at the file's
    /// start.
    private mutating func examine(_ directory: Setting, orBlock name: String) {
        guard !directory.isFaulty else { return }
        let place =
            directory.words.first?.place ?? top.first(name)?.place
            ?? Place(file: 0, line: 1, column: 1, length: 1)
        do throws(SourceError) {
            try source.examine(directory: directory.text)
        } catch {
            faults.error(
                place, "directory \(directory.text) of \(name) cannot be used: \(error.reason)",
                "write \"dir /path\" in block \(name)")
        }
    }

    /// Whether a file or socket can be made, which a start does.
    private mutating func examine(file path: String, at place: Place, _ what: String) {
        do throws(SourceError) {
            try source.examine(file: path)
        } catch {
            faults.error(
                place, "\(what) \(path) cannot be used: \(error.reason)",
                "create its directory and let the gate's user write there, or name another")
        }
    }

    private mutating func buildAdmin() -> [ListenAddress] {
        guard let line = top.first("admin"), let body = line.body else { return [] }
        return buildAddresses(line, body)
    }

    /// The `address` lines of a listener or of `admin`.
    mutating func buildAddresses(_ line: ParsedLine, _ body: ParsedBlock) -> [ListenAddress] {
        requireGiven(line, body)
        return body.all("address").compactMap { address in
            guard !address.isFaulty, let first = address.arguments.first(where: { $0.key == nil }),
                case .address(var value) = first.value
            else { return nil }
            if let mode = address.arguments.first(where: { $0.key == "mode" }),
                case .count(let bits) = mode.value, let place = mode.place
            {
                guard case .unix(let path, _) = value else {
                    faults.error(place, "\"mode=\" belongs to unix sockets only", "delete it")
                    return nil
                }
                value = .unix(path, mode: bits)
            }
            if case .ip(_, port: 0) = value, let place = first.place {
                faults.warning(place, "port 0 lets the system choose one at each start")
            }
            if case .unix(let path, _) = value, let place = first.place {
                examine(file: path, at: place, "socket")
            }
            if let place = first.place { places.addresses.append((value, place, first.text)) }
            return value
        }
    }

    /// Reports the required directives that a block lacks.
    mutating func requireGiven(_ line: ParsedLine, _ body: ParsedBlock) {
        for directive in DirectiveTable.rows(at: body.level)
        where directive.isRequired && body.first(directive.name) == nil && body.head != nil {
            guard line.directive.isBlock, !line.isFaulty || !body.lines.isEmpty else { continue }
            faults.error(
                line.place, "\"\(directive.name)\" is missing in \(body.title)",
                "write \(directive.example)")
        }
    }

    /// Two sockets on one address cannot be.
    private mutating func checkAddresses() {
        for (index, later) in places.addresses.enumerated() {
            let earlier = places.addresses[..<index].first { $0.value.isSame(as: later.value) }
            guard let earlier else { continue }
            faults.fault(
                .error, later.place, "", and: earlier.place, "",
                "address \(later.text.quoted) is already taken at \(faults.text(earlier.place))",
                "delete one")
        }
    }

    /// The content of a secret or file; nil when it cannot be had, reported at `place`.
    mutating func contents(of reference: Reference, _ what: String, at place: Place) -> [UInt8]? {
        do throws(SourceError) {
            switch reference {
            case .credential(let name): return try source.credential(name)
            case .file(let path):
                let base = faults.files[place.file].name
                return try source.contents(ofFile: FilePath.join(path, relativeTo: base))
            case .environment(let name):
                guard let value = source.environment(name) else {
                    throw SourceError("the variable is not set")
                }
                return Array(value.utf8)
            }
        } catch {
            let remedy =
                switch reference {
                case .credential: "pass it with LoadCredential= of the unit, or write file:PATH"
                case .environment: "set it, or write file:PATH or credential:NAME"
                case .file: "name a file that the gate's user can read"
                }
            faults.error(
                place, "\(what) \(reference.text) cannot be read: \(error.reason)", remedy)
            return nil
        }
    }

    /// Reports a reference to a block that is not defined; answers whether it is.
    mutating func check(
        _ argument: ParsedArgument, names kind: String, among defined: [String]
    ) -> Bool {
        if defined.contains(argument.text) { return true }
        guard let place = argument.place else { return false }
        let known =
            defined.isEmpty
            ? "no \(kind) is defined" : "defined: \(defined.joined(separator: ", "))"
        places.misnamed.insert(kind)
        faults.error(place, "\(kind) \(argument.text.quoted) is not defined; \(known)")
        return false
    }
}

/// Where blocks and addresses stand, for faults that concern two of them.
struct BlockPlaces {
    var addresses: [(value: ListenAddress, place: Place, text: String)] = []
    var listeners: [String: Place] = [:]
    var apps: [String: Place] = [:]
    var upstreams: [String: Place] = [:]
    /// By host name.
    var hosts: [String: Place] = [:]
    /// The kinds of blocks that something refers to by a wrong name.
    var misnamed: Set<String> = []
    /// Routes whose meaning a reported fault leaves open.
    var unclear: Set<Place> = []
    /// Addresses warned about already.
    var warnedAddresses: Set<Place> = []
}

extension Reference {
    /// As the configuration writes it.
    var text: String {
        switch self {
        case .credential(let name): "credential:\(name)"
        case .environment(let name): "env:\(name)"
        case .file(let path): "file:\(path)"
        }
    }
}

extension ListenAddress {
    /// Whether two sockets would meet; port 0 never does.
    func isSame(as other: ListenAddress) -> Bool {
        switch (self, other) {
        case (.ip(let left, let port), .ip(let right, let otherPort)):
            port == otherPort && port != 0 && IPText.isSame(left, right)
        case (.unix(let left, _), .unix(let right, _)): left == right
        case (.systemd(let left), .systemd(let right)): left == right
        default: false
        }
    }
}
