import Testing

/// Which module may import what: `Sources/README.md` draws the same graph.
///
/// Siblings meet in GateProxy and in the command only. The lists say what is allowed, not what is
/// used.
private let allowedImports: [String: Set<String>] = [
    "AppAttest": ["GateBytes", "GateCrypto"],
    "AppAttestDevice": ["GateBytes", "GateCrypto"],
    "AppAttestWire": ["GateBytes"],
    "GateBytes": [],
    "GateConfig": ["GateBytes"],
    "GateCrypto": ["CGateOpenSSL", "GateBytes", "Synchronization"],
    "GateHTTP": ["GateBytes"],
    "GateHTTP2": ["CGateNGHTTP2", "GateBytes", "GateHTTP"],
    "GateLock": ["CGateLinux", "Glibc"],
    "GateProxy": [
        "AppAttest", "AppAttestWire", "GateBytes", "GateConfig", "GateCrypto", "GateHTTP",
        "GateHTTP2", "GateLock", "GateRuntime", "GateStore", "GateTLS",
    ],
    "GateRuntime": [
        "CGateLinux", "Dispatch", "GateBytes", "GateLock", "Glibc", "Synchronization",
    ],
    "GateStore": ["GateBytes", "GateLock", "Synchronization"],
    "GateTLS": ["CGateOpenSSL", "GateBytes", "GateLock", "GateRuntime"],
    "attestgate": [
        "AppAttest", "AppAttestDevice", "AppAttestWire", "CGateBuild", "CGateNGHTTP2", "Dispatch",
        "FoundationEssentials", "GateBytes", "GateConfig", "GateCrypto", "GateHTTP", "GateLock",
        "GateProxy", "GateRuntime", "GateTLS", "Glibc",
    ],
]

/// What single files may import besides, each with its reason.
private let allowedInFile: [String: Set<String>] = [
    // The one place where the store meets the operating system.
    "Sources/GateStore/FileStorage.swift": ["CGateLinux", "Glibc"],
    // The writer's thread.
    "Sources/GateStore/WorkerThread.swift": ["Glibc"],
]

/// An `import` line.
private struct Import {
    let path: String
    let line: Int
    let access: String
    let module: String

    /// The imports of a file.
    static func all(in file: TextFile) -> [Import] {
        file.code.enumerated().compactMap { number, text in
            let pattern =
                /^\s*(?:@\w+(?:\([^)]*\))?\s+)*(?:(internal|package|public|private|fileprivate)\s+)?import\s+(?:(?:struct|class|enum|protocol|func|var|let|typealias)\s+)?([A-Za-z_0-9]+)/
            guard text.contains("import "), let match = text.firstMatch(of: pattern) else {
                return nil
            }
            return Import(
                path: file.path, line: number + 1, access: String(match.1 ?? "internal"),
                module: String(match.2))
        }
    }
}

@Suite("Tidy: imports")
struct ImportTests {
    private static let imports = Repository.sources.flatMap(Import.all)

    @Test("every module under Sources has its line in the table of allowed imports")
    func everyModuleIsKnown() {
        let modules = Repository.directories(in: "Sources").filter { !$0.hasPrefix("CGate") }
            .filter { !$0.hasSuffix(".docc") }
        #expect(modules == allowedImports.keys.sorted())
    }

    @Test("a module imports only what the graph allows")
    func importsFollowTheGraph() {
        let faults = Self.imports.compactMap { entry -> String? in
            let module = entry.path.split(separator: "/").dropFirst().first.map(String.init) ?? ""
            let allowed = (allowedImports[module] ?? []).union(allowedInFile[entry.path] ?? [])
            return allowed.contains(entry.module)
                ? nil : "\(entry.path):\(entry.line): \(module) may not import \(entry.module)"
        }
        #expect(faults == [])
    }

    @Test("a file named for its imports exists and uses them")
    func fileRulesAreNeeded() {
        for (path, modules) in allowedInFile {
            let used = Self.imports.filter { $0.path == path }.map(\.module)
            // A file that is not written yet needs no rule checked.
            guard Repository.exists(path) else { continue }
            #expect(modules.contains { used.contains($0) }, "\(path) needs none of \(modules)")
        }
    }

    @Test("C is never re-exported: no module's interface mentions a C module")
    func shimsStayInternal() {
        let faults = Self.imports.filter {
            $0.module.hasPrefix("CGate") && ["package", "public"].contains($0.access)
        }
        #expect(faults.map { "\($0.path):\($0.line)" } == [])
    }

    @Test("the whole of Foundation stays out of Sources: it adds 44 MB to the daemon")
    func noFoundation() {
        let faults = Self.imports.filter { $0.module == "Foundation" }
        #expect(faults.map { "\($0.path):\($0.line)" } == [])
    }

    @Test("tests use what users see: no @testable")
    func noTestable() {
        let faults = Repository.swiftFiles.filter { !$0.isSource }.flatMap { file in
            file.code.enumerated()
                .filter { $0.element.hasPrefix("@test" + "able") }
                .map { "\(file.path):\($0.offset + 1)" }
        }
        #expect(faults == [])
    }
}
