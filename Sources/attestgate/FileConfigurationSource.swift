internal import GateConfig
internal import GateCrypto
internal import GateProxy
internal import GateTLS
internal import Glibc

/// Configuration from the file system, the environment and the resolver. Reads and looks up;
/// creates and binds nothing.
struct FileConfigurationSource: ConfigurationSource {
    /// The most bytes read of one file: more than a configuration, a certificate or a secret has.
    private static let bytesMax = 8 << 20

    /// The bytes of a file.
    func contents(ofFile path: String) throws(SourceError) -> [UInt8] {
        guard !path.utf8.contains(0) else { throw SourceError("the path holds a NUL") }
        let descriptor = unsafe Glibc.open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw Self.failure(errno) }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while bytes.count <= Self.bytesMax {
            let count = unsafe chunk.withUnsafeMutableBytes {
                unsafe read(descriptor, $0.baseAddress, $0.count)
            }
            if count < 0 {
                if errno == EINTR { continue }
                throw Self.failure(errno)
            }
            if count == 0 { return bytes }
            bytes += chunk[..<count]
        }
        throw SourceError("larger than \(Self.bytesMax >> 20) MiB")
    }

    /// The names in a directory.
    func entries(ofDirectory path: String) -> [String]? {
        guard let directory = unsafe opendir(path.isEmpty ? "." : path) else { return nil }
        defer { unsafe closedir(directory) }
        var names: [String] = []
        while let entry = unsafe readdir(directory) {
            let name = unsafe withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names
    }

    /// The bytes of a credential that systemd's `LoadCredential=` placed.
    func credential(_ name: String) throws(SourceError) -> [UInt8] {
        guard let directory = environment("CREDENTIALS_DIRECTORY"), !directory.isEmpty else {
            throw SourceError("$CREDENTIALS_DIRECTORY is not set; use LoadCredential= or file:PATH")
        }
        return try contents(ofFile: "\(directory)/\(name)")
    }

    /// The value of an environment variable.
    func environment(_ name: String) -> String? {
        guard !name.utf8.contains(0), let value = unsafe getenv(name) else { return nil }
        return unsafe String(cString: value)
    }

    /// Whether `name` resolves to an address; asks the system's resolver and waits for it.
    func resolve(_ name: String) throws(SourceError) {
        var hints = unsafe addrinfo()
        unsafe hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var found: UnsafeMutablePointer<addrinfo>?
        let status = unsafe getaddrinfo(name, nil, &hints, &found)
        if let found = unsafe found { unsafe freeaddrinfo(found) }
        guard status == 0 else {
            let reason = unsafe gai_strerror(status).map { unsafe String(cString: $0) }
            throw SourceError(reason?.lowercased() ?? "the resolver failed")
        }
    }

    /// Whether a directory can be written to, or could be created below the nearest one that
    /// exists.
    func examine(directory path: String) throws(SourceError) {
        var place = path
        while true {
            if unsafe access(place, F_OK) == 0 { break }
            guard errno == ENOENT, let slash = place.lastIndex(of: "/") else {
                throw Self.failure(errno)
            }
            place = slash == place.startIndex ? "/" : String(place[..<slash])
        }
        var information = stat()
        guard unsafe stat(place, &information) == 0 else { throw Self.failure(errno) }
        guard information.st_mode & S_IFMT == S_IFDIR else {
            throw SourceError("\(place) is no directory")
        }
        guard unsafe access(place, W_OK | X_OK) == 0 else {
            let reason = Self.failure(errno).reason
            throw SourceError(place == path ? reason : "it is missing and \(place): \(reason)")
        }
    }

    /// Whether the file or socket `path` can be written to, or made in its directory.
    func examine(file path: String) throws(SourceError) {
        var information = stat()
        if unsafe stat(path, &information) == 0, information.st_mode & S_IFMT != S_IFSOCK {
            guard information.st_mode & S_IFMT != S_IFDIR else {
                throw SourceError("it is a directory")
            }
            guard unsafe access(path, W_OK) == 0 else { throw Self.failure(errno) }
            return
        }
        // A socket that is there is replaced: what counts is its directory.
        let parent: String
        switch path.lastIndex(of: "/") {
        case nil: parent = "."
        case path.startIndex: parent = "/"
        case let slash?: parent = String(path[..<slash])
        }
        guard unsafe access(parent, W_OK | X_OK) == 0 else {
            throw SourceError("\(parent): \(Self.failure(errno).reason)")
        }
    }

    /// What a certificate and a key say, as OpenSSL reads them.
    func examine(certificate pair: CertificatePair) throws(CertificateFault) -> CertificateFacts {
        do throws(TLSSetupError) {
            let identity = try TLSIdentity(chain: pair.chain, key: pair.key)
            try identity.examine()
            return CertificateFacts(validity: identity.validity, now: Int64(time(nil)))
        } catch {
            switch error {
            case .certificate(let reason), .rejected(let reason): throw .certificate(reason)
            case .foreignKey: throw .foreignKey
            case .key(let reason): throw .key(reason)
            }
        }
    }

    /// Whether OpenSSL can read the certificates of `text`.
    func examine(authorities text: [UInt8]) throws(SourceError) {
        do throws(TLSSetupError) {
            try TLSAuthorities.examine(text)
        } catch {
            throw SourceError(error.clause)
        }
    }

    /// Whether OpenSSL can sign with the key of `text`.
    func examine(serviceKey text: [UInt8]) throws(SourceError) {
        do throws(PrivateKeyTextError) {
            _ = try ServiceSigningKey(pem: text)
        } catch {
            throw SourceError("\(error)")
        }
    }

    /// What the gate can make of keys of tokens.
    func examine(tokenKeys text: [UInt8], isSet: Bool) throws(SourceError) -> [String] {
        guard isSet else {
            do throws(TokenKeyError) {
                _ = try TokenKeySet.parse(pem: text)
                return []
            } catch {
                throw SourceError("\(error)")
            }
        }
        do throws(TokenKeySetError) {
            let set = try TokenKeySet.parse(set: text)
            guard set.count > 0 else {
                throw TokenKeySetError(set.omissions.first ?? "it holds no keys")
            }
            return set.omissions
        } catch {
            throw SourceError("\(error)")
        }
    }

    private static func failure(_ code: Int32) -> SourceError {
        guard let text = unsafe strerror(code) else { return SourceError("error \(code)") }
        return SourceError(unsafe String(cString: text).lowercased())
    }
}
