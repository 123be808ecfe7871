import Foundation
import GateConfig
import Testing

/// The path vectors of shared/hostile/vectors.jsonl; empty where the file is not there.
enum HostileVectors {
    struct Vector: Decodable, Sendable, CustomTestStringConvertible {
        let id: String
        let send: [String]?
        let want: [String]
        var testDescription: String { id }
    }

    static let url = URL(filePath: #filePath).deletingLastPathComponent()
        .appending(path: "../../../shared/hostile/vectors.jsonl").standardizedFileURL

    static let paths: [Vector] = {
        guard let text = try? String(contentsOf: url, encoding: .utf8) else { return [] }
        return text.split(separator: "\n").compactMap { line in
            try? JSONDecoder().decode(Vector.self, from: Data(line.utf8))
        }.filter { $0.id.hasPrefix("path-") && $0.send != nil }
    }()
}

@Suite("Paths: hostile vectors")
struct HostileVectorTests {
    @Test("the file holds the path vectors", .enabled(if: !HostileVectors.paths.isEmpty))
    func present() {
        #expect(HostileVectors.paths.count >= 50)
    }

    @Test(
        "each meets what it wants", .enabled(if: !HostileVectors.paths.isEmpty),
        arguments: HostileVectors.paths)
    func vector(_ vector: HostileVectors.Vector) throws {
        let text = try #require(vector.send).joined()
        // Latin-1, as the probe sends it: one byte a character.
        let bytes = text.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) }
        let end = try #require(bytes.firstIndex(of: 0x0d))
        let words = bytes[..<end].split(separator: 0x20, omittingEmptySubsequences: false)
        // Without a method, a target and a version the message parser answers, not the route table.
        guard words.count == 3, words[1].first == 0x2f else { return }
        let path = Array(words[1].prefix { $0 != 0x3f })
        let table = RouteTable(host: try loadHost(hostileHost))
        let found = match(table, String(decoding: words[0], as: UTF8.self), path)
        let isOpen = found == .route(-1, isAmbiguous: false)
        let isRefused = found == .ambiguous
        if vector.want == ["pass"] {
            #expect(isOpen)
        } else if vector.want.contains("reject") {
            #expect(isRefused || !isOpen)
        } else {
            #expect(!isRefused && !isOpen, "\(found)")
        }
    }
}
