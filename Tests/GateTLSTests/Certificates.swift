import Foundation
import GateTLS

/// Certificates made once a run by the openssl command: an authority, servers and clients of it,
/// and another authority.
struct Certificates {
    let directory: URL

    /// Without the openssl command every test that uses it fails, each by its own name.
    static let shared = Result { try Certificates() }

    private init() throws {
        directory = FileManager.default.temporaryDirectory
            .appendingPathComponent("gate-tls-\(ProcessInfo.processInfo.processIdentifier)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        try authority("root")
        try authority("other")
        try leaf("api-ec", key: "ec", names: ["api.example.test", "www.example.test"])
        try leaf("api-rsa", key: "rsa", names: ["api.example.test"])
        try leaf("wild", key: "ec", names: ["*.wild.test"])
        try leaf("client", key: "ec", names: ["client.test"])
        try leaf("stranger", key: "ec", names: ["client.test"], of: "other")
        try leaf("address", key: "ec", names: [], address: "127.0.0.1")
    }

    func bytes(_ file: String) -> [UInt8] {
        (try? Data(contentsOf: directory.appendingPathComponent(file))).map(Array.init) ?? []
    }

    func identity(_ name: String) throws -> TLSIdentity {
        try TLSIdentity(chain: bytes("\(name).pem"), key: bytes("\(name).key"))
    }

    private func authority(_ name: String) throws {
        try openssl([
            "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-days", "30", "-subj", "/CN=\(name)", "-keyout", "\(name).key", "-out",
            "\(name).pem",
        ])
    }

    private func leaf(
        _ name: String, key: String, names: [String], address: String? = nil,
        of authority: String = "root"
    ) throws {
        let kind = key == "ec" ? ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"] : ["rsa:2048"]
        let alternatives =
            (names.map { "DNS:\($0)" } + (address.map { ["IP:\($0)"] } ?? []))
            .joined(separator: ",")
        try openssl(
            ["req", "-x509", "-newkey"] + kind + [
                "-nodes", "-days", "10", "-subj", "/CN=\(name)", "-addext",
                "subjectAltName=\(alternatives)", "-addext", "basicConstraints=critical,CA:false",
                "-CA", "\(authority).pem", "-CAkey", "\(authority).key", "-keyout", "\(name).key",
                "-out", "\(name).pem",
            ])
    }

    func openssl(_ arguments: [String]) throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/openssl")
        process.arguments = arguments
        process.currentDirectoryURL = directory
        process.standardError = FileHandle.nullDevice
        process.standardOutput = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw CocoaError(.fileNoSuchFile) }
    }
}
