import Foundation

/// One text file of the repository.
struct TextFile: Sendable {
    /// Relative to the top, `Sources/GateBytes/Hex.swift`.
    let path: String
    let lines: [String]
    /// The same lines of a Swift file without comments and contents of literals.
    let code: [String]

    init(path: String, lines: [String]) {
        self.path = path
        self.lines = lines
        self.code = path.hasSuffix(".swift") ? SwiftText(lines).code : []
    }

    var name: String { path.components(separatedBy: "/").last ?? path }

    /// The path's components.
    var parts: [String] { path.components(separatedBy: "/") }

    var isSource: Bool { path.hasPrefix("Sources/") }

    var isSwift: Bool { path.hasSuffix(".swift") }

    /// The module under Sources, or the target under Tests; empty elsewhere.
    var module: String { parts.count > 2 ? parts[1] : "" }
}

/// The tree these tests look at, read once.
enum Repository {
    static let top: URL = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    /// Every text file outside dot-directories, by path.
    static let files: [TextFile] = {
        let extensions = ["c", "conf", "h", "md", "py", "service", "swift", "txt"]
        let extensionless = ["LICENSE", "dev"]
        var found: [TextFile] = []
        for root in ["Sources", "Tests", "systemd", ""] {
            for path in paths(below: root) {
                let url = URL(fileURLWithPath: path)
                let isText =
                    extensions.contains(url.pathExtension)
                    || extensionless.contains(url.lastPathComponent)
                guard isText,
                    let bytes = FileManager.default.contents(atPath: top.appending(path: path).path)
                else {
                    continue
                }
                let text = String(decoding: bytes, as: UTF8.self)
                found.append(TextFile(path: path, lines: text.components(separatedBy: "\n")))
            }
        }
        return found.sorted { $0.path < $1.path }
    }()

    static let swiftFiles = files.filter(\.isSwift)

    static let sources = swiftFiles.filter(\.isSource)

    /// What stands at the top, dot-files left out.
    static func topLevel() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: top.path)
            .filter { !$0.hasPrefix(".") }.sorted()
    }

    static func exists(_ path: String) -> Bool {
        FileManager.default.fileExists(atPath: top.appending(path: path).path)
    }

    /// The directories right below `path`.
    static func directories(in path: String) -> [String] {
        let base = top.appending(path: path)
        let names = (try? FileManager.default.contentsOfDirectory(atPath: base.path)) ?? []
        return names.filter {
            var isDirectory: ObjCBool = false
            let full = base.appending(path: $0).path
            return FileManager.default.fileExists(atPath: full, isDirectory: &isDirectory)
                && isDirectory.boolValue && !$0.hasPrefix(".") && $0 != "__pycache__"
        }.sorted()
    }

    /// Paths of the files below `root`, or right at the top for an empty one.
    private static func paths(below root: String) -> [String] {
        let base = root.isEmpty ? top : top.appending(path: root)
        if root.isEmpty {
            let names = (try? FileManager.default.contentsOfDirectory(atPath: base.path)) ?? []
            return names.filter { !$0.hasPrefix(".") }
        }
        guard let walk = FileManager.default.enumerator(atPath: base.path) else { return [] }
        return walk.compactMap { $0 as? String }
            .filter { !$0.contains("__pycache__") && !$0.hasPrefix(".") }
            .map { "\(root)/\($0)" }
    }
}

/// A finding, or an exception to a rule: where, and what.
struct Finding: Hashable, CustomStringConvertible {
    let place: String
    let fault: String

    var description: String { "\(place): \(fault)" }
}

/// Sets `found` against the exceptions a rule grants: what is new, and what has become needless.
///
/// So a list of exceptions only shrinks.
func differences(_ found: [Finding], exceptions: [String: String]) -> [String] {
    let fresh = found.filter { exceptions[$0.place] == nil }.map(\.description)
    let places = Set(found.map(\.place))
    let needless = exceptions.keys.filter { !places.contains($0) }.sorted()
    return fresh + needless.map { "\($0): exception no longer needed, take it off the list" }
}
