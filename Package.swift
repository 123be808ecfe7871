// swift-tools-version: 6.2
import PackageDescription

/// Settings of every Swift target. `treatAllWarnings(as: .error)` keeps the tree clean;
/// `strictMemorySafety()` makes each unsafe expression say so.
let swift: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .strictMemorySafety(),
    .treatAllWarnings(as: .error),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

/// Tests may be lax about unsafe expressions, never about warnings.
let tests: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .treatAllWarnings(as: .error),
    .enableUpcomingFeature("ExistentialAny"),
]

/// The commit, as `dev` gives it. Not asked of git here: the manifest is cached, and a stale commit
/// is worse than none.
let commit = Context.environment["ATTESTGATE_COMMIT"] ?? ""

func module(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
    .target(name: name, dependencies: dependencies, swiftSettings: swift)
}

func testModule(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
    .testTarget(name: name, dependencies: dependencies, swiftSettings: tests)
}

let package = Package(
    name: "attestgate",
    products: [
        .library(name: "AppAttest", targets: ["AppAttest"]),
        .executable(name: "attestgate", targets: ["attestgate"]),
    ],
    targets: [
        // C shims: macros and calls Swift cannot import, no logic.
        .target(
            name: "CGateOpenSSL",
            linkerSettings: [.linkedLibrary("ssl"), .linkedLibrary("crypto")]),
        .target(name: "CGateNGHTTP2", linkerSettings: [.linkedLibrary("nghttp2")]),
        .target(name: "CGateLinux"),
        .target(
            name: "CGateBuild",
            cSettings: [.define("GATE_BUILD_COMMIT", to: "\"\(commit)\"")]),

        module("GateBytes", []),
        module("GateCrypto", ["GateBytes", "CGateOpenSSL"]),
        module("AppAttest", ["GateBytes", "GateCrypto"]),
        module("AppAttestWire", ["GateBytes"]),
        module("AppAttestDevice", ["GateBytes", "GateCrypto"]),
        module("GateStore", ["GateBytes", "GateLock", "CGateLinux"]),
        module("GateLock", ["CGateLinux"]),
        module("GateRuntime", ["GateBytes", "GateLock", "CGateLinux"]),
        module("GateTLS", ["GateBytes", "GateLock", "GateRuntime", "CGateOpenSSL"]),
        module("GateHTTP", ["GateBytes"]),
        module("GateHTTP2", ["GateBytes", "GateHTTP", "CGateNGHTTP2"]),
        module("GateConfig", ["GateBytes"]),
        module(
            "GateProxy",
            [
                "GateBytes", "GateLock", "GateCrypto", "AppAttest", "AppAttestWire", "GateStore",
                "GateRuntime", "GateHTTP", "GateHTTP2", "GateConfig", "GateTLS",
            ]),
        .executableTarget(
            name: "attestgate",
            dependencies: [
                "GateBytes", "GateCrypto", "AppAttest", "AppAttestWire", "AppAttestDevice",
                "GateConfig", "GateHTTP", "GateLock", "GateProxy", "GateRuntime", "GateTLS",
                "CGateBuild", "CGateNGHTTP2",
            ],
            swiftSettings: swift),

        testModule("GateBytesTests", ["GateBytes"]),
        testModule("GateCryptoTests", ["GateBytes", "GateCrypto"]),
        testModule(
            "AppAttestTests", ["GateBytes", "GateCrypto", "AppAttest", "AppAttestDevice"]),
        testModule("AppAttestWireTests", ["GateBytes", "AppAttestWire"]),
        testModule("GateStoreTests", ["GateBytes", "GateLock", "GateStore", "GateSimulation"]),
        testModule("GateHTTPTests", ["GateBytes", "GateHTTP"]),
        testModule("GateHTTP2Tests", ["GateBytes", "GateHTTP", "GateHTTP2"]),
        testModule("GateConfigTests", ["GateBytes", "GateConfig"]),
        testModule("GateRuntimeTests", ["GateBytes", "GateLock", "GateRuntime"]),
        testModule("GateTLSTests", ["GateBytes", "GateLock", "GateRuntime", "GateTLS"]),
        testModule(
            "GateProxyTests",
            [
                "GateBytes", "GateCrypto", "AppAttest", "AppAttestWire", "AppAttestDevice",
                "GateStore", "GateRuntime", "GateHTTP", "GateConfig", "GateProxy",
                "GateSimulation",
            ]),
        .target(
            name: "GateSimulation",
            dependencies: ["GateBytes", "GateLock", "GateStore"],
            path: "Tests/GateSimulation",
            swiftSettings: tests),
        .executableTarget(
            name: "Simulate",
            dependencies: ["GateSimulation"],
            path: "Tests/Simulate",
            exclude: ["mutations.py"],
            swiftSettings: tests),
        testModule(
            "attestgateTests",
            [
                "attestgate", "GateBytes", "GateCrypto", "AppAttest", "AppAttestDevice",
                "AppAttestWire",
            ]),
        testModule("TidyTests", []),
    ]
)

// libFuzzer brings its own main, so these targets link in a fuzzing build alone: `./dev fuzz`.
if Context.environment["GATE_FUZZ"] != nil {
    func fuzz(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
        .executableTarget(
            name: name, dependencies: dependencies, path: "Tests/Fuzz/\(name)",
            exclude: ["Corpus"],
            swiftSettings: [.swiftLanguageMode(.v6), .unsafeFlags(["-parse-as-library"])])
    }
    package.targets += [
        fuzz("FuzzCBOR", ["AppAttest", "GateBytes"]),
        fuzz("FuzzClientData", ["AppAttestWire", "GateBytes"]),
        fuzz("FuzzConfiguration", ["GateConfig"]),
        fuzz("FuzzHTTP2", ["GateBytes", "GateHTTP", "GateHTTP2"]),
        fuzz("FuzzHTTPBody", ["GateBytes", "GateHTTP"]),
        fuzz("FuzzHTTPHead", ["GateBytes", "GateHTTP"]),
        fuzz("FuzzHTTPResponse", ["GateBytes", "GateHTTP"]),
        fuzz("FuzzJSONPointer", ["AppAttestWire", "GateBytes"]),
        fuzz("FuzzJWT", ["GateCrypto", "GateProxy"]),
        fuzz("FuzzPROXY", ["GateBytes", "GateHTTP"]),
        fuzz("FuzzReceipt", ["AppAttest"]),
    ]
}
