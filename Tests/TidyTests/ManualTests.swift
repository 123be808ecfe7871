import Testing

@Suite("Tidy: the manual")
struct ManualTests {
    private static func text(_ path: String) throws -> String {
        let file = Repository.files.first { $0.path == path }
        return try #require(file, "\(path) is missing").lines.joined(separator: "\n")
    }

    private static let manual = "Sources/AppAttest/AppAttest.docc/"

    @Test("says of every reason what it means, and of none that there is not")
    func reasons() throws {
        let source = try Self.text("Sources/GateProxy/Policy/Reason.swift")
        let known = Set(
            source.matches(of: /\n    case (\w+)(?: = "(\w+)")?/).map { String($0.2 ?? $0.1) })
        #expect(known.count > 50)
        let checks = try Self.text(Self.manual + "Checks.md")
        let named = Set(checks.matches(of: /`([a-z]+(?:_[a-z]+)*)`/).map { String($0.1) })
        #expect(known.subtracting(named) == [])
        let others: Set = ["absent", "envelope", "require"]
        #expect(named.subtracting(known).filter { $0.contains("_") && !others.contains($0) } == [])
    }

    @Test("names only metrics that there are, and only reasons")
    func metrics() throws {
        let source = Repository.sources.filter { $0.path.contains("/Metrics/") }
            .flatMap(\.lines).joined(separator: "\n")
        let rollout = try Self.text(Self.manual + "Rollout.md")
        let named = rollout.matches(of: /attestgate_([a-z_]+)/).map { String($0.1) }
        #expect(named.count > 10)
        #expect(
            named.filter { !source.contains("\"\($0)\",") }
                == [])
        let reasons = try Self.text("Sources/GateProxy/Policy/Reason.swift")
        let said = rollout.matches(of: /reason="(\w+)"/).map { String($0.1) }
        #expect(
            said.filter { !reasons.contains("\"\($0)\"") && !reasons.contains("case \($0)\n") }
                == [])
    }
}
