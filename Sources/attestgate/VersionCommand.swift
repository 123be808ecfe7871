internal import AppAttestWire
internal import CGateBuild
internal import CGateNGHTTP2
internal import GateCrypto

/// `attestgate version`: what this binary is and what it runs on.
enum VersionCommand {
    /// The version of this source.
    static let version = "0.1.0"

    static let specification = CommandSpecification(
        "version", summary: "print version, commit, and the versions of Swift, OpenSSL and nghttp2",
        optional: [SharedOptions.json]
    ) { (arguments, console) throws(CommandError) in
        run(isJSON: arguments.has(SharedOptions.json), console: console)
    }

    static func run(isJSON: Bool, console: Console) -> ExitCode {
        if isJSON {
            var json = JSONWriter()
            json.beginObject()
            json.member("version", version)
            json.member("commit", commit)
            json.member("swift", swift)
            json.member("openssl", LibraryVersion.openSSL)
            json.member("nghttp2", nghttp2)
            json.endObject()
            console.printJSON(json)
        } else {
            console.print("attestgate \(version)")
            console.print("commit     \(commit)")
            console.print("Swift      \(swift)")
            console.print("OpenSSL    \(LibraryVersion.openSSL)")
            console.print("nghttp2    \(nghttp2)")
        }
        return .done
    }

    /// The commit, which a release build is told by the environment variable `ATTESTGATE_COMMIT`.
    private static var commit: String {
        let text = unsafe String(cString: gate_build_commit())
        return text.isEmpty ? "unknown" : text
    }

    /// The compiler's version; the language offers it to conditions alone.
    private static var swift: String {
        #if swift(>=6.5)
            return "6.5 or later"
        #elseif swift(>=6.4)
            return "6.4"
        #elseif swift(>=6.3)
            return "6.3"
        #else
            return "6.2"
        #endif
    }

    /// nghttp2 as it is loaded now.
    private static var nghttp2: String {
        guard let info = unsafe nghttp2_version(0), let text = unsafe info.pointee.version_str
        else {
            return "unknown"
        }
        return unsafe String(cString: text)
    }
}
