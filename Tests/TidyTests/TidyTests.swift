import Testing

/// The scanner these tests rest on, and that each rule is able to fail.
@Suite("Tidy: scanner")
struct ScannerTests {
    @Test("comments and the contents of literals are blanked, lines and code are kept")
    func blanking() {
        let text = SwiftText([
            "let a = \"b // c!\" // d!", "/* e! /* f! */ g! */ let h = 1", "let i = #\"j\"!\"#",
            "let k = \"\"\"", "    l! \\(m(\"n\"))", "    \"\"\"", "let o = \"p\\\"q!\" + r",
            "let s = \"t\\(u(\")\"))v\" + w",
        ])
        #expect(
            text.code == [
                "let a = \"\" ", " let h = 1", "let i = \"\"", "let k = \"", "", "\"",
                "let o = \"\" + r", "let s = \"\" + w",
            ])
    }

    @Test("a function is measured from its keyword to its closing brace")
    func measuring() {
        let text = SwiftText([
            "struct A {", "    @inline(never) static func b(", "        _ c: () -> Void = {}",
            "    ) {", "        if d {", "        }", "    }", "    init?(e: Int) { nil }",
            "    func f() -> Int", "    { 1 }", "}", "protocol P {", "    func g()",
            "    func h()", "}", "func i() {", "}",
        ])
        #expect(
            text.functions() == [
                .init(line: 2, lineCount: 6), .init(line: 8, lineCount: 1),
                .init(line: 9, lineCount: 2), .init(line: 16, lineCount: 2),
            ])
    }

    @Test("an exception that is not needed any more is a fault of its own")
    func exceptionsShrink() {
        let found = [Finding(place: "a", fault: "1"), Finding(place: "b", fault: "2")]
        #expect(
            differences(found, exceptions: ["a": "", "c": ""]) == [
                "b: 2", "c: exception no longer needed, take it off the list",
            ])
    }

    @Test("the tree is found and read")
    func treeIsRead() {
        #expect(Repository.sources.count > 10)
        #expect(Repository.exists("Package.swift"))
    }
}
