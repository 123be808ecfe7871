import Testing

private let lineColumnsMax = 100
private let fileLinesMax = 800
private let functionLinesMax = 70
/// Code lines of a C shim target, header included.
private let shimLinesMax = 100

/// Exceptions by place (`path`, or `path:line` of the function). They only become fewer.
private let longFunctions: [String: String] = [:]
private let longFiles: [String: String] = [:]
private let longShims: [String: String] = [:]
/// Tests that compare whole messages or whole lines of a configuration: a literal broken in two
/// would no longer read as what an operator sees.
private let wideLiterals: Set<String> = [
    "Tests/GateConfigTests/AvailabilityTests.swift",
    "Tests/GateConfigTests/MeaningTests.swift",
    "Tests/GateConfigTests/MessageTests.swift",
    "Tests/GateConfigTests/ResolutionTests.swift",
    "Tests/GateConfigTests/RouteTableTests.swift",
    "Tests/GateConfigTests/ValueTests.swift",
    "Tests/GateProxyTests/PolicyAccessLogTests.swift",
    "Tests/GateProxyTests/PolicyEnrolmentTests.swift",
    "Tests/GateProxyTests/PolicyProofReaderTests.swift",
    "Tests/GateStoreTests/StoreRecoveryTests.swift",
    "Tests/GateStoreTests/StoreSimulationTests.swift",
]

@Suite("Tidy: layout")
struct LayoutTests {
    @Test("the top level of the repository is fixed")
    func topLevel() throws {
        let allowed = [
            "LICENSE", "Package.swift", "README.md", "Sources", "Tests", "dev", "proxy.conf",
            "systemd",
        ]
        let found = try Repository.topLevel()
        #expect(found.filter { !allowed.contains($0) } == [])
        let fixed =
            allowed + [
                ".ci/run", ".gitignore", ".swift-format", "Sources/CHANGELOG.md",
                "Sources/README.md", "Tests/README.md", "systemd/attestgate.service",
            ]
        #expect(fixed.filter { !Repository.exists($0) } == [])
    }

    @Test("every Swift target is built strictly: memory safety said, a warning is an error")
    func strictTargets() throws {
        let manifest = try #require(Repository.files.first { $0.path == "Package.swift" })
        let text = manifest.lines.joined(separator: "\n")
        let sources = try #require(text.firstRange(of: "let swift: [SwiftSetting] = ["))
        let tests = try #require(text.firstRange(of: "let tests: [SwiftSetting] = ["))
        for (start, settings) in [
            (sources, [".strictMemorySafety()", ".treatAllWarnings(as: .error)"]),
            (tests, [".treatAllWarnings(as: .error)"]),
        ] {
            let list = text[start.upperBound...].prefix { $0 != "]" }
            #expect(settings.filter { !list.contains($0) } == [])
        }
        // Each target gets one of the two lists: by the functions that make most of them, or
        // itself; the C shims have none, and the fuzz targets need flags that exclude these.
        #expect(text.contains("dependencies: dependencies, swiftSettings: swift)"))
        #expect(text.contains("dependencies: dependencies, swiftSettings: tests)"))
        let package = text.components(separatedBy: "// libFuzzer brings")[0]
        let bare =
            package.components(separatedBy: ".target(").dropFirst()
            + package.components(separatedBy: ".executableTarget(").dropFirst()
        let faults = bare.filter { target in
            let end = target.components(separatedBy: "\n        ").dropFirst().joined()
            let head = target.prefix(400)
            return !head.contains("\"CGate") && !head.contains("swiftSettings: swift")
                && !end.contains("swiftSettings: tests") && !head.contains("swiftSettings: tests")
        }
        #expect(faults.map { String($0.prefix(60)) } == [])
    }

    @Test("every directory of Sources and Tests is a target or is named here")
    func everyDirectoryIsUsed() throws {
        let manifest = try #require(Repository.files.first { $0.path == "Package.swift" })
        let text = manifest.lines.joined(separator: "\n")
        let noTarget: Set = ["Bench", "EndToEnd", "Fuzz", "Peers", "Vectors"]
        let directories =
            Repository.directories(in: "Sources")
            + Repository.directories(in: "Tests").filter { !noTarget.contains($0) }
        #expect(directories.filter { !text.contains("\"\($0)\"") } == [])
    }

    @Test("no line is wider than 100 columns")
    func lineWidth() {
        let faults = Repository.files
            .filter {
                ["c", "h", "py", "swift"].contains($0.name.split(separator: ".").last ?? "")
            }
            .flatMap { file in
                file.lines.enumerated()
                    .filter { $0.element.utf8.count > lineColumnsMax }
                    .filter { $0.element.count > lineColumnsMax }
                    .filter { !isRegularExpression($0.element) }
                    .filter { _ in !wideLiterals.contains(file.path) }
                    .map { "\(file.path):\($0.offset + 1): \($0.element.count) columns" }
            }
        #expect(faults == [])
    }

    @Test("no file is longer than 800 lines")
    func fileLength() {
        let found = Repository.files
            .filter { $0.name.hasSuffix(".swift") || $0.name.hasSuffix(".py") }
            .filter { $0.lines.count > fileLinesMax }
            .map { Finding(place: $0.path, fault: "\($0.lines.count) lines") }
        #expect(differences(found, exceptions: longFiles) == [])
    }

    @Test("no function is longer than 70 lines")
    func functionLength() {
        let found = Repository.swiftFiles.flatMap { file in
            SwiftText(code: file.code).functions().filter { $0.lineCount > functionLinesMax }
                .map { Finding(place: "\(file.path):\($0.line)", fault: "\($0.lineCount) lines") }
        }
        #expect(differences(found, exceptions: longFunctions) == [])
    }

    @Test("a C shim is under 100 lines and each of its functions is prefixed gate_")
    func shims() {
        let shims = Repository.files.filter { $0.module.hasPrefix("CGate") }
        let byTarget = Dictionary(grouping: shims, by: \.module)
        let found = byTarget.compactMap { target, files -> Finding? in
            let count = files.flatMap(\.lines)
                .filter { !$0.isEmpty && !$0.hasPrefix("//") && !$0.hasPrefix("#") }.count
            return count > shimLinesMax
                ? Finding(place: "Sources/\(target)", fault: "\(count) lines of C") : nil
        }
        #expect(differences(found, exceptions: longShims) == [])
        let declaration = /^(?:static inline )?[a-z][A-Za-z0-9_ ]*[ *]([A-Za-z0-9_]+)\(/
        let names = shims.flatMap { file in
            file.lines.compactMap { line in
                line.firstMatch(of: declaration).map { "\(file.path): \($0.1)" }
            }
        }
        #expect(names.filter { !$0.contains(": gate_") } == [])
    }

    @Test("no file in Sources is unused: another file names something it declares")
    func unusedFiles() {
        var mentions: [String: Int] = [:]
        for file in Repository.swiftFiles {
            for word in Set(file.code.flatMap(words)) { mentions[word, default: 0] += 1 }
        }
        let unused = Repository.sources.filter { file in
            if file.name == "main.swift" { return false }
            let declared = declarations(in: file.code)
            return !declared.isEmpty && declared.allSatisfy { mentions[$0, default: 0] < 2 }
        }
        #expect(unused.map(\.path) == [])
    }

    /// A line that holds nothing but a regular expression, which cannot be broken.
    private func isRegularExpression(_ line: String) -> Bool {
        let text = line.drop { $0 == " " }
        return text.hasPrefix("/") && !text.hasPrefix("//")
    }

    /// The identifiers and keywords of a line.
    private func words(_ line: String) -> [String] {
        line.utf8.split { byte in
            !(byte >= 0x61 && byte <= 0x7a || byte >= 0x41 && byte <= 0x5a
                || byte >= 0x30 && byte <= 0x39 || byte == 0x5f || byte >= 0x80)
        }.map { String(decoding: $0, as: UTF8.self) }
    }

    /// What a file declares for others: names at its top level and members.
    private func declarations(in code: [String]) -> Set<String> {
        let keywords: Set = [
            "actor", "case", "class", "enum", "func", "let", "protocol", "struct", "typealias",
            "var",
        ]
        var found: Set<String> = []
        for line in code where !line.hasPrefix("        ") && !line.contains("private ") {
            let parts = words(line)
            if let at = parts.firstIndex(where: keywords.contains), at + 1 < parts.count {
                found.insert(parts[at + 1])
            }
        }
        return found
    }
}
