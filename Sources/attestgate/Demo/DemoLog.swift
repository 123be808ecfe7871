internal import AppAttestWire
internal import Glibc

/// The gate's access log, for the reasons that no answer tells.
struct DemoLog {
    let path: String

    private static let bytesMax = 16 << 20
    private static let waitsMax = 200
    private static let waitMicroseconds: UInt32 = 10_000

    /// The reason in the line of the request `id`, empty where the line has none; nil when no such
    /// line comes within two seconds. The gate writes its log behind the answers.
    func reason(_ id: String) -> String? {
        for _ in 0..<Self.waitsMax {
            // The file is made at start; a fault here shows as a line that does not come.
            let bytes = (try? FileAccess.read(path, bytesMax: Self.bytesMax)) ?? []
            for line in bytes.split(separator: 0x0a).reversed() {
                // The last line may not be whole yet.
                let members = try? JSONMembers.scan(Array(line), named: ["request_id", "reason"])
                guard let members, members[0] == .string(Array(id.utf8)) else { continue }
                guard case .string(let reason) = members[1] else { return "" }
                return String(decoding: reason, as: UTF8.self)
            }
            usleep(Self.waitMicroseconds)
        }
        return nil
    }
}
