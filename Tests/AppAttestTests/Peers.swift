import Foundation
import GateBytes

/// The Python programs under `Tests/Peers`, run with the interpreter that `dev` prepares.
enum Peers {
    private static let package = URL(filePath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    /// The interpreter of `ATTESTGATE_TEST_PYTHON` or of `.build/venv`; nil when neither is there.
    static let python: URL? = {
        let named = ProcessInfo.processInfo.environment["ATTESTGATE_TEST_PYTHON"]
        let url =
            named.map { URL(filePath: $0) } ?? package.appending(path: ".build/venv/bin/python")
        return FileManager.default.isExecutableFile(atPath: url.path) ? url : nil
    }()

    static let arePresent = python != nil

    struct Failure: Error {
        let status: Int32
        let output: String
    }

    /// Runs `program` once over `requests`, one JSON object a line; its answers, in the same order.
    static func run(
        _ program: String, _ arguments: [String] = [], _ requests: [[String: Any]]
    ) throws -> [[String: Any]] {
        let folder = FileManager.default.temporaryDirectory
            .appending(path: "attestgate-peers-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        // Files, not pipes: neither side can then wait for the other to read.
        let input = folder.appending(path: "input")
        let output = folder.appending(path: "output")
        var lines = Data()
        for request in requests {
            lines += try JSONSerialization.data(withJSONObject: request)
            lines.append(0x0a)
        }
        try lines.write(to: input)
        try Data().write(to: output)
        let process = Process()
        process.executableURL = python
        process.arguments =
            [package.appending(path: "Tests/Peers/\(program)").path] + arguments
        process.environment = ProcessInfo.processInfo.environment.merging(
            ["PYTHONDONTWRITEBYTECODE": "1"]) { _, new in new }
        process.standardInput = try FileHandle(forReadingFrom: input)
        process.standardOutput = try FileHandle(forWritingTo: output)
        try process.run()
        process.waitUntilExit()
        let data = try Data(contentsOf: output)
        guard process.terminationStatus == 0 else {
            throw Failure(
                status: process.terminationStatus, output: String(decoding: data, as: UTF8.self))
        }
        return try data.split(separator: 0x0a).map { line in
            let value = try JSONSerialization.jsonObject(with: line)
            return value as? [String: Any] ?? [:]
        }
    }
}

extension [String: Any] {
    func text(_ name: String) -> String? { self[name] as? String }
    func bytes(_ name: String) -> [UInt8]? { text(name).flatMap { Base64.decode($0) } }
    var isAccepted: Bool? { self["accepted"] as? Bool }
}
