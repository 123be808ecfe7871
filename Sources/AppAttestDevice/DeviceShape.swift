/// What a simulated device looks like on the wire: real ones have changed over the years, and a
/// verifier that was written for one of them refused the next.
package enum DeviceShape: String, CaseIterable, Sendable {
    case iOS14 = "ios14"
    case iOS15 = "ios15"
    case iOS16 = "ios16"
    case iOS17 = "ios17"
    case iOS18 = "ios18"
    /// An app with the entitlement that puts an unsigned `cdHash` member into its objects.
    case iOS18CodeDirectory = "ios18-cdhash"
    case iOS26 = "ios26"
    /// The same member on iOS 26.
    case iOS26CodeDirectory = "ios26-cdhash"
    /// Flags C0, signed bundle version and category.
    case iOS27 = "ios27"
    /// Signed extensions with the extension flag clear, as Apple's sample object has them.
    case iOS27Beta = "ios27-beta"
    /// iOS 27 and an app of an older SDK: no extensions.
    case iOS27OldSDK = "ios27-oldsdk"
    /// Signed code directory hash and category, flags 40.
    case macOS27 = "macos27"

    /// How the leaf's Apple extensions are laid out.
    enum LeafLayout {
        /// 2020: of the system, its version alone.
        case short
        /// 2022 to 2024: version and build.
        case medium
        /// From iOS 26.2 on: everything, with access control and a purpose.
        case long
    }

    var leafLayout: LeafLayout {
        switch self {
        case .iOS14, .iOS15: return .short
        case .iOS16, .iOS17, .iOS18, .iOS18CodeDirectory: return .medium
        case .iOS26, .iOS26CodeDirectory, .iOS27, .iOS27Beta, .iOS27OldSDK, .macOS27: return .long
        }
    }

    /// The flags of both objects: AT always, ED only on iOS 27 proper.
    var flags: UInt8 {
        self == .iOS27 ? 0xc0 : 0x40
    }

    var system: (version: String, build: String, tuple: String, platform: String) {
        switch self {
        case .iOS14: return ("14.2", "18B92", "18.2.92.0.0,0", "iphoneos")
        case .iOS15: return ("15.7", "19H12", "19.8.12.0.0,0", "iphoneos")
        case .iOS16: return ("16.2", "20C65", "20.3.65.0.0,0", "iphoneos")
        case .iOS17: return ("17.4.1", "21E236", "21.5.236.0.0,0", "iphoneos")
        case .iOS18, .iOS18CodeDirectory: return ("18.5", "22F76", "22.6.76.0.0,0", "iphoneos")
        case .iOS26, .iOS26CodeDirectory: return ("26.2", "23C55", "23.3.55.0.0,0", "iphoneos")
        case .iOS27, .iOS27OldSDK: return ("27.0.1", "24A446", "24.1.446.0.0,0", "iphoneos")
        case .iOS27Beta: return ("27.0", "24A325b", "24.1.325.2.0,0", "iphoneos")
        case .macOS27: return ("27.0", "26A5378n", "26.1.378.5.14,0", "macosx")
        }
    }

    /// The signed category: 1 system build, 3 development, 6 Developer ID.
    var validationCategory: UInt32? {
        switch self {
        case .iOS27: return 3
        case .iOS27Beta: return 1
        case .macOS27: return 6
        default: return nil
        }
    }

    /// The signed bundle version.
    var bundleVersion: String? {
        switch self {
        case .iOS27: return "1314"
        case .iOS27Beta: return "1"
        default: return nil
        }
    }

    /// Whether the code directory hash is among the signed extensions.
    var signsCodeDirectory: Bool { self == .macOS27 }

    /// Whether the code directory hash is an unsigned member of the objects.
    var showsCodeDirectory: Bool {
        self == .iOS18CodeDirectory || self == .iOS26CodeDirectory
    }
}
