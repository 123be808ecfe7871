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

func module(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
    .target(name: name, dependencies: dependencies, swiftSettings: swift)
}

func testModule(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
    .testTarget(name: name, dependencies: dependencies, swiftSettings: tests)
}

let package = Package(
    name: "attestgate",
    products: [
    ],
    targets: [

        module("GateBytes", []),

        testModule("GateBytesTests", ["GateBytes"]),
    ]
)
