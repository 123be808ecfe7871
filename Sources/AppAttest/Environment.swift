/// Where a key is good: App Attest keeps development and production apart.
public enum Environment: String, CaseIterable, Sendable {
    /// Apps signed for development that ask for it.
    case development
    /// Everything distributed, TestFlight and enterprise included.
    case production

    /// The AAGUID that says so, all sixteen bytes: a comparison of fewer lets development pass as
    /// production.
    var aaguid: [UInt8] {
        switch self {
        case .development: return Array("appattestdevelop".utf8)
        case .production: return Array("appattest".utf8) + [UInt8](repeating: 0, count: 7)
        }
    }
}
