/// Where configuration text, secrets and names come from: files for the command, memory for tests.
///
/// Paths are as the configuration wrote them, already joined to the directory of the file that
/// named them. Nothing here changes anything: `check` opens and resolves, it never creates or
/// binds.
package protocol ConfigurationSource {
    /// The bytes of a file.
    func contents(ofFile path: String) throws(SourceError) -> [UInt8]

    /// The names in a directory, in any order; nil when there is no such directory.
    func entries(ofDirectory path: String) -> [String]?

    /// The bytes of the credential `name` in `$CREDENTIALS_DIRECTORY`.
    func credential(_ name: String) throws(SourceError) -> [UInt8]

    /// The value of an environment variable; nil when it is not set.
    func environment(_ name: String) -> String?

    /// Whether `name` resolves to an address.
    func resolve(_ name: String) throws(SourceError)

    /// Whether `path` is a directory that can be written to, or one that could be created.
    func examine(directory path: String) throws(SourceError)

    /// Whether the file or socket `path` can be written to, or made in its directory.
    func examine(file path: String) throws(SourceError)

    /// What two PEM texts say: a certificate with its chain, and a private key.
    func examine(certificate pair: CertificatePair) throws(CertificateFault) -> CertificateFacts

    /// Whether a PEM text holds certificates of authorities and nothing unreadable.
    func examine(authorities text: [UInt8]) throws(SourceError)

    /// Whether a text is a P-256 private key, PKCS #8 in PEM, that can sign.
    func examine(serviceKey text: [UInt8]) throws(SourceError)

    /// Whether a text is a public key, or a set of some, that verifies tokens.
    /// - Returns: What is wrong with keys of a set that others can do without.
    func examine(tokenKeys text: [UInt8], isSet: Bool) throws(SourceError) -> [String]
}

/// What a certificate says of its time.
package struct CertificateFacts: Sendable, Equatable {
    /// Its first and last moment, in seconds of UTC since 1970.
    package var validity: ClosedRange<Int64>
    /// Now, as the source's clock has it.
    package var now: Int64

    /// Facts of a certificate that was read.
    package init(validity: ClosedRange<Int64>, now: Int64) {
        self.validity = validity
        self.now = now
    }
}

/// Why a certificate and a key cannot be used; reasons are lowercase clauses.
package enum CertificateFault: Error, Equatable, Sendable {
    /// The certificate cannot be read, or is not taken.
    case certificate(String)
    /// The key is another certificate's.
    case foreignKey
    /// The key cannot be read.
    case key(String)
}

/// Why a source could not give what was asked for.
package struct SourceError: Error, Equatable, Sendable {
    /// A lowercase clause such as `no such file`.
    package let reason: String

    /// An error that says `reason`.
    package init(_ reason: String) {
        self.reason = reason
    }
}

/// A source that holds everything in memory: for tests and for configurations a program writes
/// itself.
package struct MemoryConfigurationSource: ConfigurationSource, Sendable {
    /// File contents by path.
    package var files: [String: [UInt8]]
    /// Environment variables.
    package var variables: [String: String]
    /// Credentials by name.
    package var credentials: [String: [UInt8]]
    /// Names that do not resolve; every other does.
    package var unresolvable: Set<String>
    /// Directories and files that cannot be written to; every other can.
    package var unwritable: Set<String>
    /// What is wrong with a certificate, by the text of its chain; every other is good.
    package var badCertificates: [[UInt8]: CertificateFault] = [:]
    /// When a certificate is valid, by the text of its chain; every other is for ever.
    package var validities: [[UInt8]: ClosedRange<Int64>] = [:]
    /// The time, in seconds of UTC since 1970.
    package var now: Int64 = 1_796_000_000

    /// A source of text files.
    package init(
        _ files: [String: String], variables: [String: String] = [:],
        credentials: [String: String] = [:], unresolvable: Set<String> = [],
        unwritable: Set<String> = []
    ) {
        self.files = files.mapValues { Array($0.utf8) }
        self.variables = variables
        self.credentials = credentials.mapValues { Array($0.utf8) }
        self.unresolvable = unresolvable
        self.unwritable = unwritable
    }

    /// The bytes of a file.
    package func contents(ofFile path: String) throws(SourceError) -> [UInt8] {
        guard let bytes = files[path] else { throw SourceError("no such file") }
        return bytes
    }

    /// The names in a directory.
    package func entries(ofDirectory path: String) -> [String]? {
        let prefix = path.isEmpty ? "" : path == "/" ? "/" : path + "/"
        var names: Set<String> = []
        for file in files.keys where file.hasPrefix(prefix) {
            let rest = file.dropFirst(prefix.count)
            if let name = rest.split(separator: "/").first, !rest.hasPrefix("/") {
                names.insert(String(name))
            }
        }
        return names.isEmpty ? nil : Array(names)
    }

    /// The bytes of a credential.
    package func credential(_ name: String) throws(SourceError) -> [UInt8] {
        guard let bytes = credentials[name] else { throw SourceError("no such credential") }
        return bytes
    }

    /// The value of an environment variable.
    package func environment(_ name: String) -> String? {
        variables[name]
    }

    /// Whether `name` resolves.
    package func resolve(_ name: String) throws(SourceError) {
        guard !unresolvable.contains(name) else { throw SourceError("name or service not known") }
    }

    /// Whether the directory can be used.
    package func examine(directory path: String) throws(SourceError) {
        guard !unwritable.contains(path) else { throw SourceError("permission denied") }
    }

    /// Whether the file can be written to or made.
    package func examine(file path: String) throws(SourceError) {
        try examine(directory: path)
    }

    /// What was said of the chain.
    package func examine(
        certificate pair: CertificatePair
    ) throws(CertificateFault) -> CertificateFacts {
        if let fault = badCertificates[pair.chain] { throw fault }
        return CertificateFacts(validity: validities[pair.chain] ?? 0...Int64.max, now: now)
    }

    /// Whether nothing was said against the text.
    package func examine(authorities text: [UInt8]) throws(SourceError) {
        if case .certificate(let reason)? = badCertificates[text] { throw SourceError(reason) }
    }

    /// Whether nothing was said against the text.
    package func examine(serviceKey text: [UInt8]) throws(SourceError) {
        if case .key(let reason)? = badCertificates[text] { throw SourceError(reason) }
    }

    /// What was said of the text as of a certificate; what was said of its key is said of one that
    /// can be done without.
    package func examine(
        tokenKeys text: [UInt8], isSet: Bool
    ) throws(SourceError) -> [String] {
        switch badCertificates[text] {
        case .certificate(let reason)?: throw SourceError(reason)
        case .key(let reason)?: return [reason]
        case .foreignKey?, nil: return []
        }
    }
}
